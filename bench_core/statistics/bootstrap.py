"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw takes the
units of both splits with replacement, the same for all learners, chooses each learner's point on
the drawn validation units and reads its quality and cost on the drawn test units: the noise of the
choice is part of every interval, and what two learners share cancels in their difference. Draw 0 is
the data as they are.

Where a split has more than ``BLOCKS`` units, units are joined to that many random blocks, which
are drawn instead: means of exchangeable units have the same variance in blocks, and a board of many
learners takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import share_of

BLOCKS = 512
_ROUNDING = 1e-6  # of sums in 32 bits
_AT_ONCE = 500  # draws: their matrices of points stay in the processor's cache

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
    their weights and rows are the same for all learners."""

    valid: Units
    test: Units


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
    given, says which quality is better: points that never can be chosen are left out early.
    """
    streams = np.random.default_rng(seed).spawn(2)
    valid, test = (
        _Split([getattr(one, name) for one in learners], rng)
        for name, rng in zip(("valid", "test"), streams, strict=True)
    )
    kept = valid.contenders(higher)
    valid.keep(kept)
    parts: list[list[list[Choice]]] = [[] for _ in chooses]
    for quality, cost in valid.draws(resamples):
        for choose, part in zip(chooses, parts, strict=True):
            part.append(choose(quality, cost))
    chosen = [[_joined(choices) for choices in zip(*part, strict=True)] for part in parts]
    used = [_points(own, len(k)) for *own, k in zip(*chosen, kept, strict=True)]
    test.keep([order[points] for order, points in zip(kept, used, strict=True)])
    return _read(test, chosen, used, resamples)


def _joined(parts: Sequence[Choice]) -> Choice:
    return Choice(*(np.concatenate(column) for column in zip(*parts, strict=True)))


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
    start = 0
    for means in test.draws(resamples):
        now = slice(start, start + len(means[0][0]))
        for which, of_learners in enumerate(chosen):
            for k, choice in enumerate(of_learners):
                point, other = (np.searchsorted(used[k], c[now]) for c in choice[:2])
                none = choice.point[now] < 0
                here = Choice(np.where(none, -1, point), other, choice.part[now])
                for into, values in zip(result, means, strict=True):
                    into[which, k, now] = _taken(values[k], here)
        start = now.stop
    return result[0], result[1]


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


def block_sums(
    values: FloatArray | Float32Array, weights: FloatArray | Float32Array
) -> Float32Array:
    """Weighted sums (p, at most ``BLOCKS``) of values (p, m) over random blocks of units, the same
    blocks for all values of so many units."""
    count = len(weights)
    if count <= BLOCKS:
        return np.asarray(values * weights, dtype=np.float32)
    order = np.random.default_rng(count).permutation(count)
    whole = count - count % BLOCKS
    product = values[:, order] * weights[order]
    sums = product[:, :whole].reshape(len(values), -1, BLOCKS).sum(axis=1)
    sums[:, : count - whole] += product[:, whole:]
    return np.asarray(sums, dtype=np.float32)


class _Split:
    """Sums by block of every learner's points, side by side, and draws of the blocks."""

    def __init__(self, units: Sequence[Units], rng: np.random.Generator) -> None:
        self.rng = rng
        first = units[0]
        both = np.array([first.weights, first.rows], dtype=np.float32)
        self.weights = block_sums(both, np.ones(both.shape[1], dtype=np.float32))
        self.quality = [block_sums(one.quality, first.weights) for one in units]
        self.cost = [block_sums(one.cost, first.rows) for one in units]

    def contenders(self, higher: bool | None) -> list[IntArray]:
        """Of each learner the points that a draw may choose, in the order of their cost, so that of
        equals the cheaper is chosen."""
        pairs = zip(self.quality, self.cost, strict=True)
        return [_contenders(q, c, self.weights, higher) for q, c in pairs]

    def keep(self, points: Sequence[IntArray]) -> None:
        """Forget all but these points of each learner."""
        self.quality = [q[keep] for q, keep in zip(self.quality, points, strict=True)]
        self.cost = [c[keep] for c, keep in zip(self.cost, points, strict=True)]

    def draws(self, resamples: int) -> Iterator[tuple[list[FloatArray], list[FloatArray]]]:
        """Some draws at a time, by learner their quality and cost (draws, p); the first draw is the
        data as they are."""
        ends = np.cumsum([len(q) for q in self.quality])
        sums = np.concatenate([*self.quality, *self.cost])
        blocks = sums.shape[1]
        for start in range(0, resamples + 1, _AT_ONCE):
            draws = min(_AT_ONCE, resamples + 1 - start)
            picked = self.rng.integers(0, blocks, (draws, blocks))
            picked += blocks * np.arange(draws)[:, None]
            counts = np.bincount(picked.ravel(), minlength=draws * blocks).reshape(draws, blocks)
            if start == 0:
                counts[0] = 1
            drawn = counts.astype(np.float32)
            total = np.maximum(drawn @ self.weights.T, 1e-30)
            means = drawn @ sums.T
            quality, cost = means[:, : ends[-1]], means[:, ends[-1] :]
            quality /= total[:, :1]
            cost /= total[:, 1:]
            yield np.split(quality, ends[:-1], axis=1), np.split(cost, ends[:-1], axis=1)


_CERTAIN = 6  # standard errors


def _contenders(
    quality: Float32Array, cost: Float32Array, weights: Float32Array, higher: bool | None
) -> IntArray:
    """The points by ascending cost, without those that another one beats in quality and in cost by
    so many standard errors that no draw chooses them.

    ``quality``, ``cost`` (p, blocks) and ``weights`` (2, blocks) are sums by block.
    """
    order = np.argsort(cost.sum(axis=1, dtype=np.float64), kind="stable")
    if higher is None:
        return order
    gain = _certainly_more(quality[order] if higher else -quality[order], weights[0])
    return order[~(gain & _certainly_more(-cost[order], weights[1])).any(axis=0)]


def _certainly_more(sums: Float32Array, weights: Float32Array) -> BoolArray:
    """Which point's mean (row) is above which (column), by the standard error of the difference."""
    total = weights.sum(dtype=np.float64)
    mean = sums.sum(axis=1, dtype=np.float64) / total
    noise = (sums - mean[:, None].astype(np.float32) * weights) / np.float32(total)
    product = noise @ noise.T
    own = np.diag(product)
    error = np.sqrt(np.maximum(own[:, None] + own - 2 * product, 0))
    more: BoolArray = np.subtract.outer(mean, mean) > _CERTAIN * error + 1e-6 * np.abs(mean)
    return more


def _taken(values: FloatArray, choice: Choice) -> FloatArray:
    draws = np.arange(len(values))
    taken: FloatArray = values[draws, choice.point].astype(np.float64)
    if choice.part.any():
        taken += choice.part * (values[draws, choice.other] - taken)
    taken[choice.point < 0] = np.nan
    return taken


def _single(point: IntArray) -> Choice:
    return Choice(point, point, np.zeros(len(point)))


def best(higher: bool) -> Choose:
    """Each learner's point of best quality."""
    return at_budget(np.inf, higher)


def at_budget(budget: float, higher: bool) -> Choose:
    """Each learner's best point whose mean cost is at most ``budget``.

    A learner that has none in the data as they are has none in any draw. In a draw in which all its
    points are above, it takes the cheapest.
    """
    affords: list[bool] = []
    limit = budget * (1 + _ROUNDING)  # a budget may be what a point costs

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        if not affords:
            affords.extend(bool((c[0] <= limit).any()) for c in cost)
        found = []
        for q, c, has in zip(quality, cost, affords, strict=True):
            good = np.where(c <= limit, q if higher else -q, -np.inf)
            none = np.isneginf(good.max(axis=1))
            index = np.where(none, c.argmin(axis=1), good.argmax(axis=1))
            found.append(_single(index if has else np.full(len(q), -1)))
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
