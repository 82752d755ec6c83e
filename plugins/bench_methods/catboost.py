"""CatBoost with its feature penalties.

L. Prokhorenkova and others, "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.
Trained by the library, imported, and metered like our own trees.

Its split score (``score_function = L2``) is a sum over leaves of G^2 / (rows + l2), whatever the
loss: squared residuals without the 1/2. The penalty of a feature not used before in the model is
subtracted from what a split adds to it. With tau as in ``bench_models.boosting``:

    penalties_coefficient = 2,  first use: tau N c_m,  per object: tau c_m

Departures
- CatBoost knows features, not sensors: each feature is charged in training what it costs bought
  alone, so shared, discounted and derived features are charged too much there. The bills are true.
- Penalties change which feature is split, and end nothing in symmetric trees, which are always
  grown to their full depth (and leave features of two values out of account): so ``grow`` is
  Depthwise, where a leaf is split while its net gain is positive.
- For classes the score is in squared residuals, as Greedy Miser's impurity, while tau comes from
  the log-loss of the constant: at equal ``tradeoff`` features cost more than for ``cegb``.
- Splits and trees are not charged in training.
- No bootstrap, no random strength, plain boosting: nothing depends on the seed but lambdarank.
- ``loss = "lambdarank"`` is CatBoost's YetiRank.
- Copies of rows are made physically, since its limits and bins count rows.
- With K classes one tree has leaves of K values: it is billed once, and a path counts trees, not
  trees times classes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.boosting import TASKS, LossName, bench_warm_up, loss_of
from bench_models.libraries.common import (
    bought_alone,
    check_classes,
    library_errors,
    version_of,
    with_physical_copies,
)
from bench_models.libraries.serving import LibraryModel, serve
from bench_models.tradeoff import LossPrices, constant_loss

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    InputError,
    Prices,
    Task,
    hookimpl,
    param,
)
from bench_core.arrays import IntArray

if TYPE_CHECKING:
    from bench_trees.importers import Imported

bench_warm_up = hookimpl(bench_warm_up)

_FAR = 30.0  # in log-odds

_LOSSES = {
    "squared": "RMSE",
    "logistic": "Logloss",
    "softmax": "MultiClass",
    "lambdarank": "YetiRank",
}


@dataclass(frozen=True)
class CatBoost:
    """CatBoost's boosted trees, charged for features not used before."""

    name: ClassVar[str] = "catboost"
    tasks: ClassVar[frozenset[Task]] = TASKS

    tradeoff: float = param(
        0.1, "price of all features in units of the constant's training loss", least=0
    )
    trees: int = param(300, "boosting iterations", least=1)
    learning_rate: float = param(0.1, "shrinkage of every tree's output", above=0)
    depth: int = param(4, "most split levels of a tree", least=1, most=16)
    grow: Literal["Depthwise", "Lossguide", "SymmetricTree"] = param(
        "Depthwise", "growing policy; symmetric trees split whatever it costs"
    )
    acquisition: Literal["per-row", "all-rows"] = param(
        "per-row", "who pays for a feature: each row that needs it, or all at its first use"
    )
    loss: LossName = param("auto", "loss; auto: squared, for classes logistic or softmax")
    min_rows: int = param(
        20, "least rows (copies counted) in a leaf; not for symmetric trees", least=1
    )
    max_bins: int = param(254, "most borders per feature", least=2)
    l2: float = param(3.0, "l2 penalty on leaf values (l2_leaf_reg)", least=0)

    def stamp(self) -> str:
        """The library's version."""
        return version_of(self.name, "catboost")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Boost on ``train``; ``valid`` is not used.

        Raises InputError where all labels are the same, or no feature varies.
        """
        from bench_trees.importers import read_model

        self.stamp()
        check_classes(self.name, train, context.task)
        _check_varied(self.name, train)
        name, loss = loss_of(context.task, self.loss, context.classes)
        row = LossPrices.of(prices, self.tradeoff, constant_loss(name, loss, train))
        rows = with_physical_copies(train)
        with library_errors(self.name):
            import catboost

            groups = rows.queries.index() if name == "lambdarank" and rows.queries else None
            grown = catboost.CatBoost(self._parameters(name, row, prices, len(rows), context))
            grown.fit(catboost.Pool(rows.X, rows.y, group_id=groups))
            raw = _json(grown)
        context.progress(self.trees, self.trees)
        model = read_model(raw)
        if name == "softmax":
            model = _all_classes(model, np.unique(train.y).astype(np.int64), context.classes)
        return serve(model, prices, {"loss": name, "tau": row.tau})

    def _parameters(
        self, loss: str, row: LossPrices, prices: Prices, total_weight: int, context: FitContext
    ) -> dict[str, Any]:
        alone = bought_alone(row, prices)
        penalty = {
            "per-row": ("per_object_feature_penalties", alone),
            "all-rows": ("first_feature_use_penalties", total_weight * alone),
        }[self.acquisition]
        costs: dict[str, Any] = {}
        if self.tradeoff > 0:
            costs = {"penalties_coefficient": 2.0, penalty[0]: penalty[1].tolist()}
        if self.grow != "SymmetricTree":
            costs["min_data_in_leaf"] = self.min_rows
        return {
            **costs,
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


def _check_varied(learner: str, train: Examples) -> None:
    """The library refuses what leaves nothing to learn; so in words of ours."""
    if bool(np.all(train.y == train.y[0])):
        raise InputError(f"{learner}: all training labels are {train.y[0]:g}; nothing to learn")
    first = train.X[:1]
    same = (first == train.X) | (np.isnan(first) & np.isnan(train.X))
    if bool(same.all()):
        raise InputError(f"{learner}: no feature varies in the training rows")


def _all_classes(model: Imported, present: IntArray, classes: int) -> Imported:
    """The model with an output for each class, those that training lacks far below the others."""
    assert model.vectors is not None
    vectors = np.zeros((len(model.vectors), classes))
    base = np.full(classes, model.ensemble.base.min() - _FAR)
    vectors[:, present] = model.vectors
    base[present] = model.ensemble.base
    return replace(model, vectors=vectors, ensemble=replace(model.ensemble, base=base))


def _json(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        return path.read_bytes()


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """The one learner of this module."""
    return [CatBoost]
