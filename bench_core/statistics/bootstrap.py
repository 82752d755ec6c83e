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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import share_of

BLOCKS = 512
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
    rng = np.random.default_rng(seed)
    splits = []
    for name in ("valid", "test"):
        units = [getattr(one, name) for one in learners]
        block, most = _blocks(len(units[0].weights), rng)
        splits.append(_Split(units, block, most))
    # points in the order of their cost, so that of equals the cheaper is chosen
    points = [np.argsort(cost, kind="stable") for cost in splits[0].costs()]
    quality = np.empty((len(learners), resamples + 1))
    cost = np.empty_like(quality)
    for start in range(0, resamples + 1, _AT_ONCE):
        stop = min(start + _AT_ONCE, resamples + 1)
        (vq, vc), (tq, tc) = (split.means(stop - start, start == 0, rng) for split in splits)
        chosen = choose(
            [q[:, o] for q, o in zip(vq, points, strict=True)],
            [c[:, o] for c, o in zip(vc, points, strict=True)],
        )
        for k, (choice, order) in enumerate(zip(chosen, points, strict=True)):
            quality[k, start:stop] = _taken(tq[k][:, order], choice)
            cost[k, start:stop] = _taken(tc[k][:, order], choice)
    return quality, cost


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


def _blocks(units: int, rng: np.random.Generator) -> tuple[IntArray, int]:
    most = min(units, BLOCKS)
    return rng.permutation(np.arange(units) % most), most


class _Split:
    """Sums by block of every learner's points, side by side."""

    def __init__(self, units: Sequence[Units], block: IntArray, blocks: int) -> None:
        self.ends = np.cumsum([len(one.quality) for one in units])[:-1]
        order = np.argsort(block, kind="stable")
        starts = np.searchsorted(block[order], np.arange(blocks))
        first = units[0]

        def summed(values: FloatArray, axis: int = -1) -> Float32Array:
            return np.add.reduceat(values[..., order], starts, axis=axis).astype(np.float32)

        self.weights = summed(np.stack([first.weights, first.rows]).astype(np.float64))
        quality = [summed(one.quality.astype(np.float64) * first.weights) for one in units]
        cost = [summed(one.cost.astype(np.float64) * first.rows) for one in units]
        self.sums = np.concatenate([*quality, *cost])  # (points of all, twice; blocks)

    def costs(self) -> list[FloatArray]:
        total = self.sums[len(self.sums) // 2 :].sum(axis=1, dtype=np.float64)
        return np.split(total, self.ends)

    def means(
        self, draws: int, observed: bool, rng: np.random.Generator
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        """By learner quality and cost (draws, p); the first draw is the data if ``observed``."""
        blocks = self.sums.shape[1]
        picked = rng.integers(0, blocks, (draws, blocks)) + blocks * np.arange(draws)[:, None]
        counts = np.bincount(picked.ravel(), minlength=draws * blocks).reshape(draws, blocks)
        if observed:
            counts[0] = 1
        drawn = counts.astype(np.float32)
        sums, total = drawn @ self.sums.T, drawn @ self.weights.T
        half = sums.shape[1] // 2
        quality = sums[:, :half] / np.maximum(total[:, :1], 1e-30)
        cost = sums[:, half:] / np.maximum(total[:, 1:], 1e-30)
        return np.split(quality, self.ends, axis=1), np.split(cost, self.ends, axis=1)


def _taken(values: FloatArray, choice: Choice) -> FloatArray:
    draws = np.arange(len(values))
    first, second = values[draws, choice.point], values[draws, choice.other]
    taken: FloatArray = np.where(choice.point < 0, np.nan, first + choice.part * (second - first))
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

    def choose(quality: list[FloatArray], cost: list[FloatArray]) -> list[Choice]:
        if not affords:
            affords.extend(bool((c[0] <= budget).any()) for c in cost)
        found = []
        for q, c, has in zip(quality, cost, affords, strict=True):
            good = np.where(c <= budget, q if higher else -q, -np.inf)
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
