"""Nested sets of features, the next one chosen by held-out gain per price.

A candidate brings all features that can be read once its sensors are bought. Its gain is the fall
of held-out loss when a few large steps on the enlarged set follow the converged trees without it.
Trees find features that help together with bought ones. Several trees are compared with the price,
not only the first split. Two features that help only together are found as a pair, by the product
of their contrasts. Only the most promising of many candidates are tried: by the share of the
residuals that they explain alone, and by this share per price.

Folds are boosted in step on several divisions of the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from bench_models.nested_sets import held_out
from bench_models.nested_sets.held_out import Fits, HeldOutFit, scores_of
from bench_models.nested_sets.purchases import Purchases, bought_too, gaining, readable
from bench_models.nested_sets.subsets import Subsets, rows_of
from bench_models.tradeoff import labels_of

from bench_core import Examples, Prices, Task
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.budget_boosting.policies import probabilities

if TYPE_CHECKING:
    from bench_trees import Settings

Division = tuple[IntArray, IntArray]
"""Units (queries, else rows) to fit on, and units to hold out."""

CHUNK = 10
DRIFT = 3.0
"""Standard errors by which validation rows must be predicted worse to count as drift."""
LEAST_FALL = 2e-4
"""Smallest fall that counts, as a share of the constant's loss."""


def units(whole: Subsets) -> int:
    """Number of queries, else rows."""
    return len(whole.train if whole.train.queries is None else whole.train.queries)


def copies_of(whole: Subsets, chosen: IntArray) -> IntArray:
    """Copies (n,) of each row in one of the ``chosen`` units, else 0."""
    rows = whole.train
    unit = np.arange(len(rows)) if rows.queries is None else rows.queries.index()
    taken = np.isin(unit, chosen).astype(np.int64)
    return taken if rows.multiplicity is None else taken * rows.multiplicity


def fold(whole: Subsets, division: Division) -> HeldOutFit:
    """A fold without trees, at the constant of all rows."""
    fitted, held = (copies_of(whole, part) for part in division)
    base = whole.loss.base(labels_of(whole.train))
    return HeldOutFit.begin(whole.of_rows(fitted), rows_of(whole.train, held), base)


def total(folds: Fits) -> float:
    """Sum of the held-out losses of all folds."""
    return sum(fold.total for fold in folds)


def converged(
    folds: Fits,
    features: BoolArray,
    settings: Settings,
    most: int,
    patience: int,
    by_metric: bool = False,
) -> list[HeldOutFit]:
    """The folds after boosting until their total held-out loss stops falling; with ``by_metric``
    until the run's metric stops improving too."""
    least = LEAST_FALL * sum(fold.constant_total for fold in folds)

    def falls(new: Fits, best: Fits) -> bool:
        fell = total(new) < total(best) - least
        return fell or (by_metric and quality(new) > quality(best))

    return held_out.converged(
        folds, features, settings, most, chunk=CHUNK, patience=patience, falls=falls
    )


def quality(folds: Fits) -> float:
    """The run's metric on held-out rows, mean over the folds; higher is better."""
    return float(np.mean([fold.quality for fold in folds]))


def drifts(folds: Fits, valid: Examples, settings: Settings) -> bool:
    """True if boosters on all features, started at these ``folds``, predict validation rows worse
    than held-out training rows, by more than ``DRIFT`` standard errors of the difference.

    Compares the log-loss for classes, else the run's metric.
    """
    of, context = folds[0].subsets, folds[0].subsets.context

    def judged(scores: FloatArray, rows: Examples) -> FloatArray:
        if context.task in (Task.BINARY, Task.MULTICLASS):
            likely = probabilities(scores)[rows.y.astype(np.int64), np.arange(len(rows))]
            return np.asarray(-np.log(np.maximum(likely, 1e-15)))
        of_rows = context.metric.values(scores[0], rows.y, rows.queries, rows.multiplicity)
        return -of_rows.values if context.metric.higher_is_better else of_rows.values

    everything = np.ones(of.prices.features, dtype=bool)
    fitted = converged(folds, everything, settings, QUICK_TREES, 1)
    before = np.concatenate([judged(fit.held_scores, fit.held) for fit in fitted])
    start = HeldOutFit.begin(of, valid, folds[0].held_scores[:, 0]).held_scores
    far = [judged(start + sum(map(scores_of, fit.parts, repeat(valid))), valid) for fit in fitted]
    later = np.mean(far, axis=0)
    error = np.sqrt(before.var() / len(before) + later.var() / len(later))
    return bool(later.mean() - before.mean() > DRIFT * error)


def divisions(whole: Subsets, folds: int, rng: np.random.Generator) -> list[Division]:
    """At most ``folds`` stratified parts of about equal size, each held out once."""
    count = units(whole)
    parts = min(folds, count)
    if parts < 2:
        return [(np.arange(count), np.arange(count))]
    # units are dealt to parts in a random order, class after class
    order = rng.permutation(count)
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):
        order = order[np.argsort(whole.train.y[order], kind="stable")]
    part = np.empty(count, dtype=np.int64)
    part[order] = np.arange(count) % parts
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(parts)]


TRIED = 12
"""Maximum candidates tried with trees."""
PROBE = {"learning_rate": 0.4, "trees": 6}
PROBE_LEAVES = ((2000, 8), (math.inf, 32))
"""Limits of fitted rows, and the leaves of a probe's trees."""
QUICK_RATE = 0.3
QUICK_TREES = 60
PAIRED, PAIRS, PAIR_TREES = 500, 6, 20
"""Maximum features searched for pairs, maximum pairs tried, and their trees."""
SEEN = 20.0
"""Least effect of a pair's product, in variances of the residuals."""
LUCK = 5.0
"""Nats, or residual variances, that useless features rarely gain on held-out rows."""
GROWTH = 0.25
"""Features bought between two sets, as a share of the features bought before."""
MANY = 200
"""After as many purchases sets are doubled without trials."""
SELECTION_HELD_OUT = 1500
"""Rows held out in selection, if there are as many."""
RIVALS = 2
"""Further first purchases that become sets, since the metric may prefer one. With few rows the
choice among them would be chance."""


def nested_sets(folds: Fits, settings: Settings) -> tuple[list[BoolArray], list[BoolArray]]:
    """Nested masks of features (d,), the last of all features; and further masks: cheaper sets
    where a purchase doubles the price of the set, and the next best first purchases."""
    prices = folds[0].subsets.prices
    quick, probe = hastened(settings), probing(settings, len(folds[0].subsets.train))
    chosen = readable(prices, np.zeros(prices.features, dtype=bool))
    sets = [chosen] if chosen.any() else []
    extra: list[BoolArray] = []
    now, looked = converged(folds, chosen, quick, QUICK_TREES, 1), 0
    while not chosen.all():
        left, size = Purchases.of(now, chosen), int(chosen.sum())
        order = promising(left)
        made = (prices.sensor[prices.bought_for(chosen)] > 0).sum()
        # gains of one more are not significant
        if size >= len(folds[0].subsets.train) or made >= MANY:
            rest = [left.brings[k] for k in order]
            return sets + doubled(prices, chosen, rest), extra
        # the others are left to a later round
        tried = order[:TRIED]
        more = [bought_too(prices, chosen, left.brings[k]) for k in tried]
        gain = np.array([_fall(now, features, probe) for features in more])
        seen, pair = tried[gain > luck(now)], None
        if len(seen) == 0 and size >= 2 * looked:
            pair, looked = best_pair(now, chosen, settings), max(size, 1)
        best, count = gaining(tried, gain / left.price[tried]), max(1, round(GROWTH * size))
        if len(best) == 0:  # no candidate helps: take larger steps
            best, count = order, max(2, size)
        if not sets and sum(len(fold.held) for fold in folds) >= SELECTION_HELD_OUT:
            extra += [bought_too(prices, chosen, left.brings[k]) for k in best[1 : 1 + RIVALS]]
        brought = [j for k in best[:count] for j in left.brings[k]]
        after = bought_too(prices, chosen, brought) if pair is None else pair
        if (limit := paid(prices, after)) >= 2 * paid(prices, chosen):
            extra += cheaper(now, chosen, limit, [left.brings[k] for k in seen], probe, quick)
        chosen = after
        sets.append(chosen)
        now = converged(now, chosen, quick, QUICK_TREES, 1)
    return sets, extra


def hastened(settings: Settings) -> Settings:
    """The settings with large steps."""
    return replace(settings, learning_rate=max(QUICK_RATE, settings.learning_rate))


def luck(folds: Fits) -> float:
    """Largest fall of the total held-out loss that counts as chance."""
    unit = 2 * abs(folds[0].loss) if folds[0].subsets.loss_name == "squared" else 1.0
    return LUCK * unit


def best_pair(folds: Fits, chosen: BoolArray, settings: Settings) -> BoolArray | None:
    """``chosen`` (d,) with the pair that lowers the held-out loss most per price, among pairs with
    products that explain most of the residuals; None if none helps."""
    of, left = folds[0].subsets, np.flatnonzero(~chosen)
    left = left[np.argsort(-of.explained(folds[0].scores)[left], kind="stable")[:PAIRED]]
    strength = np.triu(of.interactions(folds[0].scores, left), 1)
    deep = replace(settings, trees=PAIR_TREES, learning_rate=PROBE["learning_rate"])
    best, most = None, 0.0
    for place in np.argsort(-strength, axis=None, kind="stable")[:PAIRS].tolist():
        if strength.flat[place] > SEEN:
            more = bought_too(of.prices, chosen, left[list(divmod(place, len(left)))].tolist())
            gain = _fall(folds, more, deep)
            price = paid(of.prices, more) - paid(of.prices, chosen)
            if gain > luck(folds) and gain > most * price:
                best, most = more, gain / price
    return best


def paid(prices: Prices, features: BoolArray) -> float:
    """Total price of these features (d,)."""
    return float(prices.sensor[prices.bought_for(features)].sum())


def cheaper(
    folds: Fits,
    before: BoolArray,
    limit: float,
    brings: Sequence[Sequence[int]],
    probe: Settings,
    quick: Settings,
) -> list[BoolArray]:
    """Sets bought one by one on top of ``before``, by gain per price, below the price ``limit``.

    ``brings``: features of each helpful purchase; one that no longer helps is not tried again.
    """
    prices, chosen = folds[0].subsets.prices, before
    sets: list[BoolArray] = []
    while True:
        worth = []
        for features in brings:
            more = bought_too(prices, chosen, features)
            price = paid(prices, more) - paid(prices, chosen)
            gain = _fall(folds, more, probe) if 0 < price < limit - paid(prices, chosen) else 0.0
            worth += [(gain / price, features, more)] if gain > luck(folds) else []
        if not worth:
            return sets
        _, best, chosen = max(worth, key=lambda one: one[0])
        brings = [features for _, features, _ in worth if features is not best]
        sets.append(chosen)
        folds = converged(folds, chosen, quick, QUICK_TREES, 1)


def doubled(prices: Prices, chosen: BoolArray, brings: Sequence[Sequence[int]]) -> list[BoolArray]:
    """Sets of doubling size, in the order of ``brings``, up to all features."""
    sets = []
    while not chosen.all():
        count = max(2, int(chosen.sum()))
        chosen = bought_too(prices, chosen, [j for own in brings[:count] for j in own])
        brings = brings[count:]
        sets.append(chosen)
    return sets


def promising(left: Purchases) -> IntArray:
    """Purchases, the most promising first. Two orders alternate: by the residuals that the best
    feature explains, per price and in total."""
    keys = (left.explained / left.price, left.explained)
    orders = np.stack([np.argsort(-key, kind="stable") for key in keys], axis=1)
    return np.array(list(dict.fromkeys(orders.ravel().tolist())))


def probing(settings: Settings, rows: int) -> Settings:
    """Settings of a few large steps. Large trees show what a feature adds to those bought."""
    leaves = next(leaves for limit, leaves in PROBE_LEAVES if rows < limit)
    return replace(settings, max_leaves=leaves, **PROBE)  # type: ignore[arg-type]


def _fall(folds: Fits, features: BoolArray, settings: Settings) -> float:
    """Fall of the held-out loss by boosting on these features."""
    return sum(fold.total - fold.more(features, settings).total for fold in folds)
