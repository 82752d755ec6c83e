"""The trade-off functions against exhaustive definitions on small random points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_core.metrics.frontier import (
    best_under,
    choosable,
    frontier,
    mixture_reaching,
    share_of,
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


@given(points, values, st.booleans())
def test_the_best_under_a_budget_is_found_by_looking_at_all(rows, budget, higher):
    cost, quality = columns(rows)
    sign = 1 if higher else -1
    affordable = [i for i in range(len(rows)) if cost[i] <= budget]
    by_hand = min(affordable, key=lambda i: (-sign * quality[i], cost[i], i), default=None)
    assert best_under(cost, quality, budget, higher) == by_hand


@given(points, values, st.booleans())
def test_the_cheapest_that_reaches_a_target_is_found_by_looking_at_all(rows, target, higher):
    cost, quality = columns(rows)
    sign = 1 if higher else -1
    good = [i for i in range(len(rows)) if sign * quality[i] >= sign * target]
    by_hand = min(good, key=lambda i: (cost[i], -sign * quality[i], i), default=None)
    found = mixture_reaching(cost, quality, target, higher)
    assert (found[0] if found else None) == by_hand


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=10), st.booleans())
def test_choosable_are_the_points_that_a_budget_of_mean_cost_or_of_95_percent_takes(rows, higher):
    cost, p95, quality = np.array(rows).T
    taken = set()
    for of in (cost, p95):
        for budget in of:
            inside = np.flatnonzero(of <= budget)
            best = best_under(cost[inside], quality[inside], np.inf, higher)
            taken.add(int(inside[best]))
    by_hand = sorted(taken, key=lambda i: (cost[i], i))
    assert choosable(cost, p95, quality, higher).tolist() == by_hand


def test_points_with_nan_are_never_chosen():
    cost = np.array([np.nan, 1, 2, 3])
    quality = np.array([9, np.nan, 1, 2])
    assert frontier(cost, quality).tolist() == [2, 3]
    assert best_under(cost, quality, 10) == 3
    assert mixture_reaching(cost, quality, 1)[0] == 2
    assert frontier(cost * np.nan, quality).tolist() == []
    assert choosable(cost, cost, quality).tolist() == [2, 3]


def test_no_points_give_nothing():
    none = np.zeros(0)
    assert frontier(none, none).tolist() == []
    assert best_under(none, none, 1) is None
    assert mixture_reaching(none, none, 1) is None


def test_a_point_of_infinite_loss_is_worse_than_any_other():
    assert frontier(np.array([1.0, 2]), np.array([np.inf, 5]), False).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("best", "higher", "target"),
    [(0.8, True, 0.792), (2.0, False, 2 / 0.99), (-1.0, True, -1.01), (0.0, True, 0.0)],
)
def test_99_percent_of_the_best_by_hand(best, higher, target):
    assert share_of(best, 0.99, higher) == pytest.approx(target)


@pytest.mark.parametrize("higher", [True, False])
def test_the_whole_of_the_best_is_the_best(higher):
    assert [share_of(best, 1, higher) for best in (0.8, -2.0, 0.0)] == [0.8, -2.0, 0.0]


@given(st.floats(-10, 10), st.floats(0.01, 1), st.booleans())
def test_reaching_a_share_is_never_harder_than_reaching_the_best(best, share, higher):
    target = share_of(best, share, higher)
    assert target <= best if higher else target >= best


@pytest.mark.parametrize("share", [0, -1, 1.1, np.nan])
def test_a_share_outside_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        share_of(1.0, share)
