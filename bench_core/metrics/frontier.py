"""Trade-off between cost and quality: functions from arrays to indices.

``cost`` and ``quality`` describe p operating points: (p,), or (draws, p) for a separate choice in
each bootstrap draw. Points with a NaN in either are never chosen. Ties go to the cheaper point,
then to the earlier one. A mean cost between two points is reached by mixing them at random.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

Number = TypeVar("Number", float, FloatArray)

_ROUNDING = 1e-6  # relative error of float32 sums


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


def choosable(
    cost: FloatArray, p95: FloatArray, quality: FloatArray, higher_is_better: bool = True
) -> IntArray:
    """Return the points that some budget chooses, by ascending cost: the frontiers by mean ``cost``
    and by ``p95``, the 95th percentile of row costs. Among points of equal quality within a p95
    budget, the one with the lowest mean cost wins. It may be on neither frontier."""
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    good = good if higher_is_better else -good
    place = np.empty(len(cost))  # by quality, then the cheaper, then the earlier
    place[np.lexsort((-np.arange(len(cost)), -cost, good))] = np.arange(len(cost))
    place[np.isnan(cost) | np.isnan(good)] = np.nan
    found = np.union1d(frontier(cost, good), frontier(p95, place))
    return np.asarray(found[np.argsort(cost[found], kind="stable")], dtype=np.int64)


class Choice(NamedTuple):
    """Mixture of two points in each draw: ``cheaper`` serves a random fraction ``part`` of the
    units, ``point`` the others. ``point`` is -1 if no point is allowed."""

    point: IntArray  # (draws,)
    cheaper: IntArray  # (draws,), equal to ``point`` without mixing
    part: FloatArray  # (draws,)

    def flat(self) -> Choice:
        """Flatten choices of several axes, the first axis fastest."""
        return Choice(self.point.T.ravel(), self.cheaper.T.ravel(), self.part.T.ravel())

    def at(self, where: Any) -> Choice:
        """The choices at an index."""
        return Choice(self.point[where], self.cheaper[where], self.part[where])

    def or_else(self, other: Choice) -> Choice:
        """Replace missing choices by the choices of ``other``."""
        none = self.point < 0
        return Choice(*(np.where(none, b, a) for a, b in zip(self, other, strict=True)))

    def held(self) -> Choice:
        """Repeat the choice of draw 0, the original data, in every draw."""
        return self.at(np.zeros(len(self.point), dtype=int))


class Hull(NamedTuple):
    """Corners (draws, h) of the upper hull of points in each draw, by ascending cost. Only mixtures
    of two neighbouring corners are optimal. The last corner, of the best quality at its least cost,
    is repeated. ``quality`` is oriented upwards, -inf for missing points."""

    point: IntArray
    cost: FloatArray
    quality: FloatArray


def hull(cost: FloatArray, quality: FloatArray, higher_is_better: bool = True) -> Hull:
    """Return hulls of points ``cost``, ``quality`` (draws, p), p > 0, by Jarvis's march."""
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    unusable = np.isnan(cost) | np.isnan(good)
    good = np.where(unusable, -np.inf, good if higher_is_better else -good)
    cost = np.where(unusable, np.inf, cost)
    draws = np.arange(len(cost))
    cheapest = cost == cost.min(axis=1, keepdims=True)
    at = np.where(cheapest, good, -np.inf).argmax(axis=1)
    corners = [at]
    while True:
        with np.errstate(invalid="ignore"):  # from unusable points
            more = cost - cost[draws, at][:, None]
            gain = good - good[draws, at][:, None]
        onward = (more > 0) & (gain > 0)
        if not onward.any():
            break
        slope = np.where(onward, gain, -np.inf) / np.where(onward, more, 1.0)
        at = np.where(onward.any(axis=1), slope.argmax(axis=1), at)
        corners.append(at)
    point = np.stack(corners, axis=1)
    return Hull(point, cost[draws[:, None], point], good[draws[:, None], point])


def mixed_within(corners: Hull, budget: float) -> Choice:
    """Return the best mixture with mean cost at most ``budget``; for infinity, the best point.

    If the cheapest point of draw 0 exceeds the budget, no draw has a choice. In other draws, a
    cheapest point above the budget is chosen anyway.
    """
    rows = np.arange(len(corners.point))
    inside = corners.cost <= budget
    if not (corners.cost[0, 0] <= budget * (1 + _ROUNDING) and corners.quality[0, 0] > -np.inf):
        return Choice(np.full(len(rows), -1), np.full(len(rows), -1), np.zeros(len(rows)))
    low = np.maximum(inside.sum(axis=1) - 1, 0)
    high = np.minimum(low + 1, corners.cost.shape[1] - 1)
    least, most = corners.cost[rows, low], corners.cost[rows, high]
    mixes = (most > least) & (budget > least) & np.isfinite(budget)
    with np.errstate(invalid="ignore"):  # infinite budgets, and draws without a usable point
        part = np.where(mixes, (most - budget) / np.where(mixes, most - least, 1.0), 1.0)
    mixes &= part < 1 - _ROUNDING
    first, second = corners.point[rows, low], corners.point[rows, high]
    return Choice(np.where(mixes, second, first), first, np.where(mixes, part, 0.0))


def mixed_reaching(corners: Hull, target: FloatArray, higher_is_better: bool = True) -> Choice:
    """Return, in each draw, the cheapest mixture of quality ``target`` (draws,), or the cheapest
    point if it is better; no choice if no point reaches the target."""
    rows, aim = np.arange(len(corners.point)), target if higher_is_better else -target
    reaches = corners.quality >= aim[:, None]
    high = reaches.argmax(axis=1)
    low = np.maximum(high - 1, 0)
    part = np.zeros(len(rows))
    with np.errstate(invalid="ignore"):  # from draws without a usable point
        gap = corners.quality[rows, high] - corners.quality[rows, low]
        np.divide(corners.quality[rows, high] - aim, gap, out=part, where=gap > 0)
    point = np.where(reaches.any(axis=1), corners.point[rows, high], -1)
    return Choice(point, corners.point[rows, low], np.clip(part, 0, 1))


def taken(values: FloatArray | Float32Array, choice: Choice) -> FloatArray:
    """Return the values (draws, p) of a choice (draws,), NaN without a choice."""
    if not values.size:
        return np.full(choice.point.shape, np.nan)
    draws = np.arange(len(values))
    found: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.part.any():
        found += choice.part * (values[draws, choice.cheaper] - found)
    found[choice.point < 0] = np.nan
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
