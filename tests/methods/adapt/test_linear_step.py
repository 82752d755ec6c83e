"""Linear pairs: gradients, monotone alternation, columns, supports, and thresholds of gates."""

import numpy as np
import pytest
from bench_methods.adapt.linear_step import (
    RIDGE,
    Columns,
    GroupPenalty,
    Linear,
    LinearProblem,
    fit_in_turns,
    fit_jointly,
    fit_priced,
    l1_path,
    logistic,
    nested,
    objective,
    spread,
)
from bench_methods.adapt.q_step import F0Limit, KullbackLeibler, SquaredLogOdds, TrainingRows
from bench_models.l1_regression import PenalisedLoss
from bench_models.large_model import thresholds
from bench_models.scaling import Scaling
from helpers.adapt_cases import rows
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bench_core import DiscountGroup, Examples, Prices, price_list

pytestmark = pytest.mark.usefixtures("one_thread")
SHARED = price_list(
    np.array([1.0, 4, 4, 8, 6, 0]),
    shared=[[1, 2]],
    discounted=[DiscountGroup((3, 4), (5.0, 3.0))],
    derived={5: [0, 1]},
)
DISTANCES = [KullbackLeibler(), SquaredLogOdds()]


def columns_of(X, share):
    return Columns.of(X, Scaling.of(X, share), share)


def columns(n=40, d=6, seed=0):
    X = np.random.default_rng([seed, 5]).normal(3, 2, size=(n, d)).astype(np.float32)
    some = rows(n, seed)
    return columns_of(X, some.share), some


def packed_objective(cols, loss, price):
    """Of weights and intercept of g, then of f1, in one vector."""

    def value(packed):
        each = packed.reshape(2, -1)
        found, by = objective(cols, loss, price, Linear(each[:, :-1], each[:, -1]))
        return found, np.column_stack([by.weights, by.intercepts]).ravel()

    return value


@pytest.mark.parametrize("D", DISTANCES)
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("prices", [SHARED, Prices.additive(np.arange(6.0))])
def test_the_steps_gradient_is_that_of_finite_differences(D, given, prices):
    """For a given q, and where q follows the pair."""
    cols, some = columns()
    rng = np.random.default_rng(3)
    price = GroupPenalty.of(prices, 0.1 * prices.sensor, cols)
    problem = LinearProblem(cols, some, F0Limit(0.3), D, price)
    loss = problem.given(rng.uniform(-3, 3, 40)) if given else problem.best_q
    step, at = packed_objective(cols, loss, price), rng.normal(size=14)
    far = check_grad(lambda w: step(w)[0], lambda w: step(w)[1], at, epsilon=1e-6)
    assert far < 1e-4 * np.linalg.norm(step(at)[1])


def test_the_step_minimises_opt2_as_printed():
    cols, some = columns()
    rng = np.random.default_rng(4)
    q, cost = rng.uniform(size=40), np.arange(1.0, 7.0)
    packed = rng.normal(size=14)
    g, f1 = packed[:6] @ cols.values + packed[6], packed[7:13] @ cols.values + packed[13]
    loss = (1 - q) * (np.log1p(np.exp(-some.sign * f1)) + np.log1p(np.exp(g)))
    loss += q * np.log1p(np.exp(-g))
    norms = 0.02 * cost @ np.sqrt(packed[:6] ** 2 + packed[7:13] ** 2)
    price = GroupPenalty.of(Prices.additive(cost), 0.02 * cost, cols)
    problem = LinearProblem(cols, some, F0Limit(0.3), KullbackLeibler(), price)
    ours = packed_objective(cols, problem.given(logit(q)), price)(packed)[0]
    ridge = RIDGE / 2 * float(packed[:6] @ packed[:6] + packed[7:13] @ packed[7:13])
    assert ours == pytest.approx(some.share @ loss + norms + ridge, abs=1e-6)


def test_features_of_one_sensor_are_one_group():
    cols, _ = columns()
    price = GroupPenalty.of(SHARED, SHARED.sensor, cols)
    squares = np.array([9.0, 16, 9, 0, 0, 0])  # sensors: f0 alone, f1 and f2 shared, derived: both
    value, _ = price(squares)
    assert value == pytest.approx(1 * 3 + 4 * 5, abs=1e-4)
    squares[5] = 16.0
    assert price(squares)[0] == pytest.approx(1 * 5 + 4 * np.sqrt(16 + 9 + 16), abs=1e-4)


@pytest.mark.parametrize("D", DISTANCES)
@pytest.mark.parametrize("p_full", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_alternations_objective_never_rises(D, p_full, seed):
    cols, some = columns(seed=seed)
    price = GroupPenalty.of(Prices.additive(np.ones(6)), np.full(6, 0.005), cols)
    settled = fit_in_turns(LinearProblem(cols, some, F0Limit(p_full), D, price), 15)
    assert len(settled.objective) > 3
    assert np.diff(settled.objective).max() <= 1e-8
    assert some.mean(expit(settled.u)) <= p_full


def plain_alternation(problem, iterations):
    """The objective of algorithm 1 with a general solver for (OPT2), run to its end each time."""
    cols, pair = problem.columns, problem.begin
    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-6, "maxcor": 20}
    for _ in range(iterations):
        u = problem.best_u(pair)
        step = packed_objective(cols, problem.given(u), problem.price)
        start = np.column_stack([pair.weights, pair.intercepts]).ravel()
        found = minimize(step, start, jac=True, method="L-BFGS-B", options=options).x.reshape(2, -1)
        pair = Linear(found[:, :-1], found[:, -1])
    return problem.value(pair, u)


@pytest.mark.parametrize("D", DISTANCES)
@pytest.mark.parametrize("share", [0.0, 0.02])
def test_the_objective_is_no_worse_than_that_of_a_general_solver(D, share):
    """On columns of which one nearly repeats the others."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 6))
    X = np.column_stack([X, X.sum(axis=1) + 0.01 * rng.normal(size=400)]).astype(np.float32)
    right = 2 * X[:, 0] + X[:, 1] - 3 * np.abs(X[:, 2]) + 2
    sign = np.where(right + rng.logistic(size=400) > 0, 1.0, -1.0)
    loss0 = np.log1p(np.exp(-sign * right))
    bits = np.zeros((400, 1), np.uint64)
    some = TrainingRows(sign, np.full(400, 1 / 400), loss0, bits, np.zeros(400))
    cols = columns_of(X, some.share)
    price = GroupPenalty.of(Prices.additive(np.ones(7)), np.full(7, share), cols)
    problem = LinearProblem(cols, some, F0Limit(0.4), D, price)
    turns = 6
    wanted = plain_alternation(problem, turns)
    assert fit_in_turns(problem, turns).objective[-1] <= wanted + 1e-4 * wanted
    joint, _ = fit_jointly(problem)
    assert problem.value(joint, problem.best_u(joint)) <= wanted + 1e-4 * wanted


@pytest.mark.parametrize("D", DISTANCES)
@pytest.mark.parametrize(
    "limit", [F0Limit(0.3), F0Limit(1.0), F0Limit(None, np.linspace(0, 2, 40))]
)
def test_the_value_for_the_best_q_is_the_printed_objective_there(D, limit):
    some = rows(40)
    g, f1 = np.random.default_rng(5).normal(size=(2, 40))
    u = limit.step(D, some, f1, g)
    printed = limit.objective(D, some, f1, g, u)
    cols, _ = columns()
    problem = LinearProblem(cols, some, limit, D, GroupPenalty.none(cols))
    assert problem.best_q(np.stack([g, f1]))[0] == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("share", [1e-4, 0.02])
def test_a_wide_problem_is_solved_on_few_columns_as_on_all(share, monkeypatch):
    monkeypatch.setattr("bench_methods.adapt.linear_step.FEW", 110)
    rng, d = np.random.default_rng(2), 130
    X = rng.normal(size=(60, d)).astype(np.float32)
    some = rows(60)
    some.sign[:] = np.where(X[:, 7] + X[:, 120] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    cols, prices = columns_of(X, some.share), Prices.additive(np.ones(d))
    charge = np.full(d, share)
    price = GroupPenalty.of(prices, charge, cols)
    problem = LinearProblem(cols, some, F0Limit(0.3), KullbackLeibler(), price)
    found, order = fit_priced(problem, prices, charge, 20)
    whole = fit_in_turns(problem, 20)
    assert set(order[:2].tolist()) == {7, 120}
    assert sorted(order.tolist()) == list(range(d))
    assert found.objective[-1] <= whole.objective[-1] * (1 + 5e-3) + 1e-4


def test_logistic_regression_agrees_with_scikit_learn():
    cols, some = columns(n=200)
    ours = logistic(cols, some, GroupPenalty.none(cols))
    theirs = LogisticRegression(C=1e6, tol=1e-10, max_iter=1000)
    theirs.fit(cols.values.T, some.sign, sample_weight=200 * some.share)
    assert ours.weights[0].tolist() == pytest.approx(theirs.coef_[0].tolist(), abs=1e-3)
    assert ours.intercepts[0] == pytest.approx(theirs.intercept_[0], abs=1e-3)


def test_constant_columns_are_left_out():
    X = np.array([[1, 7, np.nan], [3, 7, 2], [3, 7, 6]], dtype=np.float32)
    cols = columns_of(X, np.array([0.25, 0.5, 0.25]))
    assert cols.which.tolist() == [0, 2]
    # means 2.5 and 10 / 3; a missing cell counts as the mean
    off = np.array([[-1.5, 0.5, 0.5], [0, -4 / 3, 8 / 3]])
    deviation = np.sqrt([[0.75], [0.5 * (4 / 3) ** 2 + 0.25 * (8 / 3) ** 2]])
    np.testing.assert_allclose(cols.values, off / deviation)
    assert cols.only(np.array([2, 1])).which.tolist() == [2]


def test_nested_sets_take_along_what_comes_free():
    cols, _ = columns()
    sets = [s.tolist() for s in nested(np.array([1, 0, 4, 3, 2, 5]), cols, SHARED, 9)]
    # 1 buys the sensor of 2; with 0 the derived 5 is free; the last of the group pays its own
    assert sets == [[1, 2], [0, 1, 2, 5], [0, 1, 2, 4, 5], [0, 1, 2, 3, 4, 5]]


def l1_sets(X, y, cost):
    train = Examples(X, np.maximum(y, 0))
    scaling = Scaling.of(X, train.weights)
    problem = PenalisedLoss(train, scaling, train.y, np.zeros(1), False)
    return l1_path(problem, Prices.additive(cost))


def test_the_l1_path_begins_with_the_feature_that_scikit_learns_begins_with():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5)).astype(np.float32)
    y = np.where(X @ np.array([0.2, 2.0, 0, -1.0, 0.05]) + 0.5 * rng.normal(size=400) > 0, 1.0, -1)
    ours, z = l1_sets(X, y, np.ones(5)), columns_of(X, np.full(400, 1 / 400)).values.T
    theirs = []
    for c in np.geomspace(1e-3, 1, 40):
        model = LogisticRegression(C=c, l1_ratio=1.0, solver="saga", tol=1e-7, max_iter=5000)
        used = np.flatnonzero(model.fit(z, y).coef_[0]).tolist()
        if used and used not in theirs:
            theirs.append(used)
    assert [s.tolist() for s in ours[:3]] == theirs[:3]
    assert ours[-1].tolist() == [0, 1, 2, 3, 4]


def test_the_l1_path_takes_a_cheap_twin_of_a_dear_feature():
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    X = np.column_stack([x, x + 0.1 * rng.normal(size=300)]).astype(np.float32)
    y = np.where(x > 0, 1.0, -1.0)
    for cost, first in (([1.0, 1.0], 0), ([10.0, 1.0], 1), ([0.0, 0.0], 0)):
        assert l1_sets(X, y, np.array(cost))[0].tolist() == [first]


@given(st.integers(1, 200), st.integers(1, 30))
def test_spread_keeps_the_first_and_the_last_and_repeats_none(count, most):
    sets = [np.arange(k + 1) for k in range(count)]
    kept = [len(s) for s in spread(sets, most)]
    assert len(kept) == min(count, most)
    assert kept == sorted(set(kept))
    assert kept[-1] == count
    assert most == 1 or kept[0] == 1


def test_gates_send_the_wanted_shares_from_halfway_between_scores():
    g = np.array([-3.0, -1.0, 2.0, 6.0])
    found = thresholds(g, np.full(4, 0.25), 3)
    assert found == [(4.0, 0.25), (0.0, 0.5), (-2.0, 0.75)]  # the paper's 0 also sends a half


def test_a_gate_that_sends_everybody_is_no_point_and_one_that_sends_nobody_is():
    share = np.full(2, 0.5)
    assert thresholds(np.array([1.0, 1.0]), share, 5) == []
    assert thresholds(np.array([-1.0, -1.0]), share, 5) == [(0.0, 0.0)]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30), st.integers(0, 9))
def test_a_threshold_sends_the_share_it_says(scores, count):
    g = np.array(scores)
    share = np.arange(1.0, len(g) + 1) / np.arange(1.0, len(g) + 1).sum()
    found = thresholds(g, share, count)
    assert len(found) <= count + 1
    sent = [s for _, s in found]
    assert sent == sorted(set(sent))
    for threshold, sent in found:
        assert share[g > threshold].sum() == pytest.approx(sent, abs=1e-6)
        assert sent < 1
