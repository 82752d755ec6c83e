"""XGBoost, blind to cost.

T. Chen, C. Guestrin, "XGBoost: a scalable tree boosting system", KDD 2016: second-order boosting
with an l2 penalty on leaf values. Trained by the library (``tree_method = hist``), imported, and
metered like our own trees.

Departures
- Copies of rows are made physically, since its bins and limits do not all count weights.
- ``min_rows`` is its min_child_weight: the least sum of second derivatives on each side, which is
  the number of rows for squared loss only.
- Trained on one thread whatever the harness offers: the library does not promise the same bits for
  every number of threads (for 1 and 2 threads and 60000 rows they were the same).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bench_models.boosting import TASKS, LossName, bench_warm_up, loss_of
from bench_models.libraries.common import (
    check_classes,
    group_sizes,
    library_errors,
    version_of,
    with_physical_copies,
)
from bench_models.libraries.serving import LibraryModel, serve

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, hookimpl, param

bench_warm_up = hookimpl(bench_warm_up)

_OBJECTIVES = {
    "squared": "reg:squarederror",
    "logistic": "binary:logistic",
    "softmax": "multi:softprob",
    "lambdarank": "rank:ndcg",
}


@dataclass(frozen=True)
class XGBoost:
    """XGBoost's boosted trees, blind to cost."""

    name: ClassVar[str] = "xgboost"
    tasks: ClassVar[frozenset[Task]] = TASKS

    trees: int = param(300, "boosting iterations (for K classes K trees each)", least=1)
    learning_rate: float = param(0.1, "shrinkage of every tree's output (eta)", above=0)
    depth: int = param(4, "most split levels of a tree", least=1)
    loss: LossName = param("auto", "loss; auto: squared, for classes logistic or softmax")
    min_rows: float = param(
        1.0, "least sum of second derivatives on each side (min_child_weight)", least=1
    )
    max_bins: int = param(256, "most bins per feature", least=2)
    l2: float = param(1.0, "l2 penalty on leaf values (lambda)", least=0)

    def stamp(self) -> str:
        """The library's version."""
        return version_of(self.name, "xgboost", "xgboost-cpu")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Boost on ``train``; ``valid`` is not used."""
        from bench_trees.importers import read_model

        self.stamp()
        check_classes(self.name, train, context.task)
        loss, _ = loss_of(context.task, self.loss, context.classes)
        rows = with_physical_copies(train)
        with library_errors(self.name):
            import xgboost

            data = xgboost.DMatrix(rows.X, rows.y, nthread=1)
            if loss == "lambdarank":
                data.set_group(group_sizes(rows))
            booster = xgboost.Booster(self._parameters(loss, context), [data])
            for done in range(self.trees):
                booster.update(data, done)
                context.progress(done + 1, self.trees)
            raw = bytes(booster.save_raw("ubj"))
        return serve(read_model(raw), prices, {"loss": loss})

    def _parameters(self, loss: str, context: FitContext) -> dict[str, Any]:
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


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """The one learner of this module."""
    return [XGBoost]
