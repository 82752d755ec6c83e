"""How often joint statements of boards with few repeats are wrong: simulated.

    pytest -m slow -s tests/core/statistics/test_few_repeats.py

Learners answer 200 rows right or wrong. Rows are hard for all alike, for a learner in every repeat,
and for one fit alone; a fit shifts a learner's log-odds on all rows, by its effect.
"""

import warnings
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from helpers.levels import level_of, of_units_alone
from scipy import stats

from bench_core.statistics.bootstrap import Units, draw
from bench_core.statistics.comparison import _above, _noise, better_than, differences
from bench_core.statistics.repeats import (
    Level,
    Repeat,
    joined,
    over_repeats,
    with_seeds,
)

ROWS = 200


class Case(NamedTuple):
    """A kind of board."""

    learners: int
    repeats: int
    effect: float  # standard deviation of a fit's shift of the log-odds
    same_rows: bool
    edge: float = 0.0  # of the first learner, in log-odds
    own: float = 0.6  # scale of what is hard for one learner in every repeat


class Found(NamedTuple):
    """Of several boards: the share with two tiers or more, the same by adjusted p, of intervals of
    differences that hold the truth, of p-values up to .005, and of learners that the first is found
    to be better than, by tiers and by Student's tests over the repeats' means with Holm."""

    tiers: float
    adjusted: float
    held: float
    small: float
    found: float
    student: float


def answers(rng, case):
    """For each repeat (learners, rows), 1 where a learner is right."""
    shape, made = (case.learners, ROWS), []
    for k in range(case.repeats):
        if k == 0 or not case.same_rows:
            rows = rng.logistic(0, 1, ROWS) + rng.logistic(0, case.own, shape)
        shift = rng.normal(0, case.effect, (case.learners, 1))
        shift[0] += case.edge
        made.append((0.8 + rows + shift + rng.logistic(0, 0.4, shape) > 0).astype(float))
    return made


def of_repeats(made, same_rows, seed):
    """As a board does it, with learners in the place of the points of one."""
    ones = np.ones(ROWS)
    repeats, values, draws = [], [], 199 if len(made) > 1 else 1999
    for k, one in enumerate(made):
        units = Units(one, one, ones, ones)
        split = (0, k) if same_rows else (k, 0)
        repeats.append(Repeat(*split, f"rows {split[0]}", {"all": of_units_alone(units, units)}))
    for one, own in with_seeds(repeats):
        values.append(draw(one.candidates["all"], draws, seed + own).test_quality.T)
    return over_repeats(repeats, values)


def by_student(made):
    """Which learners are worse than the first by paired tests over the repeats' means, with
    Bonferroni-Holm over all pairs."""
    means = np.array([one.mean(axis=1) for one in made])
    first, second = np.triu_indices(means.shape[1], 1)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of pairs that differ alike, see below
        p = stats.ttest_rel(means[:, first], means[:, second]).pvalue
    # no test where all repeats differ alike, as shares of 200 rows do by chance
    p[np.ptp(means[:, first] - means[:, second], axis=0) < 1e-9] = 1
    order, rejected = np.argsort(p), np.zeros(len(p), dtype=bool)
    for k, which in enumerate(order):
        if p[which] > 0.05 / (len(p) - k):
            break
        rejected[which] = True
    return rejected[: means.shape[1] - 1]


def simulated(case, boards, students=False):
    rng = np.random.default_rng([boards, *map(int, case[:2]), int(100 * case.effect)])
    rows = []
    for _ in range(boards):
        made = answers(rng, case)
        level = of_repeats(made, case.same_rows, int(rng.integers(1 << 30)))
        better = better_than(level, higher=True)
        every = list(combinations(range(case.learners), 2))
        pairs = differences(level, every, [0.01] * len(every))
        rows.append(
            (
                better.any(),
                min(one.adjusted for one in pairs) <= 0.05,
                np.mean([one.interval.low <= 0 <= one.interval.high for one in pairs]),
                np.mean([one.p <= 0.005 for one in pairs]),
                better[0, 1:].mean(),
                by_student(made).mean() if students and case.repeats > 1 else np.nan,
            )
        )
        # a reader compares these two
        assert all((p.p <= 0.05) == (not p.interval.low <= 0 <= p.interval.high) for p in pairs)
    found = Found(*map(float, np.mean(rows, axis=0)))
    kind = f"seeds, effect {case.effect}" if case.same_rows else f"splits, effect {case.effect}"
    print(
        f"{case.learners} learners, {case.repeats} {kind}, edge {case.edge}: tiers "
        f"{found.tiers:.3f} adjusted {found.adjusted:.3f} held {found.held:.3f} "
        f"p <= .005 {found.small:.4f} found {found.found:.3f} student {found.student:.3f}",
        flush=True,
    )
    return found


EQUAL = [
    *(Case(k, 1, 0.0, True) for k in (2, 3, 8)),
    *(
        Case(learners, repeats, effect, same)
        for learners in (2, 3, 8)
        for repeats in (3, 5, 10)
        for same in (False, True)
        for effect in (0.0, 0.15, 0.3, 0.6)
    ),
]


def most(share, boards):
    """The share that is exceeded by chance in one of a thousand simulations."""
    return float(stats.binom.ppf(0.999, boards, share)) / boards


@pytest.mark.parametrize(
    "case",
    [Case(8, 3, 0.6, True), Case(8, 3, 0.6, False), Case(8, 5, 0.15, False), Case(2, 1, 0, True)],
)
def test_a_few_boards_of_equal_learners_are_seldom_in_several_tiers(case):
    boards = 40
    found = simulated(case, boards)
    assert max(found.tiers, found.adjusted) <= most(0.06, boards)
    assert found.held >= 0.9


def test_one_better_learner_is_found_as_often_as_by_students_tests():
    found = simulated(Case(8, 5, 0.15, False, edge=1.2), 40, students=True)
    assert found.found >= found.student > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("case", EQUAL, ids=str)
def test_equal_learners_are_seldom_in_several_tiers(case):
    found = simulated(case, 2000)
    assert max(found.tiers, found.adjusted) <= 0.06
    assert found.held == pytest.approx(0.95, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [3, 5, 10])
@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_a_better_learner_is_found_as_often_as_by_students_tests(repeats, effect):
    found = simulated(Case(8, repeats, effect, False, edge=1.0), 2000, students=True)
    assert found.found >= found.student


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("groups", [2, 3, 5, 10, 20])
def test_p_of_a_known_and_a_hardly_known_variance_is_right_at_any_size(groups, alpha):
    """By integration over the variance seen between groups, 1 in truth, by its quantiles: how often
    p is at most alpha. ``known`` is the variance that units have in common."""
    edges = np.concatenate([[0], np.logspace(-9, -2, 300), np.linspace(0.01, 1, 500)[1:]])
    weights, freedom = np.diff(edges), groups - 1
    seen = stats.chi2.ppf((edges[1:] + edges[:-1]) / 2, freedom) / freedom
    for known in (0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0):
        shared = np.full(len(seen), known)
        level = Level(np.zeros((1, 1)), shared + 1, shared, seen, 10**6, 10**6, groups)
        error, weight = _noise(level, lambda of: of)
        low, high = np.zeros(len(seen)), error * 2 * stats.t.ppf(1 - alpha / 2, freedom)
        for _ in range(50):
            middle = (low + high) / 2
            out = 2 * _above(level, middle, error, weight) > alpha
            low, high = np.where(out, middle, low), np.where(out, high, middle)
        often = float(weights @ (2 * stats.norm.sf(high / (1 + known) ** 0.5)))
        assert often <= (1.1 if groups <= 10 else 1.25) * alpha
        assert often >= 0.7 * alpha or alpha < 0.05 or groups == 2


def test_seeds_on_the_same_rows_have_the_variance_of_a_two_way_analysis():
    """Of rows crossed with seeds: what is of one fit alone is not counted twice."""
    rng = np.random.default_rng(0)
    n, seeds = 400, 5
    values = rng.normal(0, 0.3, (n, 1)) + rng.normal(0, 0.02, seeds) + rng.normal(0, 1, (n, seeds))
    made = [np.stack([one, np.zeros(n)]) for one in values.T]
    level = joined([level_of(*one, resamples=4000) for one in made], same_units=True)
    error, _ = _noise(level, lambda of: np.array([1.0, -1.0]) @ of @ np.array([1.0, -1.0]))
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    of_rows = seeds * values.mean(axis=1).var(ddof=1)
    of_seeds = n * values.mean(axis=0).var(ddof=1)
    of_both = (rest**2).sum() / ((n - 1) * (seeds - 1))
    assert float(error**2) == pytest.approx((of_rows + of_seeds - of_both) / (n * seeds), rel=0.1)


def test_seeds_without_effect_are_as_one_and_folds_that_agree_by_chance_are_not_certain():
    rng = np.random.default_rng(1)
    first, second = (rng.random((2, 200)) < [[0.8], [0.75]]).astype(float)
    one = level_of(first, second, resamples=4000)
    (seeds,) = differences(joined([one] * 3, same_units=True), [(0, 1)], [0.01])
    assert seeds.p == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=0.1)
    (folds,) = differences(joined([one] * 3, same_units=False), [(0, 1)], [0.01])
    error = (first - second).std(ddof=1) / 600**0.5
    expected = 2 * stats.t.sf(abs((first - second).mean()) / error, 2)
    assert folds.p == pytest.approx(expected, rel=0.1)
