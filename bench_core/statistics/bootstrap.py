"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw resamples the
units of both splits with replacement, equally for all learners. From its ``Means``, each learner's
point is chosen on validation and read on test (``choice_within``). Intervals thus include the noise
of the choice, and common noise of two learners cancels in their difference. Draw 0 is the original
data.

Splits with very many units are resampled in random blocks. Means of exchangeable units have the
same variance in blocks, and a board of many learners takes seconds. The cost is a less certain
variance. The ends of a 95% interval vary by 1 / sqrt(2 b) of its half width with b blocks, and by
1.36 / sqrt(r) with r draws: 6.3% for 128 blocks, 6.8% for 399 draws, 4.3% for 1000.
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
from bench_core.metrics.frontier import Choice, hull, mixed_within, taken

Values = FloatArray | Float32Array

BLOCKS, FEW = 512, 128
"""Maximum number of blocks, by default and with very many settings."""

DRAWS = 2000
"""Default number of draws of a board, reduced with very many settings."""

LEAST_DRAWS = 100
"""Minimum number of draws with a defined metric for an interval."""

MANY, FEW_DRAWS = 250, 399
"""Number of settings of all learners in one repeat from which time and memory are reduced, and the
number of draws then: the 10th and the 390th are the ends of a 95% interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Values per unit of one split, by point."""

    quality: Values  # (p, m)
    cost: Values  # (p, m)
    weights: Values  # (m,) weights of quality
    rows: Values  # (m,) numbers of rows in the mean cost

    def condensed(self, blocks: int) -> Units:
        """Reduce to at most ``blocks`` blocks, which depend only on the number of units."""
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
    """One learner's points on the units of one repeat, by ascending validation cost, pooled over
    its configurations. Units, their weights and rows are the same for all learners."""

    valid: Units
    test: Units
    p95: FloatArray = field(default_factory=lambda: np.zeros(0))  # (p,) p95 cost

    @classmethod
    def of(cls, valid: Units, test: Units, p95: FloatArray) -> Candidates:
        """Create candidates from points in any order."""
        order = np.argsort(valid.cost @ valid.rows.astype(np.float64), kind="stable")
        valid, test = (
            Units(one.quality[order], one.cost[order], one.weights, one.rows)
            for one in (valid, test)
        )
        return cls(valid, test, p95[order])


class Means(NamedTuple):
    """Means of one learner's points in every draw (draws, p), on both splits. Quality is NaN in
    draws without a unit of positive weight, where a metric is undefined."""

    valid_quality: FloatArray
    valid_cost: FloatArray
    test_quality: FloatArray
    test_cost: FloatArray

    @property
    def defined(self) -> BoolArray:
        """True for draws (draws,) with a defined metric on both splits, for all learners."""
        return ~np.isnan(self.valid_quality[:, 0] + self.test_quality[:, 0])


def lacking(defined: BoolArray) -> str:
    """Description of too many undefined draws for intervals, or ""."""
    left_out = int((~defined).sum())
    if len(defined) - left_out > LEAST_DRAWS and defined[0]:
        return ""
    return f"in {left_out} of {len(defined)} draws" if defined[0] else "on validation or test"


def effort(settings: int, resamples: int) -> tuple[int, int]:
    """Maximum number of blocks, and number of draws, for so many ``settings`` in one repeat."""
    return (FEW, min(resamples, FEW_DRAWS)) if settings >= MANY else (BLOCKS, resamples)


def draw(one: Candidates, resamples: int, seed: int = 0) -> Means:
    """Compute the means of a learner's points in 1 + ``resamples`` draws. Splits of equal size have
    the same draws for one ``seed``."""
    found = []
    for split, units in enumerate((one.valid, one.test)):
        totals = _totals(units, BLOCKS)
        counts = _counts(totals.shape[1], resamples + 1, seed, split)
        sums = _sums(units.quality, units.weights, BLOCKS), _sums(units.cost, units.rows, BLOCKS)
        with one_thread():
            # divide last, so that equal sums of integers remain equal: ties go to the cheaper point
            for own, total in zip(sums, totals, strict=True):
                whole = counts @ total
                found.append((own @ counts.T / np.where(whole > 0, whole, np.nan)).T)
    return Means(*found)


def chosen_units(
    one: Candidates, budget: float, higher: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return test quality, cost and rows (m,) by unit of a learner's best mixture of mean cost
    ``budget`` (inf: its best point) on the original data. Units without weight are omitted; all are
    NaN if there is no mixture."""
    test = one.test
    every = _chosen(one, budget, higher).at(np.zeros(len(test.weights), dtype=int))
    judged = test.weights > 0
    found = taken(test.quality.T, every), taken(test.cost.T, every), test.rows.astype(np.float64)
    return found[0][judged], found[1][judged], found[2][judged]


def chosen_points(
    one: Candidates, budget: float, higher: bool
) -> tuple[tuple[float, FloatArray], ...]:
    """Return the two points of the mixture of ``chosen_units``: the share of units that each serves
    and its test quality (m,); () if there is no mixture."""
    choice = _chosen(one, budget, higher)
    if choice.point[0] < 0:
        return ()
    first, cheaper = (one.test.quality[k[0]][one.test.weights > 0] for k in choice[:2])
    part = float(choice.part[0])
    return (1 - part, first), (part, cheaper)


def _chosen(one: Candidates, budget: float, higher: bool) -> Choice:
    valid = one.valid
    quality = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
    cost = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
    return mixed_within(hull(cost[None], quality[None], higher), budget)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the body, as several mostly wait for each other."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # the search takes 2 ms


_LEAST = np.float32(1e-30)


def _sums(values: Values, weights: Values, blocks: int) -> Float32Array:
    """Weighted sums (p, at most ``blocks``) of values (p, m) over random blocks of units. The
    blocks depend only on the number of units."""
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
    """Counts of each block in each draw (draws, blocks), cached for repeats and data sets of the
    same size; draw 0 is the original data."""
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
