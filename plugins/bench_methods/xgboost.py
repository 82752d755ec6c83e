"""XGBoost, ignoring cost.

T. Chen, C. Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016: second-order boosting
with an l2 penalty on leaf values. Trained by the library (``tree_method = hist``), imported, and
metered like our own trees.

Departures
- With more features than rows, the number of bins is that of our trees, not the library's.
- Copies of rows are made physically, since its bins and limits do not all count weights.
- ``min_rows`` is its min_child_weight: the least sum of second derivatives on each side, which is
  the number of rows for squared loss only.
- Always trained on one thread: the library does not guarantee bit-identical results for every
  number of threads (for 1 and 2 threads and 60000 rows they were identical).
"""

from dataclasses import dataclass
from typing import ClassVar

from bench_models.boosting import WIDE
from bench_models.libraries import LibraryTrees, Parameters, group_sizes

from bench_core import Examples, FitContext, linear, log, param, provide_learners

_OBJECTIVES = {
    "squared": "reg:squarederror",
    "logistic": "binary:logistic",
    "softmax": "multi:softprob",
    "lambdarank": "rank:ndcg",
}


@dataclass(frozen=True, kw_only=True)
class XGBoost(LibraryTrees):
    """XGBoost's boosted trees, ignoring cost."""

    name: ClassVar[str] = "xgboost"
    distributions: ClassVar[tuple[str, ...]] = ("xgboost", "xgboost-cpu")
    ranking_limits: ClassVar[tuple[float, float]] = (31, float("inf"))

    depth: int = param(4, "most split levels of a tree", least=1, search=linear(3, 10))
    min_rows: float = param(  # type: ignore[assignment]
        1.0,
        "least sum of second derivatives on each side (min_child_weight)",
        least=1,
        search=log(1, 30),
    )
    max_bins: int = param(256, f"most bins per feature{WIDE}", least=2)
    l2: float = param(1.0, "l2 penalty on leaf values (lambda)", least=0, search=log(0.1, 10))

    def _parameters(self, loss: str, context: FitContext) -> Parameters:
        classes = {"num_class": context.classes} if loss == "softmax" else {}
        return {
            "objective": _OBJECTIVES[loss],
            **classes,
            "tree_method": "hist",
            "eta": self.learning_rate,
            "max_depth": self.depth,
            "min_child_weight": self.min_rows,
            "max_bin": self.max_bins,
            "lambda": self.l2,
            "nthread": 1,
            "seed": context.seed,
            "verbosity": 0,
        }

    def _trained(self, how: Parameters, rows: Examples, loss: str, context: FitContext) -> bytes:
        import xgboost

        data = xgboost.DMatrix(rows.X, rows.y, nthread=1)
        if loss == "lambdarank":
            data.set_group(group_sizes(rows))
        booster = xgboost.train(how, data, self.trees)
        context.progress(1, 1)
        return bytes(booster.save_raw("ubj"))


bench_learners = provide_learners(XGBoost, family="libraries")
