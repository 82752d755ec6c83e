"""CatBoost with its feature penalties.

L. Prokhorenkova and others, "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.
Trained by the library, imported, and metered like our own trees.

Its split score (``score_function = L2``) is a sum over leaves of G^2 / (rows + l2) for every loss:
squared residuals without the 1/2. The penalty of a feature not used before in the model is
subtracted from the gain of a split. With tau as in ``bench_models.boosting``:

    penalties_coefficient = 2,  first use: tau N c_m,  per object: tau c_m

Departures
- CatBoost has features, not sensors: training charges each feature its price when bought alone, so
  shared, discounted and derived features are overcharged in training. Bills are exact.
- In symmetric trees penalties change the choice of features but do not stop growth, which always
  reaches the full depth; binary features are not penalised. So ``grow`` is Depthwise, which splits
  a leaf while its net gain is positive.
- For classes the score is in squared residuals, as Greedy Miser's impurity, while tau comes from
  the log-loss of the constant: at equal ``tradeoff`` features cost more than for ``cegb``.
- Splits and trees are not charged in training.
- No bootstrap, no random strength, plain boosting: only lambdarank depends on the seed.
- ``loss = "lambdarank"`` is CatBoost's YetiRank.
- With more features than rows, the number of bins is that of our trees, not the library's.
- Copies of rows are made physically, since its limits and bins count rows.
- With K classes one tree has leaves of K values: it is billed once, and a path counts trees, not
  trees times classes.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from bench_models.boosting import TRADEOFF, WIDE
from bench_models.libraries import Costs, LibraryTrees, Parameters, bought_alone

from bench_core import (
    Examples,
    FitContext,
    InputError,
    Prices,
    linear,
    log,
    param,
    provide_learners,
)

_LOSSES = {
    "squared": "RMSE",
    "logistic": "Logloss",
    "softmax": "MultiClass",
    "lambdarank": "YetiRank",
}


@dataclass(frozen=True, kw_only=True)
class CatBoost(LibraryTrees):
    """CatBoost's boosted trees, charged for features not used before."""

    name: ClassVar[str] = "catboost"
    distributions: ClassVar[tuple[str, ...]] = ("catboost",)

    tradeoff: float = param(0.1, TRADEOFF, least=0, search=log(1e-3, 3))
    trees: int = param(300, "boosting iterations", least=1)
    depth: int = param(4, "most split levels of a tree", least=1, most=16, search=linear(2, 10))
    grow: Literal["Depthwise", "Lossguide", "SymmetricTree"] = param(
        "Depthwise", "growing policy; symmetric trees split regardless of cost"
    )
    acquisition: Literal["per-row", "all-rows"] = param(
        "per-row", "who pays for a feature: each row that needs it, or all at its first use"
    )
    min_rows: int = param(
        20,
        "least rows (copies counted) in a leaf; not for symmetric trees",
        least=1,
        search=log(3, 60),
    )
    max_bins: int = param(254, f"most borders per feature{WIDE}", least=2)
    l2: float = param(3.0, "l2 penalty on leaf values (l2_leaf_reg)", least=0, search=log(0.3, 30))

    def _costs(self, train: Examples, prices: Prices, context: FitContext) -> Costs:
        # the library rejects these with errors of its own
        first = train.X[:1]
        if bool(((first == train.X) | (np.isnan(first) & np.isnan(train.X))).all()):
            raise InputError(f"{self.name}: no feature varies in the training rows")
        if bool(np.all(train.y == train.y[0])):
            raise InputError(f"{self.name}: all training labels are {train.y[0]:g}")
        row = self.loss_prices(self.tradeoff, train, prices, context)
        # the library has features, not sensors
        alone = bought_alone(row, prices)
        name, penalty = {
            "per-row": ("per_object_feature_penalties", alone),
            "all-rows": ("first_feature_use_penalties", float(train.weights.sum()) * alone),
        }[self.acquisition]
        costs = {"penalties_coefficient": 2.0, name: penalty.tolist()}
        return costs if self.tradeoff > 0 else {}, {"tau": row.tau}

    def _parameters(self, loss: str, context: FitContext) -> Parameters:
        limit = {} if self.grow == "SymmetricTree" else {"min_data_in_leaf": self.min_rows}
        return {
            **limit,
            "loss_function": _LOSSES[loss],
            "iterations": self.trees,
            "learning_rate": self.learning_rate,
            "depth": self.depth,
            "grow_policy": self.grow,
            "border_count": self.max_bins,
            "l2_leaf_reg": self.l2,
            "score_function": "L2",
            "leaf_estimation_iterations": 1,
            "boosting_type": "Plain",
            "bootstrap_type": "No",
            "random_strength": 0,
            "random_seed": context.seed % 2**31,
            "thread_count": context.threads,
            "allow_writing_files": False,
            "verbose": False,
        }

    def _trained(self, how: Parameters, rows: Examples, loss: str, context: FitContext) -> bytes:
        import catboost

        # documents of one query have one number
        groups = rows.queries.index() if loss == "lambdarank" and rows.queries else None
        grown = catboost.CatBoost(how)
        grown.fit(catboost.Pool(rows.X, rows.y, group_id=groups))
        context.progress(self.trees, self.trees)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            grown.save_model(str(path), format="json")
            return path.read_bytes()


bench_learners = provide_learners(CatBoost, family="libraries")
