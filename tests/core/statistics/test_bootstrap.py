"""Draws of the paired bootstrap against loops; falls from validation to test."""

import numpy as np
import pytest
from helpers.levels import of_units_alone as of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from bench_core.statistics import JOINT_LEVEL, SURE_ERRORS
from bench_core.statistics.bootstrap import (
    BLOCKS,
    DRAWS,
    FEW,
    Candidates,
    Units,
    draw,
    effort,
    errors,
    errors_needed,
)
from bench_core.statistics.repeats import Repeat
from bench_core.statistics.split_shift import falling, falls


def units(rng, points, m):
    cost = np.sort(rng.random((points, 1)), axis=0) * rng.uniform(0.5, 1.5, (points, m))
    quality = cost.mean(axis=1, keepdims=True) ** 0.5 + rng.normal(0, 0.2, (points, m))
    return Units(quality, cost, rng.integers(1, 4, m) * 1.0, rng.integers(1, 9, m) * 1.0)


def learner(rng, points, valid=40, test=50):
    return of(units(rng, points, valid), units(rng, points, test))


def means(one):
    return one.quality @ one.weights / one.weights.sum(), one.cost @ one.rows / one.rows.sum()


def test_draw_zero_is_the_data_as_they_are():
    one = learner(np.random.default_rng(0), 7)
    drawn = draw(one, resamples=3)
    for units, (quality, cost) in zip((one.valid, one.test), (drawn[:2], drawn[2:]), strict=True):
        assert quality[0] == pytest.approx(means(units)[0], abs=1e-6)
        assert cost[0] == pytest.approx(means(units)[1], abs=1e-6)


def test_draws_are_those_of_a_loop_over_drawn_units():
    """The loop gets the units that were drawn from a learner whose values are powers of two."""
    rng = np.random.default_rng(1)
    m, n = 8, 20
    code = Units(np.eye(m), np.zeros((m, m)), np.ones(m), np.ones(m))
    counts = draw(of(code, code), n).test_quality * m  # (draws, units)
    one = learner(rng, 4, m, m)
    weights = counts * one.test.weights
    expected = weights @ one.test.quality.T / weights.sum(axis=1, keepdims=True)
    assert draw(one, n).test_quality == pytest.approx(expected, abs=1e-6)
    assert len(np.unique(counts[1:].round(6), axis=0)) > n // 2


def test_what_is_equal_in_a_draw_is_equal_to_the_last_bit():
    """Else rounding would decide which of two points that are right on as many rows is chosen."""
    rng, m = np.random.default_rng(8), 49
    right = np.concatenate([np.eye(m), rng.integers(0, 2, (40, m))])
    flat = Units(right, np.zeros((len(right), m)), np.ones(m), np.ones(m))
    quality = draw(of(flat, flat), 300).valid_quality
    counts = (quality[:, :m] * m).round()  # how often each row was drawn, by its own point
    exact, got = counts @ right[m:].T, quality[:, m:]
    assert counts.sum(axis=1).tolist() == [m] * 301
    ties = exact[:, :, None] == exact[:, None]
    assert ties.sum() > 2 * ties[:, 0].size
    np.testing.assert_array_equal(got[:, :, None] == got[:, None], ties)


def test_more_units_than_blocks_keep_the_mean_and_its_error():
    many = learner(np.random.default_rng(3), 1, 10, 5000)
    quality = draw(many, 2000).test_quality[:, 0]
    values, weights = many.test.quality[0], many.test.weights
    error = np.sqrt((((values - quality[0]) * weights) ** 2).sum()) / weights.sum()
    assert quality[0] == pytest.approx(np.average(values, weights=weights), abs=1e-6)
    assert quality[1:].std() == pytest.approx(error, rel=0.1)


def test_boards_of_very_many_settings_are_drawn_from_fewer_blocks():
    one = units(np.random.default_rng(7), 2, 1000)
    assert effort(249, DRAWS) == (512, 2000)
    assert effort(250, DRAWS) == (128, 399)
    assert effort(250, 300)[1] == 300
    small = one.condensed(128)
    assert small.quality.shape == small.cost.shape == (2, 128)
    assert means(small) == (pytest.approx(means(one)[0]), pytest.approx(means(one)[1]))
    assert one.condensed(1000) is one


def rare(units, judged):
    """One point of quality .25, 0 in units without a weight as metrics have it there."""
    weights = (np.arange(units) < judged).astype(np.float32)
    quality, ones = 0.25 * weights[None], np.ones(units, np.float32)
    split = Units(quality, ones[None], weights, ones)
    return of(split, split)


def test_a_metric_is_not_defined_in_draws_without_a_judged_unit():
    drawn = draw(rare(20, 2), 4000)
    for quality in (drawn.valid_quality, drawn.test_quality):
        # none of 20 draws is one of the 2: 12.2%, five standard errors are 2.6 points
        assert np.isnan(quality).mean() == pytest.approx(0.9**20, abs=0.026)
        assert np.array_equal(np.unique(quality[~np.isnan(quality)]), [0.25])
    assert drawn.defined.mean() == pytest.approx((1 - 0.9**20) ** 2, abs=0.034)
    assert not np.isnan(drawn.test_cost).any()
    assert not draw(rare(20, 0), 10).defined.any()


def standard_error(values, weights):
    """Of a weighted mean of values by unit; a ratio estimator, with n / (n - 1)."""
    judged = weights > 0
    n, values, weights = int(judged.sum()), values[judged], weights[judged]
    if n < 2:
        return 0.0
    mean = np.average(values, weights=weights)
    return np.sqrt((np.square(weights * (values - mean))).sum() * n / (n - 1)) / weights.sum()


def condensed(units, other):
    """As a store condenses them, with moments of all units."""
    return Candidates.of(units, units, of(units, units).keys, other, BLOCKS)


@pytest.mark.parametrize("factor", [0.99, 1 / 0.99, 0.0])
@pytest.mark.parametrize("size", [40, 1300])  # and more units than blocks
def test_errors_of_paired_differences_are_those_of_all_units(size, factor):
    rng = np.random.default_rng(10)
    first, second = units(rng, 5, size), units(rng, 3, size)
    weights = rng.integers(0, 4, size) * 1.0
    first, second = (Units(u.quality, u.cost, weights, u.rows) for u in (first, second))
    other = second.quality[1]
    one, against = (condensed(u, other) for u in (first, second))
    found = errors(one, (against, 1), factor, 0)
    expected = [[standard_error(q - factor * other, weights) for q in first.quality]]
    assert found == pytest.approx(np.array(expected))
    alone = [[standard_error(q, weights) for q in first.quality]]
    assert errors(one, None, 0.0, 0) == pytest.approx(np.array(alone))
    # of the reference's own point only the factor remains
    own = errors(against, (against, 1), factor, 0)[0, 1]
    assert own == pytest.approx(abs(1 - factor) * standard_error(other, weights))


def test_draws_scale_errors_by_the_spread_of_their_units():
    """As a loop over drawn units has it, around the mean of the original data."""
    rng, m, n, factor = np.random.default_rng(11), 12, 30, 0.99
    code = Units(np.eye(m), np.zeros((m, m)), np.ones(m), np.ones(m))
    counts = draw(of(code, code), n).valid_quality * m  # (draws, units)
    one = units(rng, 3, m)
    other = one.quality[2]
    found = errors(of(one, one, other), (of(one, one, other), 2), factor, n)
    for drawn, row in zip(counts, found, strict=True):
        for k, quality in enumerate(one.quality):
            gain = quality - factor * other
            residual = one.weights * (gain - np.average(gain, weights=one.weights))
            expected = np.sqrt(drawn @ residual**2 * m / (m - 1)) / (drawn @ one.weights)
            assert row[k] == pytest.approx(expected, rel=1e-4)  # float32 sums
    assert len(np.unique(found[:, 0].round(9))) > n // 2


def test_a_single_unit_and_equal_units_have_no_error_in_any_draw():
    for m in (1, 7):
        flat = Units(np.full((2, m), 0.5), np.ones((2, m)), np.ones(m), np.ones(m))
        assert errors(of(flat, flat), None, 0.0, 5).tolist() == [[0, 0]] * 6


def needed(values, gain=1.0, at=None):
    """For points of these values (p, m) by unit, that have the gain, compared with point ``at``."""
    p, m = values.shape
    units = Units(values, values, np.ones(m), np.ones(m))
    one = of(units, units, values[at or 0])
    against = None if at is None else (one, at)
    error = errors(one, against, 1.0 if against else 0.0, 0)[0]
    return errors_needed(one, against, 1.0, np.broadcast_to(gain, p), error)


@pytest.mark.parametrize("m", [300, 4000])
@pytest.mark.parametrize("p", [1, 2, 3, 10, 100])
def test_independent_points_need_the_joint_normal_quantile(p, m):
    values = np.random.default_rng(p).normal(size=(p, m))
    expected = max(SURE_ERRORS, stats.norm.ppf(JOINT_LEVEL ** (1 / p)))
    assert needed(values) == pytest.approx(expected, abs=0.15)
    # the noise that all points share cancels in differences to one of them
    shared = np.vstack([values, np.zeros(m)]) + np.random.default_rng(0).normal(0, 9, m)
    assert needed(shared, at=p) == pytest.approx(expected, abs=0.15)
    assert needed(shared) <= 1.85


@given(hnp.arrays(float, (4, 12), elements=st.integers(-3, 3)), st.integers(0, 15))
def test_only_points_with_the_quality_are_tested_and_copies_change_nothing(values, code):
    gain = np.array([1.0 if code >> k & 1 else -1.0 for k in range(4)])
    found, kept = needed(values, gain), values[gain > 0]
    assert found == (needed(kept) if len(kept) else SURE_ERRORS)
    assert found >= SURE_ERRORS
    copied = needed(np.repeat(values, 3, axis=0), np.repeat(gain, 3))
    assert copied == pytest.approx(found, rel=1e-5)


def test_a_condensed_learner_needs_as_many_errors():
    one = units(np.random.default_rng(12), 6, 1300)
    error, gain = errors(of(one, one), None, 0.0, 0)[0], np.ones(6)
    few = Candidates.of(one, one, of(one, one).keys, blocks=FEW)
    assert len(few.valid.weights) == FEW
    assert errors_needed(few, None, 0.0, gain, error) == errors_needed(
        of(one, one), None, 0.0, gain, error
    )


def test_candidates_at_some_places_have_the_keys_values_and_moments_of_these():
    one = learner(np.random.default_rng(9), 5)
    found = one.at(np.array([3, 1]))
    assert found.keys == [one.keys[3], one.keys[1]]
    assert np.array_equal(found.moments, one.moments[:, [3, 1]])
    assert np.array_equal(found.deviations, one.deviations[[3, 1]])
    for split in ("valid", "test"):
        for name in ("quality", "cost"):
            values = getattr(getattr(one, split), name)
            assert np.array_equal(getattr(getattr(found, split), name), values[[3, 1]])


def units_of(quality):
    count = quality.shape[1]
    return Units(quality, np.ones_like(quality), np.ones(count), np.ones(count))


def candidates(valid, test):
    return of(units_of(valid), units_of(test))


def right(rng, points, rows, chance):
    """Which rows many equal points of one path, that differ a little, have right."""
    base = rng.random(rows) < chance
    return np.where(rng.random((points, rows)) < 0.1, rng.random((points, rows)) < chance, base)


@pytest.mark.parametrize(("valid", "test"), [(115, 113), (200, 2000), (1000, 100)])
def test_the_best_of_many_equal_points_is_named_no_oftener_than_promised(valid, test):
    rng = np.random.default_rng(1)
    found = [
        falls(candidates(right(rng, 40, valid, 0.8), right(rng, 40, test, 0.8)), True, 1000)
        for _ in range(400)
    ]
    # 400 at one in a thousand: 4 or more come by chance once in a thousand runs
    assert sum(found) < 4


def test_splits_of_different_noise_are_no_fall():
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(300):
        # test values are means of 20 rows each, as a store condenses them
        test = right(rng, 5, 20_000, 0.7).reshape(5, 1000, 20).mean(axis=2)
        found += falls(candidates(right(rng, 5, 60, 0.7), test), True, 1000)
    assert found < 4


def test_a_fall_is_named_in_either_direction_of_the_metric():
    rng = np.random.default_rng(3)
    fallen = candidates(right(rng, 20, 300, 0.99), right(rng, 20, 1000, 0.8))
    kept = candidates(right(rng, 20, 300, 0.9), right(rng, 20, 1000, 0.9))
    repeats = [Repeat(0, seed, "x", {"fallen": fallen, "kept": kept}) for seed in (0, 1)]
    assert falling(repeats, higher=True) == {"fallen"}
    errors = [
        Repeat(0, 0, "x", {
            name: candidates(1 - one.valid.quality, 1 - one.test.quality)
            for name, one in (("fallen", fallen), ("kept", kept))
        })
    ]  # fmt: skip
    assert falling(errors, higher=False) == {"fallen"}
    # a rise is none
    assert falling(errors, higher=True) == set()


def test_a_metric_without_values_by_row_has_no_fall():
    one = candidates(np.array([[0.9]]), np.array([[0.5]]))
    assert not falls(one, True, 1000)


@pytest.mark.parametrize("level", [1.0, 0.1, 1e-9])
def test_equal_qualities_do_not_fall_by_rounding(level):
    sizes = [(m, n) for m in range(60, 90) for n in range(70, 80)]
    for m, n in sizes:
        parts = (
            Units(np.full((1, k), level), np.zeros((1, k)), np.ones(k), np.ones(k)) for k in (m, n)
        )
        assert not falls(of(*parts), True, 5)


def test_errors_beyond_float32_are_drawn_as_smaller_ones():
    rng, ones, factor = np.random.default_rng(3), np.ones(700), 2.0**160
    small, large = (
        of(*[Units(scale * one, np.ones_like(one), ones, ones)] * 2)
        for one in [rng.lognormal(0, 1, (2, 700))]
        for scale in (1.0, factor)
    )
    drawn, huge = draw(small, 200), draw(large, 200)
    np.testing.assert_allclose(
        huge.test_quality, factor * drawn.test_quality.astype(float), rtol=1e-6
    )
    of_small, of_large = errors(small, None, 0.0, 200), errors(large, None, 0.0, 200)
    np.testing.assert_allclose(of_large, factor * of_small, rtol=1e-6)
    gain, error = np.array([0.0, 1.0]), of_small[0]
    needed = errors_needed(small, None, 0.0, gain, error)
    assert errors_needed(large, None, 0.0, factor * gain, factor * error) == pytest.approx(needed)
