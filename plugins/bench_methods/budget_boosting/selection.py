"""Nested sets of features, the next one chosen by held-out gain per price.

A candidate brings all features that can be read once its sensors are bought. Its gain is by how
much a few long steps on the set with it lower the held-out loss of the converged trees without it:
trees, so that a feature that helps together with bought ones is seen, and several, so that its
price is set against more than its first split. Where there are many candidates, only those that
promise most are tried: by what they alone explain of the residuals, and by that per price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from bench_models.held_out_fits import Fits, Purchases, bought_too, gaining
from bench_models.path_of_models import readable

from bench_core import Prices
from bench_core.arrays import BoolArray, IntArray
from bench_methods.budget_boosting.folds import converged

if TYPE_CHECKING:
    from bench_trees import Settings

TRIED = 12
"""Most candidates that are tried with trees."""
PROBE = {"learning_rate": 0.4, "max_leaves": 8}
PROBE_TREES = (6, 18)
"""Iterations of a probe at most, and trees of all outputs together (two iterations at least)."""
QUICK_RATE = 0.3
QUICK_TREES = 60
GROWTH = 0.25
"""Features bought between two sets, as a share of those bought before."""


def nested_sets(folds: Fits, settings: Settings) -> list[BoolArray]:
    """Masks of features (d,), each a part of the next; the last is all."""
    prices = folds[0].subsets.prices
    quick = replace(settings, learning_rate=max(QUICK_RATE, settings.learning_rate))
    chosen = readable(prices, np.zeros(prices.features, dtype=bool))
    found = [chosen] if chosen.any() else []
    now = converged(folds, chosen, quick, QUICK_TREES, 1)
    while not chosen.all():
        left, size = Purchases.of(now, chosen), int(chosen.sum())
        order = promising(left)
        if size >= len(folds[0].subsets.train):  # no gain of one more can be told from luck
            return found + doubled(prices, chosen, [left.brings[k] for k in order])
        tried = order[:TRIED]
        more = [bought_too(prices, chosen, left.brings[k]) for k in tried]
        gain = np.array([_fall(now, features, settings) for features in more]) / left.price[tried]
        best, count = gaining(tried, gain), max(1, round(GROWTH * size))
        if len(best) == 0:  # nothing is seen to help: on in larger steps
            best, count = order, max(2, size)
        brought = [j for k in best[:count] for j in left.brings[k]]
        chosen = bought_too(prices, chosen, brought)
        found.append(chosen)
        now = converged(now, chosen, quick, QUICK_TREES, 1)
    return found


def doubled(prices: Prices, chosen: BoolArray, brings: Sequence[Sequence[int]]) -> list[BoolArray]:
    """Sets of twice as many features each, in the order of ``brings``, until all are in."""
    found = []
    while not chosen.all():
        count = max(2, int(chosen.sum()))
        chosen = bought_too(prices, chosen, [j for own in brings[:count] for j in own])
        brings = brings[count:]
        found.append(chosen)
    return found


def promising(left: Purchases) -> IntArray:
    """The purchases, the most promising first: in turn the next by what its best feature explains
    per price, and by what it explains."""
    keys = (left.explained / left.price, left.explained)
    orders = np.stack([np.argsort(-key, kind="stable") for key in keys], axis=1)
    return np.array(list(dict.fromkeys(orders.ravel().tolist())))


def _fall(folds: Fits, features: BoolArray, settings: Settings) -> float:
    """By how much a few long steps on these features lower the held-out loss."""
    trees = min(PROBE_TREES[0], max(2, PROBE_TREES[1] // folds[0].subsets.loss.outputs))
    probe = replace(settings, trees=trees, **PROBE)  # type: ignore[arg-type]
    return sum(fold.total - fold.more(features, probe).total for fold in folds)
