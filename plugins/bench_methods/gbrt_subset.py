"""Stage-wise regression on features up to some cost: a plain way to reduce cost.

The baseline "stage-wise regression feature subsets" of Z. Xu, K. Weinberger, O. Chapelle, "The
greedy miser: learning under test-time budgets", ICML 2012: features are grouped by cost, and
boosted trees are trained on features of price at most 1, 20, 100 and 200, one model each.

There is no lambda: the maximum price of a feature is the operating point.

Departures
- The limits 1, 20, 100, 200 suit one data set. If they do not divide the actual prices, the
  quartiles of these are used; ``costs`` sets other limits. The last model always has all features.
- Features that become free with a subset (derived ones, the second feature of a shared sensor)
  belong to it.
- Boosting is as in ``gbrt``, with second-order leaf values for classes.
- Some prefixes of every model are points too, so validation chooses the number of trees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from bench_models.boosting import BoostedTrees, chain
from bench_models.nested_sets.purchases import readable
from bench_models.nested_sets.subsets import Subsets
from bench_models.path_of_models import PathOfModels, share_of
from bench_models.staged import MOST_POINTS, Point, StagedModel

from bench_core import Examples, FitContext, Prices, log, param, provide_learners
from bench_core.arrays import BoolArray

PAPER = (1.0, 20.0, 100.0, 200.0)


@dataclass(frozen=True, kw_only=True)
class SubsetGBRT(BoostedTrees):
    """Boosted trees on the features that cost at most a limit, one model for each limit."""

    name: ClassVar[str] = "gbrt-subset"
    adds_up: ClassVar[bool] = False

    costs: tuple[float, ...] | None = param(
        None,
        "rising limits of a feature's price, one model each; "
        "none: 1, 20, 100, 200, or quartiles of the prices if these do not divide them",
        least=0,
    )
    trees: int = param(
        300, "boosting iterations of each model (for K classes K trees each)", least=0
    )
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 256))

    def __post_init__(self) -> None:
        limits = self.costs
        if limits is not None and not 0 < len(limits) < MOST_POINTS:
            raise ValueError(f"costs must be 1 to {MOST_POINTS - 1} limits, got {len(limits)}")
        if limits is not None and not all(a < b for a, b in pairwise(limits)):
            raise ValueError(f"costs must rise, got {list(limits)}")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PathOfModels:
        """Boost on each subset of the features; ``valid`` is not used."""
        subsets = Subsets(self, self.settings(context.task, self.leaves), train, prices, context)
        limits = limited(prices, self.costs)
        # a path has at most MOST_POINTS points
        each = MOST_POINTS // len(limits)
        models = []
        for k, (limit, features) in enumerate(limits):
            ensemble = subsets.boost(features, share_of(context.progress, k, len(limits)))
            whole = chain(ensemble, prices, {"loss": subsets.loss_name})
            models.append(_thinned(whole, each, limit))
        return PathOfModels(models)


def limited(prices: Prices, costs: Sequence[float] | None) -> list[tuple[float, BoolArray]]:
    """The distinct limits, rising, each with its features (d,); the last has all features."""
    price = prices.feature_price()
    highest = float(price.max(initial=0.0))
    wanted = PAPER if costs is None else costs
    if costs is None and not any(price.min() <= limit < highest for limit in wanted):
        wanted = np.quantile(price, (0.25, 0.5, 0.75), method="lower").tolist()
    subsets = []
    for limit in wanted:
        within = price <= limit
        if within.any():
            subsets.append((float(limit), readable(prices, within)))
    subsets.append((highest, np.ones(len(price), dtype=bool)))
    sizes = [int(features.sum()) for _, features in subsets]
    # keep the first of the limits that admit the same features
    return [subsets[k] for k in range(len(subsets)) if k == 0 or sizes[k] > sizes[k - 1]]


def _thinned(model: StagedModel, most: int, limit: float) -> StagedModel:
    """At most ``most`` evenly spaced points of a model, named by limit first."""
    last = len(model.points) - 1
    kept = np.unique(np.round(np.linspace(last, 0, min(most, last + 1))).astype(np.int64))
    points = [model.points[k] for k in kept]
    named = [Point(p.stage, {"cost_up_to": limit, **p.values}) for p in points]
    return replace(model, points=named)


bench_learners = provide_learners(SubsetGBRT, family="boosted trees")
