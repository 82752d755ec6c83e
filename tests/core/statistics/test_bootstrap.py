"""Draws of the paired bootstrap against loops; falls from validation to test."""

import numpy as np
import pytest

from bench_core.metrics.frontier import hull, mixed_reaching, mixed_within, taken
from bench_core.statistics.bootstrap import Candidates, Units, chosen_units, draw, effort
from bench_core.statistics.repeats import Repeat
from bench_core.statistics.split_shift import falling, falls


def units(rng, points, m):
    cost = np.sort(rng.random((points, 1)), axis=0) * rng.uniform(0.5, 1.5, (points, m))
    quality = cost.mean(axis=1, keepdims=True) ** 0.5 + rng.normal(0, 0.2, (points, m))
    return Units(quality, cost, rng.integers(1, 4, m) * 1.0, rng.integers(1, 9, m) * 1.0)


def learner(rng, points, valid=40, test=50):
    return Candidates(units(rng, points, valid), units(rng, points, test))


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
    counts = draw(Candidates(code, code), n).test_quality * m  # (draws, units)
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
    quality = draw(Candidates(flat, flat), 300).valid_quality
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
    assert effort(249, 2000) == (512, 2000)
    assert effort(250, 2000) == (128, 399)
    assert effort(250, 300)[1] == 300
    small = one.condensed(128)
    assert small.quality.shape == small.cost.shape == (2, 128)
    assert means(small) == (pytest.approx(means(one)[0]), pytest.approx(means(one)[1]))
    assert one.condensed(1000) is one


def test_candidates_stand_by_validation_cost():
    one = learner(np.random.default_rng(9), 5)
    mixed = [3, 0, 4, 1, 2]
    valid, test = (
        Units(u.quality[mixed], u.cost[mixed], u.weights, u.rows) for u in (one.valid, one.test)
    )
    found = Candidates.of(valid, test, np.array(mixed) * 1.0)
    assert (np.diff(means(found.valid)[1]) > 0).all()
    assert (found.test.quality == one.test.quality[found.p95.astype(int)]).all()


@pytest.mark.parametrize("higher", [True, False])
def test_of_equally_cheap_points_the_best_pays_for_a_quality(higher):
    """Which of them stands first is chance."""
    sign = 1 if higher else -1
    quality, cost = sign * np.array([[0.4, 0.8, 1.2, 1.0]]), np.array([[1.0, 5.0, 5.0, 5.0]])
    corners = hull(cost, quality, higher)
    paid = mixed_reaching(corners, np.array([sign * 0.8]), higher)
    assert (paid.point[0], paid.cheaper[0]) == (2, 0)
    assert taken(cost, paid)[0] == pytest.approx(3.0)  # .8 is half way from .4 to 1.2
    assert mixed_reaching(corners, np.array([sign * 1.3]), higher).point[0] == -1


def rare(units, judged):
    """One point of quality .25, 0 in units without a weight as metrics have it there."""
    weights = (np.arange(units) < judged).astype(np.float32)
    quality, ones = 0.25 * weights[None], np.ones(units, np.float32)
    split = Units(quality, ones[None], weights, ones)
    return Candidates.of(split, split, np.ones(1))


def test_a_metric_is_not_defined_in_draws_without_a_judged_unit():
    drawn = draw(rare(20, 2), 4000)
    for quality in (drawn.valid_quality, drawn.test_quality):
        # none of 20 draws is one of the 2: 12.2%, five standard errors are 2.6 points
        assert np.isnan(quality).mean() == pytest.approx(0.9**20, abs=0.026)
        assert np.array_equal(np.unique(quality[~np.isnan(quality)]), [0.25])
    assert drawn.defined.mean() == pytest.approx((1 - 0.9**20) ** 2, abs=0.034)
    assert not np.isnan(drawn.test_cost).any()
    assert not draw(rare(20, 0), 10).defined.any()


def test_units_without_a_weight_have_no_quality():
    assert [part.tolist() for part in chosen_units(rare(5, 2), 1.0, True)] == [
        [0.25] * 2,
        [1.0] * 2,
        [1.0] * 2,
    ]


def test_values_by_unit_of_the_observed_choice_average_to_it():
    one = learner(np.random.default_rng(4), 5)
    quality, cost, rows = chosen_units(one, 0.6, True)
    assert np.array_equal(rows, one.test.rows)
    drawn = draw(one, resamples=0)
    choice = mixed_within(hull(drawn.valid_cost, drawn.valid_quality), 0.6)
    assert 0 < choice.part[0] < 1
    for values, by, every in (
        (quality, one.test.weights, drawn.test_quality),
        (cost, one.test.rows, drawn.test_cost),
    ):
        assert np.average(values, weights=by) == pytest.approx(taken(every, choice)[0], abs=1e-6)


Rng = np.random.Generator


def units_of(quality):
    count = quality.shape[1]
    return Units(quality, np.ones_like(quality), np.ones(count), np.ones(count))


def candidates(valid, test):
    return Candidates.of(units_of(valid), units_of(test), np.ones(len(valid)))


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
        assert not falls(Candidates(*parts), True, 5)
