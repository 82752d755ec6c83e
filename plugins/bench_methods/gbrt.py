"""Gradient boosted regression trees without any thought of cost: what the others must beat.

J. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
29 (2001), with the second-order leaf values and split gains of T. Chen and C. Guestrin,
"XGBoost", KDD 2016, no regularisation (their lambda = gamma = 0):

    f <- f + eta h,   gain = 1/2 [ G_l^2 / H_l + G_r^2 / H_r - G_p^2 / H_p ]

Squared loss is (y - f)^2 / 2, so that second order is plain least squares on the residuals.
Ranking regresses on the grades by default; ``loss = "lambdarank"`` ranks.

Departures
- Features are binned to at most ``max_bins`` quantiles; missing values are sent where they
  fit best.
- A split must leave ``min_rows`` rows on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bench_models.boosting import TASKS, LossName, bench_warm_up, fit_boosted
from bench_models.staged import StagedModel

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, hookimpl, param

bench_warm_up = hookimpl(bench_warm_up)


@dataclass(frozen=True)
class GBRT:
    """Gradient boosted trees, blind to cost."""

    name: ClassVar[str] = "gbrt"
    tasks: ClassVar[frozenset[Task]] = TASKS
    role: ClassVar[str] = "reference"

    trees: int = param(300, "boosting iterations (for K classes K trees each)", least=0)
    learning_rate: float = param(0.1, "shrinkage of every tree's output (eta)", above=0)
    depth: int | None = param(4, "most split levels of a tree, none = no limit", least=1)
    leaves: int = param(16, "most leaves of a tree", least=2)
    loss: LossName = param("auto", "loss; auto: squared, for classes logistic or softmax")
    min_rows: int = param(20, "least rows (copies counted) on each side of a split", least=1)
    max_bins: int = param(255, "most bins per feature", least=2, most=255)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Boost on ``train``; ``valid`` is not used."""
        from bench_trees import Settings

        return fit_boosted(
            train,
            prices,
            context,
            loss=self.loss,
            settings=Settings(
                trees=self.trees,
                learning_rate=self.learning_rate,
                max_depth=self.depth,
                max_leaves=self.leaves,
                min_rows=self.min_rows,
            ),
            max_bins=self.max_bins,
            penalty=None,
            facts={},
        )


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """The one learner of this module."""
    return [GBRT]
