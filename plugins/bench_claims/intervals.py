"""The 95% interval of a claim's figure, by the statistics of boards (``bench_core.statistics``).

Where the store has values per query or row, these are drawn with replacement, the same for all
contenders, and points are chosen again in every draw. Other figures (times, purchases), data
generated for a paper (laid out, not sampled) and runs without stored values vary over repeats
alone: one repeat has no interval then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from bench_claims.claims import CURVES, Claim
from bench_claims.measures import FIGURES, Results
from bench_core.metrics.frontier import Choice, share_of, taken
from bench_core.results.budgets import Budget, choice_within
from bench_core.statistics.bootstrap import BLOCKS, Means, draw, lacking
from bench_core.statistics.comparison import Interval, interval
from bench_core.statistics.repeats import (
    Level,
    joined,
    of_units,
    over_repeats,
    stored_repeats,
    with_seeds,
)

if TYPE_CHECKING:
    from bench_core.arrays import FloatArray
    from bench_core.results.store import Store

_DRAWN = (*CURVES, "saving", "quality", "quality-kept")
_BUDGETS = 32
"""Budgets, evenly spaced, at which curves are compared in draws."""

_DRAWS = 1000
_LEAST = 1e-6  # of a cost, where its logarithm is taken


def interval_of(
    results: Results, measured: float, store: Store | None, run: str
) -> Interval | None:
    """The interval around a figure; None where nothing tells how it varies.

    A claim on several pairs, or on every budget, is about the least of several differences: its
    interval reaches from the least of their lower ends to the least of their upper ones.
    """
    claim, frame, level = results.claim, results.frame, None
    # values are kept of the first metric and of the whole cost
    drawn = claim.measure in _DRAWN and not (claim.ours or claim.metric)
    if store and drawn and (frame[claim.cost] == frame["total_cost"]).all():
        level = _of_units(results, store, run)
    level = level or _of_repeats(results)
    if level is None or not np.isfinite(level.draws).all():
        return None
    lows, highs = zip(*(interval(level, part) for part in np.eye(len(level.draws))), strict=True)
    shift = _scaled(claim, measured) - float(level.observed.min())
    low, high = min(lows) + shift, min(highs) + shift
    if claim.measure == "saving":
        return Interval(1 - math.exp(high), 1 - math.exp(low))
    return Interval(low, high)


def _scaled(claim: Claim, figure: float) -> float:
    """A figure on the scale of its draws: of a saving the logarithm of the cost that is left."""
    return math.log(max(1 - figure, _LEAST)) if claim.measure == "saving" else figure


def _of_repeats(results: Results) -> Level | None:
    claim = results.claim
    values = [_scaled(claim, FIGURES[claim.measure](repeat)) for repeat in results.repeats]
    if len(values) < 2:
        return None
    # nothing varies with units, whatever their number
    return joined([of_units(np.full((1, 1 + _DRAWS), one), _DRAWS) for one in values], True)


def _of_units(results: Results, store: Store, run: str) -> Level | None:
    """The level of the figure's parts (k,); None where some contender has no values."""
    claim, keys = results.claim, sorted(results.keys)
    each = [
        {
            (repeat.fold, repeat.seed): repeat
            for repeat in stored_repeats(
                store, run, one.dataset or claim.dataset, [one.learner], blocks=BLOCKS, has=one.has
            )
        }
        for one in claim.contenders
    ]
    if not all(own.keys() >= results.keys for own in each):
        return None
    repeats, values = [each[0][key] for key in keys], []
    kept = np.ones(1 + _DRAWS, dtype=bool)  # draws in which the metric is defined
    for key, (_, seed) in zip(keys, with_seeds(repeats), strict=True):
        ones = [next(iter(own[key].candidates.values())) for own in each]
        means = [draw(one, _DRAWS, seed) for one in ones]
        kept &= np.logical_and.reduce([own.defined for own in means])
        values.append(_parts(claim, means, results.higher))
    return None if lacking(kept) else over_repeats(repeats, [own[:, kept] for own in values])


def _best(means: Means, higher: bool, budget: float = inf) -> FloatArray:
    return taken(means.test_quality, _single(means, higher, budget))


def _single(means: Means, higher: bool, budget: float = inf) -> Choice:
    """By draw the single best point within a mean cost, as papers report."""
    cost = means.valid_cost
    return choice_within(Budget(budget, "p95"), cost, means.valid_quality, cost, higher)


def _costs(claim: Claim, means: Sequence[Means], higher: bool) -> tuple[FloatArray, FloatArray]:
    """By draw the cost at which the first keeps the share of the best of the second (or its own),
    NaN where it does not, and the cost of that best."""
    own, other = means[0], means[min(1, len(means) - 1)]
    sign = 1 if higher else -1
    aim = share_of(taken(other.valid_quality, _single(other, higher)), claim.keeps, higher)
    reaches = sign * own.valid_quality >= sign * aim[:, None]
    point = np.where(reaches, own.valid_cost, inf).argmin(axis=1)
    kept = Choice(np.where(reaches.any(axis=1), point, -1), point, np.zeros(len(point)))
    return taken(own.test_cost, kept), taken(other.test_cost, _single(other, higher))


def _parts(claim: Claim, means: Sequence[Means], higher: bool) -> FloatArray:
    """The parts of a figure (k, draws), on its scale; the figure is the least of their means."""
    if claim.measure == "saving":
        paid, whole = _costs(claim, means, higher)
        left = np.where(np.isnan(paid), 1.0, paid / np.maximum(whole, _LEAST))
        return np.log(np.maximum(left, _LEAST))[None]
    if claim.measure not in CURVES:
        found = _best(means[0], higher, claim.budget)[None]
        return found if claim.measure == "quality" else found / _best(means[1], higher)
    # the last of the means are the constant's, where all curves begin
    low, high = claim.budgets
    budgets = np.linspace(low, high, 2 * _BUDGETS + 1)[1::2]
    wholes = [Means(*map(np.hstack, zip(means[-1], own, strict=True))) for own in means[:-1]]
    curves = [np.stack([_best(whole, higher, b) for b in budgets]) for whole in wholes]
    gaps = [one - two if higher else two - one for one, two in pairwise(curves)]
    if claim.measure == "margin":
        gaps = [gap.mean(axis=0, keepdims=True) for gap in gaps]
    return np.concatenate(gaps)
