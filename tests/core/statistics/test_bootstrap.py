"""Draws of the paired bootstrap against loops, and the choices against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.metrics.frontier import best_under, cheapest_reaching, share_of
from bench_core.statistics.blocks import block_sums, effort
from bench_core.statistics.bootstrap import Candidates, Units, chosen_units, draw, draw_all
from bench_core.statistics.point_selection import (
    Choice,
    at_budget,
    at_matched_cost,
    equalling,
    keeping,
    paying,
    single,
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
    rng = np.random.default_rng(0)
    seven = learner(rng, 7)
    valid, test = seven.valid, seven.test
    five = Candidates(
        *(Units(u.quality[:5] ** 2, u.cost[:5], u.weights, u.rows) for u in (valid, test))
    )
    both = [five, seven]
    quality, cost = draw(both, at_budget(0.6, higher=True), resamples=3)
    for k, one in enumerate(both):
        good, paid = means(one.valid)
        chosen = best_under(paid, good, 0.6)
        assert chosen is not None
        assert quality[k, 0] == pytest.approx(means(one.test)[0][chosen], abs=1e-6)
        assert cost[k, 0] == pytest.approx(means(one.test)[1][chosen], abs=1e-6)


def test_draws_are_those_of_a_loop_over_drawn_units() -> None:
    """The loop gets the units that were drawn from a learner whose values are powers of two."""
    rng = np.random.default_rng(1)
    m, n = 8, 20
    code = Units(np.eye(m), np.zeros((m, m)), np.ones(m), np.ones(m))
    shares = [
        draw([Candidates(Units(code.quality, code.cost * 0, code.weights, code.rows), code)],
             lambda q, c, k=k: [single(np.full(len(q[0]), k))], n)[0][0]
        for k in range(m)
    ]  # fmt: skip
    counts = np.stack(shares).T * m  # (draws, units of the test split)
    one = learner(rng, 4, m, m)
    drawn, _ = draw([one], lambda q, c: [single(np.zeros(len(q[0]), dtype=int))], n)
    first = np.argsort(means(one.valid)[1], kind="stable")[0]
    weights = counts * one.test.weights
    expected = weights @ one.test.quality[first] / weights.sum(axis=1)
    assert drawn[0] == pytest.approx(expected, abs=1e-6)
    assert len(np.unique(counts[1:].round(6), axis=0)) > n // 2


def test_what_is_equal_in_a_draw_is_equal_to_the_last_bit() -> None:
    """Else rounding would decide which of two points that are right on as many rows is chosen."""
    rng, m = np.random.default_rng(8), 49
    right = np.concatenate([np.eye(m), rng.integers(0, 2, (40, m))])
    flat = Units(right, np.zeros((len(right), m)), np.ones(m), np.ones(m))
    seen = []

    def choose(quality: list[np.ndarray], cost: list[np.ndarray]) -> list[Choice]:
        seen.append(quality[0])
        return [single(np.zeros(len(quality[0]), dtype=int))]

    draw([Candidates(flat, flat)], choose, 300)
    quality = np.concatenate(seen)
    counts = (quality[:, :m] * m).round()  # how often each row was drawn, by its own point
    exact, got = counts @ right[m:].T, quality[:, m:]
    assert counts.sum(axis=1).tolist() == [m] * 301
    ties = exact[:, :, None] == exact[:, None]
    assert ties.sum() > 2 * ties[:, 0].size
    np.testing.assert_array_equal(got[:, :, None] == got[:, None], ties)


def test_learners_share_the_units_drawn() -> None:
    rng = np.random.default_rng(2)
    one = learner(rng, 6)
    quality, _ = draw([one, one], at_budget(0.5, higher=True), resamples=50)
    assert (quality[0] == quality[1]).all()
    assert quality[0].std() > 0


def test_more_units_than_blocks_keep_the_mean_and_its_error() -> None:
    rng = np.random.default_rng(3)
    many = learner(rng, 1, 10, 5000)
    quality, _ = draw([many], at_budget(np.inf, higher=True), resamples=2000)
    values, weights = many.test.quality[0], many.test.weights
    centred = (values - quality[0, 0]) * weights
    error = np.sqrt((centred**2).sum()) / weights.sum()
    assert quality[0, 0] == pytest.approx(np.average(values, weights=weights), abs=1e-6)
    assert quality[0, 1:].std() == pytest.approx(error, rel=0.1)


def test_costs_are_drawn_for_the_first_ways_alone() -> None:
    rng = np.random.default_rng(6)
    both = [learner(rng, 5), learner(rng, 6)]
    ways = [at_budget(b, higher=True) for b in (0.6, 0.8, np.inf)]
    quality, cost = draw_all(both, ways, 20)
    again, first = draw_all(both, ways, 20, priced=1)
    assert np.array_equal(again, quality, equal_nan=True)
    assert first.shape == (1, 2, 21)
    np.testing.assert_allclose(first, cost[:1], rtol=1e-6)


def test_boards_of_very_many_settings_are_drawn_from_fewer_blocks() -> None:
    rng = np.random.default_rng(7)
    values, weights = rng.normal(1, 1, (2, 1000)), rng.uniform(1, 3, 1000)
    assert effort(249, 2000) == (512, 2000)
    assert effort(250, 2000) == (128, 399)
    assert effort(250, 300).resamples == 300
    sums = block_sums(values, weights, 128)
    assert sums.shape == (2, 128)
    assert sums.sum(axis=1) == pytest.approx(values @ weights, rel=1e-5)


@given(st.integers(0, 10_000), st.booleans(), st.floats(0.05, 1.5))
@settings(max_examples=60, deadline=None)
def test_choices_are_those_of_the_board(seed: int, higher: bool, budget: float) -> None:
    rng = np.random.default_rng(seed)
    quality = [rng.integers(0, 5, (3, p)) / 4 for p in (4, 6)]
    cost = [np.sort(rng.random((3, p)), axis=1) for p in (4, 6)]
    for k, choice in enumerate(at_budget(budget, higher)(quality, cost)):
        for b in range(3):
            expected = best_under(cost[k][b], quality[k][b], budget, higher)
            if cost[k][0].min() > budget:
                assert choice.point[b] == -1
            else:
                assert choice.point[b] == (0 if expected is None else expected)
    for k, choice in enumerate(keeping(0.9, 0, higher)(quality, cost)):
        for b in range(3):
            own = quality[0][b]
            target = share_of(float(own.max() if higher else own.min()), 0.9, higher)
            expected = cheapest_reaching(cost[k][b], quality[k][b], target, higher)
            assert choice.point[b] == (-1 if expected is None else expected)


def test_matched_cost_lies_on_the_line_between_two_points() -> None:
    cost = np.array([[1.0, 2.0, 4.0]])
    quality = np.array([[0.1, 0.5, 0.9]])
    (choice,) = at_matched_cost(3.0, higher=True)([quality], [cost])
    assert (choice.point[0], choice.other[0], choice.part[0]) == (1, 2, 0.5)
    (dearest,) = at_matched_cost(9.0, higher=True)([quality], [cost])
    assert (dearest.point[0], dearest.part[0]) == (2, 0.0)
    (none,) = at_matched_cost(0.5, higher=True)([quality], [cost])
    assert none.point[0] == -1


def test_the_cost_of_equal_quality_is_read_off_the_other_curve() -> None:
    costs = [np.array([[2.0]]), np.array([[1.0, 5.0]]), np.array([[1.0]])]
    quality = [np.array([[0.6]]), np.array([[0.4, 0.8]]), np.array([[0.5]])]
    a, b, never = equalling(0, 2.0, higher=True)(quality, costs)
    assert (a.point[0], a.part[0]) == (0, 0.0)
    assert b.point[0] == 1
    assert b.other[0] == 0
    assert b.part[0] == pytest.approx(0.5)  # half way from 5 to 1: a cost of 3
    assert never.point[0] == -1


@pytest.mark.parametrize("higher", [True, False])
def test_of_equally_cheap_points_the_best_pays_for_a_quality(higher: bool) -> None:
    """As on the frontier; which of them stands first is chance."""
    sign = 1 if higher else -1
    quality = [np.array([[sign * q]]) for q in (0.8,)] + [sign * np.array([[0.4, 0.8, 1.2, 1.0]])]
    costs = [np.array([[3.0]]), np.array([[1.0, 5.0, 5.0, 5.0]])]
    (_, kept), (_, paid) = (how(1.0, 0, higher)(quality, costs) for how in (keeping, paying))
    assert kept.point[0] == 2
    assert (paid.point[0], paid.other[0]) == (2, 0)
    assert taken(costs[1], paid)[0] == pytest.approx(3.0)  # .8 is half way from .4 to 1.2


def test_values_by_unit_of_the_observed_choice_average_to_it() -> None:
    rng = np.random.default_rng(4)
    one = learner(rng, 5)
    choose = at_matched_cost(0.6, higher=True)
    quality, cost = chosen_units(one, choose)
    drawn, paid = draw([one], at_matched_cost(0.6, higher=True), resamples=0)
    assert np.average(quality, weights=one.test.weights) == pytest.approx(drawn[0, 0], abs=1e-6)
    assert np.average(cost, weights=one.test.rows) == pytest.approx(paid[0, 0], abs=1e-6)
