"""The cascade loss against sums by row, and the cyclic optimisation that only ever lowers it."""

import math

import numpy as np
import pytest
from bench_methods.cronus.cascade import Cascade, CascadePenalty, optimise, stage_objective
from bench_methods.cronus.initialise import initialise
from bench_models.descent import DescentSettings
from bench_models.links import sigmoid
from helpers.cronus_cases import cascade, position, problem
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.usefixtures("one_thread")
CUT = 1e-4


def warm(p, penalty):
    how = {"delta": 1.3, "drop": 0.15, "cut_off": CUT, "iterations": 300}
    return initialise(p, [penalty], **how)[0]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.0, 1e-4, 1e-2]))
def test_the_true_loss_never_rises(seed, lam):
    p = problem(seed, n=50)
    penalty = CascadePenalty(lam, np.full(3, 1e-3))
    start = cascade(p, seed=seed, zeros=0.3)
    ends = [optimise(p, penalty, start, DescentSettings(cycles=k, tolerance=0.0)) for k in range(4)]
    assert (np.diff([end.loss for end in ends]) <= 0).all()
    assert ends[-1].loss == pytest.approx(position(p, penalty, ends[-1].model).loss, rel=1e-12)


def test_a_warm_start_is_improved_a_good_deal():
    p = problem(seed=1, n=400, slope=50.0)
    penalty = CascadePenalty(1e-4, np.full(4, 1e-4))
    start = warm(p, penalty)
    end = optimise(p, penalty, start, DescentSettings())
    assert end.loss < 0.9 * position(p, penalty, start).loss


def test_weights_are_exact_zeros_or_at_least_the_cut_off():
    p = problem(seed=1, n=200, trees=15)
    penalty = CascadePenalty(1e-3, np.full(3, 3e-3))
    end = optimise(p, penalty, cascade(p, seed=5), DescentSettings())
    weights = end.model.weights
    assert (weights == 0).any()
    assert (np.abs(weights[weights != 0]) >= CUT).all()


def test_without_gates_to_move_the_last_stage_reaches_the_same_optimum_from_anywhere():
    p = problem(seed=3, n=200)
    penalty = CascadePenalty(1e-3, np.array([1e-3]))
    best = position(p, penalty, warm(p, penalty)).loss
    limits = DescentSettings(cycles=50, reweightings=50, tolerance=1e-10)
    end = optimise(p, penalty, cascade(p, stages=1, seed=9), limits)
    assert end.loss == pytest.approx(best, rel=1e-5)


def test_trees_that_tell_nothing_end_at_exact_zeros():
    p = problem(seed=1, n=100)
    penalty = CascadePenalty(0.05, np.full(2, 1e-3))
    weights = np.zeros((2, p.trees))
    weights[0] = 0.01 * np.random.default_rng(0).normal(size=p.trees)
    start = Cascade(weights, np.array([0.0, -0.5]), np.array([-0.4, -np.inf]))
    end = optimise(p, penalty, start, DescentSettings(cycles=50, reweightings=50, tolerance=0.0))
    assert not end.model.weights.any()
    assert end.loss == pytest.approx(p.constant_loss, rel=1e-6)


def test_a_stage_is_given_no_tree_that_it_does_not_use():
    """Algorithm 1 fixes sigma_t = |b^k_t|, at 0 an infinite ridge, though the other stage's tree
    would cost nothing more in eq. (8) and lower its loss."""
    p = problem(seed=2, n=300, trees=2)
    penalty = CascadePenalty(0.0, np.full(2, 1e-4))
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    start = Cascade(weights, np.zeros(2), np.array([0.0, -np.inf]))
    end = optimise(p, penalty, start, DescentSettings())
    assert end.loss < position(p, penalty, start).loss
    assert ((end.model.weights != 0) == (weights != 0)).all()


def test_no_row_pays_for_the_last_stages_expensive_tree_that_the_first_stage_rejects():
    """Eq. (8) prices |b| and not use: to an early stage a later stage's tree looks free."""
    rng = np.random.default_rng(0)
    cheap, expensive = rng.normal(size=(2, 2000))
    y = np.where(cheap + expensive > 1.5, 1.0, -1.0)
    p = problem(
        n=2000, trees=2, sensors=2, columns=np.stack([cheap, expensive]).astype(np.float32), y=y,
        share=np.full(2000, 1 / 2000), weight=np.full(2000, 1 / 2000), tree_cost=np.ones(2),
        sensor_cost=np.array([1.0, 100.0]), needs=np.eye(2), slope=50.0,
    )  # fmt: skip
    start = Cascade(np.array([[0.2, 0.0], [0.2, 0.2]]), np.full(2, -0.6), np.array([-0.6, -np.inf]))
    end = optimise(p, CascadePenalty(1e-4, np.full(2, 1e-4)), start, DescentSettings())
    assert end.model.weights[0].tolist()[1] == 0.0
    assert end.model.weights[1].all()
    assert end.rows.arriving[1] < 0.6


def test_an_open_gate_stays_open():
    p = problem(seed=2, n=100)
    penalty = CascadePenalty(1e-3, np.full(2, 1e-3))
    c = cascade(p, stages=2)
    start = c.replaced(0, np.zeros(p.trees), 0.0, -np.inf)
    end = optimise(p, penalty, start, DescentSettings())
    assert end.model.vanished() == [0]


PENALTY = CascadePenalty(0.01, np.array([0.002, 0.003, 0.005]))


def naive_parts(p, c):
    """Expected squared loss and the arriving shares d_k, row by row from the definitions."""
    loss, d = 0.0, [0.0] * c.stages
    for i in range(len(p.y)):
        reach = 1.0
        for k in range(c.stages):
            d[k] += p.share[i] * reach
            f = c.bias[k] + sum(c.weights[k, t] * float(p.columns[t, i]) for t in range(p.trees))
            last = k == c.stages - 1
            gate = 0.0 if last else 1 / (1 + math.exp(-p.slope * (f - c.threshold[k])))
            loss += 0.5 * p.weight[i] * reach * (1 - gate) * (p.y[i] - f) ** 2
            reach *= gate
    return loss, d


def auxiliary(p, c):
    """|b|, kappa and eta of eq. (11) at a cascade."""
    _, d = naive_parts(p, c)
    kappa = [math.hypot(*(c.weights[k, t] * d[k] for k in range(c.stages))) for t in range(p.trees)]
    eta = [
        math.sqrt(sum(p.needs[a, t] * kappa[t] ** 2 for t in range(p.trees)))
        for a in range(len(p.sensor_cost))
    ]
    return np.abs(c.weights), np.array(kappa), np.array(eta)


def naive_loss(p, penalty, c, at=None):
    """Eq. (8); with auxiliary variables, the quadratic forms of eq. (11) in their place."""
    loss, _ = naive_parts(p, c)
    size, kappa, eta = auxiliary(p, c)

    def root(now, fixed):
        return 0.5 * (now**2 / np.where(fixed > 0, fixed, 1.0) + fixed)  # no tree: 0 either way

    if at is not None:
        size, kappa, eta = (root(a, b) for a, b in zip((size, kappa, eta), at, strict=True))
    l1 = sum(penalty.rho[k] * size[k].sum() for k in range(c.stages))
    return float(loss + l1 + penalty.lam * (p.tree_cost @ kappa + p.sensor_cost @ eta))


def test_a_stage_whose_constant_fails_its_own_gate_has_not_vanished():
    c = Cascade(np.zeros((2, 3)), np.array([-1.0, 0.0]), np.array([0.0, -np.inf]))
    assert c.vanished() == []


def test_the_gate_is_exact_at_the_ends_and_does_not_overflow():
    z = np.array([-np.inf, -1e4, 0.0, 1e4, np.inf])
    assert sigmoid(z).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("k", range(3))
def test_gradients_equal_central_differences(k):
    p = problem(seed=2, n=40)
    c = cascade(p, seed=3)
    # an expensive, steep cascade, so that the terms through d_j are not lost beside the others
    penalty = CascadePenalty(0.5, PENALTY.rho)
    at = position(p, penalty, c)
    every = np.arange(len(p.y)), np.arange(p.trees), p.columns.astype(np.float64)
    objective = stage_objective(p, penalty, at, k, *every)
    x = np.concatenate([c.weights[k], [c.bias[k], c.threshold[k] if k < 2 else 0.0]])

    def value(z):
        return objective.evaluate(z[:-2], z[-2], z[-1])[0]

    _, by_weights, by_bias, by_threshold = objective.evaluate(x[:-2], x[-2], x[-1])
    h = 1e-5
    steps = h * np.eye(len(x))
    expected = [(value(x + s) - value(x - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(
        np.concatenate([by_weights, [by_bias, by_threshold]]), expected, rtol=1e-6, atol=1e-8
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(0, 2), empty=st.booleans())
def test_the_loss_is_equation_8_and_the_quadratic_form_touches_it_and_is_never_below(
    seed, k, empty
):
    """Row by row, also with an empty open stage."""
    p = problem(seed, n=15)
    c = cascade(p, seed=seed, zeros=0.3)
    if empty:
        c = c.replaced(1, np.zeros(p.trees), 0.3, -np.inf)
    assert c.vanished() == [1] * empty
    loss, fixed = position(p, PENALTY, c).loss, auxiliary(p, c)
    assert naive_loss(p, PENALTY, c) == pytest.approx(loss, rel=1e-10)
    assert naive_loss(p, PENALTY, c, fixed) == pytest.approx(loss)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=p.trees) * (c.weights[k] != 0)  # at 0 the ridge is infinite
    moved = c.replaced(k, weights, rng.normal(), c.threshold[k])
    assert naive_loss(p, PENALTY, moved, fixed) >= position(p, PENALTY, moved).loss - 1e-12
