"""AND-OR: its objective, its fit against a support vector machine, its log-odds."""

import numpy as np
import pytest
from bench_methods.cascades import AndOr
from bench_methods.cascades.objectives import Hinges, StageDescent, descend, hinge, stage_designs
from helpers.boosted_cases import path
from helpers.cascade_cases import data, fit
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.svm import SVC

from bench_core import Task

SEEDS = st.integers(0, 2**32)


def random_loss(rng, width, n=12):
    share = rng.random(n)
    loss = Hinges(rng.random(n) < 0.4, share / share.sum(), 2.5, width)
    return loss, rng.normal(size=(3, n))


@settings(max_examples=50, deadline=None)
@given(SEEDS)
def test_the_objective_is_the_formula_row_by_row(seed):
    loss, scores = random_loss(np.random.default_rng(seed), 0.0)
    total = 0.0
    for i, share in enumerate(loss.share):
        sign = 1 if loss.positive[i] else -1
        errors = [max(0.0, 1 - sign * f) for f in scores[:, i]]
        total += share * (2.5 * max(errors) if loss.positive[i] else float(np.prod(errors)))
    assert loss.value(scores) == pytest.approx(total, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 2))
def test_one_stage_moves_the_objective_by_as_much(seed, k):
    rng = np.random.default_rng(seed)
    loss, scores = random_loss(rng, 0.0)
    moved = scores.copy()
    moved[k] += rng.normal(size=scores.shape[1])
    one = loss.stage(scores, k)
    by_stage = one(moved[k])[0] - one(scores[k])[0]
    assert by_stage == pytest.approx(loss.value(moved) - loss.value(scores), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 2))
def test_one_stages_derivative_is_right(seed, k):
    loss, scores = random_loss(np.random.default_rng(seed), 0.1)
    one = loss.stage(scores, k)
    assert check_grad(lambda f: one(f)[0], lambda f: one(f)[1], scores[k]) < 1e-5


def test_the_rounded_hinge_is_the_hinge_but_for_half_its_width():
    z = np.array([-1.0, 0.0, 0.05, 0.1, 2.0])
    assert hinge(z, 0.1)[0].tolist() == pytest.approx([0, 0, 0.0125, 0.05, 1.95])
    assert hinge(z, 0.1)[1].tolist() == pytest.approx([0, 0, 0.5, 1, 1])
    assert hinge(z, 0.0)[0].tolist() == [0, 0, 0.05, 0.1, 2.0]


def test_one_stage_is_the_weighted_support_vector_machine():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(3, 40)).astype(np.float32)
    positive = columns[0] + rng.normal(size=40) > 0.3
    share = np.full(40, 1 / 40)
    (design,) = stage_designs(columns, [np.arange(3)], share, 1.0, 0.1)
    task = StageDescent([design], Hinges(positive, share, 2.0, 0.001), 0.1, 2000)
    Z, weight = design.columns.T / design.scale, share * np.where(positive, 2.0, 1.0)
    peer = SVC(kernel="linear", tol=1e-8).fit(Z, positive, sample_weight=weight / 0.1)
    hinges = np.maximum(0, 1 - np.where(positive, 1, -1) * peer.decision_function(Z))
    best = float(weight @ hinges + 0.1 / 2 * (peer.coef_**2).sum())
    assert best - 1e-9 <= descend(task, 1, 0.0).loss < best + 1e-3


def test_cycling_lowers_the_objective_below_that_of_separate_fits():
    train = data(Task.BINARY)
    separate = fit(AndOr, train, Task.BINARY, cycles=0).facts["objective"]
    assert fit(AndOr, train, Task.BINARY).facts["objective"] < 0.9 * separate


def test_classes_weigh_alike_unless_told_otherwise():
    train = data(Task.BINARY)
    positives = train.y.mean()
    usual = fit(AndOr, train, Task.BINARY)
    told = fit(AndOr, train, Task.BINARY, positive_weight=float((1 - positives) / positives))
    assert usual.facts["objective"] == pytest.approx(told.facts["objective"], rel=1e-9)


def test_thresholds_are_in_units_of_the_margin_for_binary_tasks_too():
    train = data(Task.BINARY)
    model = fit(AndOr, train, Task.BINARY, thresholds=(0.0, 1.0))
    zero, one = model.rule.values[:, 0]
    full = path(model, train)[-1].scores
    assert zero < one
    assert 0.1 < np.mean(full >= zero) < 0.6
