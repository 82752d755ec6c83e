"""Intervals, p-values, tie tiers and rank intervals.

Of one group (a single repeat) they are percentiles and counts of its draws. Of several groups draws
say too little about small p-values, which are computed from variances (``_noise``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.statistics import LEVEL, NORMAL_QUANTILE
from bench_core.statistics.repeats import Level

_ROUNDING = 1e-6  # of draws, which are sums in 32 bits


class Interval(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """Learner a minus learner b."""

    value: float
    interval: Interval
    p: float  # two-sided; at most .05 where the interval excludes 0
    adjusted: float  # by Holm over all pairs asked for
    equivalent: float  # share of draws in which the two differ by less than the width of interest
    more_units: float  # times the units, to find such a difference four times in five


def interval(level: Level, contrast: FloatArray, share: float = LEVEL) -> Interval:
    """The interval of ``contrast`` (learners,) times the values. Of one group percentiles of the
    draws around the observed value, the k-th of n draws as k / (n + 1)."""
    drawn = contrast @ level.draws
    if level.groups > 1:
        error, weight = _noise(level, lambda of: contrast @ of @ contrast)
        reach = float(error) * _reach(*_freedom(level), float(weight), share)
        return Interval(float(drawn[0]) - reach, float(drawn[0]) + reach)
    noise, shares = drawn[1:] - np.mean(drawn[1:]), [(1 - share) / 2, (1 + share) / 2]
    ends = drawn[0] + _widening(level, share) * np.quantile(noise, shares, method="weibull")
    return Interval(*ends.tolist())


def spread_of(level: Level, learner: int, share: float = LEVEL) -> Interval:
    """Percentiles of a learner's draws, not centred on its value: for what may fail in some draws.
    Widened to Student's distribution about their median."""
    drawn = level.draws[learner, 1:]
    # so many of n draws + 1, or 99% of 1000 draws would hold 98.8%
    shares = [(1 - share) / 2, 0.5, (1 + share) / 2]
    low, middle, high = np.quantile(drawn, shares, method="weibull")
    wider = _widening(level, share)
    return Interval(float(middle + wider * (low - middle)), float(middle + wider * (high - middle)))


def differences(level: Level, pairs: list[tuple[int, int]], interest: float) -> list[Difference]:
    """The comparison of each pair of learners; ``interest`` is the least difference that matters,
    in units of the values."""
    found = [_difference(level, a, b, interest) for a, b in pairs]
    adjusted = holm(np.array([one.p for one in found]))
    return [one._replace(adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]


def _difference(level: Level, a: int, b: int, interest: float) -> Difference:
    contrast = np.zeros(len(level.draws))
    contrast[a] += 1
    contrast[b] -= 1
    drawn = contrast @ level.draws
    value, ends = float(drawn[0]), interval(level, contrast)
    if level.groups > 1:
        noise = _noise(level, lambda of: contrast @ of @ contrast)
        edges = np.array([-interest - value, interest - value])
        p = float(2 * _above(level, np.abs(value), *noise))
        equal = -float(np.diff(_above(level, edges, *noise))[0])
        error = (ends.high - value) / NORMAL_QUANTILE
    else:
        around = value + _widening(level, LEVEL) * (drawn[1:] - drawn[1:].mean())
        fewer = min((around <= 0).sum(), (around >= 0).sum())
        p = min(1.0, 2 * (1 + int(fewer)) / (1 + len(around)))
        equal, error = float((np.abs(around) < interest).mean()), float(around.std())
    return Difference(value, ends, p, p, equal, _more_units(value, error))


def _more_units(value: float, error: float) -> float:
    """(z.975 + z.8)^2 over the squared ratio of value to error."""
    return float("inf") if value == 0 else max(1.0, (2.8016 * error / value) ** 2)


def holm(p: FloatArray) -> FloatArray:
    """P-values (n,) adjusted for n comparisons by Holm's step-down method."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def better_than(level: Level, higher: bool, share: float = LEVEL) -> BoolArray:
    """True where a row's learner is better than a column's, with joint certainty ``share``.

    Of one group a step-down maximum-t test over all pairs (Westfall and Young 1993), of several
    Holm's method: with few degrees of freedom it loses next to nothing, and asks for no covariance
    of all learners. The chance that any entry is wrong is at most 1 - ``share``.
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
        p = _step_down(level.draws[:, 1:], size / _widening(level, share), first, second)
    found = np.zeros((learners, learners), dtype=bool)
    found[pairs] = p <= 1 - share
    better: BoolArray = (found | found.T) & (value > 0)
    return better


def _step_down(
    draws: FloatArray, size: FloatArray, first: IntArray, second: IntArray
) -> FloatArray:
    """By pair the share of draws in which some pair that differs by no more than this one, over its
    standard error, has a larger noise."""
    noise = draws - draws.mean(axis=1, keepdims=True)
    error = np.sqrt(_pair_variances(np.atleast_2d(np.cov(noise)))[first, second])
    # two learners that never differ by more or less than now: as in all draws, so for certain
    error[error == 0] = np.where(size[error == 0] > 0, 1e-300, np.inf)
    order, highest, p = np.argsort(size / error), np.zeros(noise.shape[1]), np.zeros(len(size))
    for k in order:
        np.maximum(highest, np.abs(noise[first[k]] - noise[second[k]]) / error[k], out=highest)
        p[k] = (highest >= size[k] / error[k]).mean()
    p[order] = np.maximum.accumulate(p[order][::-1])[::-1]
    return p


def rank_intervals(better: BoolArray, learners: int = 0) -> list[tuple[int, int]]:
    """By learner the best and the worst rank that ``better_than`` leaves it, among so many
    ``learners`` if some are not compared."""
    n = learners or len(better)
    above, below = better.sum(axis=0), better.sum(axis=1)
    return [(int(a) + 1, n - int(b)) for a, b in zip(above, below, strict=True)]


def tiers(better: BoolArray) -> IntArray:
    """The tie tier of each learner: none is certainly better than one of tier 1, none but those of
    tier 1 than one of tier 2, and so on."""
    tier = np.zeros(len(better), dtype=np.int64)
    while (left := tier == 0).any():
        tier[left & ~better[left].any(axis=0)] = tier.max() + 1
    return tier


def _pair_variances(covariance: FloatArray) -> FloatArray:
    own = np.diag(covariance)
    return np.maximum(own[:, None] + own - 2 * covariance, 0)


def _noise(
    level: Level, variance: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The standard error of contrasts of several groups, from the ``variance`` that a covariance
    gives them, and the weight of the groups' freedom in their tails.

    The noise is a sum: that of many units, and that of few groups, whose variance is hardly known.
    Its tails are a mixture of Student's with either freedom. With these weights, found by numerical
    integration, p is right at any size; with Satterthwaite's freedom .0001 is up to .009 with three
    groups (``tests/core/statistics/test_few_repeats.py``).
    """
    within, shared, between = map(variance, (level.within, level.shared, level.between))
    # groups that agree to the last digit, as shares of a few rows may, are not without noise
    between = np.where(between <= _ROUNDING * within, within - shared, between).clip(0)
    total, half = between + np.maximum(shared, 0), (level.groups - 1) / 2
    weight = (between / np.where(total > 0, total, 1)) ** min(half, half**0.5)
    return np.sqrt(total), weight.round(3)  # there are few to find quantiles of


def _above(level: Level, size: FloatArray, error: FloatArray, weight: FloatArray) -> FloatArray:
    """The chance that a noise is above ``size``."""
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.nan_to_num(-size / error)  # 0 of 0: as often above as below
    unit, group = (stdtr(freedom, at) for freedom in _freedom(level))
    found: FloatArray = unit + weight * (group - unit)
    return found


@lru_cache(4096)
def _reach(units: int, groups: int, weight: float, share: float) -> float:
    """How many standard errors a noise stays within with chance ``share``, by bisection."""
    from scipy.special import stdtr, stdtrit

    low, high = sorted(float(stdtrit(freedom, (1 + share) / 2)) for freedom in (units, groups))
    while weight < 1 and high - low > 1e-9 * high:
        middle = (low + high) / 2
        above = (1 - weight) * stdtr(units, -middle) + weight * stdtr(groups, -middle)
        low, high = (middle, high) if 2 * above > 1 - share else (low, middle)
    return high


def _freedom(level: Level) -> tuple[int, int]:
    return max(level.units - 1, 1), level.groups - 1


def _widening(level: Level, share: float) -> float:
    """Student's quantile over the normal one, of the draws of one group: those of several are
    Student's themselves."""
    from scipy.special import ndtri, stdtrit

    at = (1 + share) / 2
    return float(stdtrit(_freedom(level)[0], at) / ndtri(at)) if level.groups == 1 else 1.0
