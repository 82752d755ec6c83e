"""Boosting under a price for splits, and cheap starts beside it.

A price of cost (``tradeoff``) reaches only the convex hull of quality and cost: where a strong
feature gains most per price, no tradeoff buys cheaper ones alone, and nothing lies below its price.
So a second chain is boosted under the same price, of a quarter of the trees or 50: first on the
cheapest features, then also on those of up to twice their price, up to four times, and so on below
the price of the first chain's first purchase. This is an addition of this project; the chain of the
paper stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Examples, FitContext, Prices, param
from bench_core.arrays import BoolArray
from bench_models.boosting import BoostedTrees
from bench_models.path_of_models import PathOfModels, readable, share_of
from bench_models.staged import MOST_POINTS, StagedModel

if TYPE_CHECKING:
    from bench_trees import Ensemble, Penalty, Settings

STARTS = 25
"""Operating points of the cheap starts, at most."""

FEW_TREES = 50
"""Where a quarter of the trees is less, cheap starts have these, or as many as the others."""


@dataclass(frozen=True, eq=False)
class CheapStarts(PathOfModels):
    """A chain of cheap starts, then the chain of all features, which alone others build on."""

    @property
    def ensemble(self) -> Ensemble | None:
        """The trees of the chain of all features."""
        return self.models[-1].ensemble


@dataclass(frozen=True, kw_only=True)
class PricedTrees(BoostedTrees):
    """Boosted trees whose splits have a price."""

    cheap_starts: bool = param(
        True, "also boost from the cheapest features on (where prices differ twofold)"
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
        """The chain of all features; before it, where prices differ, that of cheap starts."""
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
    """Those of the limits below what all features of the first iteration's trees cost."""
    if trees is None or not trees.trees:
        return limits
    tested = trees.feature[: trees.start[len(trees.base)]]
    bought = prices.bought_for(np.isin(np.arange(prices.features), tested))
    first = prices.sensor[bought].sum()
    return [one for one in limits if prices.feature_price()[one].max() < first]


def rising(prices: Prices) -> list[BoolArray]:
    """The features (d,) of at most the lowest positive price, of at most twice that, four times,
    ..., as long as not all are."""
    price = prices.feature_price()
    found: list[BoolArray] = []
    for limit in price[price > 0].min(initial=np.inf) * 2.0 ** np.arange(64):
        within = readable(prices, price <= limit)
        if within.all():
            break
        if not found or (within & ~found[-1]).any():
            found.append(within)
    return found
