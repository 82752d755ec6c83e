"""Trade-off between cost and quality: functions from arrays to indices.

``cost`` and ``quality`` describe p operating points: (p,), or (draws, p) for a separate choice in
each bootstrap draw, of which the first is what was observed. Points with a NaN in either are never
chosen. Ties go to the cheaper point, then to the earlier one; -1 stands for no point.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray

Number = TypeVar("Number", float, FloatArray)

ROUNDING = 1e-9
"""Relative error of a mean cost: rows that all cost .001 may have a mean a little above it."""


def frontier(cost: FloatArray, quality: FloatArray, higher_is_better: bool = True) -> IntArray:
    """Return the points not dominated in cost and quality, by ascending cost.

    Quality improves strictly along the result; of equal points the first is kept.
    """
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    good = good if higher_is_better else -good
    usable = np.flatnonzero(~np.isnan(cost) & ~np.isnan(good))
    order = usable[np.lexsort((-good[usable], cost[usable]))]  # ties keep their order
    if len(order) == 0:
        return np.zeros(0, dtype=np.int64)
    rising = good[order]  # qualities by ascending cost
    improves = np.append(True, rising[1:] > np.maximum.accumulate(rising)[:-1])
    return np.asarray(order[improves], dtype=np.int64)


class Frontiers:
    """Best points (draws,) within each mean cost, for many budgets on the same points.

    Only qualities are drawn: a point is affordable if its observed cost is. Otherwise half of all
    draws could not pay for a point at a budget of just its cost.
    """

    def __init__(self, cost: FloatArray, quality: FloatArray, higher_is_better: bool = True):
        good = quality if higher_is_better else -quality  # (draws, p)
        good = np.where(np.isnan(cost) | np.isnan(good), -np.inf, good)
        self._order = np.argsort(cost, kind="stable")  # (p,), by ascending cost
        self._cost = cost[self._order]
        rising = good[:, self._order]
        top = np.maximum.accumulate(rising, axis=1)
        improves = np.ones(rising.shape, dtype=bool)
        improves[:, 1:] = rising[:, 1:] > top[:, :-1]
        places = np.where(improves, np.arange(rising.shape[1]), 0)
        # (draws, p): the place of the best point up to each cost
        self._best = np.maximum.accumulate(places, axis=1)
        self._usable = np.isfinite(top[0])  # (p,) True if draw 0 has a point up to there

    def within(self, budget: float) -> IntArray:
        """Return the best point (draws,) of mean cost at most ``budget``; -1 in all draws if no
        observed point is within it."""
        inside = int((self._cost <= budget * (1 + ROUNDING)).sum())
        if inside == 0 or not self._usable[inside - 1]:
            return np.full(len(self._best), -1)
        found: IntArray = self._order[self._best[:, inside - 1]]
        return found


def best_within(
    cost: FloatArray,
    quality: FloatArray,
    budget: float = np.inf,
    higher_is_better: bool = True,
) -> IntArray:
    """Return the best points (draws,) of qualities (draws, p) whose cost (p,) is within a
    budget."""
    return Frontiers(cost, quality, higher_is_better).within(budget)


def cheapest(cost: FloatArray, allowed: BoolArray) -> IntArray:
    """Return the cheapest allowed points (draws,) of (draws, p)."""
    paid = np.where(allowed & ~np.isnan(cost), cost, np.inf)
    at = paid.argmin(axis=1)
    return np.where(np.isfinite(paid.min(axis=1)), at, -1)


def errors_beyond(gain: FloatArray, error: FloatArray) -> FloatArray:
    """Return gains in standard errors; infinite where the error is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(error > 0, gain / error, np.where(gain >= 0, np.inf, -np.inf))


def taken(values: FloatArray, point: IntArray) -> FloatArray:
    """Return the values (draws, p) of points (draws,), NaN without a point."""
    if not values.size:
        return np.full(point.shape, np.nan)
    found: FloatArray = values[np.arange(len(values)), point].astype(np.float64)
    found[point < 0] = np.nan
    return found


def share_of(best: Number, share: float, higher_is_better: bool = True) -> Number:
    """Return the quality that counts as reaching ``share`` (such as 0.99) of ``best``.

    Higher is better: ``share * best``. Lower is better: ``best / share``, an error at most 1/share
    times the best one. If ``best`` has the wrong sign (a negative gain), the target is looser by
    the same distance. The target is never harder than ``best``.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share must be above 0 and at most 1, got {share:g}")
    if higher_is_better:
        return best - (1 - share) * abs(best)
    return best + (1 / share - 1) * abs(best)
