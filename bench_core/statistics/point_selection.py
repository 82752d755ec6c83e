"""Ways to choose the operating point of every learner, in many draws at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.metrics.frontier import share_of

_ROUNDING = 1e-6  # of sums in 32 bits


class Choice(NamedTuple):
    """By draw the chosen point, -1 for none. The share ``part`` of the units is served by the point
    ``other`` instead."""

    point: IntArray
    other: IntArray
    part: FloatArray

    def at(self, where: Any) -> Choice:
        """The choices at an index."""
        return Choice(self.point[where], self.other[where], self.part[where])


Choose = Callable[[list[FloatArray], list[FloatArray]], list[Choice]]
"""From each learner's validation quality and cost (draws, p), points by ascending cost, to its
choice."""


def taken(values: FloatArray, choice: Choice) -> FloatArray:
    """The values (draws, p) of a choice, or of several (choices, draws), NaN where it is none."""
    if not values.size:
        return np.full(choice.point.shape, np.nan)
    draws = np.arange(len(values))
    found: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.part.any():
        found += choice.part * (values[draws, choice.other] - found)
    found[choice.point < 0] = np.nan
    return found


def single(point: IntArray) -> Choice:
    """The choice of these points, unmixed."""
    return Choice(point, point, np.zeros(point.shape))


def joined_choices(parts: Sequence[Choice]) -> Choice:
    """The choices of some draws after those of others."""
    return Choice(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def best(higher: bool) -> Choose:
    """Each learner's point of best quality."""
    return at_budget(np.inf, higher)


def at_budget(budget: float, higher: bool) -> Choose:
    """Each learner's best point whose mean cost is at most ``budget``.

    A learner that has none in the data as they are has none in any draw. In a draw in which all its
    points are above, it takes the cheapest.
    """
    limit = budget * (1 + _ROUNDING)  # a budget may be what a point costs
    affords: list[bool] = []  # in the first draw, which is the data as they are

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        if not affords:
            affords.extend(bool((c[0] <= limit).any()) for c in cost)
        found = []
        for able, q, c in zip(affords, quality, cost, strict=True):
            inside = c <= limit
            point = np.where(inside, q if higher else -q, -np.inf).argmax(axis=1)
            # in a draw where every point is above the limit, the cheapest one is the nearest
            if not (any_inside := inside.any(axis=1)).all():
                point = np.where(any_inside, point, c.argmin(axis=1))
            found.append(single(point if able else np.full(len(c), -1)))
        return found

    return choose


def at_matched_cost(cost: float, higher: bool) -> Choose:
    """Each learner at the same mean cost: a mixture of two neighbours on its frontier.

    A learner whose points are all cheaper takes its best, one whose points all cost more none.
    """
    affords = at_budget(cost, higher)

    def choose(quality: list[FloatArray], costs: list[FloatArray]) -> list[Choice]:
        found = []
        for below, q, c in zip(affords(quality, costs), quality, costs, strict=True):
            draws = np.arange(len(q))
            at = c[draws, below.point], q[draws, below.point]
            # the neighbour: of the better points that cost more, the cheapest
            better = q > at[1][:, None] if higher else q < at[1][:, None]
            above = np.where(better & (c > cost), c, np.inf)
            other = above.argmin(axis=1)
            there = np.isfinite(above[draws, other])
            gap = np.where(there, above[draws, other] - at[0], np.inf)
            part = np.where(there, cost - at[0], 0.0) / gap
            found.append(Choice(below.point, other, np.clip(part, 0, 1)))
        return found

    return choose


def held(choose: Choose) -> Choose:
    """In every draw the points that ``choose`` takes on the data as they are."""
    first: list[Choice] = []

    def again(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        if not first:
            first.extend(choose([q[:1] for q in quality], [c[:1] for c in cost]))
        return [one.at(np.zeros(len(quality[0]), dtype=int)) for one in first]

    return again


def keeping(share: float, reference: int, higher: bool) -> Choose:
    """Each learner's cheapest point with ``share`` of the best quality of learner ``reference``,
    both in the same draw."""

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        target = _share_of_best(quality[reference], share, higher)
        return [_cheapest(q, c, target, higher) for q, c in zip(quality, cost, strict=True)]

    return choose


def paying(share: float, reference: int, higher: bool) -> Choose:
    """Each learner at the cost of just ``share`` of the best quality of learner ``reference`` in
    the same draw: the mixture of ``equalling``, continuous in what is drawn as no single point
    is."""

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        target = _share_of_best(quality[reference], share, higher)
        return [_as_good(q, c, target, higher) for q, c in zip(quality, cost, strict=True)]

    return choose


def _share_of_best(quality: FloatArray, share: float, higher: bool) -> FloatArray:
    return share_of(quality.max(axis=1) if higher else quality.min(axis=1), share, higher)


def equalling(learner: int, cost: float, higher: bool) -> Choose:
    """Each learner at the cost at which it is as good as learner ``learner`` at mean cost ``cost``:
    a mixture of the cheapest point that is as good and the best of those below. None is as good:
    none is taken."""
    matched = at_matched_cost(cost, higher)

    def choose(quality: list[FloatArray], costs: list[FloatArray]) -> list[Choice]:
        own = matched([quality[learner]], [costs[learner]])[0]
        target = taken(quality[learner], own)
        found = [_as_good(q, c, target, higher) for q, c in zip(quality, costs, strict=True)]
        return [*found[:learner], own, *found[learner + 1 :]]

    return choose


def _as_good(quality: FloatArray, cost: FloatArray, target: FloatArray, higher: bool) -> Choice:
    good, aim = (quality, target) if higher else (-quality, -target)
    draws = np.arange(len(good))
    above = _cheapest(good, cost, aim, higher=True).point
    cheaper = np.where(cost < cost[draws, above][:, None], good, -np.inf)
    below = cheaper.argmax(axis=1)
    start = cheaper[draws, below]
    there = np.isfinite(start)
    gap = np.where(there, good[draws, above] - start, 1.0)
    part = np.where(there & (gap > 0), (good[draws, above] - aim) / np.where(gap > 0, gap, 1), 0.0)
    return Choice(above, below, np.clip(part, 0, 1))


def _cheapest(quality: FloatArray, cost: FloatArray, target: FloatArray, higher: bool) -> Choice:
    """In each draw the cheapest point that reaches the target; of equally cheap ones the best."""
    reached = quality >= target[:, None] if higher else quality <= target[:, None]
    paid = np.where(reached, cost, np.inf)
    least = paid == paid.min(axis=1, keepdims=True)
    point = np.where(least, quality if higher else -quality, -np.inf).argmax(axis=1)
    return single(np.where(reached.any(axis=1), point, -1))
