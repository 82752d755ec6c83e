"""Soft-Cascade: its stages, its fit against a peer, how it is served."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from bench_methods.cascades import AndOr, SoftCascade, objectives, stage_costs, stage_trees
from bench_methods.cascades.objectives import Soft, StageDescent, descend, stage_designs
from helpers.boosted_cases import mean_cost, path
from helpers.cascade_cases import bits_of, data, fit, prices, probability, stage_scores
from helpers.cronus_cases import stumps
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Prices, Task, UsageError

KINDS = (SoftCascade, AndOr)
SEEDS = st.integers(0, 2**32)
COST = Prices.additive(np.array([1.0, 5.0, 20.0]))
MIXED = (0, 2, 1, 1, 0)


def groups(limits, stages=5, features=MIXED):
    """Of stumps on features of price 1, 5 and 20."""
    count = len(features)
    trees = stumps(list(features), [0.0] * count, [0.0] * count, [1.0] * count)
    trees = replace(trees, features=COST.features)
    return [t.tolist() for t in stage_trees(trees, COST, limits, stages)]


@pytest.mark.parametrize(
    ("limits", "stages", "features", "expected"),
    [
        # all trees up to a price
        ((1.0, 5.0, 20.0), 5, MIXED, [[0, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]]),
        # stages that add no tree are left out
        ((0.5, 1.0, 4.0, 5.0, 10.0), 5, MIXED, [[0, 4], [0, 2, 3, 4]]),
        # without limits equal shares, cheapest first
        (None, 2, MIXED, [[0, 2, 4], [0, 1, 2, 3, 4]]),
        (None, 9, MIXED, [[0], [0, 4], [0, 2, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]]),
        # with equal prices prefixes
        (None, 2, (1, 1, 1, 1), [[0, 1], [0, 1, 2, 3]]),
    ],
)
def test_stages_have_the_trees_up_to_their_price(limits, stages, features, expected):
    assert groups(limits, stages, features) == expected


def test_limits_below_every_tree_are_one_clear_line():
    with pytest.raises(UsageError, match=r"price <= 0\.5 .*covers a tree is 1"):
        groups((0.5,))


def test_stages_pay_for_new_sensors_and_trees_only():
    needs = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])  # (sensors, trees)
    stages = [np.array([0]), np.array([0, 1]), np.array([0, 1, 2])]
    cost = stage_costs(stages, np.array([0.5, 0.25, 1.0]), needs, np.array([10.0, 100.0]))
    assert cost.tolist() == [10.5, 100.25, 1.0]


def test_one_stage_is_ridge_logistic_regression(monkeypatch):
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(objectives, "_STEEP", 1e-10)  # descents end at the minimum
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(4, 200)).astype(np.float32)
    positive = columns[0] + columns[1] + rng.normal(size=200) > 0.5
    share = np.full(200, 1 / 200)
    (design,) = stage_designs(columns, [np.arange(4)], share, 0.25, 0.03)
    loss = Soft(positive, share, np.ones(1), 9.0)  # one stage cannot change its cost
    found = descend(StageDescent([design], loss, 0.03, 500), 3, 0.0)
    Z = design.columns / design.scale
    assert np.mean(np.var(Z, axis=1)) == pytest.approx(1.0)
    peer = LogisticRegression(C=1 / (200 * 0.03), tol=1e-10, max_iter=1000).fit(Z.T, positive)
    np.testing.assert_allclose(found.stages[0].weights, peer.coef_[0], atol=1e-5)
    assert found.stages[0].bias == pytest.approx(peer.intercept_[0], abs=1e-5)
    weights, bias = found.stages[0].on_trees(design)
    np.testing.assert_allclose(weights @ columns + bias, found.scores[0], atol=1e-5)


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_no_cycle_raises_the_objective(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(6, 40)).astype(np.float32)
    positive = columns[:3].sum(axis=0) + rng.normal(size=40) > 0.5
    positive[:2] = True, False
    share = np.full(40, 1 / 40)
    designs = stage_designs(columns, [np.arange(c) for c in (2, 4, 6)], share, 0.25, 0.1)
    task = StageDescent(designs, Soft(positive, share, np.array([1.0, 3.0, 9.0]), 0.1), 0.1, 30)
    at = task.evaluated([task.alone(k) for k in range(3)])
    for k in (0, 1, 2, 0, 1, 2):
        new = task.improved(at, k, at.stages[k])
        assert new.loss <= at.loss
        squares = sum(float(s.weights @ s.weights) for s in new.stages)
        assert new.loss == pytest.approx(task.loss.value(new.scores) + 0.05 * squares)
        at = new


def test_designs_are_those_of_each_stage_alone_without_its_constant_columns():
    rng = np.random.default_rng(0)
    columns, share = rng.normal(size=(5, 30)).astype(np.float32), np.full(30, 1 / 30)
    columns[2] = 0.1
    stages = [np.array([1, 2]), np.array([1, 2, 3]), np.arange(5)]
    for own, design in zip(stages, stage_designs(columns, stages, share, 0.5, 0.1), strict=True):
        assert sorted(design.trees) == [t for t in own if t != 2]
        exact = columns[design.trees].astype(float)
        cov = np.cov(exact, bias=True)
        np.testing.assert_allclose(design.columns, exact - exact.mean(axis=1, keepdims=True))
        assert design.scale == pytest.approx(np.var(exact, axis=1).mean() ** 0.5)
        hessian = 0.5 * cov / design.scale**2 + 0.1 * np.eye(len(exact))
        np.testing.assert_allclose(design.root @ design.root.T, hessian)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [Task.RANKING, Task.BINARY])
def test_serving_is_the_definition_row_by_row(kind, task):
    train = data(task)
    model = fit(kind, train, task, thresholds=(0.9, 0.4, 0.3, 0.05))
    assert len(model.chain.stages) == 3
    *swept, full = path(model, train)
    line = np.array([stage_scores(model, x) for x in train.X])
    for p, prediction in enumerate(swept):
        bar = float(model.rule.values[p, 0])
        for i, row in enumerate(line):
            so_far = [combined(kind, row[: k + 1]) for k in range(3)]
            left = next((k for k in range(2) if so_far[k] < bar), 2)
            bought = prediction.bills["path"].acquired.unpack()[i]
            assert set(np.flatnonzero(bought).tolist()) == bits_of(model, train.X[i], left + 1)
            by_last = kind is AndOr and task is Task.RANKING
            if task is Task.BINARY or left == 2:
                score = row[left] if by_last else so_far[left]
                assert prediction.scores[i] == pytest.approx(score, abs=1e-9)
            if left == 2 or so_far[2] >= bar:
                assert prediction.scores[i] == full.scores[i]
        if task is Task.RANKING:
            check_order(train, prediction.scores, prediction.scores == full.scores)


def combined(kind, seen):
    if kind is AndOr:
        return float(min(seen))
    p = float(np.prod([probability(f) for f in seen]))
    return log(p) - log(1 - p)


def check_order(train, scores, kept):
    query = train.queries.index()
    for q in np.unique(query[~kept]):
        inside = query == q
        survivors = scores[inside & kept]
        assert scores[inside & ~kept].max() < survivors.min(initial=np.inf)


def test_thresholds_are_probabilities():
    model = fit(SoftCascade, data(Task.BINARY), Task.BINARY, thresholds=(0.5, 0.25))
    np.testing.assert_allclose(model.rule.values[:, 0], [0.0, -log(3.0)], atol=1e-12)
    assert [p["threshold"] for p in model.points] == [0.5, 0.25]


@pytest.mark.parametrize("kind", KINDS)
def test_lower_thresholds_cost_more_and_the_last_point_rejects_nobody(kind):
    train = data(Task.RANKING)
    found = path(fit(kind, train, Task.RANKING), train)
    costs = [mean_cost(p, prices()) for p in found]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]
    assert found[-1].point == {"stages": 3}
