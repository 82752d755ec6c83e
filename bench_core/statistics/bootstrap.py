"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw takes the
units of both splits with replacement, the same for all learners, chooses each learner's point on
the drawn validation units and reads its quality and cost on the drawn test units: the noise of the
choice is part of every interval, and what two learners share cancels in their difference. Draw 0 is
the data as they are.

Where a split has very many units, random blocks of them are drawn instead (``blocks``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.statistics.blocks import block_sums
from bench_core.statistics.point_selection import Choice, Choose, joined_choices, taken

_AT_ONCE = 1 << 20  # means of all points

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
    priced: int | None = None,
) -> tuple[Draws, Draws]:
    """``draw`` for several ways to choose, on the same draws: (chooses, learners, resamples + 1);
    costs of the first ``priced`` ways alone, if that is given."""
    quality, cost = _sums([one.valid for one in learners])
    # ways to choose expect points by ascending cost: of equals they take the first
    order = [np.argsort(s.sum(axis=1, dtype=np.float64), kind="stable") for s in cost.sums]
    counts = _counts(len(quality.weights), resamples + 1, seed, 0)
    both = zip(quality.only(order).draws(counts), cost.only(order).draws(counts), strict=True)
    parts = [[choose(*means) for choose in chooses] for means in both]
    chosen = [
        [joined_choices([part[c][k] for part in parts]) for k in range(len(learners))]
        for c in range(len(chooses))
    ]
    quality, cost = _sums([one.test for one in learners])
    counts = _counts(len(quality.weights), resamples + 1, seed, 1)
    return (
        _read(quality.only(order), chosen, counts),
        _read(cost.only(order), chosen[:priced], counts),
    )


def _read(test: _Sums, chosen: Sequence[Sequence[Choice]], counts: Float32Array) -> Draws:
    """Means (chooses, learners, draws) at the choices."""
    result = np.empty((len(chosen), len(test.sums), len(counts)))
    start = 0
    for means in test.draws(counts) if chosen else ():
        now = slice(start, start := start + len(means[0]))
        for way, own in zip(result, chosen, strict=True):
            for k, values in enumerate(means):
                way[k, now] = taken(values, own[k].at(now))
    return result


def chosen_units(one: Candidates, choose: Choose) -> tuple[FloatArray, FloatArray]:
    """Test quality and cost (m,) by unit of a learner's choice on the data as they are."""
    valid = one.valid
    cost = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
    quality = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
    order = np.argsort(cost, kind="stable")
    choice = choose([quality[order][None]], [cost[order][None]])[0]
    every = choice.at(np.zeros(len(one.test.weights), dtype=int))
    quality, cost = (v[order].T.astype(np.float64) for v in (one.test.quality, one.test.cost))
    return taken(quality, every), taken(cost, every)


class _Sums(NamedTuple):
    """Sums by block of every learner's points (p, blocks), and of the ``weights`` (blocks,) that
    they are divided by."""

    sums: list[Float32Array]
    weights: Float32Array

    def only(self, points: Sequence[IntArray]) -> _Sums:
        """The sums of these points of each learner."""
        some = [sums[own] for sums, own in zip(self.sums, points, strict=True)]
        return _Sums(some, self.weights)

    def draws(self, counts: Float32Array) -> Iterator[list[FloatArray]]:
        """Some draws at a time, by learner the means (draws, p)."""
        some = 1 + min(500, _AT_ONCE // max(1, sum(map(len, self.sums))))
        for start in range(0, len(counts), some):
            drawn = counts[start : start + some]
            total = np.maximum(drawn @ self.weights, 1e-30)
            # divided last, so that sums of whole numbers that are equal stay so: of equals the
            # cheaper is chosen
            yield [(own @ drawn.T / total).T for own in self.sums]


def _sums(units: Sequence[Units]) -> tuple[_Sums, _Sums]:
    """Of quality and of cost on one split."""
    weights, rows = (np.asarray(w, dtype=np.float32) for w in (units[0].weights, units[0].rows))
    both = block_sums(np.stack([weights, rows]), np.ones(len(rows), dtype=np.float32))
    quality = [block_sums(one.quality, weights) for one in units]
    cost = [block_sums(one.cost, rows) for one in units]
    return _Sums(quality, both[0]), _Sums(cost, both[1])


@lru_cache(2)
def _counts(blocks: int, draws: int, seed: int, split: int) -> Float32Array:
    """Counts of each block in each draw (draws, blocks); the first is the data as they are. Many
    repeats and data sets of a run have the same."""
    rng = np.random.default_rng(seed).spawn(2)[split]
    counts = np.empty((draws, blocks), dtype=np.float32)
    for start in range(0, draws, 250):
        some = counts[start : start + 250]
        picked = rng.integers(0, blocks, some.shape)
        picked += blocks * np.arange(len(some))[:, None]
        some[:] = np.bincount(picked.ravel(), minlength=some.size).reshape(some.shape)
    counts[0] = 1
    counts.setflags(write=False)
    return counts
