"""The tree's loss against its definition, and a classifier's objective against the loss."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from bench_methods.cstc.tree import (
    NONE,
    Shape,
    TreePenalty,
    initialise,
    node_objective,
    optimise,
    splitting_threshold,
)
from bench_models.descent import DescentSettings
from helpers.cstc_cases import SHAPES, naive_loss, position, problem, tree
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("one_thread")
PENALTY = TreePenalty(0.01, 0.02)


few = settings(max_examples=30, deadline=None)
shapes = st.sampled_from(SHAPES)
seeds = st.integers(0, 10**6)


def test_nodes_are_removed_with_all_below_them():
    shape, kept = Shape.balanced(3).without({1, 6})
    assert kept == [0, 2, 5]
    assert (shape.upper, shape.lower) == ((NONE, 2, NONE), (1, NONE, NONE))


def objective_of(p, t, k, constant=True):
    at = position(p, PENALTY, t)
    columns = np.flatnonzero(t.weights[k])
    own = np.arange(len(p.y)), columns, p.columns[columns].astype(np.float64)
    found = node_objective(p, PENALTY, at, k, *own, constant=constant)
    return found, columns, at.loss


@few
@given(shape=shapes, seed=seeds, place=st.floats(0, 0.999))
def test_a_classifiers_gradient_is_that_of_the_whole_loss(shape, seed, place):
    p = problem(seed, n=20)
    t, k = tree(p, shape, seed), int(place * shape.nodes)
    objective, columns, _ = objective_of(p, t, k)
    _, by_weights, by_bias, by_threshold = objective.evaluate(
        t.weights[k][columns], float(t.bias[k]), float(t.threshold[k])
    )
    h = 1e-5

    def loss(w=0.0, j=0, b=0.0, th=0.0):
        weights = t.weights[k].copy()
        weights[j] += w
        moved = t.replaced(k, weights, float(t.bias[k]) + b, float(t.threshold[k]) + th)
        return position(p, PENALTY, moved).loss

    for j, slope in zip(columns, by_weights, strict=True):
        if abs(t.weights[k][j]) > 1e-2:  # away from the kink at zero
            numeric = (loss(w=h, j=int(j)) - loss(w=-h, j=int(j))) / (2 * h)
            assert slope == pytest.approx(numeric, rel=1e-4, abs=1e-6)
    assert by_bias == pytest.approx((loss(b=h) - loss(b=-h)) / (2 * h), rel=1e-4, abs=1e-6)
    if not shape.is_leaf(k):
        numeric = (loss(th=h) - loss(th=-h)) / (2 * h)
        assert by_threshold == pytest.approx(numeric, rel=1e-4, abs=1e-6)


@few
@given(shape=shapes, seed=seeds, place=st.floats(0, 0.999))
def test_a_classifiers_objective_is_never_below_the_loss(shape, seed, place):
    p = problem(seed, n=20)
    t, k = tree(p, shape, seed), int(place * shape.nodes)
    objective, columns, before = objective_of(p, t, k)
    here = objective.evaluate(t.weights[k][columns], float(t.bias[k]), float(t.threshold[k]))[0]
    rng = np.random.default_rng(seed)
    weights = t.weights[k].copy()
    weights[columns] += rng.normal(scale=0.5, size=len(columns))
    bias, threshold = rng.normal(size=2)
    there = objective.evaluate(weights[columns], float(bias), float(threshold))[0]
    after = position(p, PENALTY, t.replaced(k, weights, float(bias), float(threshold))).loss
    assert after - before <= there - here + 1e-9


@settings(max_examples=12, deadline=None)
@given(shape=shapes, seed=seeds, lam=st.sampled_from([0.0, 1e-3, 0.1]))
def test_no_update_raises_the_loss_and_zeros_stay_exact(shape, seed, lam):
    p, penalty = problem(seed, n=40), TreePenalty(lam, 1e-3)
    start = tree(p, shape, seed)
    how = DescentSettings(cycles=2, cut_off=0.05, tolerance=0.0)
    ends = [optimise(p, penalty, start, replace(how, cycles=k)) for k in range(3)]
    assert all(b.loss <= a.loss * (1 + 1e-12) for a, b in pairwise(ends))
    end = ends[-1]
    assert end.loss == pytest.approx(naive_loss(p, penalty, end.model), rel=1e-9)
    assert not end.model.weights[start.weights == 0].any()
    kept = end.model.weights[end.model.weights != start.weights]
    assert not ((np.abs(kept) > 0) & (np.abs(kept) < 0.05)).any()


@pytest.mark.parametrize("constant", [True, False])
def test_every_node_starts_as_the_best_leaf_given_its_ancestors(constant):
    p, penalty = problem(5, n=80), TreePenalty(0.002, 1e-3)
    shape = Shape.balanced(2)
    t = initialise(p, penalty, shape, upward=0.5, constant=constant, cut_off=1e-4, iterations=500)
    at = position(p, penalty, t)
    rng = np.random.default_rng(0)
    for k in range(3):

        def as_leaf(weights, bias, k=k):
            f = weights @ p.columns + bias
            reach = at.rows.reach[k]
            fit = 0.5 * float((p.weight * reach) @ (f - p.y) ** 2)
            others = [j for j in shape.path(k) if j != k]
            squares = weights**2 + (t.weights[others] ** 2).sum(axis=0)
            cost = p.tree_cost @ np.sqrt(squares) + p.sensor_cost @ np.sqrt(p.needs @ squares)
            share = float(p.share @ reach)
            return fit + penalty.rho * np.abs(weights).sum() + penalty.lam * share * float(cost)

        best = as_leaf(t.weights[k], float(t.bias[k]))
        for _ in range(50):
            step = rng.normal(scale=0.01, size=p.trees)
            shift = float(rng.normal(scale=0.01)) if constant else 0.0
            assert as_leaf(t.weights[k] + step, float(t.bias[k]) + shift) > best - 1e-6


@pytest.mark.parametrize(
    ("scores", "mass", "share", "expected"),
    [
        ([0.0, 1.0, 2.0, 9.0], [1, 1, 1, 1], 0.5, 1.5),
        ([9.0, 0.0, 2.0, 1.0], [1, 1, 1, 1], 0.75, 5.5),
        ([0.0, 0.0, 0.0, 1.0], [1, 1, 1, 1], 0.5, 0.5),  # ties go together
        ([0.0, 1.0, 2.0], [10, 1, 1], 0.5, 0.5),
        ([0.0, 1e-12, 1.0], [1, 1, 1], 0.3, 0.5),  # a difference by rounding is none
        ([0.0, 5.0, 1.0], [1, 0, 1], 0.5, 0.5),  # rows that do not arrive have no say
        ([3.0, 3.0], [1, 1], 0.5, None),
    ],
)
def test_thresholds_lie_midway_between_the_two_scores_nearest_the_quantile(
    scores, mass, share, expected
):
    found = splitting_threshold(np.array(scores), np.array(mass, float), share)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_a_node_that_tells_no_rows_apart_is_a_leaf():
    p = problem(1, n=50)
    shape = Shape.balanced(3)
    t = initialise(
        p, TreePenalty(1e6, 0.0), shape, upward=0.5, constant=True, cut_off=1e-4, iterations=50
    )
    assert t.shape.nodes == 1
    assert t.bias[0] == pytest.approx(float(p.share @ p.y))
