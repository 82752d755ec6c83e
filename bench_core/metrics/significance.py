"""Is a difference between two models more than chance? Paired over queries or rows.

Both take the two models' values in the same order and, where rows stand for copies or queries
are left out, the weights of ``MetricValues`` (equal for both models). The unit that is resampled
or exchanged is the query or the row with all its copies, never a single copy. Departures from
textbooks: percentile interval (no bias correction), units of weight 0 dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core.data import FloatArray

_CHUNK = 4_000_000  # random numbers held at a time
_FEW = 256  # distinct values that are drawn by count
_EXACT = 14  # so few units are enumerated, not sampled


@dataclass(frozen=True, slots=True)
class Interval:
    """Difference of the means and its confidence limits."""

    difference: float
    low: float
    high: float


def paired_bootstrap(
    first: FloatArray,
    second: FloatArray,
    weights: FloatArray | None = None,
    *,
    level: float = 0.95,
    samples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of mean(first) - mean(second) (Efron and Tibshirani 1993,
    chapter 13), values (m,) and weights (m,)."""
    if not 0 < level < 1:
        raise ValueError(f"the level must lie between 0 and 1, got {level:g}")
    difference, weight = _paired(first, second, weights)
    rng = np.random.default_rng(seed)
    means = _resampled_means(difference, weight, samples, rng)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    observed = float((difference * weight).sum() / weight.sum())
    return Interval(observed, float(low), float(high))


def sign_flip(
    first: FloatArray,
    second: FloatArray,
    weights: FloatArray | None = None,
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> float:
    """Two-sided p-value of the paired permutation test: how often random exchange of the two
    models' values makes the difference of means at least as large.

    Exact for up to 14 differing units, else (1 + hits) / (1 + samples), never 0.
    """
    difference, weight = _paired(first, second, weights)
    parts = (difference * weight)[difference != 0]
    if len(parts) == 0:
        return 1.0
    rounding = 1e-12 * float(np.abs(parts).sum())  # equal sums differ in their last bits
    least = abs(float(parts.sum())) - rounding
    if len(parts) <= _EXACT:
        signs = 1 - 2 * ((np.arange(2 ** len(parts))[:, None] >> np.arange(len(parts))) & 1)
        return float(np.mean(np.abs(signs @ parts) >= least))
    sums = _flipped_sums(np.abs(parts), samples, np.random.default_rng(seed))
    return float((1 + np.sum(np.abs(sums) >= least)) / (1 + samples))


def _paired(
    first: FloatArray, second: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    weight = np.ones(first.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if first.ndim != 1 or not first.shape == second.shape == weight.shape:
        raise ValueError(
            f"values and weights must pair up, got {first.shape}, {second.shape}, {weight.shape}"
        )
    kept = weight > 0
    if not kept.any():
        raise ValueError("there is nothing to compare")
    return (first - second)[kept], weight[kept]


def _resampled_means(
    difference: FloatArray, weight: FloatArray, samples: int, rng: np.random.Generator
) -> FloatArray:
    units = len(difference)
    kinds, count = np.unique(np.stack([difference, weight]), axis=1, return_counts=True)
    if len(count) <= min(_FEW, units // 8):  # draw how often each value comes, not which unit
        drawn = rng.multinomial(units, count / units, size=samples)
        return np.asarray(drawn @ (kinds[0] * kinds[1]) / (drawn @ kinds[1]), dtype=np.float64)
    means = np.empty(samples)
    step = max(1, _CHUNK // units)
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        pick = rng.integers(0, units, size=(stop - start, units), dtype=np.int32)
        total = weight[pick].sum(axis=1)
        means[start:stop] = (difference * weight)[pick].sum(axis=1) / total
    return means


def _flipped_sums(sizes: FloatArray, samples: int, rng: np.random.Generator) -> FloatArray:
    """Sums of ``sizes`` (m,) under random signs."""
    kinds, count = np.unique(sizes, return_counts=True)
    if len(kinds) <= min(_FEW, len(sizes) // 8):
        positive = rng.binomial(count, 0.5, size=(samples, len(kinds)))
        return np.asarray((2 * positive - count) @ kinds, dtype=np.float64)
    sums = np.empty(samples)
    step = max(1, _CHUNK // len(sizes))
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        words = rng.integers(0, 256, size=(stop - start, -(-len(sizes) // 8)), dtype=np.uint8)
        bits = np.unpackbits(words, axis=1, count=len(sizes))
        sums[start:stop] = bits.astype(np.float64) @ sizes
    return np.asarray(2 * sums - sizes.sum(), dtype=np.float64)
