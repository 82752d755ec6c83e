"""The cyclic optimisation: it only ever goes down, and it gets where it should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from bench_methods.cronus.cascade import Cascade, CascadePenalty, optimise
from bench_methods.cronus.initialise import initialise
from bench_models.descent import DescentSettings
from bench_models.least_squares import one_blas_thread
from bench_models.problem import Problem
from helpers.cronus_cases import cascade, position, problem
from hypothesis import given, settings
from hypothesis import strategies as st

CUT = 1e-4


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in a fit; several spin where the machine is busy."""
    with one_blas_thread():
        yield


def warm(p: Problem, penalty: CascadePenalty) -> Cascade:
    return initialise(p, penalty, delta=1.3, drop=0.15, cut_off=CUT, iterations=300)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), lam=st.sampled_from([0.0, 1e-4, 1e-2]))
def test_the_true_loss_never_rises(seed: int, lam: float) -> None:
    p = problem(seed, n=50)
    penalty = CascadePenalty(lam, np.full(3, 1e-3))
    start = cascade(p, seed=seed, zeros=0.3)
    ends = [optimise(p, penalty, start, DescentSettings(cycles=k, tolerance=0.0)) for k in range(4)]
    assert (np.diff([end.loss for end in ends]) <= 0).all()
    assert ends[-1].loss == pytest.approx(position(p, penalty, ends[-1].model).loss, rel=1e-12)


def test_a_warm_start_is_improved_a_good_deal() -> None:
    p = problem(seed=1, n=400, slope=50.0)
    penalty = CascadePenalty(1e-4, np.full(4, 1e-4))
    start = warm(p, penalty)
    end = optimise(p, penalty, start, DescentSettings())
    assert end.loss < 0.9 * position(p, penalty, start).loss


def test_weights_are_exact_zeros_or_at_least_the_cut_off() -> None:
    p = problem(seed=1, n=200, trees=15)
    penalty = CascadePenalty(1e-3, np.full(3, 3e-3))
    end = optimise(p, penalty, cascade(p, seed=5), DescentSettings())
    weights = end.model.weights
    assert (weights == 0).any()
    assert (np.abs(weights[weights != 0]) >= CUT).all()


def test_without_gates_to_move_the_last_stage_reaches_the_same_optimum_from_anywhere() -> None:
    p = problem(seed=3, n=200)
    penalty = CascadePenalty(1e-3, np.array([1e-3]))
    best = position(p, penalty, warm(p, penalty)).loss
    limits = DescentSettings(cycles=50, reweightings=50, tolerance=1e-10)
    end = optimise(p, penalty, cascade(p, stages=1, seed=9), limits)
    assert end.loss == pytest.approx(best, rel=1e-5)


def test_trees_that_tell_nothing_end_at_exact_zeros() -> None:
    p = problem(seed=1, n=100)
    penalty = CascadePenalty(0.05, np.full(2, 1e-3))
    weights = np.zeros((2, p.trees))
    weights[0] = 0.01 * np.random.default_rng(0).normal(size=p.trees)
    start = Cascade(weights, np.array([0.0, -0.5]), np.array([-0.4, -np.inf]))
    end = optimise(p, penalty, start, DescentSettings(cycles=50, reweightings=50, tolerance=0.0))
    assert not end.model.weights.any()
    assert end.loss == pytest.approx(p.constant_loss, rel=1e-6)


def test_a_stage_is_given_no_tree_that_it_does_not_use() -> None:
    """Algorithm 1 fixes sigma_t = |b^k_t|, at 0 an infinite ridge, though the other stage's tree
    would cost nothing more in eq. (8) and lower its loss."""
    p = problem(seed=2, n=300, trees=2)
    penalty = CascadePenalty(0.0, np.full(2, 1e-4))
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    start = Cascade(weights, np.zeros(2), np.array([0.0, -np.inf]))
    end = optimise(p, penalty, start, DescentSettings())
    assert end.loss < position(p, penalty, start).loss
    assert ((end.model.weights != 0) == (weights != 0)).all()


def test_no_row_pays_for_the_last_stages_expensive_tree_that_the_first_stage_rejects() -> None:
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


def test_an_open_gate_stays_open() -> None:
    p = problem(seed=2, n=100)
    penalty = CascadePenalty(1e-3, np.full(2, 1e-3))
    c = cascade(p, stages=2)
    start = c.replaced(0, np.zeros(p.trees), 0.0, -np.inf)
    end = optimise(p, penalty, start, DescentSettings())
    assert end.model.vanished() == [0]
