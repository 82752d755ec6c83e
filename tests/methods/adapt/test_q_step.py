"""The step over q against general optimisers, and what f0 says about the training rows."""

import numpy as np
import pytest
from bench_methods.adapt.q_step import (
    F0Limit,
    KullbackLeibler,
    SquaredLogOdds,
    TrainingRows,
    f0_outputs,
)
from helpers.adapt_cases import Rule, rows
from helpers.fakes import FakeContext
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, xlogy

from bench_core import Examples, Prices, Task

DISTANCES = [KullbackLeibler(), SquaredLogOdds()]


def printed_objective(q, some, f1, g):
    """(OPT1) with A and B written out."""
    a = np.log1p(np.exp(-some.sign * f1)) + np.log1p(np.exp(g))
    b = some.loss0 + np.log1p(np.exp(-g))
    entropy = -xlogy(q, q) - xlogy(1 - q, 1 - q)
    return float(some.share @ ((1 - q) * a + q * b - entropy))


def pair_scores(n, seed):
    rng = np.random.default_rng([seed, 9])
    return 2 * rng.normal(size=n), 2 * rng.normal(size=n)


@pytest.mark.parametrize("p_full", [0.1, 0.3, 0.9])
def test_q_minimises_the_printed_problem(p_full):
    some = rows(8)
    f1, g = pair_scores(8, 0)
    q = expit(F0Limit(p_full).step(KullbackLeibler(), some, f1, g))
    found = minimize(
        printed_objective,
        np.full(8, p_full / 2),
        args=(some, f1, g),
        bounds=[(1e-9, 1 - 1e-9)] * 8,
        constraints={"type": "ineq", "fun": lambda q: p_full - some.share @ q},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert q.tolist() == pytest.approx(found.x.tolist(), abs=2e-4)
    assert printed_objective(q, some, f1, g) <= found.fun + 1e-9


def test_the_objective_is_the_printed_one():
    some = rows(20)
    f1, g = pair_scores(20, 1)
    u = F0Limit(0.4).step(KullbackLeibler(), some, f1, g)
    ours = F0Limit(0.4).objective(KullbackLeibler(), some, f1, g, u)
    assert ours == pytest.approx(printed_objective(expit(u), some, f1, g), rel=1e-12)


@given(st.integers(0, 10_000), st.floats(0.001, 1.0), st.sampled_from([0, 1]))
def test_the_mean_of_q_keeps_its_limit_and_uses_it(seed, p_full, which):
    some, D = rows(12, seed), DISTANCES[which]
    f1, g = pair_scores(12, seed)
    q = expit(F0Limit(p_full).step(D, some, f1, g))
    free = expit(D.log_odds(some.excess(f1), g, 0.0, g))
    assert some.mean(q) <= p_full
    if some.mean(free) <= p_full:
        assert q.tolist() == pytest.approx(free.tolist(), rel=1e-12)
    elif which == 0:  # the squared distance may jump over the limit
        assert some.mean(q) == pytest.approx(p_full, rel=1e-6)


def test_a_price_for_f0_moves_the_log_odds_by_that_price():
    some = rows(6)
    f1, g = pair_scores(6, 3)
    price = np.arange(6.0)
    q = expit(F0Limit(None, price).step(KullbackLeibler(), some, f1, g))
    wanted = expit(g + np.log1p(np.exp(-some.sign * f1)) - some.loss0 - price)
    assert q.tolist() == pytest.approx(wanted.tolist(), rel=1e-12)


@pytest.mark.parametrize("excess", [-14.0, -3.0, 0.0, 2.0, 13.0])
@pytest.mark.parametrize("g", [-4.0, 0.0, 5.0])
@pytest.mark.parametrize("bias", [0.0, 6.0, 40.0])
def test_least_squares_q_minimises_its_objective(excess, g, bias):
    def value(u):
        return float((bias - excess) * expit(u) + (u - g) ** 2 / 2)

    row = np.array([excess]), np.array([g])
    u = SquaredLogOdds().log_odds(*row, bias, row[1])[0]
    far = SquaredLogOdds().log_odds(*row, bias, row[1] + 3)[0]
    assert far == pytest.approx(u, rel=1e-9)
    reach = abs(bias - excess) / 4 + 1e-3
    grid = np.linspace(g - reach, g + reach, 2001)
    start = min(grid, key=value)
    step = grid[1] - grid[0]
    best = minimize_scalar(value, bounds=(start - step, start + step), method="bounded")
    assert value(u) <= best.fun + 1e-7


def test_the_distance_of_adapt_lstsq_is_exact_for_a_q_that_is_almost_one():
    g, u = np.array([1.0, -2.0, 1.0]), np.array([26.3, -25.9, 1000.0])  # the last counts as 27.631
    value, slope = SquaredLogOdds().gate_loss(u, g)
    assert value.tolist() == pytest.approx([25.3**2 / 2, 23.9**2 / 2, 26.631**2 / 2], rel=1e-14)
    assert slope.tolist() == pytest.approx([-25.3, 23.9, -26.631], rel=1e-14)


def test_f0_is_taken_at_its_last_point_and_its_probabilities_are_clipped():
    prices = Prices.additive(np.array([2.0, 3.0]), split=0.5, tree=1.0)
    X = np.array([[40.0, 0], [-40.0, 0], [0, 0]], dtype=np.float32)
    train = Examples(X, np.array([1.0, 1.0, 0.0]), None, np.array([1, 2, 1]))
    f0 = Rule(np.array([1.0, 0.0]), prices, splits=4.0, trees=2.0)
    some = TrainingRows.of(train, f0_outputs(f0, train, prices, FakeContext(Task.BINARY)))
    assert some.sign.tolist() == [1, 1, -1]
    assert some.share.tolist() == [0.25, 0.5, 0.25]
    assert some.loss0.tolist() == pytest.approx(
        [-np.log(1 - 1e-6), -np.log(1e-6), np.log(2)], rel=1e-9
    )
    assert some.bits0.tolist() == [[1], [1], [1]]
    assert some.evaluation0.tolist() == [4.0] * 3  # 4 splits at .5, 2 trees at 1


def test_the_premium_of_f0_counts_what_the_gate_has_bought_once():
    prices = Prices.additive(np.array([1.0, 2.0, 4.0]))
    some = TrainingRows(*np.ones((3, 1)), np.array([[0b110]], dtype=np.uint64), np.array([0.5]))
    gate = kept = np.array([[0b011]], dtype=np.uint64)
    # gate and f0 share the second sensor, the first is the gate's own: 1 + 2 + 4 + 0.5;
    # the gate and f1: 1 + 2 + 0.25 for trees
    assert some.premium(gate, kept, 0.25, prices, 2.0).tolist() == [2 * (7.5 - 3.25)]
