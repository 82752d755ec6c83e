"""The convex stages against least squares, the lasso and a general convex solver."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.cronus.cascade import CascadePenalty
from bench_methods.cronus.initialise import critical_rho, initialise
from bench_models.least_squares import Growing
from bench_models.priced_squares import RelaxedPenalty, entering, solve_screened
from helpers.cronus_cases import position, problem
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("one_thread")
CUT = 1e-4


def single(p, lam, rho, cut_off=CUT):
    return initialise(
        p,
        [CascadePenalty(lam, np.array([rho]))],
        delta=1.3,
        drop=0.15,
        cut_off=cut_off,
        iterations=500,
    )[0]


def cascaded(p, lam, rho, stages=4, **changed):
    how = {"delta": 1.3, "drop": 0.15, "cut_off": CUT, "iterations": 500}
    return initialise(p, [CascadePenalty(lam, np.full(stages, rho))], **{**how, **changed})[0]


def solved(p, cost, cut_off=CUT):
    start = np.zeros(p.trees)
    return solve_screened(p, Growing(p, p.weight), cost, start, cut_off=cut_off, iterations=2000)


def least_squares(p):
    design = np.vstack([p.columns.astype(float), np.ones(len(p.y))]).T
    root = np.sqrt(p.weight)
    solved = np.linalg.lstsq(design * root[:, None], root * p.y, rcond=None)[0]
    return solved[:-1], float(solved[-1])


def test_the_critical_rho_is_the_least_that_leaves_a_stage_empty():
    p = problem(seed=2, n=200, trees=12)
    mean = p.weight @ p.y / p.weight.sum()
    critical = critical_rho(p)
    assert critical == pytest.approx(np.abs(p.columns @ (p.weight * (p.y - mean))).max(), rel=1e-5)
    assert not single(p, lam=0.0, rho=critical).weights.any()
    assert np.count_nonzero(single(p, lam=0.0, rho=0.95 * critical).weights) == 1


@pytest.mark.parametrize(
    ("seed", "n", "trees", "between", "atol"),
    [
        (2, 200, 12, (0, 12), 1e-4),
        (3, 500, 700, (20, 200), 1e-3),  # many trees wait outside the working set
    ],
)
def test_with_rho_alone_a_single_stage_is_the_lasso(seed, n, trees, between, atol):
    from sklearn.linear_model import Lasso

    p = problem(seed, n=n, trees=trees)
    c = single(p, lam=0.0, rho=0.02)
    # the lasso divides by the sum of the weights
    lasso = Lasso(alpha=0.02 / p.weight.sum(), tol=1e-12, max_iter=100000)
    lasso.fit(p.columns.T.astype(float), p.y, sample_weight=p.weight)
    assert between[0] < np.count_nonzero(lasso.coef_) < between[1]
    assert trees > 12 or ((c.weights[0] == 0) == (lasso.coef_ == 0)).all()
    np.testing.assert_allclose(c.weights[0], lasso.coef_, atol=atol)


def by_general_solver(p, cost):
    """Eq. (7), or a later stage of eq. (8), in epigraph form: u >= |b|, v >= kappa, z >= eta."""
    from scipy.optimize import minimize

    T, s = p.trees, len(p.sensor_cost)
    design = np.vstack([p.columns.astype(float), np.ones(len(p.y))])
    base, d2 = cost.before, cost.arriving**2

    def split(x):
        return x[:T], x[: T + 1], x[T + 1 : 2 * T + 1], x[2 * T + 1 : 3 * T + 1], x[3 * T + 1 :]

    def value(x):
        _, full, u, v, z = split(x)
        miss = full @ design - p.y
        price = p.tree_cost @ v + p.sensor_cost @ z
        return float(0.5 * p.weight @ miss**2 + cost.rho * u.sum() + cost.lam * price)

    def gradient(x):
        miss = split(x)[1] @ design - p.y
        rest = [np.full(T, cost.rho), cost.lam * p.tree_cost, cost.lam * p.sensor_cost]
        return np.concatenate([design @ (p.weight * miss), *rest])

    def inside(x):
        b, _, u, v, z = split(x)
        squares = base + d2 * b**2
        parts = [u - b, u + b, v**2 - squares, v, z**2 - p.needs @ squares, z]
        return np.concatenate(parts)

    weights = np.append(*least_squares(p))
    squares = base + d2 * weights[:T] ** 2
    start = [weights, np.abs(weights[:T]), np.sqrt(squares), np.sqrt(p.needs @ squares)]
    result = minimize(
        value,
        np.concatenate(start) + np.r_[np.zeros(T + 1), np.full(2 * T + s, 1e-3)],
        jac=gradient,
        constraints={"type": "ineq", "fun": inside},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    assert result.success
    return float(result.fun), result.x[:T]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("arriving", "used"), [(1.0, 0.0), (0.4, 0.3)])
def test_a_stage_is_the_optimum_of_a_general_convex_solver(seed, arriving, used):
    p = problem(seed, n=80, trees=5, sensors=4)
    rng = np.random.default_rng(seed)
    before = used * rng.random(5) * (rng.random(5) < 0.5)
    cost = RelaxedPenalty(rho=0.004, lam=0.004, arriving=arriving, before=before)
    growing = Growing(p, p.weight)
    growing.grow(np.arange(p.trees))
    found = solved(p, cost, cut_off=1e-6)
    squares = before + (arriving * found) ** 2
    price = p.tree_cost @ np.sqrt(squares) + p.sensor_cost @ np.sqrt(p.needs @ squares)
    value = growing.normal.loss(found) + cost.rho * np.abs(found).sum() + cost.lam * price
    best, weights = by_general_solver(p, cost)
    assert value == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(found, weights, atol=2e-3)


def test_the_first_stage_is_a_single_stage_at_an_inflated_price():
    p = problem(seed=3, n=300)
    c = cascaded(p, lam=0.001, rho=0.001, stages=4)
    np.testing.assert_array_equal(c.weights[0], single(p, 0.001 * 1.3**3, 0.001).weights[0])


def test_every_gate_drops_its_share_of_what_arrives():
    p = problem(seed=3, n=400)
    c = cascaded(p, lam=1e-4, rho=1e-4, stages=5)
    arriving = position(p, CascadePenalty(0.0, np.zeros(5)), c).rows.arriving
    np.testing.assert_allclose(arriving, 0.85 ** np.arange(5), rtol=1e-9)


def test_empty_early_stages_drop_nothing_and_the_first_gate_drops_its_share():
    """At a steep delta the first two stages cannot pay for a tree; the gates behind do not
    make up for them."""
    p = problem(seed=3, n=400)
    c = cascaded(p, lam=0.03, rho=1e-4, stages=5, delta=3.0)
    assert c.weights.any(axis=1).tolist() == [False, False, True, True, True]
    assert np.isneginf(c.threshold).tolist() == [True, True, False, False, True]
    arriving = position(p, CascadePenalty(0.0, np.zeros(5)), c).rows.arriving
    np.testing.assert_allclose(arriving, [1, 1, 1, 0.85, 0.7225], rtol=1e-9)


def test_a_ruinous_price_empties_every_stage_and_opens_every_gate():
    p = problem()
    c = cascaded(p, lam=1e3, rho=0.0)
    assert not c.weights.any()
    assert (c.threshold == -np.inf).all()
    mean = (p.weight @ p.y) / p.weight.sum()
    np.testing.assert_allclose(c.bias, mean)


def test_a_constant_tree_gets_no_weight():
    p = problem(seed=1)
    columns = p.columns.copy()
    columns[2] = 0.37
    c = cascaded(replace(p, columns=columns), lam=0.0, rho=0.0)
    assert (c.weights[:, 2] == 0).all()
    assert c.weights[:, [0, 1, 3, 4, 5]].all()


def test_a_tree_of_an_earlier_stage_is_cheaper_than_its_unbought_twin():
    p = problem(seed=2, n=200, trees=1, sensors=1)
    twins = replace(
        p,
        columns=np.vstack([p.columns, p.columns]),
        tree_cost=np.ones(2),
        sensor_cost=np.array([5.0, 5.0]),
        needs=np.eye(2),
    )
    cost = RelaxedPenalty(rho=0.0, lam=0.005, arriving=0.5, before=np.array([0.3, 0.0]))
    found = solved(twins, cost)
    assert found[0] != 0
    assert found[1] == 0


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.3, 1.0, 3.0]))
def test_what_stays_outside_cannot_lower_the_loss_in_any_direction(seed, scale):
    rng = np.random.default_rng(seed)
    needs = (rng.random((4, 7)) < 0.4).astype(float)
    capacity, excess = rng.uniform(0.5, 2.0, 4), scale * rng.uniform(-0.5, 1.0, 7).clip(0)
    outside = ~entering(excess, needs, capacity)
    steps = rng.exponential(size=(2000, 7)) * (rng.random((2000, 7)) < 0.5) * outside
    # the Lagrangian bound of the best direction within one sensor, too
    steps = np.vstack([steps, needs * excess * outside, excess * outside])
    price = np.sqrt((steps**2) @ needs.T) @ capacity
    assert (steps @ excess <= price * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("excess", "needs", "capacity", "enters"),
    [
        # one tree, two sensors: its gradient may fit into them together
        ([2.9], [[1], [1]], [1.0, 2.0], [False]),
        ([3.1], [[1], [1]], [1.0, 2.0], [True]),
        # four trees, one sensor: together they pay for it where none would alone
        ([0.9] * 4, [[1] * 4], [2.0], [False] * 4),
        ([1.1] * 4, [[1] * 4], [2.0], [True] * 4),
        # no sensor to pay for: a tree enters as soon as it gains
        ([1e-9, 0.0], np.zeros((0, 2)), [], [True, False]),
    ],
)
def test_trees_enter_where_their_gradient_exceeds_the_price(excess, needs, capacity, enters):
    asked = np.array(excess), np.array(needs, dtype=float), np.array(capacity)
    assert entering(*asked).tolist() == enters
