"""Intervals, p-values, tie tiers and rank intervals.

For one group (a single repeat) of many units they are percentiles and counts of its draws. For
several groups, draws are too coarse for small p-values, which are computed from variances
(``_noise``). So are those of few units, as the patients of a study or the rows of a rare class:
percentiles of few units are too narrow, and Student's interval for the mean is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.statistics import LEVEL, NORMAL_QUANTILE
from bench_core.statistics.repeats import Level

Method = Literal["weibull", "nearest"]

_ROUNDING = 1e-6  # relative error of float32 sums


class Interval(NamedTuple):
    """Two-sided interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """Learner a minus learner b."""

    value: float
    interval: Interval
    p: float  # two-sided; at most .05 if the interval excludes 0
    adjusted: float  # by Holm over all requested pairs
    equivalent: float  # fraction of draws with a difference below ``interest``
    more_units: float  # factor on the units for a power of 80%
    bounded: bool = False  # p is at most that, the least that draws can show


def percentiles(drawn: FloatArray, share: float = LEVEL, method: Method = "weibull") -> Interval:
    """Return the ends between which a ``share`` of the draws lies. By default the k-th of n draws
    is at k / (n + 1), as 99% of 1000 draws would otherwise contain 98.8%; ``nearest`` is for draws
    that may be infinite, which have no mean."""
    low, high = np.quantile(drawn, [(1 - share) / 2, (1 + share) / 2], method=method)
    return Interval(float(low), float(high))


def interval(level: Level, contrast: FloatArray, share: float = LEVEL) -> Interval:
    """Return the interval of ``contrast`` (learners,) times the values. For one group: percentiles
    of the draws around the observed value. It contains that value also where nearly all draws are
    equal and their mean is not."""
    drawn = contrast @ level.draws
    value = float(drawn[0])
    if level.groups > 1 or level.few:
        error, weight = _noise(level, lambda of: contrast @ of @ contrast)
        reach = float(error) * _reach(*_freedom(level), float(weight), share)
        return Interval(value - reach, value + reach)
    low, high = percentiles(drawn[1:] - np.mean(drawn[1:]), share)
    wider = _widening(level, share)
    return Interval(value + min(wider * low, 0.0), value + max(wider * high, 0.0))


def bounded_interval(
    level: Level, contrast: FloatArray, bounds: tuple[float, float], share: float = LEVEL
) -> Interval:
    """Return the interval of a mean of values between ``bounds``. Of values between 0 and 1 it is
    that of C. Clopper and E. Pearson (1934) for a binomial share of as many units as give the same
    variance (E. Korn and B. Graubard 1998): of all units, where all values are the same bound."""
    from scipy.special import betaincinv, ndtri

    least, width = bounds[0], bounds[1] - bounds[0]
    error, weight = _noise(level, lambda of: contrast @ of @ contrast)
    reach = float(error) * _reach(*_freedom(level), float(weight), share) / width
    value = min(max((float(contrast @ level.observed) - least) / width, 0.0), 1.0)
    low, high, tail = 0.0, 1.0, (1 - share) / 2
    if min(value, 1 - value) <= _ROUNDING:
        value, end = float(round(value)), float(tail ** (1 / level.whole))
        # draws may choose a point that has errors
        low, high = (min(end, 1 - reach), 1.0) if value else (0.0, max(1 - end, reach))
    elif reach > _ROUNDING:
        units = value * (1 - value) * (float(ndtri(tail)) / reach) ** 2
        low = float(betaincinv(units * value, units * (1 - value) + 1, tail))
        high = float(betaincinv(units * value + 1, units * (1 - value), 1 - tail))
    else:  # the same in all units, as the AUC of a constant
        low, high = value, value
    return Interval(least + width * max(low, 0.0), least + width * min(high, 1.0))


def difference_of_shares(level: Level, contrast: FloatArray) -> Interval:
    """Return the interval of a difference of two shares of the same rows, such as accuracies.

    Draws of few rows that differ are too alike. Of one group of rows it is at least the interval of
    D. Bonett and R. Price (2012), in which two more rows differ, one in each direction.
    """
    low, high = interval(level, contrast)
    if level.groups > 1 or level.few:
        return Interval(low, high)
    error = float(_noise(level, lambda of: contrast @ of @ contrast)[0])
    n, mean = level.whole, float(contrast @ level.observed)
    differing, mean = (n * (n * error**2 + mean**2) + 2) / (n + 2), n * mean / (n + 2)
    reach = _reach(*_freedom(level), 0.0, LEVEL) * ((differing - mean**2) / (n + 2)) ** 0.5
    return Interval(min(low, mean - reach), max(high, mean + reach))


def spread_of(level: Level, learner: int, share: float = LEVEL) -> Interval:
    """Return percentiles of a learner's draws, not centred on its value, as some draws may fail.
    They are widened to Student's distribution about their median."""
    drawn = level.draws[learner, 1:]
    middle, wider = float(np.median(drawn)), _widening(level, share)
    low, high = percentiles(drawn, share)
    return Interval(middle + wider * (low - middle), middle + wider * (high - middle))


def differences(
    level: Level, pairs: list[tuple[int, int]], interest: Sequence[float]
) -> list[Difference]:
    """Compare each pair of learners; ``interest`` is its smallest relevant difference."""
    found = [_difference(level, *pair, least) for pair, least in zip(pairs, interest, strict=True)]
    adjusted = holm(np.array([one.p for one in found]))
    return [one._replace(adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]


def _difference(level: Level, a: int, b: int, interest: float) -> Difference:
    contrast = np.zeros(len(level.draws))
    contrast[a] += 1
    contrast[b] -= 1
    drawn = contrast @ level.draws
    value, ends, bounded = float(drawn[0]), interval(level, contrast), False
    if level.groups > 1 or level.few:
        noise = _noise(level, lambda of: contrast @ of @ contrast)
        edges = np.array([-interest - value, interest - value])
        p = float(2 * _above(level, np.abs(value), *noise))
        equal = abs(float(np.diff(_above(level, edges, *noise))[0]))
        error = float(noise[0]) if level.groups > 1 else (ends.high - value) / NORMAL_QUANTILE
    else:
        around = value + _widening(level, LEVEL) * (drawn[1:] - drawn[1:].mean())
        # draws without a row that differs count for both sides, wherever they are after centring
        level_with = drawn[1:] == 0
        fewer = min(((around <= 0) | level_with).sum(), ((around >= 0) | level_with).sum())
        p, bounded = min(1.0, 2 * (1 + int(fewer)) / (1 + len(around))), not fewer
        if p > 1 - LEVEL:
            ends = Interval(min(ends.low, 0.0), max(ends.high, 0.0))
        equal, error = float((np.abs(around) < interest).mean()), float(around.std())
    more = _more_units(value, error, level.groups)
    return Difference(value, ends, p, p, equal, more, bool(bounded))


def _more_units(value: float, error: float, groups: int = 1) -> float:
    """Return the factor on the units, or on several ``groups``, for a power of 80%: the squared
    ratio of error to value times (z.975 + z.8)^2, of groups Student's with their number."""
    if value == 0:
        return math.inf
    many = (2.8016 * error / value) ** 2
    if groups == 1:
        return max(1.0, many)
    enough = _errors_detected(groups) * error <= abs(value)
    return 1 + int(enough.argmax()) / groups if enough.any() else many


@lru_cache
def _errors_detected(groups: int) -> FloatArray:
    """Return, for each number of groups from ``groups`` up to 1000 times as many, the difference in
    standard errors of ``groups`` that a test at .05 finds with a power of 80%."""
    from scipy.special import stdtrit

    n = np.arange(groups, 1000 * groups)
    errors: FloatArray = (stdtrit(n - 1, 0.975) + stdtrit(n - 1, 0.8)) * np.sqrt(groups / n)
    return errors


def holm(p: FloatArray) -> FloatArray:
    """P-values (n,) adjusted for n comparisons by Holm's step-down method."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def better_than(level: Level, higher: bool) -> BoolArray:
    """True if a row's learner is better than a column's, with joint confidence ``LEVEL``.

    For one group: a step-down maximum-t test over all pairs (Westfall and Young 1993). For several
    groups: Holm's method, which loses little with few degrees of freedom and needs no covariance of
    all learners. The probability of any wrong entry is at most 1 - ``LEVEL``.
    """
    learners = len(level.draws)
    first, second = pairs = np.triu_indices(learners, 1)
    value = np.subtract.outer(level.observed, level.observed) * (1 if higher else -1)
    size, largest = np.abs(value[pairs]), np.abs(level.observed)
    size[size <= _ROUNDING * np.maximum(largest[first], largest[second])] = 0
    if level.groups > 1:
        noise = _noise(level, lambda of: _pair_variances(of)[pairs])
        p = holm(2 * _above(level, size, *noise))
    else:
        p = _step_down(level, size, first, second)
    found = np.zeros((learners, learners), dtype=bool)
    found[pairs] = p <= 1 - LEVEL
    better: BoolArray = (found | found.T) & (value > 0)
    return better


def _step_down(level: Level, size: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Return, by pair, the fraction of draws in which some pair of at most its standardised
    difference has larger noise; what is observed counts as a draw (Phipson and Smyth 2010)."""
    draws = level.draws[:, 1:]
    noise = draws - draws.mean(axis=1, keepdims=True)
    error = np.sqrt(_pair_variances(np.atleast_2d(np.cov(noise)))[first, second])
    # two learners with the same difference in all draws differ with certainty
    error[error == 0] = np.where(size[error == 0] > 0, 1e-300, np.inf)
    least = _as_draws(level, size / error)
    order, highest, p = np.argsort(least), np.zeros(noise.shape[1]), np.zeros(len(size))
    for k in order:
        np.maximum(highest, np.abs(noise[first[k]] - noise[second[k]]) / error[k], out=highest)
        p[k] = (1 + (highest >= least[k]).sum()) / (1 + len(highest))
    p[order] = np.maximum.accumulate(p[order][::-1])[::-1]
    return p


def tiers_and_ranks(better: BoolArray, learners: int = 0) -> list[tuple[int, tuple[int, int]]]:
    """Return each learner's tie tier, and the best and worst rank that ``better_than`` allows,
    among so many ``learners`` if some are not compared. No learner is significantly better than one
    of tier 1; only learners of tier 1 are better than one of tier 2; and so on."""
    tier, n = np.zeros(len(better), dtype=np.int64), learners or len(better)
    while (left := tier == 0).any():
        tier[left & ~better[left].any(axis=0)] = tier.max() + 1
    above, below = better.sum(axis=0).tolist(), better.sum(axis=1).tolist()
    ranks = [(worse_than + 1, n - than) for worse_than, than in zip(above, below, strict=True)]
    return list(zip(tier.tolist(), ranks, strict=True))


def _pair_variances(covariance: FloatArray) -> FloatArray:
    own = np.diag(covariance)
    return np.maximum(own[:, None] + own - 2 * covariance, 0)


def _noise(
    level: Level, variance: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the standard error of contrasts, and the weight of the groups' degrees of freedom in
    the tails, 0 for one group. ``variance`` maps a covariance to variances.

    The noise of several groups is a sum of two parts: from many units, and from few groups with
    uncertain variance. Its tails are a mixture of two Student's distributions. The weights were
    found by numerical integration and make p correct at any size. With Satterthwaite's
    approximation, .0001 is up to .009 with three groups
    (``tests/core/statistics/test_few_repeats.py``).
    """
    within, shared, between = map(variance, (level.within, level.shared, level.between))
    if level.groups == 1:
        return np.sqrt(np.maximum(within, 0)) * _lacking(level), np.zeros_like(within)
    # equal groups, as fractions of a few rows may be, still have noise
    between = np.where(between <= _ROUNDING * within, within - shared, between).clip(0)
    total, half = between + np.maximum(shared, 0), (level.groups - 1) / 2
    weight = (between / np.where(total > 0, total, 1)) ** min(half, half**0.5)
    return np.sqrt(total), weight.round(3)  # rounding leaves few distinct quantiles to compute


def _above(level: Level, size: FloatArray, error: FloatArray, weight: FloatArray) -> FloatArray:
    """Probability that a noise exceeds ``size``."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.nan_to_num(-size / error)  # 0 / 0: equally often above and below
    unit, group = (stdtr(freedom, at) for freedom in _freedom(level))
    found: FloatArray = unit + weight * (group - unit)
    return found


@lru_cache(4096)
def _reach(units: int, groups: int, weight: float, share: float) -> float:
    """Number of standard errors that bound a noise with probability ``share``, by bisection."""
    from scipy.special import stdtr, stdtrit

    low, high = sorted(float(stdtrit(freedom, (1 + share) / 2)) for freedom in (units, groups))
    while weight < 1 and high - low > 1e-9 * high:
        middle = (low + high) / 2
        above = (1 - weight) * stdtr(units, -middle) + weight * stdtr(groups, -middle)
        low, high = (middle, high) if 2 * above > 1 - share else (low, middle)
    return high


def _freedom(level: Level) -> tuple[int, int]:
    return max(level.units - 1, 1), max(level.groups - 1, 1)


def _widening(level: Level, share: float) -> float:
    """Ratio of Student's quantile to the normal one for draws of one group; draws of several groups
    are already Student's."""
    from scipy.special import ndtri, stdtrit

    if level.groups > 1:
        return 1.0
    at = (1 + share) / 2
    return float(stdtrit(_freedom(level)[0], at) / ndtri(at)) * _lacking(level)


def _lacking(level: Level) -> float:
    """Ratio of a standard error to that of the draws, which divide by n units instead of n - 1.
    It is left out for single rows, of which there are many."""
    units = max(level.units, 2)
    return (units / (units - 1)) ** 0.5 if level.few else 1.0


def _as_draws(level: Level, size: FloatArray) -> FloatArray:
    """Return the sizes that draws exceed as often as Student's distribution exceeds these ones, in
    standard errors."""
    from scipy.special import ndtri, stdtr

    if not level.few:  # one factor is as good in all of the tail
        return size / _widening(level, LEVEL)
    found: FloatArray = -ndtri(stdtr(_freedom(level)[0], -size / _lacking(level)))
    return found
