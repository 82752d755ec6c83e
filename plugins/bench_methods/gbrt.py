"""Gradient boosted regression trees that ignore cost: the reference for all other methods.

J. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
29 (2001), with the second-order leaf values and split gains of T. Chen and C. Guestrin,
"XGBoost", KDD 2016, without their gamma; their lambda is ``l2``, for classes 1 as theirs, else 0:

    f <- f + eta h,   gain = 1/2 [ G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G_p^2 / (H_p + l2) ]

Squared loss is (y - f)^2 / 2, so second order is plain least squares on the residuals.
Ranking regresses on the grades by default; ``loss = "lambdarank"`` ranks.

Departures
- Features are binned to at most ``max_bins`` quantiles; missing values go to the side with the
  larger gain. With more features than rows, bins hold at least 8 rows each, or there are 32.
- A split must leave ``min_rows`` rows on both sides and, for classes, second derivatives of .1.
- Boosting starts at the best constant.
- If the training loss of classes rises above the constant's, the last trees are dropped, training
  ends and the model is marked ``diverged``.
"""

from dataclasses import dataclass
from typing import ClassVar

from bench_models.boosting import BoostedTrees
from bench_models.staged import StagedModel

from bench_core import Examples, FitContext, Prices, log, param, provide_learners


@dataclass(frozen=True, kw_only=True)
class GBRT(BoostedTrees):
    """Gradient boosted trees, ignoring cost."""

    name: ClassVar[str] = "gbrt"
    role: ClassVar[str] = "reference"

    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 256))

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Boost on ``train``; ``valid`` is not used."""
        return self.boosted(train, prices, context, self.settings(context.task, self.leaves))


bench_learners = provide_learners(GBRT, family="boosted trees")
