"""The trade-off functions against exhaustive definitions on small random points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from bench_core.metrics.frontier import (
    choosable,
    frontier,
    hull,
    mixed_reaching,
    mixed_within,
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


def optimum(of, under, least):
    """The least mean of one figure over mixtures whose mean of another is at most ``least``, by
    linear programming; None where no mixture is."""
    ones = np.ones((1, len(of)))
    found = linprog(of, under[None], [least + 1e-9], ones, [1.0])
    return found.fun if found.status == 0 else None


@given(points, st.floats(0, 5), st.booleans())
def test_the_best_mixture_within_a_mean_cost_is_the_optimum_of_a_linear_program(
    rows, budget, higher
):
    cost, quality = columns(rows)
    sign = 1 if higher else -1
    choice = mixed_within(hull(cost[None], quality[None], higher), budget)
    most = optimum(-sign * quality, cost, budget)
    if most is None:
        assert choice.point.tolist() == [-1]
        return
    assert sign * taken(quality[None], choice)[0] == pytest.approx(-most, abs=1e-6)
    assert taken(cost[None], choice)[0] <= budget + 1e-9
    assert (choice.part[0] == 0) == (choice.point[0] == choice.cheaper[0])


@given(points, st.floats(0, 5), st.booleans())
def test_the_cheapest_mixture_of_a_quality_is_the_optimum_of_a_linear_program(rows, target, higher):
    cost, quality = columns(rows)
    sign = 1 if higher else -1
    corners = hull(cost[None], quality[None], higher)
    choice = mixed_reaching(corners, np.array([target]), higher)
    least = optimum(cost, -sign * quality, -sign * target)
    if least is None or choice.point[0] < 0:
        assert choice.point[0] < 0
        assert sign * target > (sign * quality).max() - 1e-8
        return
    assert taken(cost[None], choice)[0] == pytest.approx(least, abs=1e-6)
    assert sign * taken(quality[None], choice)[0] >= sign * target - 1e-9


def test_the_corners_of_a_hull_by_hand():
    """(2, .5) lies below the line from (1, .4) to (4, .9), which costs less than (5, .9)."""
    cost, quality = np.array([5, 2, 1, 4, 0, 4.0]), np.array([0.9, 0.5, 0.4, 0.9, 0.1, 0.2])
    corners = hull(cost[None], quality[None])
    assert corners.point.tolist() == [[4, 2, 3]]
    within = mixed_within(corners, 2.5)
    assert (within.point, within.cheaper, within.part) == (3, 2, 0.5)
    assert taken(quality[None], within)[0] == pytest.approx(0.65)
    reaching = mixed_reaching(corners, np.array([0.25]))
    assert (reaching.point, reaching.cheaper) == (2, 4)
    assert reaching.part[0] == pytest.approx(0.5)
    assert mixed_within(corners, np.inf).point.tolist() == [3]
    assert mixed_within(corners, 1.0).part.tolist() == [0.0]  # a budget may be what a point costs


def test_every_draw_has_its_own_hull():
    """In the second draw the point in the middle is no corner, in the third the first costs more
    than the budget and is taken."""
    cost = np.array([[1, 2, 3], [1, 2, 3], [2.5, 3, 4.0]])
    quality = np.array([[0.0, 0.8, 1], [0.0, 0.2, 1], [0.3, 0.8, 1]])
    choice = mixed_within(hull(cost, quality), 2.0)
    assert choice.point.tolist() == [1, 2, 0]
    assert choice.part.tolist() == [0.0, 0.5, 0.0]
    assert taken(quality, choice) == pytest.approx([0.8, 0.5, 0.3])
    assert taken(quality, choice.held()) == pytest.approx([0.8, 0.2, 0.8])


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=10), st.booleans())
def test_choosable_are_the_points_that_a_budget_of_mean_cost_or_of_95_percent_takes(rows, higher):
    cost, p95, quality = np.array(rows).T
    chosen = set()
    for of in (cost, p95):
        for budget in of:
            inside = np.flatnonzero(of <= budget)
            sign = -1 if higher else 1
            chosen.add(min(inside.tolist(), key=lambda i: (sign * quality[i], cost[i], i)))
    by_hand = sorted(chosen, key=lambda i: (cost[i], i))
    assert choosable(cost, p95, quality, higher).tolist() == by_hand


def test_points_with_nan_are_never_chosen():
    cost = np.array([np.nan, 1, 2, 3])
    quality = np.array([9, np.nan, 1, 2])
    assert frontier(cost, quality).tolist() == [2, 3]
    corners = hull(cost[None], quality[None])
    assert mixed_within(corners, 10).point.tolist() == [3]
    assert mixed_within(hull(cost[None] * np.nan, quality[None]), np.inf).point.tolist() == [-1]
    assert mixed_reaching(corners, np.array([1.0])).point.tolist() == [2]
    assert frontier(cost * np.nan, quality).tolist() == []
    assert choosable(cost, cost, quality).tolist() == [2, 3]


def test_no_points_give_nothing():
    none = np.zeros(0)
    assert frontier(none, none).tolist() == []


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
