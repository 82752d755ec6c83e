"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw takes the
units of both splits with replacement, the same for all learners. On its ``Means`` each learner's
point is chosen on validation and read on test (``choice_within``): the noise of the choice is
part of every interval, and what two learners share cancels in their difference. Draw 0 is the data
as they are.

Where a split has very many units, random blocks of them are drawn instead. Means of exchangeable
units have the same variance in blocks, and a board of many learners takes seconds. What is lost is
knowledge of the variance: of b blocks the ends of an interval vary by a share of 1 / sqrt(2 b) of
its half width, and of r draws by 1.36 / sqrt(r) for 95%: of 128 blocks by 6.3%, of 399 draws by
6.8%, of 1000 by 4.3%.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import hull, mixed_within, taken

Values = FloatArray | Float32Array

BLOCKS, FEW = 512, 128
"""Most blocks that are drawn, and the same with very many settings."""

DRAWS = 2000
"""Draws of a board, unless there are very many settings."""

LEAST_DRAWS = 100
"""Fewer draws in which a metric is defined make no interval."""

MANY, FEW_DRAWS = 250, 399
"""Settings of all learners in one repeat, from which on time and memory matter more, and how many
draws there are then: the 10th and the 390th are the ends of a 95% interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Values per unit of one split, by point."""

    quality: Values  # (p, m)
    cost: Values  # (p, m)
    weights: Values  # (m,) of quality
    rows: Values  # (m,) that cost is a mean over

    def condensed(self, blocks: int) -> Units:
        """The same in at most so many blocks, which depend on the number of units alone."""
        if len(self.weights) <= blocks:
            return self
        total, count = _totals(self, blocks)
        return Units(
            _sums(self.quality, self.weights, blocks) / np.maximum(total, _LEAST),
            _sums(self.cost, self.rows, blocks) / np.maximum(count, _LEAST),
            total,
            count,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """One learner's points on the units of one repeat, by ascending validation cost; all of its
    configurations together. Units, their weights and rows are the same for all learners."""

    valid: Units
    test: Units
    p95: FloatArray = field(default_factory=lambda: np.zeros(0))  # (p,) cost of 95% of rows

    @classmethod
    def of(cls, valid: Units, test: Units, p95: FloatArray) -> Candidates:
        """The candidates of points in any order."""
        order = np.argsort(valid.cost @ valid.rows.astype(np.float64), kind="stable")
        valid, test = (
            Units(one.quality[order], one.cost[order], one.weights, one.rows)
            for one in (valid, test)
        )
        return cls(valid, test, p95[order])


class Means(NamedTuple):
    """Means of one learner's points in every draw (draws, p), on both splits; of quality NaN in
    draws that hold no unit with a weight, in which a metric is not defined."""

    valid_quality: FloatArray
    valid_cost: FloatArray
    test_quality: FloatArray
    test_cost: FloatArray

    @property
    def defined(self) -> BoolArray:
        """The draws (draws,) in which the metric is defined on both splits, for any learner."""
        return ~np.isnan(self.valid_quality[:, 0] + self.test_quality[:, 0])


def lacking(defined: BoolArray) -> str:
    """Where too little is defined of draws to make intervals, in words, or nothing."""
    left_out = int((~defined).sum())
    if len(defined) - left_out > LEAST_DRAWS and defined[0]:
        return ""
    return f"in {left_out} of {len(defined)} draws" if defined[0] else "on validation or test"


def effort(settings: int, resamples: int) -> tuple[int, int]:
    """The most blocks, and the number of draws, of a board with so many ``settings`` in one
    repeat."""
    return (FEW, min(resamples, FEW_DRAWS)) if settings >= MANY else (BLOCKS, resamples)


def draw(one: Candidates, resamples: int, seed: int = 0) -> Means:
    """The means of a learner's points in 1 + ``resamples`` draws. The same ``seed`` draws the same
    units of splits of the same size."""
    found = []
    for split, units in enumerate((one.valid, one.test)):
        totals = _totals(units, BLOCKS)
        counts = _counts(totals.shape[1], resamples + 1, seed, split)
        sums = _sums(units.quality, units.weights, BLOCKS), _sums(units.cost, units.rows, BLOCKS)
        with one_thread():
            # divided last, so that sums of whole numbers that are equal stay so: of equals the
            # cheaper is chosen
            for own, total in zip(sums, totals, strict=True):
                whole = counts @ total
                found.append((own @ counts.T / np.where(whole > 0, whole, np.nan)).T)
    return Means(*found)


def chosen_units(
    one: Candidates, budget: float, higher: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Test quality, cost and rows (m,) by unit of a learner's best mixture of mean cost ``budget``
    (inf: its best point) on the data as they are, NaN where it has none; of units with a weight:
    others have no quality."""
    valid, test = one.valid, one.test
    quality = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
    cost = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
    choice = mixed_within(hull(cost[None], quality[None], higher), budget)
    every = choice.at(np.zeros(len(test.weights), dtype=int))
    judged = test.weights > 0
    found = taken(test.quality.T, every), taken(test.cost.T, every), test.rows.astype(np.float64)
    return found[0][judged], found[1][judged], found[2][judged]


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS computes with one thread in the body: several wait longer than they compute."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes 2 ms


_LEAST = np.float32(1e-30)


def _sums(values: Values, weights: Values, blocks: int) -> Float32Array:
    """Weighted sums (p, at most ``blocks``) of values (p, m) over random blocks of units, the same
    blocks for all values of so many units."""
    count = len(weights)
    if count <= blocks:
        return np.asarray(values * weights, dtype=np.float32)
    order, whole = _shuffled(count), count - count % blocks
    product = np.asarray(values.take(order, axis=1) * weights[order])
    sums = product[:, :whole].reshape(len(values), -1, blocks).sum(axis=1)
    sums[:, : count - whole] += product[:, whole:]
    return np.asarray(sums, dtype=np.float32)


def _totals(units: Units, blocks: int) -> Float32Array:
    """Weights and rows by block (2, blocks)."""
    both = np.array([units.weights, units.rows])
    return _sums(both, np.ones(both.shape[1], dtype=np.float32), blocks)


@lru_cache(4)
def _shuffled(count: int) -> IntArray:
    order = np.random.default_rng(count).permutation(count)
    order.setflags(write=False)
    return order


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
