"""Nested sets of features, the next one chosen by held-out gain per price.

A candidate brings all features that can be read once its sensors are bought. Its gain is by how
much a few long steps on the set with it lower the held-out loss of the converged trees without it:
trees, so that a feature that helps together with bought ones is seen, and several, so that its
price is set against more than its first split. Where there are many candidates, only those that
promise most are tried: by what they alone explain of the residuals, and by that per price.

Folds are boosted in step on several divisions of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from bench_models import held_out_fits
from bench_models.held_out_fits import Fits, HeldOutFit, Purchases, bought_too, gaining
from bench_models.path_of_models import Subsets, readable, rows_of
from bench_models.tradeoff import labels_of

from bench_core import Prices, Task
from bench_core.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Settings

Division = tuple[IntArray, IntArray]
"""Numbers of the units (queries, else rows) to fit on, and of those held out."""

CHUNK = 10
LEAST_FALL = 2e-4
"""Of the constant's loss: a smaller fall is none."""


def units(whole: Subsets) -> int:
    """Number of queries, else rows."""
    return len(whole.train if whole.train.queries is None else whole.train.queries)


def copies_of(whole: Subsets, chosen: IntArray) -> IntArray:
    """How many copies (n,) there are of each row that belongs to one of the units, else 0."""
    rows = whole.train
    unit = np.arange(len(rows)) if rows.queries is None else rows.queries.index()
    taken = np.isin(unit, chosen).astype(np.int64)
    return taken if rows.multiplicity is None else taken * rows.multiplicity


def fold(whole: Subsets, division: Division) -> HeldOutFit:
    """Before any tree: at the constant of all rows."""
    fitted, held = (copies_of(whole, part) for part in division)
    base = whole.loss.base(labels_of(whole.train))
    return HeldOutFit.begin(whole.of_rows(fitted), rows_of(whole.train, held), base)


def total(folds: Fits) -> float:
    """The held-out loss of all folds, summed."""
    return sum(fold.total for fold in folds)


def converged(
    folds: Fits, features: BoolArray, settings: Settings, most: int, patience: int
) -> list[HeldOutFit]:
    """All folds, continued until their held-out loss together has stopped falling."""
    least = LEAST_FALL * sum(fold.constant_total for fold in folds)

    def falls(new: Fits, best: Fits) -> bool:
        return total(new) < total(best) - least

    return held_out_fits.converged(
        folds, features, settings, most, chunk=CHUNK, patience=patience, falls=falls
    )


def divisions(whole: Subsets, folds: int, rng: np.random.Generator) -> list[Division]:
    """Each of about equal parts held out once, classes evenly; at most ``folds`` parts."""
    count = units(whole)
    parts = min(folds, count)
    if parts < 2:
        return [(np.arange(count), np.arange(count))]
    # parts are dealt out in a random order, class after class
    order = rng.permutation(count)
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):
        order = order[np.argsort(whole.train.y[order], kind="stable")]
    part = np.empty(count, dtype=np.int64)
    part[order] = np.arange(count) % parts
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(parts)]


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
        # the others wait for a later round
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
    # K outputs share the trees of a probe
    trees = min(PROBE_TREES[0], max(2, PROBE_TREES[1] // folds[0].subsets.loss.outputs))
    probe = replace(settings, trees=trees, **PROBE)  # type: ignore[arg-type]
    return sum(fold.total - fold.more(features, probe).total for fold in folds)
