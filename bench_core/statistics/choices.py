"""Ways to choose the operating point of every learner, in many draws at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.metrics.frontier import share_of

_ROUNDING = 1e-6  # of sums in 32 bits


class Choice(NamedTuple):
    """By draw the chosen point, -1 for none. The share ``part`` of the units is served by the point
    ``other`` instead; where nothing is mixed, ``other`` is ``point``. Of several choices (choices,
    draws) the last ones, which mix nothing, may be left out of ``other`` and ``part``."""

    point: IntArray
    other: IntArray
    part: FloatArray

    @property
    def mixed(self) -> bool:
        """Whether any draw may be served by two points."""
        return self.other is not self.point

    def at(self, where: Any) -> Choice:
        """The choices at an index."""
        if not self.mixed:
            return single(self.point[where])
        return Choice(self.point[where], self.other[where], self.part[where])


Choose = Callable[[list[FloatArray], list[FloatArray]], list[Choice]]
"""From each learner's validation quality and cost (draws, p), points by ascending cost, to its
choice."""


def taken(values: FloatArray, choice: Choice, draws: IntArray | None = None) -> FloatArray:
    """The values (draws, p) of a choice, or of several (choices, draws), NaN where it is none."""
    draws = np.arange(len(values)) if draws is None else draws
    if not values.size:
        return np.full(choice.point.shape, np.nan)
    found: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.mixed:
        mixed = found[: len(choice.other)]
        mixed += choice.part * (values[draws, choice.other] - mixed)
    if choice.point.min(initial=0) < 0:
        found[choice.point < 0] = np.nan
    return found


def single(point: IntArray) -> Choice:
    """The choice of these points, unmixed."""
    return Choice(point, point, np.zeros(1))


def best(higher: bool) -> Choose:
    """Each learner's point of best quality."""
    return at_budget(np.inf, higher)


class at_budget:  # noqa: N801, as the functions beside it
    """Each learner's best point whose mean cost is at most ``budget``.

    A learner that has none in the data as they are has none in any draw. In a draw in which all its
    points are above, it takes the cheapest.
    """

    def __init__(self, budget: float, higher: bool) -> None:
        self.limit = budget * (1 + _ROUNDING)  # a budget may be what a point costs
        self.higher = higher
        self._affords: list[bool] = []

    def __call__(self, quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        """The choice of every learner."""
        return [single(found[0]) for found in within_each([self], quality, cost)]

    def affords(self, cost: list[FloatArray]) -> list[bool]:
        """Which learners have a point within the budget in the data as they are: in the first draw
        that this is asked of."""
        if not self._affords:
            self._affords = [bool((c[0] <= self.limit).any()) for c in cost]
        return self._affords


def within_each(
    budgets: Sequence[at_budget], quality: list[FloatArray], cost: list[FloatArray]
) -> Iterator[IntArray]:
    """By learner the points (budgets, draws) within each of the budgets, which look for them
    together."""
    rising = sorted(range(len(budgets)), key=lambda k: budgets[k].limit)
    limits = [budgets[k].limit for k in rising]
    for learner, (q, c) in enumerate(zip(quality, cost, strict=True)):
        found = np.full((len(budgets), len(q)), -1)
        if budgets:
            found[rising] = _best_within((q if budgets[0].higher else -q).T, c.T, limits)
        found[[not budget.affords(cost)[learner] for budget in budgets]] = -1
        yield found


def _best_within(good: FloatArray, cost: FloatArray, limits: Sequence[float]) -> IntArray:
    """The best point (limits, draws) of each draw (points, draws) at each of the rising limits.
    Points that are within a limit in all draws are looked at once for all limits, the others where
    it is within their reach."""
    least = np.minimum.accumulate(cost.min(axis=1)[::-1])[::-1]
    inside = np.searchsorted(np.maximum.accumulate(cost.max(axis=1)), limits, "right").tolist()
    reach = np.searchsorted(least, limits, "right").tolist()
    ranked = _ranked(good[: max(reach, default=0)])
    found = np.full((len(limits), good.shape[1]), _NONE)
    best, seen = np.full(good.shape[1], _NONE), 0
    for limit, sure, end, own in zip(limits, inside, reach, found, strict=True):
        if sure > seen:
            best, seen = np.maximum(best, ranked[seen:sure].max(axis=0)), sure
        own[:] = best
        if end > sure:
            may = np.where(cost[sure:end] <= limit, ranked[sure:end], _NONE)
            np.maximum(own, may.max(axis=0), out=own)
    none = found == _NONE
    np.subtract(_LAST, found & _LAST, out=found)
    return np.where(none, cost.argmin(axis=0), found) if none.any() else found


_LAST = (1 << 31) - 1
_NONE = -(1 << 62)


def _ranked(values: FloatArray) -> IntArray:
    """Integers in the order of values (points, draws), of equal ones the first point's the highest:
    the greatest of several gives a value's point without looking for it again."""
    if values.dtype == np.float32:
        bits = (values + np.float32(0)).view(np.int32)  # zero has one sign
        if bits.min(initial=0) < 0:
            bits ^= (bits >> 31) & np.int32(_LAST)
        order = bits.astype(np.int64)
    else:
        order = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    order <<= 31
    order += (_LAST - np.arange(len(values)))[:, None]
    return order


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
    reached = (quality >= target[:, None] if higher else quality <= target[:, None]).T
    paid, draws = cost.T, np.arange(len(cost))
    late = np.arange(len(paid), 0, -1, dtype=np.min_scalar_type(len(paid)))
    last = (reached * late[:, None]).max(axis=0)  # of those that reach it the first
    there = last > 0
    if not there.any():
        return single(np.full(len(cost), -1))
    # points by ascending cost: the cheapest is the first in most draws, and never far behind
    first = len(paid) - last.astype(np.int64)[there]
    start, most = first.min(), paid[first, draws[there]].max()
    end = np.flatnonzero(paid.min(axis=1) <= most)[-1] + 1
    asked = np.where(reached[start:end], paid[start:end], np.inf)
    good = (quality if higher else -quality).T[start:end]
    most = asked == asked.min(axis=0)
    if np.count_nonzero(most) > len(cost):  # of equally cheap ones the best
        best = _first_most(np.where(most, good, -np.inf))
    else:
        best = len(late) - (most * late[: end - start, None]).max(axis=0).astype(np.int64)
    return single(np.where(there, best + start, -1))


def _first_most(values: FloatArray) -> IntArray:
    """The place of the most of values (points, draws) in each draw, of equal ones the first."""
    found: IntArray = _LAST - (_ranked(values).max(axis=0) & _LAST)
    return found
