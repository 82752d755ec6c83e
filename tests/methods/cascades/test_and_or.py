"""AND-OR: its objective, its fit against a general solver, its log-odds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_methods.cascades import AndOr
from bench_methods.cascades.objectives import Descent, Design, Hinges, descend, hinge
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import mean_cost, path
from helpers.cascade_cases import data, fit
from helpers.cronus_cases import Fixed
from helpers.fakes import FakeContext
from helpers.real_cases import letters
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from bench_core import Task, price_list

SEEDS = st.integers(0, 2**32)


def random_loss(rng: np.random.Generator, width: float, n: int = 12) -> tuple[Hinges, Any]:
    share = rng.random(n)
    loss = Hinges(rng.random(n) < 0.4, share / share.sum(), 2.5, width)
    return loss, rng.normal(size=(3, n))


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_the_objective_is_the_formula_row_by_row(seed: int) -> None:
    loss, scores = random_loss(np.random.default_rng(seed), 0.0)
    total = 0.0
    for i, share in enumerate(loss.share):
        sign = 1 if loss.positive[i] else -1
        errors = [max(0.0, 1 - sign * f) for f in scores[:, i]]
        total += share * (2.5 * max(errors) if loss.positive[i] else float(np.prod(errors)))
    assert loss.value(scores) == pytest.approx(total, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 2))
def test_one_stage_moves_the_objective_by_as_much(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    loss, scores = random_loss(rng, 0.0)
    moved = scores.copy()
    moved[k] += rng.normal(size=scores.shape[1])
    one = loss.stage(scores, k)
    by_stage = one(moved[k])[0] - one(scores[k])[0]
    assert by_stage == pytest.approx(loss.value(moved) - loss.value(scores), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 2))
def test_one_stages_derivative_is_right(seed: int, k: int) -> None:
    loss, scores = random_loss(np.random.default_rng(seed), 0.1)
    one = loss.stage(scores, k)
    assert check_grad(lambda f: one(f)[0], lambda f: one(f)[1], scores[k]) < 1e-5


def test_the_rounded_hinge_is_the_hinge_but_for_half_its_width() -> None:
    z = np.array([-1.0, 0.0, 0.05, 0.1, 2.0])
    assert hinge(z, 0.1)[0].tolist() == pytest.approx([0, 0, 0.0125, 0.05, 1.95])
    assert hinge(z, 0.1)[1].tolist() == pytest.approx([0, 0, 0.5, 1, 1])
    assert hinge(z, 0.0)[0].tolist() == [0, 0, 0.05, 0.1, 2.0]


def by_general_solver(Z: Any, positive: Any, share: Any, nu: float, ridge: float) -> float:
    """One stage in epigraph form: xi >= 0 and xi >= 1 - y f."""
    from scipy.optimize import minimize

    c, n = Z.shape
    side, weight = np.where(positive, 1.0, -1.0), share * np.where(positive, nu, 1.0)

    def value(x: Any) -> Any:
        return weight @ x[c + 1 :] + 0.5 * ridge * x[:c] @ x[:c]

    def slope(x: Any) -> Any:
        return np.concatenate([ridge * x[:c], [0.0], weight])

    margin = np.hstack([(side * Z).T, side[:, None], np.eye(n)])
    start = np.concatenate([np.zeros(c + 1), np.ones(n)])
    found = minimize(
        value,
        start,
        jac=slope,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: margin @ x - 1, "jac": lambda x: margin},
        bounds=[(None, None)] * (c + 1) + [(0, None)] * n,
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert found.success
    return float(found.fun)


def test_one_stage_is_the_weighted_support_vector_machine() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(3, 40)).astype(np.float32)
    positive = columns[0] + rng.normal(size=40) > 0.3
    share = np.full(40, 1 / 40)
    design = Design.of(columns, np.arange(3), share, 1.0, 0.1)
    task = Descent(columns, [design], Hinges(positive, share, 2.0, 0.001), 0.1, 2000)
    best = by_general_solver(design.columns(columns), positive, share, 2.0, 0.1)
    assert best - 1e-9 <= descend(task, 1, 0.0).loss < best + 1e-3


def test_cycling_lowers_the_objective_below_that_of_separate_fits() -> None:
    train = data(Task.BINARY)
    separate = fit(AndOr, train, Task.BINARY, cycles=0).facts["objective"]
    assert fit(AndOr, train, Task.BINARY).facts["objective"] < 0.9 * separate


def test_classes_weigh_alike_unless_told_otherwise() -> None:
    train = data(Task.BINARY)
    positives = train.y.mean()
    usual = fit(AndOr, train, Task.BINARY)
    told = fit(AndOr, train, Task.BINARY, positive_weight=float((1 - positives) / positives))
    assert usual.facts["objective"] == pytest.approx(told.facts["objective"], rel=1e-9)


def test_thresholds_are_in_units_of_the_margin_for_binary_tasks_too() -> None:
    train = data(Task.BINARY)
    model = fit(AndOr, train, Task.BINARY, thresholds=(0.0, 1.0))
    zero, one = model.rule.values[:, 0]
    full = path(model, train)[-1].scores
    assert zero < one
    assert 0.1 < np.mean(full >= zero) < 0.6


@pytest.mark.slow
def test_on_letters_it_learns_and_rejecting_saves(real_data: Path) -> None:
    train, test = letters(real_data)
    at = price_list(np.full(16, 10.0), split=0.25)
    base = GBRT(trees=100).fit(train, train, at, FakeContext(Task.BINARY, 2))
    learner = AndOr(base=Fixed(base.ensemble), ridge=0.01)
    found = {
        p.point.get("threshold"): p
        for p in path(learner.fit(train, train, at, FakeContext(Task.BINARY, 2)), test)
    }
    right = {t: float(np.mean((p.scores > 0) == test.y)) for t, p in found.items()}
    assert right[None] > 0.85
    assert right[-0.75] > right[None] - 0.01
    assert mean_cost(found[-0.75], at) < 0.9 * mean_cost(found[None], at)
