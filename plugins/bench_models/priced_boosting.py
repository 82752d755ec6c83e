"""Boosting under a price for splits, with an additional chain of cheap starts.

A price of cost (``tradeoff``) reaches only the convex hull of quality and cost. Where a strong
feature gains most per price, no tradeoff buys cheaper ones alone, and nothing lies below its price.
So a second chain is boosted under the same price, with a quarter of the trees or 50. It starts on
the cheapest features, then adds features of up to twice their price, four times, ... It stays below
the price of the first chain's first purchase. This is an addition of this project; the paper's
chain is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Examples, FitContext, Prices, param
from bench_core.arrays import BoolArray
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.purchases import readable
from bench_models.path_of_models import PathOfModels, share_of
from bench_models.staged import MOST_POINTS, StagedModel

if TYPE_CHECKING:
    from bench_trees import Ensemble, Penalty, Settings

STARTS = 25
"""Most operating points of the cheap starts."""

FEW_TREES = 50
"""Least number of trees of the cheap starts, unless the other chain has fewer."""


@dataclass(frozen=True, eq=False)
class CheapStarts(PathOfModels):
    """A chain of cheap starts, then the chain of all features, the only one others build on."""

    @property
    def ensemble(self) -> Ensemble | None:
        """The trees of the chain of all features."""
        return self.models[-1].ensemble


@dataclass(frozen=True, kw_only=True)
class PricedTrees(BoostedTrees):
    """Boosted trees whose splits have a price."""

    cheap_starts: bool = param(
        True, "also boost from the cheapest features up (if prices differ twofold)"
    )

    def boosted_at_prices(
        self,
        train: Examples,
        prices: Prices,
        context: FitContext,
        settings: Settings,
        penalty: Penalty,
        facts: Mapping[str, float],
    ) -> StagedModel | CheapStarts:
        """The chain of all features, preceded by the cheap starts where prices differ."""
        limits = rising(prices) if self.cheap_starts else []
        how = train, prices, context, settings, penalty, facts
        if not limits:
            return self.boosted(*how)
        parts = [share_of(context.progress, k, 2) for k in range(2)]
        whole = self.boosted(*how, progress=parts[0], most=MOST_POINTS - STARTS)
        limits = cheaper(limits, whole.ensemble, prices)
        if not limits:
            parts[1](1, 1)
            return whole
        trees = max(settings.trees // 4, min(settings.trees, FEW_TREES))
        ends = np.linspace(0, trees, len(limits) + 1).round().astype(int).tolist()[1:]
        how = *how[:3], replace(settings, trees=trees), *how[4:]
        offers = list(zip(ends, limits, strict=True))
        cheap = self.boosted(*how, offers=offers, progress=parts[1], most=STARTS)
        # the constant is a point of the other chain
        points = [
            replace(p, values={**p.values, "cheap": 1}) for p in cheap.points if p.values["trees"]
        ]
        return CheapStarts([replace(cheap, points=points), whole]) if points else whole


def cheaper(limits: list[BoolArray], trees: Ensemble | None, prices: Prices) -> list[BoolArray]:
    """Limits below the price of all features of the first iteration's trees."""
    if trees is None or not trees.trees:
        return limits
    tested = trees.feature[: trees.start[len(trees.base)]]
    bought = prices.bought_for(np.isin(np.arange(prices.features), tested))
    first = prices.sensor[bought].sum()
    return [one for one in limits if prices.feature_price()[one].max() < first]


def rising(prices: Prices) -> list[BoolArray]:
    """The features (d,) up to the lowest positive price, up to twice that, four times, ..., until
    they are all features."""
    price = prices.feature_price()
    sets: list[BoolArray] = []
    for limit in price[price > 0].min(initial=np.inf) * 2.0 ** np.arange(64):
        within = readable(prices, price <= limit)
        if within.all():
            break
        if not sets or (within & ~sets[-1]).any():
            sets.append(within)
    return sets
