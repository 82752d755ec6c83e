"""Paired bootstrap of queries or rows that repeats the choice of the operating point.

All learners of one repeat (data set, fold, seed) are scored on the same units. A draw resamples the
units of both splits with replacement, equally for all learners. From its ``Means``, each learner's
point is chosen on validation and read on test (``bench_core.leaderboard.draws``). Intervals thus
include the noise of the choice, and common noise of two learners cancels in their difference. Draw
0 is the original data.

Splits with very many units are resampled in random blocks. Means of exchangeable units have the
same variance in blocks, and a board of many learners takes seconds. The cost is a less certain
variance. The ends of a 95% interval vary by 1 / sqrt(2 b) of its half width with b blocks, and by
1.36 / sqrt(r) with r draws: 6.3% for 128 blocks, 6.8% for 399 draws, 4.3% for 1000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.statistics import JOINT_LEVEL, SURE_ERRORS

Values = FloatArray | Float32Array

BLOCKS, FEW = 512, 128
"""Maximum number of blocks, by default and with very many settings."""

DRAWS = 2000
"""Default number of draws of a board, reduced with very many settings."""

LEAST_DRAWS = 100
"""Minimum number of draws with a defined metric for an interval."""

JOINT_DRAWS = 256
"""Number of draws of the joint test of a learner's points."""

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
    """One learner's points on the units of one repeat, pooled over its configurations. Units, their
    weights and rows are the same for all learners."""

    valid: Units
    test: Units
    keys: Sequence[tuple[str, str]]  # (p,) parameters and point as canonical JSON
    # (2, p) variance of each mean validation quality over all units, and covariance with that of
    # the reference's best point
    moments: FloatArray
    # (p, JOINT_DRAWS) jointly normal deviations of the mean validation qualities
    deviations: Float32Array
    # test units of equal weight that would be as certain, and test rows, both at most of blocks;
    # and all such units
    tested: tuple[int, int, int]

    @classmethod
    def of(
        cls,
        valid: Units,
        test: Units,
        keys: Sequence[tuple[str, str]],
        other: Values | None = None,
        blocks: int | None = None,
    ) -> Self:
        """Points with these units, condensed to at most ``blocks`` blocks (default: as they are).
        ``other``: validation quality by unit of the reference's best point."""
        small = [units.condensed(blocks or len(units.weights)) for units in (valid, test)]
        most = blocks or BLOCKS
        whole = equal_units(test.weights)
        tested = min(whole, most), min(round(float(test.rows.sum())), most), whole
        return cls(small[0], small[1], keys, moments(valid, other), deviations(valid), tested)

    def at(self, places: IntArray) -> Candidates:
        """The points at these places, in their order."""
        valid, test = (
            Units(one.quality[places], one.cost[places], one.weights, one.rows)
            for one in (self.valid, self.test)
        )
        keys = [self.keys[k] for k in places]
        found = self.moments[:, places], self.deviations[places], self.tested
        return Candidates(valid, test, keys, *found)


def equal_units(weights: Values) -> int:
    """Number of units of equal weight whose mean has a variance that is known as well as that of
    units with these ``weights`` (m,), after Satterthwaite (1946). AUC weighs the classes alike, so
    that its variance is mostly that of the few rows of the rarer class."""
    squares = np.square(weights.astype(np.float64) / max(float(weights.max(initial=0)), _TINY))
    return max(round(float(squares.sum()) ** 2 / max(float(squares @ squares), _TINY)), 1)


def moments(units: Units, other: FloatArray | Float32Array | None = None) -> FloatArray:
    """Variances of the weighted means of quality, and covariances with the mean of ``other`` (m,)
    values of the same units (2, p); 0 for a single unit."""
    weights = units.weights.astype(np.float64)
    n, total = int((weights > 0).sum()), max(weights.sum(), _TINY)
    share = weights / total

    def residuals(values: Values) -> FloatArray:
        found: FloatArray = share * (values - np.expand_dims(values @ share, -1))
        return found

    own = residuals(units.quality)
    against = np.zeros(len(weights)) if other is None else residuals(other)
    found = np.stack([(own * own).sum(axis=1), own @ against])
    scaled: FloatArray = found * n / (n - 1) if n > 1 else np.zeros_like(found)
    return scaled


def deviations(units: Units) -> Float32Array:
    """Deviations (p, JOINT_DRAWS) of the weighted means of quality from their expectations, with
    the variances and covariances of the units (multiplier bootstrap); the same for equal units."""
    sums = _sums(units.quality, units.weights, BLOCKS)
    weights = _totals(units, BLOCKS)[0]
    n, total = int((weights > 0).sum()), np.maximum(weights.sum(), _LEAST)
    residuals = sums - weights * (sums.sum(axis=1) / total)[:, None]
    scale = np.float32(math.sqrt(n / max(n - 1, 1))) / total
    with one_thread():
        found: Float32Array = scale * (residuals @ _normals(len(weights)))
    return found


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


def draw(candidates: Candidates, resamples: int, seed: int = 0) -> Means:
    """Compute the means of a learner's points in 1 + ``resamples`` draws. Splits of equal size have
    the same draws for one ``seed``."""
    means = []
    for split, units in enumerate((candidates.valid, candidates.test)):
        totals = _totals(units, BLOCKS)
        counts = _counts(totals.shape[1], resamples + 1, seed, split)
        sums = _sums(units.quality, units.weights, BLOCKS), _sums(units.cost, units.rows, BLOCKS)
        with one_thread():
            # divide last, so that equal sums of integers remain equal: ties go to the cheaper point
            for block_sums, total in zip(sums, totals, strict=True):
                whole = counts @ total
                means.append((block_sums @ counts.T / np.where(whole > 0, whole, np.nan)).T)
    return Means(*means)


def errors(
    candidates: Candidates,
    against: tuple[Candidates, int] | None,
    factor: float,
    resamples: int,
    seed: int = 0,
) -> FloatArray:
    """Standard errors (1 + resamples, p) of a learner's mean validation qualities, minus ``factor``
    times that of a point of ``against``, the reference.

    Those of the original data are from all units; draws scale them by the spread of their blocks.
    """
    variance, shared = candidates.moments
    sums = _sums(candidates.valid.quality, candidates.valid.weights, BLOCKS).astype(np.float64)
    if against is not None:
        reference, k = against
        variance = variance - 2 * factor * shared + factor**2 * reference.moments[0, k]
        point = reference.valid.quality[k : k + 1]
        sums -= factor * _sums(point, reference.valid.weights, BLOCKS)
    weights = _totals(candidates.valid, BLOCKS)[0].astype(np.float64)
    residuals = sums - weights * (sums.sum(axis=1) / weights.sum())[:, None]
    largest = np.abs(residuals).max(axis=1, keepdims=True)
    residuals = np.ldexp(residuals, -np.frexp(largest)[1])  # float32 holds their squares
    counts = _counts(len(weights), resamples + 1, seed, 0)
    with one_thread():
        largest = max(float(np.abs(residuals).max(initial=0)), _TINY)
        residuals = np.ldexp(residuals, -math.frexp(largest)[1])  # squares of any size in float32
        spread = (counts @ np.square(residuals).T.astype(np.float32)).astype(np.float64)
        whole = (counts @ weights.astype(np.float32)).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(spread / spread[0]) * (whole[0] / whole)[:, None]
    # equal units have no error in any draw
    found: FloatArray = np.sqrt(np.maximum(variance, 0)) * np.where(spread[0] > 0, scale, 1.0)
    return found


def errors_needed(
    candidates: Candidates,
    against: tuple[Candidates, int] | None,
    factor: float,
    gain: FloatArray,
    error: FloatArray,
) -> float:
    """By how many standard errors a learner's point must exceed a target to be sure.

    It is the joint critical value of the points with an observed ``gain`` (p,) of at least 0:
    ``JOINT_LEVEL`` of the draws have no larger deviation in units of ``error`` (p,), and at least
    ``SURE_ERRORS``. The cheapest of many points that pass a test of their own is often a lucky one.
    """
    tested = (gain >= 0) & (error > 0)
    if not tested.any():
        return SURE_ERRORS
    deviations = candidates.deviations[tested]
    if against is not None:
        reference, k = against
        deviations = deviations - np.float32(factor) * reference.deviations[k]
    largest = (deviations / error[tested, None]).max(axis=0)
    return max(SURE_ERRORS, float(np.quantile(largest, JOINT_LEVEL)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread in the body, as several mostly wait for each other."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # the search takes 2 ms


_LEAST, _TINY = np.float32(1e-30), 1e-300
_MOST = 1e33  # a draw sums 512 blocks of 20 rows of at most 1e30


def _sums(values: Values, weights: Values, blocks: int) -> Values:
    """Weighted sums (p, at most ``blocks``) of values (p, m) over random blocks of units, in
    float32 if they fit. The blocks depend only on the number of units."""
    count = len(weights)
    if count <= blocks:
        return _single(values * weights)
    order, whole = _shuffled(count), count - count % blocks
    product = np.asarray(values.take(order, axis=1) * weights[order])
    sums = product[:, :whole].reshape(len(values), -1, blocks).sum(axis=1)
    sums[:, : count - whole] += product[:, whole:]
    return _single(sums)


def _single(sums: Values) -> Values:
    """Round to float32, unless a total of the values would overflow."""
    return sums if np.abs(sums).max(initial=0) > _MOST else sums.astype(np.float32)


def _totals(units: Units, blocks: int) -> Values:
    """Weights and rows by block (2, blocks)."""
    both = np.array([units.weights, units.rows])
    return _sums(both, np.ones(both.shape[1], dtype=np.float32), blocks)


@lru_cache(4)
def _shuffled(count: int) -> IntArray:
    order = np.random.default_rng(count).permutation(count)
    order.setflags(write=False)
    return order


@lru_cache(4)
def _normals(count: int) -> Float32Array:
    found = np.random.default_rng(count).standard_normal((count, JOINT_DRAWS), dtype=np.float32)
    found.setflags(write=False)
    return found


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
