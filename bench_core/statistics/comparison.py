"""Intervals, p-values, tie tiers and rank intervals from draws."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.statistics.aggregate_draws import Level
from bench_core.statistics.bootstrap import FEW_DRAWS

LEVEL = 0.95
_ROUNDING = 1e-6  # of draws, which are sums in 32 bits


class Interval(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float


class Difference(NamedTuple):
    """Learner a minus learner b."""

    value: float
    interval: Interval
    p: float  # two-sided, counted among the draws with one added
    adjusted: float  # by Holm over all pairs asked for
    equivalent: float  # share of draws in which the two differ by less than the width of interest
    more_units: float  # times the units, to find such a difference four times in five


def interval(level: Level, contrast: FloatArray, share: float = LEVEL) -> Interval:
    """The interval of ``contrast`` (learners,) times the values: percentiles of the draws around
    the observed value, widened to Student's distribution where groups are few."""
    drawn = contrast @ level.draws
    observed = drawn[0]
    noise, shares = drawn[1:] - np.mean(drawn[1:]), [(1 - share) / 2, (1 + share) / 2]
    # of n uniform numbers the k-th is k / (n + 1) in the mean: of few draws this can be seen
    rule: Literal["weibull", "linear"] = "weibull" if len(noise) <= FEW_DRAWS else "linear"
    low, high = np.quantile(noise, shares, method=rule)
    wider = _contrast_widening(level, contrast, share)
    return Interval(float(observed + wider * low), float(observed + wider * high))


def spread_of(level: Level, learner: int, share: float = LEVEL) -> Interval:
    """Percentiles of a learner's draws, not centred on its value: for what may fail in some draws.
    Widened to Student's distribution about their median."""
    drawn = level.draws[learner, 1:]
    # so many of n draws + 1, or 99% of 1000 draws would hold 98.8%
    shares = [(1 - share) / 2, 0.5, (1 + share) / 2]
    low, middle, high = np.quantile(drawn, shares, method="weibull")
    wider = _contrast_widening(level, np.eye(len(level.draws))[learner], share)
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
    value, noise = float(drawn[0]), drawn[1:] - drawn[1:].mean()
    wider = _contrast_widening(level, contrast, LEVEL)
    beyond = int((wider * np.abs(noise) >= abs(value)).sum())
    p = (1 + beyond) / (1 + len(noise))
    equal = float((np.abs(value + wider * noise) < interest).mean())
    error = wider * float(noise.std())
    return Difference(value, interval(level, contrast), p, p, equal, _more_units(value, error))


def _more_units(value: float, error: float) -> float:
    """(z.975 + z.8)^2 over the squared ratio of value to error."""
    return float("inf") if value == 0 else max(1.0, (2.8016 * error / value) ** 2)


def _contrast_widening(level: Level, contrast: FloatArray, share: float) -> float:
    unit, group = (contrast @ part @ contrast for part in (level.within, level.between))
    return float(_widening(np.asarray(unit), np.asarray(group), level, share))


def holm(p: FloatArray) -> FloatArray:
    """P-values (n,) adjusted for n comparisons by Holm's step-down method."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def better_than(level: Level, higher: bool, share: float = LEVEL) -> BoolArray:
    """True where a row's learner is better than a column's, with joint certainty ``share``.

    Step-down maximum-t test over all pairs (Westfall and Young 1993): the chance that any entry is
    wrong is at most 1 - ``share``.
    """
    learners = len(level.draws)
    pairs = np.triu_indices(learners, 1)
    value = np.subtract.outer(level.observed, level.observed) * (1 if higher else -1)
    noise = level.draws[:, 1:] - level.draws[:, 1:].mean(axis=1, keepdims=True)
    error = _pair_errors(np.atleast_2d(np.cov(noise)))[pairs]
    size = np.abs(value[pairs]) / _pair_widening(level, share)[pairs]
    largest = np.abs(level.observed)
    size[size <= _ROUNDING * np.maximum.outer(largest, largest)[pairs]] = 0
    # two learners that never differ by more or less than now: as in all draws, so for certain
    certain = (error == 0) & (size > 0)
    left = np.flatnonzero(error > 0)
    while len(left):
        limit = np.quantile(_highest(noise, pairs[0][left], pairs[1][left], error[left]), share)
        passed = size[left] > limit * error[left]
        if not passed.any():
            break
        certain[left[passed]] = True
        left = left[~passed]
    found = np.zeros((learners, learners), dtype=bool)
    found[pairs] = certain
    return (found | found.T) & (value > 0)


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


def _pair_errors(covariance: FloatArray) -> FloatArray:
    own = np.diag(covariance)
    return np.sqrt(np.maximum(own[:, None] + own - 2 * covariance, 0))


def _pair_widening(level: Level, share: float) -> FloatArray:
    unit, group = _pair_errors(level.within) ** 2, _pair_errors(level.between) ** 2
    return _widening(unit, group, level, share)


def _highest(noise: FloatArray, first: IntArray, second: IntArray, error: FloatArray) -> FloatArray:
    """By draw the largest difference of a pair over its standard error."""
    found = np.zeros(noise.shape[1])
    for a, b, e in zip(first, second, error, strict=True):
        np.maximum(found, np.abs(noise[a] - noise[b]) / e, out=found)
    return found


def _widening(unit: FloatArray, group: FloatArray, level: Level, share: float) -> FloatArray:
    """Student's quantile over the normal one, by the parts of a variance that come from units and
    from groups (Satterthwaite 1946)."""
    from scipy.special import ndtri, stdtrit

    parts = unit**2 / max(level.units - 1, 1) + group**2 / max(level.groups - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(parts > 0, (unit + group) ** 2 / parts, np.inf)
    # never below the smaller of the two, which rounding breaks where nothing varies
    freedom = np.maximum(freedom, max(min(level.units, level.groups) - 1, 1))
    at = (1 + share) / 2
    wider: FloatArray = stdtrit(np.minimum(freedom, 1e6), at) / ndtri(at)
    return wider
