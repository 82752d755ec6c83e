"""Intervals, p-values, tiers and rank intervals, against formulas and by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.levels import level_of, of_units_alone
from scipy import stats

from bench_core.metrics.frontier import best_within, taken
from bench_core.statistics.bootstrap import BLOCKS, Candidates, Units, draw
from bench_core.statistics.comparison import (
    better_than,
    bounded_interval,
    difference_of_shares,
    differences,
    holm,
    interval,
    tiers_and_ranks,
)
from bench_core.statistics.repeats import Repeat, joined, of_units, over_repeats


def level(values, seed=0):
    """Learners (l, m) with one point each."""
    return level_of(*values, seed=seed)


def test_holm_on_numbers_worked_by_hand():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    # sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, never falling: .02 .03 .06 .06
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1, 1])


def test_of_few_units_the_interval_is_students_for_the_spread_of_the_draws():
    """Of 7 patients with 90 visits; the draws are skewed, so their percentiles are not."""
    drawn = np.random.default_rng(3).gamma(0.5, 1, (2, 4001)) - 0.5
    drawn[:, 0] = 0.2, 0.5  # observed
    found, gap = of_units(drawn, 7, 90), np.array([-1.0, 1.0])
    error = np.std((gap @ drawn)[1:], ddof=1) * np.sqrt(7 / 6)
    assert interval(found, gap) == pytest.approx(stats.t(6, 0.3, error).interval(0.95))
    [one] = differences(found, [(1, 0)], interest=[0.1])
    assert one.p == pytest.approx(2 * stats.t(6).sf(0.3 / error))
    inside = np.diff(stats.t(6).cdf((np.array([-0.1, 0.1]) - 0.3) / error))
    assert one.equivalent == pytest.approx(inside[0], rel=1e-3)
    assert interval(of_units(drawn, 90), gap) != pytest.approx(interval(found, gap), rel=0.01)


@pytest.mark.parametrize(("right", "rows"), [(31, 31), (0, 100), (3428, 3428)])
def test_a_share_without_errors_is_as_uncertain_as_its_rows_are_few(right, rows):
    """scipy's exact interval, also of more rows than are drawn as blocks."""
    values = (np.arange(rows) < right).astype(float)
    units = Units(values[None], values[None], np.ones(rows), np.ones(rows))
    candidates = Candidates.of(units, units, [("{}", "{}")], blocks=BLOCKS)
    drawn = [draw(candidates, 200).test_quality.T]
    split = [Repeat(k, 0, f"rows {k}", {"all": candidates}) for k in range(4)]
    seeds = [Repeat(0, k, "rows", {"all": candidates}) for k in range(4)]
    for repeats, known in ((split[:1], rows), (seeds, rows), (split, 4 * rows)):
        found = over_repeats(repeats, drawn * len(repeats))
        expected = stats.binomtest(right * known // rows, known).proportion_ci()
        assert bounded_interval(found, np.ones(1), (0, 1)) == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_a_share_is_exact_for_rows_and_wider_for_groups():
    rng = np.random.default_rng(0)
    right = rng.permutation(200) < 190
    found = bounded_interval(level([right]), np.ones(1), (0, 1))
    expected = stats.binomtest(190, 200).proportion_ci()
    assert found == pytest.approx(expected, abs=0.002)  # of the draws' variance
    twice = bounded_interval(level([2 * right - 1.0]), np.ones(1), (-1, 1))
    assert ((twice.low + 1) / 2, (twice.high + 1) / 2) == pytest.approx(found)
    patients = level([np.sort(right).reshape(40, 5).mean(axis=1)])  # two of them have all errors
    assert bounded_interval(patients, np.ones(1), (0, 1)).low < found.low - 0.02
    drawn = np.append(1.0, np.random.default_rng(1).choice([0.9, 1.0], 2000))  # of two points
    chosen = bounded_interval(of_units(drawn[None], 2000), np.ones(1), (0, 1))
    assert chosen == pytest.approx((1 - 1.96 * 0.05, 1), abs=0.003)
    constant = bounded_interval(level([np.full(50, 0.5)]), np.ones(1), (0, 1))
    assert constant == (0.5, 0.5)  # as the AUC of equal scores


@pytest.mark.parametrize("rows", [31, 1000])
@pytest.mark.parametrize("seed", range(4))
def test_learners_that_differ_in_two_rows_are_not_significantly_different(rows, seed):
    """Draws without these rows, e^-2 of all, count for both sides."""
    right = np.ones((2, rows))
    right[1, :2] = 0
    [one] = differences(level(right, seed), [(0, 1)], interest=[0.0])
    assert one.p == pytest.approx(2 * np.exp(-2), abs=0.06)
    assert one.interval.low <= 0 < one.interval.high


@pytest.mark.parametrize("rows", [31, 1000])
@pytest.mark.parametrize("wrong", [(0, 0), (2, 0), (9, 4)])
def test_two_shares_differ_at_least_by_one_more_row_in_each_direction(rows, wrong):
    """D. Bonett and R. Price (2012), by hand."""
    right = np.ones((2, rows))
    right[1, : wrong[0]] = 0
    right[0, rows - wrong[1] :] = 0
    n = rows + 2
    more, less = (wrong[0] + 1) / n, (wrong[1] + 1) / n
    reach = stats.t(rows - 1).ppf(0.975) * np.sqrt((more + less - (more - less) ** 2) / n)
    found = difference_of_shares(level(right), np.array([1.0, -1.0]))
    assert found == pytest.approx((more - less - reach, more - less + reach), rel=0.05)


def covered(rows, accuracy, boards):
    """Shares of boards whose interval of the difference of two learners covers it: of draws, as
    compared by ``differences``, and of shares."""
    rng, found = np.random.default_rng(rows), []
    contrast, truth = np.array([1.0, -1.0]), accuracy[0] - accuracy[1]
    for board in range(boards):
        right = (rng.random((2, rows)) < np.array(accuracy)[:, None]).astype(float)
        here = level_of(*right, resamples=400, seed=board)
        ends = interval(here, contrast), differences(here, [(0, 1)], [0.0])[0].interval
        each = [*ends, difference_of_shares(here, contrast)]
        found.append([low - 1e-9 <= truth <= high + 1e-9 for low, high in each])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("rows", [31, 200, 1000])
def test_the_difference_of_two_shares_near_one_is_in_its_interval(rows):
    assert covered(rows, (0.999, 0.995), 100)[2] >= 0.92  # of draws: .11, .65 and .94


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [(0.999, 0.999), (0.999, 0.995), (0.95, 0.9)])
@pytest.mark.parametrize("rows", [31, 200, 1000])
def test_differences_of_shares_cover(rows, accuracy):
    found = covered(rows, accuracy, 500)
    print(rows, accuracy, found)
    assert found[2] >= 0.935


def test_interval_and_p_agree_with_students_on_normal_values():
    values = np.random.default_rng(0).normal([[0.0], [0.25]], 1, (2, 120))
    found = level(values)
    peer = stats.ttest_rel(values[1], values[0])
    ours = differences(found, [(1, 0)], interest=[0.1])[0]
    assert ours.p == pytest.approx(peer.pvalue, abs=0.015)
    expected = peer.confidence_interval(0.95)
    assert ours.interval.low == pytest.approx(expected.low, abs=0.02)
    assert ours.interval.high == pytest.approx(expected.high, abs=0.02)
    gap = values[1] - values[0]
    within = stats.norm.cdf(np.array([-0.1, 0.1]), gap.mean(), gap.std() / 120**0.5)
    assert ours.equivalent == pytest.approx(np.diff(within)[0], abs=0.015)


def test_an_interval_of_few_rows_is_as_wide_as_students():
    values = np.random.default_rng(2).normal(3, 1, 25)
    low, high = interval(level_of(values, resamples=20_000), np.ones(1))
    wanted = 2 * stats.t(24).ppf(0.975) * values.std() / 5  # the normal's is 5% narrower
    assert high - low == pytest.approx(wanted, rel=0.025)


def test_an_interval_contains_its_value_where_nearly_all_draws_are_equal():
    # 990 draws are the observed 1, ten are .9: around their mean it would begin at 1.001
    draws = np.ones((1, 1001))
    draws[0, 1:11] = 0.9
    found = replace(level(np.ones((1, 50))), draws=draws)
    one = interval(found, np.ones(1))
    assert one.low == 1 <= one.high


def test_learners_that_are_the_same_are_alike_and_never_separated():
    values = np.random.default_rng(1).normal(size=(1, 50)).repeat(3, axis=0)
    found = level(values)
    one = differences(found, [(0, 1)], interest=[0.01])[0]
    assert (one.value, one.p, one.equivalent, one.more_units) == (0, 1, 1, np.inf)
    assert not better_than(found, higher=True).any()


def test_more_repeats_are_those_of_students_test():
    """The power of the paired t test by simulation at the number of repeats that is named."""
    rng = np.random.default_rng(1)
    found = joined([of_units(np.repeat([[x], [0.0]], 9, 1), 50) for x in (0.2, 1.0, 2.1)], False)
    (one,) = differences(found, [(0, 1)], [0.0])
    n = int(np.ceil(one.more_units * 3))
    drawn = np.array([0.2, 1.0, 2.1]).mean() + np.std([0.2, 1.0, 2.1], ddof=1) * rng.normal(
        size=(20_000, n)
    )
    power = (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    assert 3 < n < 12
    assert power == pytest.approx(0.8, abs=0.06)


def test_more_units_are_those_of_the_usual_formula():
    values = np.random.default_rng(2).normal([[0.0], [0.1]], 1, (2, 400))
    one = differences(level(values), [(1, 0)], interest=[0.1])[0]
    gap = values[1] - values[0]
    needed = ((1.96 + 0.8416) * gap.std(ddof=1) / gap.mean()) ** 2
    assert one.more_units * 400 == pytest.approx(needed, rel=0.1)


def test_tiers_and_ranks_of_two_clear_groups():
    rng = np.random.default_rng(3)
    shared = rng.normal(size=300)
    values = shared + rng.normal(0, 0.1, (4, 300)) + np.array([[0.0], [0.5], [0.0], [0.5]])
    found = level(values)
    better = better_than(found, higher=True)
    assert tiers_and_ranks(better) == [(2, (3, 4)), (1, (1, 2)), (2, (3, 4)), (1, (1, 2))]
    lower = better_than(found, higher=False)
    assert [tier for tier, _ in tiers_and_ranks(lower)] == [1, 2, 1, 2]


def test_seeds_on_one_test_split_widen_by_their_own_spread():
    rng = np.random.default_rng(4)
    shared = rng.normal(size=200)
    seeds = [level((shared + effect)[None]) for effect in (-0.3, 0.0, 0.3)]
    found = joined(seeds, same_units=True)
    # a normal part of the rows, and Student's with two degrees of freedom of the seeds
    own = np.random.default_rng(0)
    noise = own.normal(0, shared.std() / 200**0.5, 100_000) + 0.3 / 3**0.5 * own.standard_t(
        2, 100_000
    )
    at = [0.1, 0.25, 0.75, 0.9]
    drawn = np.quantile(found.draws[0, 1:] - found.observed[0], at)
    assert drawn == pytest.approx(np.quantile(noise, at), rel=0.15)
    assert found.observed[0] == pytest.approx(shared.mean(), abs=1e-6)


def test_folds_of_rows_of_their_own_do_not_count_their_noise_twice():
    rng = np.random.default_rng(5)
    folds = [level(rng.normal(size=(1, 100)), seed=k) for k in range(20)]
    found = joined(folds, same_units=False)
    spread = np.var([fold.observed[0] for fold in folds], ddof=1) / 20
    assert found.draws[0, 1:].var() == pytest.approx(spread * 19 / 17, rel=0.15)
    wide = interval(found, np.ones(1))
    assert (wide.high - wide.low) / 2 == pytest.approx(
        stats.t.ppf(0.975, 19) * spread**0.5, rel=1e-5
    )


def _board(rng, learners, m):
    """Learners of equal skill with five points each; quality rises with cost."""

    def units():
        hard = rng.normal(0, 0.25, m)
        skill = np.linspace(-0.1, 0.05, 5)[:, None]
        noise = rng.normal(0, 0.1, (learners, 1, m)) + rng.normal(0, 0.05, (learners, 5, m))
        quality = 1 / (1 + np.exp(-4 * (skill + hard + noise)))
        cost = np.exp(np.linspace(0, 3, 5))[:, None] * rng.lognormal(0, 0.5, (learners, 5, m))
        return [Units(q, c, np.ones(m), np.ones(m)) for q, c in zip(quality, cost, strict=True)]

    pairs = [of_units_alone(v, t) for v, t in zip(units(), units(), strict=True)]
    seed = int(rng.integers(1 << 30))
    found = [draw(one, 1000, seed) for one in pairs]
    drawn = [
        taken(one.test_quality, best_within(one.valid_cost[0], one.valid_quality, 8.0))
        for one in found
    ]
    return of_units(np.stack(drawn), m)


def test_of_399_draws_the_10th_and_the_390th_are_the_ends():
    drawn = np.random.default_rng(3).permutation(np.arange(1.0, 400))
    level = of_units(np.append(200, drawn)[None], 10**9)
    assert interval(level, np.ones(1)) == pytest.approx((10, 390), abs=0.01)  # not 10.95


@pytest.mark.slow
@pytest.mark.parametrize(("learners", "m"), [(2, 150), (8, 300)])
def test_under_the_null_intervals_cover_and_tiers_hold(learners, m):
    """2000 boards of learners that are equal: intervals of their differences cover 0 at 95 +- 1.5%
    of them, and at most 6% have any learner in a second tier."""
    rng = np.random.default_rng(6)
    contrast = np.zeros(learners)
    contrast[:2] = 1, -1
    covered = split = 0
    for _ in range(2000):
        found = _board(rng, learners, m)
        low, high = interval(found, contrast)
        covered += low <= 0 <= high
        split += bool(better_than(found, higher=True).any())
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)
    assert split / 2000 <= 0.06


def test_a_difference_that_is_the_same_in_all_folds_has_the_noise_of_their_rows():
    differing = np.repeat([1.0, -1.0, 0.0], [8, 4, 88])  # of 100 rows of each fold
    folds = [level(np.stack([differing, np.zeros(100)]), seed=k) for k in range(5)]
    found = interval(joined(folds, same_units=False), np.array([1.0, -1.0]))
    reach = stats.t.ppf(0.975, 4) * differing.std() / 500**0.5
    assert found == pytest.approx((0.04 - reach, 0.04 + reach), abs=0.05 * reach)
