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
from bench_models.path_of_models import readable

from bench_core import Prices
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.budget_boosting.folds import Fold, converged

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
_BINS = 16


def nested_sets(folds: Sequence[Fold], prices: Prices, settings: Settings) -> list[BoolArray]:
    """Masks of features (d,), each a part of the next; the last is all."""
    quick = replace(settings, learning_rate=max(QUICK_RATE, settings.learning_rate))
    chosen = readable(prices, np.zeros(prices.features, dtype=bool))
    found = [chosen] if chosen.any() else []
    now, _ = converged(folds, chosen, quick, QUICK_TREES, 1)
    while not chosen.all():
        order = promising(now, chosen, prices)
        tried = order[:TRIED]
        gain = np.array([_gain(now, chosen, int(j), prices, settings) for j in tried])
        best = tried[np.argsort(-gain, kind="stable")][: int((gain > 0).sum())]
        count = max(1, round(GROWTH * int(chosen.sum())))
        if len(best) == 0:  # nothing is seen to help: on in larger steps
            best, count = order, max(2, int(chosen.sum()))
        chosen = with_features(prices, chosen, best[:count])
        found.append(chosen)
        now, _ = converged(now, chosen, quick, QUICK_TREES, 1)
    return found


def with_features(prices: Prices, chosen: BoolArray, features: IntArray) -> BoolArray:
    """What can be read (d,) once these features are bought too."""
    more = chosen.copy()
    more[features] = True
    return readable(prices, more)


def promising(folds: Sequence[Fold], chosen: BoolArray, prices: Prices) -> IntArray:
    """The features not chosen, one for each purchase, the most promising first.

    In turn the next by what it explains per price, and by what it explains.
    """
    left = np.flatnonzero(~chosen)
    price = prices.marginal(prices.bought_for(chosen))[left]  # of what is not chosen above 0
    alone = sum(explained(fold, left) for fold in folds)
    orders = [np.argsort(-key, kind="stable") for key in (alone / price, alone)]
    mixed = left[np.stack(orders, axis=1).ravel()]
    sets = {prices.bought_for(np.array([j])).tobytes(): int(j) for j in mixed[::-1]}
    first = dict.fromkeys(int(j) for j in mixed)  # in order, each once
    kept = set(sets.values())
    return np.array([j for j in first if j in kept])


def explained(fold: Fold, features: IntArray) -> FloatArray:
    """By how much constants in at most 16 bins of a feature lower the squared residuals, (k,)."""
    gradient, mass = fold.fit.gradient(fold.scores[0]), fold.fit.rows.weights
    found = []
    for j in features:
        bins = int(fold.fit.bins.counts[j])
        codes = fold.fit.codes[j].astype(np.int64) * _BINS // max(bins, _BINS)
        rows = np.bincount(codes, mass)
        some = rows > 0
        sums = (np.bincount(codes, own)[some] for own in gradient)
        found.append(sum(float((own**2 / rows[some]).sum()) for own in sums))
    return np.array(found)


def _gain(
    folds: Sequence[Fold], chosen: BoolArray, feature: int, prices: Prices, settings: Settings
) -> float:
    """The fall of the held-out loss per price if the feature is bought."""
    more = with_features(prices, chosen, np.array([feature]))
    trees = min(PROBE_TREES[0], max(2, PROBE_TREES[1] // folds[0].fit.loss.outputs))
    probe = replace(settings, trees=trees, **PROBE)  # type: ignore[arg-type]
    fall = sum(fold.loss - fold.grown(more, probe)[0].loss for fold in folds)
    return fall / float(prices.marginal(prices.bought_for(chosen))[feature])
