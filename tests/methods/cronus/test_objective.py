"""The cascade loss against row-by-row sums, and its derivatives against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench_methods.cronus.cascade import Cascade, CascadePenalty, stage_objective
from bench_models.logistic import sigmoid
from bench_models.problem import Problem
from helpers.cronus_cases import cascade, position, problem
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.arrays import FloatArray

PENALTY = CascadePenalty(0.01, np.array([0.002, 0.003, 0.005]))
Auxiliary = tuple[FloatArray, FloatArray, FloatArray]


def naive_parts(p: Problem, c: Cascade) -> tuple[float, list[float]]:
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


def auxiliary(p: Problem, c: Cascade) -> Auxiliary:
    """|b|, kappa and eta of eq. (11) at a cascade."""
    _, d = naive_parts(p, c)
    kappa = [math.hypot(*(c.weights[k, t] * d[k] for k in range(c.stages))) for t in range(p.trees)]
    eta = [
        math.sqrt(sum(p.needs[a, t] * kappa[t] ** 2 for t in range(p.trees)))
        for a in range(len(p.sensor_cost))
    ]
    return np.abs(c.weights), np.array(kappa), np.array(eta)


def naive_loss(
    p: Problem, penalty: CascadePenalty, c: Cascade, at: Auxiliary | None = None
) -> float:
    """Eq. (8); with auxiliary variables, the quadratic forms of eq. (11) in their place."""
    loss, _ = naive_parts(p, c)
    size, kappa, eta = auxiliary(p, c)

    def root(now: FloatArray, fixed: FloatArray) -> FloatArray:
        return 0.5 * (now**2 / np.where(fixed > 0, fixed, 1.0) + fixed)  # no tree: 0 either way

    if at is not None:
        size, kappa, eta = (root(a, b) for a, b in zip((size, kappa, eta), at, strict=True))
    l1 = sum(penalty.rho[k] * size[k].sum() for k in range(c.stages))
    return float(loss + l1 + penalty.lam * (p.tree_cost @ kappa + p.sensor_cost @ eta))


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_equation_8_row_by_row(seed: int) -> None:
    p = problem(seed)
    c = cascade(p, seed=seed, zeros=0.3)
    assert position(p, PENALTY, c).loss == pytest.approx(naive_loss(p, PENALTY, c), rel=1e-10)


def test_an_empty_open_stage_costs_nothing_and_changes_nothing() -> None:
    p = problem()
    c = cascade(p, stages=2)
    more = Cascade(
        np.insert(c.weights, 1, 0.0, axis=0),
        np.insert(c.bias, 1, 0.3),
        np.insert(c.threshold, 1, -np.inf),
    )
    rho = np.array([0.002, 0.005])
    assert more.vanished() == [1]
    assert position(p, CascadePenalty(0.01, np.insert(rho, 1, 9.0)), more).loss == pytest.approx(
        position(p, CascadePenalty(0.01, rho), c).loss, rel=1e-12
    )


def test_a_stage_whose_constant_fails_its_own_gate_has_not_vanished() -> None:
    c = Cascade(np.zeros((2, 3)), np.array([-1.0, 0.0]), np.array([0.0, -np.inf]))
    assert c.vanished() == []


def test_the_gate_is_exact_at_the_ends_and_does_not_overflow() -> None:
    z = np.array([-np.inf, -1e4, 0.0, 1e4, np.inf])
    assert sigmoid(z).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("k", range(3))
def test_gradients_equal_central_differences(k: int) -> None:
    p = problem(seed=2, n=40)
    c = cascade(p, seed=3)
    # an expensive, steep cascade, so that the terms through d_j are not lost beside the others
    penalty = CascadePenalty(0.5, PENALTY.rho)
    at = position(p, penalty, c)
    objective = stage_objective(p, penalty, at, k, np.arange(len(p.y)), np.arange(p.trees))
    x = np.concatenate([c.weights[k], [c.bias[k], c.threshold[k] if k < 2 else 0.0]])

    def value(z: FloatArray) -> float:
        return objective.evaluate(z[:-2], z[-2], z[-1])[0]

    _, by_weights, by_bias, by_threshold = objective.evaluate(x[:-2], x[-2], x[-1])
    h = 1e-5
    steps = h * np.eye(len(x))
    expected = [(value(x + s) - value(x - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(
        np.concatenate([by_weights, [by_bias, by_threshold]]), expected, rtol=1e-6, atol=1e-8
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(0, 2))
def test_the_quadratic_form_touches_the_loss_and_is_never_below_it(seed: int, k: int) -> None:
    p = problem(seed, n=15)
    c = cascade(p, seed=seed)
    fixed = auxiliary(p, c)
    assert naive_loss(p, PENALTY, c, fixed) == pytest.approx(position(p, PENALTY, c).loss)
    rng = np.random.default_rng(seed)
    moved = c.replaced(k, rng.normal(size=p.trees), rng.normal(), c.threshold[k])
    assert naive_loss(p, PENALTY, moved, fixed) >= position(p, PENALTY, moved).loss - 1e-12
