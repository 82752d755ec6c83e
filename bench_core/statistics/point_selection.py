"""Ways to choose the operating point of a learner, in many draws at once.

``quality`` and ``cost`` (draws, p) are those of its points on validation, points by ascending cost;
draw 0 is the data as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import share_of

_ROUNDING = 1e-6  # of sums in 32 bits


class Choice(NamedTuple):
    """A choice by draw."""

    point: IntArray  # (draws,) -1 for none
    other: IntArray  # the point that serves a part of the units
    part: FloatArray  # the share of that part

    def at(self, where: Any) -> Choice:
        """The choices at an index."""
        return Choice(self.point[where], self.other[where], self.part[where])

    def held(self) -> Choice:
        """In every draw the choice on the data as they are."""
        return self.at(np.zeros(len(self.point), dtype=int))


def single(point: IntArray) -> Choice:
    """The choice of these points, unmixed."""
    return Choice(point, point, np.zeros(point.shape))


def taken(values: FloatArray | Float32Array, choice: Choice) -> FloatArray:
    """The values (draws, p) of a choice, NaN where it is none."""
    if not values.size:
        return np.full(choice.point.shape, np.nan)
    draws = np.arange(len(values))
    found: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.part.any():
        found += choice.part * (values[draws, choice.other] - found)
    found[choice.point < 0] = np.nan
    return found


def at_budget(quality: FloatArray, cost: FloatArray, budget: float, higher: bool) -> Choice:
    """The best point whose mean cost is at most ``budget``.

    A learner that has none in the data as they are has none in any draw. In a draw in which all its
    points are above, it takes the cheapest.
    """
    limit = budget * (1 + _ROUNDING)  # a budget may be what a point costs
    inside = cost <= limit
    if not inside[0].any():
        return single(np.full(len(cost), -1))
    point = np.where(inside, quality if higher else -quality, -np.inf).argmax(axis=1)
    if not (any_inside := inside.any(axis=1)).all():
        point = np.where(any_inside, point, cost.argmin(axis=1))
    return single(point)


def at_matched_cost(quality: FloatArray, cost: FloatArray, budget: float, higher: bool) -> Choice:
    """The mean cost ``budget``, by a mixture of two neighbours on the frontier.

    A learner whose points are all cheaper takes its best, one whose points all cost more none.
    """
    below = at_budget(quality, cost, budget, higher).point
    draws = np.arange(len(quality))
    start, paid = quality[draws, below], cost[draws, below]
    # the neighbour: of the better points that cost more, the cheapest
    better = quality > start[:, None] if higher else quality < start[:, None]
    above = np.where(better & (cost > budget), cost, np.inf)
    other = above.argmin(axis=1)
    there = np.isfinite(above[draws, other])
    gap = np.where(there, above[draws, other] - paid, np.inf)
    part = np.where(there, budget - paid, 0.0) / gap
    return Choice(below, other, np.clip(part, 0, 1))


def share_of_best(quality: FloatArray, share: float, higher: bool) -> FloatArray:
    """By draw what counts as this share of a learner's best quality."""
    return share_of(quality.max(axis=1) if higher else quality.min(axis=1), share, higher)


def cheapest(quality: FloatArray, cost: FloatArray, target: FloatArray, higher: bool) -> Choice:
    """In each draw the cheapest point that reaches the target; of equally cheap ones the best."""
    reached = quality >= target[:, None] if higher else quality <= target[:, None]
    paid = np.where(reached, cost, np.inf)
    least = paid == paid.min(axis=1, keepdims=True)
    point = np.where(least, quality if higher else -quality, -np.inf).argmax(axis=1)
    return single(np.where(reached.any(axis=1), point, -1))


def as_good(quality: FloatArray, cost: FloatArray, target: FloatArray, higher: bool) -> Choice:
    """In each draw just the target: a mixture of the cheapest point that reaches it and the best of
    those that cost less, continuous in what is drawn as no single point is."""
    good, aim = (quality, target) if higher else (-quality, -target)
    draws = np.arange(len(good))
    above = cheapest(good, cost, aim, higher=True).point
    cheaper = np.where(cost < cost[draws, above][:, None], good, -np.inf)
    below = cheaper.argmax(axis=1)
    start = cheaper[draws, below]
    there = np.isfinite(start)
    gap = np.where(there, good[draws, above] - start, 1.0)
    part = np.where(there & (gap > 0), (good[draws, above] - aim) / np.where(gap > 0, gap, 1), 0.0)
    return Choice(above, below, np.clip(part, 0, 1))
