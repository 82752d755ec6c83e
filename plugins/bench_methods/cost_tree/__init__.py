"""A single tree grown by cost-weighted split criteria of the literature.

With g the information gain of a split in bits and c the price of its purchases, a node is split on
the feature of the highest

    eg2     (2^g - 1) / (c + 1)^w    M. Nunez, Machine Learning 6 (1991) [M]
    cs-id3  g^2 / (c + 1)^w          M. Tan, J. Schlimmer, 1989, 1990; M. Tan, Machine Learning 13
                                     (1993): g^2 / c [M]
    idx     g / (c + 1)^w            S. Norton, IJCAI 1989: g / c [M]

as S. Lomax, S. Vadera, "A survey of cost-sensitive decision tree induction algorithms", ACM
Computing Surveys 45 (2013), and P. Turney (JAIR 1995) list them. w is ``price_power``. Sensors
bought on the path are free, so a row pays only for its own path. [M] marks formulas restated from
those surveys, since the originals were not available.

Operating points are nested prunings, each the subtree that minimises

    R(T) + lambda C(T),

with R the training loss (entropy, or half the squared error) and C the cost of all training rows.
This is minimal cost-complexity pruning (L. Breiman and others, 1984) with cost in place of leaves.
Between two prunings the larger one is added level by level. First, reduced error pruning
(J. R. Quinlan, 1987) removes subtrees that do not lower the validation loss.

Departures
- c is in units of the median sensor price, so c + 1 does not depend on the currency. CS-ID3 and IDX
  also divide by c + 1, since bought and free features have c = 0.
- Features are binned to at most ``max_bins`` quantiles, and splits are binary cuts. Missing values
  go to the side with the larger gain.
- With more features than rows, bins hold at least 8 rows each, or there are 32.
- For numbers and grades g is the share of the node's squared error that a split explains.
- Class shares of leaves are smoothed by K extra rows, for K classes, distributed as the training
  labels: no probability is 0. Scores are log-odds or logarithms.
- Evaluating splits is not charged in training.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from bench_models.boosting import BINS, OnEngine, binned
from bench_models.pruned_path import PrunedPath

from bench_core import (
    Examples,
    FitContext,
    Prices,
    among,
    linear,
    log,
    param,
    provide_learners,
)
from bench_methods.cost_tree.model import (
    CostTreeGrower,
    GrowthSettings,
    TrainingLabels,
    losses,
    nested_prunings,
    pruned_path,
    scores_of,
    without_useless,
)


@dataclass(frozen=True, kw_only=True)
class CostTree(OnEngine):
    """A decision tree grown by information gain per price, with its prunings as a path."""

    name: ClassVar[str] = "cost-tree"
    adds_up: ClassVar[bool] = False

    criterion: Literal["eg2", "cs-id3", "idx"] = param(
        "cs-id3",
        "split criterion: (2^g - 1) / (c + 1)^w, g^2 / (c + 1)^w or g / (c + 1)^w",
        search=among("eg2", "cs-id3", "idx"),
    )
    price_power: float = param(
        1.0,
        "w, the power of the price in the criterion; 0 ignores cost",
        least=0,
        most=2,
        search=linear(0, 2),
    )
    depth: int | None = param(None, "most split levels, none = no limit", least=1)
    min_rows: int = param(
        10, "least rows (copies counted) on each side of a split", least=1, search=log(2, 100)
    )
    max_bins: int = param(255, BINS, least=2, most=255)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PrunedPath:
        """Grow and price on ``train``; ``valid`` prunes what does not help."""
        bins, codes = binned(train, self.max_bins, context)
        target = TrainingLabels.of(train, context)
        how = GrowthSettings(self.criterion, self.price_power, self.depth, self.min_rows)
        tree = CostTreeGrower(bins, codes, target, prices, how, context.progress).tree()
        score = scores_of(np.array(tree.summed), target)
        kept = without_useless(tree, losses(tree, score, valid, target.classes))
        context.progress(1, 1)
        return pruned_path(tree, score, nested_prunings(tree, kept), prices)


bench_learners = provide_learners(CostTree, family="trees")
