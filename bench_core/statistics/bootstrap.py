"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw takes the
units of both splits with replacement, the same for all learners, chooses each learner's point on
the drawn validation units and reads its quality and cost on the drawn test units: the noise of the
choice is part of every interval, and what two learners share cancels in their difference. Draw 0 is
the data as they are.

Where a split has very many units, random blocks of them are drawn instead (``blocks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import share_of
from bench_core.statistics.blocks import block_sums
from bench_core.statistics.contenders import contenders

_ROUNDING = 1e-6  # of sums in 32 bits
_AT_ONCE = 250  # draws: their matrices of points stay in the processor's cache

Draws = FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Values per unit of one split: ``quality`` and ``cost`` (p, m) by point, the ``weights`` (m,)
    of quality and the ``rows`` (m,) that cost is a mean over."""

    quality: FloatArray | Float32Array
    cost: FloatArray | Float32Array
    weights: FloatArray | Float32Array
    rows: FloatArray | Float32Array


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """One learner's points on the units of one repeat; all of its configurations together. Units,
    their weights and rows are the same for all learners. ``p95`` (p,), if known, is what 95% of
    validation rows cost at most."""

    valid: Units
    test: Units
    p95: FloatArray = field(default_factory=lambda: np.zeros(0))


class Choice(NamedTuple):
    """By draw the chosen point, -1 for none. The share ``part`` of the units is served by the point
    ``other`` instead."""

    point: IntArray
    other: IntArray
    part: FloatArray


Choose = Callable[[list[FloatArray], list[FloatArray]], list[Choice]]
"""From each learner's validation quality and cost (draws, p), points by ascending cost, to its
choice."""


def draw(
    learners: Sequence[Candidates], choose: Choose, resamples: int, seed: int = 0
) -> tuple[Draws, Draws]:
    """Test quality and cost (learners, resamples + 1) of the points that ``choose`` takes.

    NaN where it takes none. The same ``seed`` draws the same units of splits of the same size.
    """
    quality, cost = draw_all(learners, [choose], resamples, seed)
    return quality[0], cost[0]


def draw_all(
    learners: Sequence[Candidates],
    chooses: Sequence[Choose],
    resamples: int,
    seed: int = 0,
    *,
    higher: bool | None = None,
) -> tuple[Draws, Draws]:
    """``draw`` for several ways to choose, on the same draws: (chooses, learners, resamples + 1).

    On test only those points are averaged that some draw of validation has chosen. ``higher``, if
    given, says which quality is better: points that never can be chosen are left out early; where
    all choices are within budgets these are the most.
    """
    streams = np.random.default_rng(seed).spawn(2)
    valid = _Split([one.valid for one in learners], streams[0])
    limits = [choose.limit for choose in chooses if isinstance(choose, at_budget)]
    kept = valid.contenders(higher, limits if len(limits) == len(chooses) else None)
    valid.keep(kept)
    parts: list[list[list[Choice]]] = [[] for _ in chooses]
    budgets = [choose for choose in chooses if isinstance(choose, at_budget)]
    for quality, cost in valid.draws(resamples):
        within = iter(_within(budgets, quality, cost))
        for choose, part in zip(chooses, parts, strict=True):
            part.append(next(within) if isinstance(choose, at_budget) else choose(quality, cost))
    chosen = [[_joined(choices) for choices in zip(*part, strict=True)] for part in parts]
    used = [_points(own, len(k)) for *own, k in zip(*chosen, kept, strict=True)]
    del valid
    points = [order[own] for order, own in zip(kept, used, strict=True)]
    test = _Split([one.test for one in learners], streams[1], points)
    return _read(test, chosen, used, resamples)


def _joined(parts: Sequence[Choice]) -> Choice:
    """The choices of some draws after those of others; what is nowhere mixed is kept once."""
    point = np.concatenate([one.point for one in parts])
    if all(one.other is one.point for one in parts):
        return _single(point)
    return Choice(
        point, *(np.concatenate(own) for own in zip(*(one[1:] for one in parts), strict=True))
    )


def _points(chosen: Sequence[Choice], points: int) -> IntArray:
    """Of so many ``points`` those that any of the choices takes."""
    used = np.zeros(points, dtype=bool)
    for one in chosen:
        used[one.point] = used[one.other] = True
    return np.flatnonzero(used)


def _read(
    test: _Split, chosen: Sequence[Sequence[Choice]], used: Sequence[IntArray], resamples: int
) -> tuple[Draws, Draws]:
    """Test quality and cost of the choices, of which ``test`` has the points ``used``."""
    result = np.empty((2, len(chosen), len(used), resamples + 1))
    by_learner = [*zip(*chosen, strict=True)]
    start = 0
    for means in test.draws(resamples):
        now = slice(start, start + len(means[0][0]))
        rows = np.arange(len(means[0][0]))
        for k, (own, points) in enumerate(zip(by_learner, used, strict=True)):
            here = _stacked([Choice(*(part[now] for part in one)) for one in own], points)
            for into, values in zip(result, means, strict=True):
                into[:, k, now] = _taken(values[k], here, rows)
        start = now.stop
    return result[0], result[1]


def _stacked(choices: Sequence[Choice], used: IntArray) -> Choice:
    """One learner's choices (choices, draws) among the points ``used``."""
    point, other, part = (np.stack(column) for column in zip(*choices, strict=True))
    found = np.where(point < 0, -1, np.searchsorted(used, point))
    return Choice(found, np.searchsorted(used, other), part)


def chosen_units(one: Candidates, choose: Choose) -> tuple[FloatArray, FloatArray]:
    """Test quality and cost (m,) by unit of a learner's choice on the data as they are."""
    valid = one.valid
    cost = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
    quality = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
    order = np.argsort(cost, kind="stable")
    choice = choose([quality[order][None]], [cost[order][None]])[0]
    n = len(one.test.weights)
    every = Choice(choice.point.repeat(n), choice.other.repeat(n), choice.part.repeat(n))
    quality, cost = (v[order].T.astype(np.float64) for v in (one.test.quality, one.test.cost))
    return _taken(quality, every), _taken(cost, every)


class _Split:
    """Sums by block of every learner's points, side by side, and draws of the blocks."""

    def __init__(
        self,
        units: Sequence[Units],
        rng: np.random.Generator,
        points: Sequence[IntArray | slice] = (),
    ) -> None:
        self.rng = rng
        first = units[0]
        both = np.array([first.weights, first.rows], dtype=np.float32)
        self.weights = block_sums(both, np.ones(both.shape[1], dtype=np.float32))
        pairs = [*zip(units, points or [slice(None)] * len(units), strict=True)]
        self.quality = [block_sums(one.quality[k], first.weights) for one, k in pairs]
        self.cost = [block_sums(one.cost[k], first.rows) for one, k in pairs]

    def contenders(
        self, higher: bool | None, limits: Sequence[float] | None = None
    ) -> list[IntArray]:
        """Of each learner the points that a draw may choose, in the order of their cost, so that of
        equals the cheaper is chosen. ``limits``, if known, are all that costs are compared with."""
        pairs = zip(self.quality, self.cost, strict=True)
        return [contenders(q, c, self.weights, higher, limits) for q, c in pairs]

    def keep(self, points: Sequence[IntArray]) -> None:
        """Forget all but these points of each learner."""
        for k, keep in enumerate(points):
            self.quality[k], self.cost[k] = self.quality[k][keep], self.cost[k][keep]

    def draws(self, resamples: int) -> Iterator[tuple[list[FloatArray], list[FloatArray]]]:
        """Some draws at a time, by learner their quality and cost (draws, p); the first draw is the
        data as they are."""
        blocks = self.weights.shape[1]
        for start in range(0, resamples + 1, _AT_ONCE):
            draws = min(_AT_ONCE, resamples + 1 - start)
            picked = self.rng.integers(0, blocks, (draws, blocks))
            picked += blocks * np.arange(draws)[:, None]
            counts = np.bincount(picked.ravel(), minlength=draws * blocks).reshape(draws, blocks)
            if start == 0:
                counts[0] = 1
            drawn = counts.astype(np.float32)
            total = np.maximum(drawn @ self.weights.T, 1e-30)
            yield (
                [_means(drawn, sums, total[:, :1]) for sums in self.quality],
                [_means(drawn, sums, total[:, 1:]) for sums in self.cost],
            )


def _means(drawn: Float32Array, sums: Float32Array, total: Float32Array) -> FloatArray:
    means: FloatArray = np.matmul(drawn, sums.T)
    means /= total
    return means


def _taken(values: FloatArray, choice: Choice, draws: IntArray | None = None) -> FloatArray:
    """The values (draws, p) of a choice, or of several (choices, draws), NaN where it is none."""
    draws = np.arange(len(values)) if draws is None else draws
    taken: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.part.any():
        taken += choice.part * (values[draws, choice.other] - taken)
    if choice.point.min(initial=0) < 0:
        taken[choice.point < 0] = np.nan
    return taken


def _single(point: IntArray) -> Choice:
    return Choice(point, point, np.broadcast_to(0.0, len(point)))


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
        return _within([self], quality, cost)[0]

    def affords(self, cost: list[FloatArray]) -> list[bool]:
        """Which learners have a point within the budget in the data as they are: in the first draw
        that this is asked of."""
        if not self._affords:
            self._affords = [bool((c[0] <= self.limit).any()) for c in cost]
        return self._affords


def _within(
    budgets: Sequence[at_budget], quality: list[FloatArray], cost: list[FloatArray]
) -> list[list[Choice]]:
    """The choices of every learner within each of the budgets, which look for them together."""
    rising = sorted(range(len(budgets)), key=lambda k: budgets[k].limit)
    limits = [budgets[k].limit for k in rising]
    found: list[list[Choice]] = [[] for _ in budgets]
    for learner, (q, c) in enumerate(zip(quality, cost, strict=True) if budgets else ()):
        best = _best_within(q if budgets[0].higher else -q, c, limits)
        for k, point in zip(rising, best, strict=True):
            has = budgets[k].affords(cost)[learner]
            found[k].append(_single(point if has else np.full(len(q), -1)))
    return found


def _best_within(good: FloatArray, cost: FloatArray, limits: Sequence[float]) -> Iterator[IntArray]:
    """The best point of each draw at each of the rising limits. Points that are within a limit in
    all draws are looked at once for all limits, the others where it is within their reach."""
    draws = np.arange(len(good))
    least = np.minimum.accumulate(cost.min(axis=0)[::-1])[::-1]
    inside = np.searchsorted(np.maximum.accumulate(cost.max(axis=0)), limits, "right")
    reach = np.searchsorted(least, limits, "right")
    at, best, seen = np.zeros(len(good), dtype=np.int64), np.full(len(good), -np.inf), 0

    def better(some: FloatArray, start: int) -> tuple[IntArray, FloatArray]:
        first: IntArray = some.argmax(axis=1)
        value = some[draws, first]
        return np.where(value > best, first + start, at), np.maximum(value, best)

    for limit, sure, end in zip(limits, inside, reach, strict=True):
        if sure > seen:
            (at, best), seen = better(good[:, seen:sure], seen), sure
        point, value = at, best
        if end > sure:
            may = np.where(cost[:, sure:end] <= limit, good[:, sure:end], -np.inf)
            point, value = better(may, sure)
        if (none := np.isneginf(value)).any():
            point = np.where(none, cost.argmin(axis=1), point)
        yield point


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
        draws = len(quality[0])
        return [
            Choice(one.point.repeat(draws), one.other.repeat(draws), one.part.repeat(draws))
            for one in first
        ]

    return again


def keeping(share: float, reference: int, higher: bool) -> Choose:
    """Each learner's cheapest point with ``share`` of the best quality of learner ``reference``,
    both in the same draw."""

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        own = quality[reference]
        target = share_of(own.max(axis=1) if higher else own.min(axis=1), share, higher)
        return [_cheapest(q, c, target, higher) for q, c in zip(quality, cost, strict=True)]

    return choose


def equalling(learner: int, cost: float, higher: bool) -> Choose:
    """Each learner at the cost at which it is as good as learner ``learner`` at mean cost ``cost``:
    a mixture of the cheapest point that is as good and the best of those below. None is as good:
    none is taken."""
    matched = at_matched_cost(cost, higher)

    def choose(quality: list[FloatArray], costs: list[FloatArray]) -> list[Choice]:
        own = matched([quality[learner]], [costs[learner]])[0]
        target = _taken(quality[learner], own)
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
    reached = quality >= target[:, None] if higher else quality <= target[:, None]
    index = np.where(reached, cost, np.inf).argmin(axis=1)
    return _single(np.where(reached.any(axis=1), index, -1))
