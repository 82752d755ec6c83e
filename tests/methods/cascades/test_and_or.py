"""AND-OR: its fit against a support vector machine, its log-odds."""

import numpy as np
import pytest
from bench_methods.cascades import AndOr
from bench_methods.cascades.objectives import Hinges, StageDescent, descend, stage_designs
from helpers.boosted_cases import path
from helpers.cascade_cases import data, fit
from sklearn.svm import SVC

from bench_core import Task


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
