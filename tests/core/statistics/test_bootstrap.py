"""Draws of the paired bootstrap against loops, and the choices against their definitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.metrics.frontier import best_under, mixture_reaching, share_of
from bench_core.statistics.bootstrap import Candidates, Units, chosen_units, draw, effort
from bench_core.statistics.point_selection import (
    as_good,
    at_budget,
    at_matched_cost,
    cheapest,
    share_of_best,
    taken,
)


def units(rng: np.random.Generator, points: int, m: int) -> Units:
    cost = np.sort(rng.random((points, 1)), axis=0) * rng.uniform(0.5, 1.5, (points, m))
    quality = cost.mean(axis=1, keepdims=True) ** 0.5 + rng.normal(0, 0.2, (points, m))
    return Units(quality, cost, rng.integers(1, 4, m) * 1.0, rng.integers(1, 9, m) * 1.0)


def learner(rng: np.random.Generator, points: int, valid: int = 40, test: int = 50) -> Candidates:
    return Candidates(units(rng, points, valid), units(rng, points, test))


def means(one: Units) -> tuple[np.ndarray, np.ndarray]:
    return one.quality @ one.weights / one.weights.sum(), one.cost @ one.rows / one.rows.sum()


def test_draw_zero_is_the_data_as_they_are() -> None:
    one = learner(np.random.default_rng(0), 7)
    drawn = draw(one, resamples=3)
    for units, (quality, cost) in zip((one.valid, one.test), (drawn[:2], drawn[2:]), strict=True):
        assert quality[0] == pytest.approx(means(units)[0], abs=1e-6)
        assert cost[0] == pytest.approx(means(units)[1], abs=1e-6)


def test_draws_are_those_of_a_loop_over_drawn_units() -> None:
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


def test_what_is_equal_in_a_draw_is_equal_to_the_last_bit() -> None:
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


def test_more_units_than_blocks_keep_the_mean_and_its_error() -> None:
    many = learner(np.random.default_rng(3), 1, 10, 5000)
    quality = draw(many, 2000).test_quality[:, 0]
    values, weights = many.test.quality[0], many.test.weights
    error = np.sqrt((((values - quality[0]) * weights) ** 2).sum()) / weights.sum()
    assert quality[0] == pytest.approx(np.average(values, weights=weights), abs=1e-6)
    assert quality[1:].std() == pytest.approx(error, rel=0.1)


def test_boards_of_very_many_settings_are_drawn_from_fewer_blocks() -> None:
    one = units(np.random.default_rng(7), 2, 1000)
    assert effort(249, 2000) == (512, 2000)
    assert effort(250, 2000) == (128, 399)
    assert effort(250, 300)[1] == 300
    small = one.condensed(128)
    assert small.quality.shape == small.cost.shape == (2, 128)
    assert means(small) == (pytest.approx(means(one)[0]), pytest.approx(means(one)[1]))
    assert one.condensed(1000) is one


def test_candidates_stand_by_validation_cost() -> None:
    one = learner(np.random.default_rng(9), 5)
    mixed = [3, 0, 4, 1, 2]
    valid, test = (
        Units(u.quality[mixed], u.cost[mixed], u.weights, u.rows) for u in (one.valid, one.test)
    )
    found = Candidates.of(valid, test, np.array(mixed) * 1.0)
    assert (np.diff(means(found.valid)[1]) > 0).all()
    assert (found.test.quality == one.test.quality[found.p95.astype(int)]).all()


@given(st.integers(0, 10_000), st.booleans(), st.floats(0.05, 1.5))
@settings(max_examples=60, deadline=None)
def test_choices_are_those_of_the_board(seed: int, higher: bool, budget: float) -> None:
    rng = np.random.default_rng(seed)
    quality, cost = rng.integers(0, 5, (3, 6)) / 4, np.sort(rng.random((3, 6)), axis=1)
    within = at_budget(quality, cost, budget, higher)
    target = share_of_best(quality[:, :3], 0.9, higher)
    kept = cheapest(quality, cost, target, higher)
    for b in range(3):
        expected = best_under(cost[b], quality[b], budget, higher)
        if cost[0].min() > budget:
            assert within.point[b] == -1
        else:
            assert within.point[b] == (0 if expected is None else expected)
        own = quality[b, :3]
        assert target[b] == share_of(float(own.max() if higher else own.min()), 0.9, higher)
        expected = mixture_reaching(cost[b], quality[b], target[b], higher)
        assert kept.point[b] == (-1 if expected is None else expected[0])


def test_matched_cost_lies_on_the_line_between_two_points() -> None:
    quality, cost = np.array([[0.1, 0.5, 0.9]]), np.array([[1.0, 2.0, 4.0]])
    choice = at_matched_cost(quality, cost, 3.0, higher=True)
    assert (choice.point[0], choice.other[0], choice.part[0]) == (1, 2, 0.5)
    dearest = at_matched_cost(quality, cost, 9.0, higher=True)
    assert (dearest.point[0], dearest.part[0]) == (2, 0.0)
    assert at_matched_cost(quality, cost, 0.5, higher=True).point[0] == -1


@pytest.mark.parametrize("higher", [True, False])
def test_of_equally_cheap_points_the_best_pays_for_a_quality(higher: bool) -> None:
    """As on the frontier; which of them stands first is chance."""
    sign = 1 if higher else -1
    quality, cost = sign * np.array([[0.4, 0.8, 1.2, 1.0]]), np.array([[1.0, 5.0, 5.0, 5.0]])
    aim = np.array([sign * 0.8])
    assert cheapest(quality, cost, aim, higher).point[0] == 2
    paid = as_good(quality, cost, aim, higher)
    assert (paid.point[0], paid.other[0]) == (2, 0)
    assert taken(cost, paid)[0] == pytest.approx(3.0)  # .8 is half way from .4 to 1.2
    assert as_good(quality, cost, np.array([sign * 1.3]), higher).point[0] == -1


def rare(units: int, judged: int) -> Candidates:
    """One point of quality .25, 0 in units without a weight as metrics have it there."""
    weights = (np.arange(units) < judged).astype(np.float32)
    quality, ones = 0.25 * weights[None], np.ones(units, np.float32)
    split = Units(quality, ones[None], weights, ones)
    return Candidates.of(split, split, np.ones(1))


def test_a_metric_is_not_defined_in_draws_without_a_judged_unit() -> None:
    drawn = draw(rare(20, 2), 4000)
    for quality in (drawn.valid_quality, drawn.test_quality):
        # none of 20 draws is one of the 2: 12.2%, five standard errors are 2.6 points
        assert np.isnan(quality).mean() == pytest.approx(0.9**20, abs=0.026)
        assert np.array_equal(np.unique(quality[~np.isnan(quality)]), [0.25])
    assert drawn.defined.mean() == pytest.approx((1 - 0.9**20) ** 2, abs=0.034)
    assert not np.isnan(drawn.test_cost).any()
    assert not draw(rare(20, 0), 10).defined.any()


def test_units_without_a_weight_have_no_quality() -> None:
    choose = partial(at_matched_cost, budget=1.0, higher=True)
    assert [part.tolist() for part in chosen_units(rare(5, 2), choose)] == [
        [0.25] * 2,
        [1.0] * 2,
        [1.0] * 2,
    ]


def test_values_by_unit_of_the_observed_choice_average_to_it() -> None:
    one = learner(np.random.default_rng(4), 5)
    choose = partial(at_matched_cost, budget=0.6, higher=True)
    quality, cost, rows = chosen_units(one, choose)
    assert np.array_equal(rows, one.test.rows)
    drawn = draw(one, resamples=0)
    choice = choose(drawn.valid_quality, drawn.valid_cost)
    for values, by, every in (
        (quality, one.test.weights, drawn.test_quality),
        (cost, one.test.rows, drawn.test_cost),
    ):
        assert np.average(values, weights=by) == pytest.approx(taken(every, choice)[0], abs=1e-6)
