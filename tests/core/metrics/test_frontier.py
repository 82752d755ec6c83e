"""The trade-off functions against exhaustive definitions on small random points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_core.metrics.frontier import (
    Frontiers,
    best_within,
    cheapest,
    frontier,
    share_of,
    taken,
)

values = st.integers(0, 5).map(float)
points = st.lists(st.tuples(values, values), min_size=1, max_size=10)


def columns(rows):
    cost, quality = zip(*rows, strict=True)
    return np.array(cost), np.array(quality)


def dominated(i, cost, quality, sign):
    """Whether another point is as cheap and as good and better in one, or equal and earlier."""
    for j in range(len(cost)):
        as_cheap, as_good = cost[j] <= cost[i], sign * quality[j] >= sign * quality[i]
        equal = cost[j] == cost[i] and quality[j] == quality[i]
        if as_cheap and as_good and (not equal or j < i):
            return True
    return False


@given(points, st.booleans())
def test_the_frontier_holds_exactly_the_points_no_other_dominates(rows, higher):
    cost, quality = columns(rows)
    sign = 1 if higher else -1
    by_hand = [i for i in range(len(rows)) if not dominated(i, cost, quality, sign)]
    by_hand.sort(key=lambda i: cost[i])
    assert frontier(cost, quality, higher).tolist() == by_hand


def best(indices, cost, quality, sign):
    """The best of some points, of equals the cheapest and then the earliest; -1 without any."""
    order = sorted(indices, key=lambda i: (-sign * quality[i], cost[i], i))
    return order[0] if order else -1


draws_of_points = st.integers(1, 6).flatmap(
    lambda p: st.lists(
        st.lists(st.tuples(values, values), min_size=p, max_size=p), min_size=1, max_size=4
    )
)


@given(
    draws_of_points, st.lists(st.integers(-1, 11).map(lambda b: b / 2), min_size=1), st.booleans()
)
def test_the_best_point_within_a_mean_cost_is_that_of_a_loop_in_every_draw(draws, budgets, higher):
    costs, quality = np.moveaxis(np.array(draws), 2, 0)
    cost, sign = costs[0], 1 if higher else -1
    frontiers = Frontiers(cost, quality, higher)
    for budget in budgets:
        affordable = np.flatnonzero(cost <= budget)  # as observed
        expected = np.array([best(affordable, cost, q, sign) for q in quality])
        # of points of equal cost and quality any is right
        found = frontiers.within(budget)
        assert ((found < 0) == (expected < 0)).all()
        for of in (np.broadcast_to(cost, quality.shape), quality):
            np.testing.assert_array_equal(taken(of, found), taken(of, expected))
        np.testing.assert_array_equal(best_within(cost, quality, budget, higher), found)


@given(draws_of_points, st.integers(0, 2**24 - 1))
def test_the_cheapest_allowed_point_is_that_of_a_loop(draws, code):
    cost = np.array(draws)[:, :, 0]
    allowed = np.array([code >> k & 1 for k in range(cost.size)], dtype=bool).reshape(cost.shape)
    for one, may, found in zip(cost, allowed, cheapest(cost, allowed), strict=True):
        kept = [i for i in range(len(one)) if may[i]]
        assert found == min(kept, key=lambda i: (one[i], i), default=-1)


def test_points_with_nan_are_never_chosen_nor_is_any_where_there_are_none():
    cost = np.array([np.nan, 1, 2, 3])
    quality = np.array([9, np.nan, 1, 2])
    assert frontier(cost, quality).tolist() == [2, 3]
    assert best_within(cost, quality[None], 10).tolist() == [3]
    assert best_within(cost * np.nan, quality[None]).tolist() == [-1]
    assert cheapest(cost[None], quality[None] >= 1).tolist() == [2]
    assert cheapest(cost[None], quality[None] > 9).tolist() == [-1]
    assert frontier(cost * np.nan, quality).tolist() == []
    assert frontier(cost[:0], quality[:0]).tolist() == []
    assert np.isnan(taken(np.ones((3, 0)), np.full(3, -1))).all()
    assert frontier(np.array([1.0, 2]), np.array([np.inf, 5]), False).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("best", "higher", "target"),
    [
        (0.8, True, 0.792),
        (2.0, False, 2 / 0.99),
        (-1.0, True, -1.01),
        (-0.99, False, -0.98),
        (0.0, True, 0.0),
    ],
)
def test_99_percent_of_the_best_by_hand(best, higher, target):
    assert share_of(best, 0.99, higher) == pytest.approx(target)


@pytest.mark.parametrize("share", [0, -1, 1.1, np.nan])
def test_a_share_outside_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        share_of(1.0, share)
