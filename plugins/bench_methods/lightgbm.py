"""LightGBM, plain and with its cost-effective gradient boosting (CEGB).

G. Ke and others, "LightGBM: a highly efficient gradient boosting decision tree", NIPS 2017; its
CEGB follows S. Peter, F. Diego, F. Hamprecht, B. Nadler, "Cost efficient gradient boosting", NIPS
2017. Trained by the library, imported, and metered like our own trees.

Its gain is G_l^2/H_l + G_r^2/H_r - G_p^2/H_p without the 1/2 of the paper, and a penalty is
subtracted as cegb_tradeoff times the unpaid price. With tau as in ``bench_models.boosting``:

    cegb_tradeoff = 2,  split: tau alpha,  lazy: tau c_m per row,  coupled: tau N c_m

Departures
- LightGBM has features, not sensors: training charges each feature its price when bought alone, so
  shared, discounted and derived features are overcharged in training. Bills are exact.
- It has one price for all splits: the mean of their multipliers.
- ``acquisition = "all-rows"`` is its coupled mode, which is defective in 4.7: once a feature is
  bought, its price is added to (not refunded from) the raw gain in the other leaves.
- With more features than rows, the number of bins is that of our trees, not the library's.
- Copies of rows are made physically, since its limits and bins count rows, not weights.
- ``l2`` is 1 for classes, as in our trees: with the library's 0, steps for classes of few rows are
  unbounded. Other regularisation is the library's: min_sum_hessian_in_leaf, min_data_in_bin, and
  the sample of rows for bins. ``deterministic`` and ``force_col_wise`` are on.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from bench_models.boosting import TRADEOFF
from bench_models.libraries import Costs, LibraryTrees, Parameters, bought_alone, group_sizes

from bench_core import Examples, FitContext, Prices, among, log, param, provide_learners

_OBJECTIVES = {
    "squared": "regression",
    "logistic": "binary",
    "softmax": "multiclass",
    "lambdarank": "lambdarank",
}


@dataclass(frozen=True, kw_only=True)
class LightGBM(LibraryTrees):
    """LightGBM's boosted trees, ignoring cost."""

    name: ClassVar[str] = "lightgbm"
    distributions: ClassVar[tuple[str, ...]] = ("lightgbm",)
    ranking_limits: ClassVar[tuple[float, float]] = (30, 10_000)

    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 256))
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    l2: float | None = param(
        None, "l2 penalty on leaf values (lambda_l2); none: 1 for classes, else 0", least=0
    )

    def _parameters(self, loss: str, context: FitContext) -> Parameters:
        classes = {"num_class": context.classes} if loss == "softmax" else {}
        return {
            "objective": _OBJECTIVES[loss],
            **classes,
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": -1 if self.depth is None else self.depth,
            "min_data_in_leaf": self.min_rows,
            "max_bin": self.max_bins,
            "lambda_l2": self.l2_for(context.task),
            "num_threads": context.threads,
            "seed": context.seed % 2**31,
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,
            "verbosity": -1,
        }

    def _trained(self, how: Parameters, rows: Examples, loss: str, context: FitContext) -> bytes:
        import lightgbm

        def tell(environment: Any) -> None:
            context.progress(environment.iteration + 1, self.trees)

        group = group_sizes(rows) if loss == "lambdarank" else None
        data = lightgbm.Dataset(rows.X, rows.y, group=group, params=how, categorical_feature=[])
        booster = lightgbm.train(how, data, self.trees, callbacks=[tell])
        return bytes(booster.model_to_string(num_iteration=-1).encode())


@dataclass(frozen=True, kw_only=True)
class LightGBMCEGB(LightGBM):
    """LightGBM's own cost-effective gradient boosting."""

    name: ClassVar[str] = "lightgbm-cegb"

    # priced trees are smaller, so more are needed; this many take seconds
    trees: int = param(1000, "boosting iterations (for K classes K trees each)", least=1)
    tradeoff: float = param(0.3, TRADEOFF, least=0, search=log(3e-3, 10))
    acquisition: Literal["per-row", "all-rows"] = param(
        "per-row",
        "who pays for a feature: each row that needs it (lazy), or all at once (coupled)",
        search=among("per-row", "all-rows"),
    )

    def _costs(self, train: Examples, prices: Prices, context: FitContext) -> Costs:
        row = self.loss_prices(self.tradeoff, train, prices, context)
        # the library has features, not sensors
        alone = bought_alone(row, prices)
        costs: Parameters = {"cegb_tradeoff": 2.0, "cegb_penalty_split": float(row.split.mean())}
        if self.acquisition == "per-row":
            costs["cegb_penalty_feature_lazy"] = alone.tolist()
        else:
            total_weight = float(train.weights.sum())
            costs["cegb_penalty_feature_coupled"] = (total_weight * alone).tolist()
        return costs, {"tau": row.tau}


bench_learners = provide_learners(LightGBM, LightGBMCEGB, family="libraries")
