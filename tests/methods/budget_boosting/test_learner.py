"""Budget boosting: what it buys, where rows leave, how it is billed."""

from itertools import pairwise

import numpy as np
import pytest
from bench_methods.budget_boosting import BudgetBoosting, selection
from bench_methods.budget_boosting.selection import (
    converged,
    divisions,
    drifts,
    fold,
    quality,
    total,
)
from bench_methods.forward_selection import ForwardSelection
from bench_models.nested_sets.subsets import Subsets
from bench_trees import Settings
from helpers.fakes import FakeContext
from helpers.priced_cases import auc, encoded_by_labels, strong_and_cheap, two_that_help_together

from bench_core import Examples, Prices, Splits, Task, price_list
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit
from bench_core.execution.predict import predict_split

QUICK = {"trees": 40, "leaves": 4, "folds": 3}


def screened(rows=1200, **more):
    """Feature 1 (price 1) decides half the rows, feature 2 (price 10) all, feature 0 none."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(3):
        y = rng.integers(0, 2, rows)
        X = rng.normal(size=(rows, 3))
        hidden = rng.random(rows) < 0.5
        X[:, 1] = np.where(hidden, 0.0, 2 * y - 1)
        X[:, 2] = 2 * y - 1 + 0.3 * rng.normal(size=rows)
        parts.append(Examples(X.astype(np.float32), y.astype(float)))
    prices = price_list(np.array([5.0, 1.0, 10.0]), **more)
    return Splits(*parts, prices=prices, task=Task.BINARY, classes=2)


def reached(splits, **how):
    """Mean cost and accuracy of every point on test rows."""
    return judged(fit(BudgetBoosting(**(QUICK | how)), splits), splits)


def judged(model, splits, part="test"):
    """The same of a model, on test rows or others."""
    rows = getattr(splits, part)
    path = predict_split(model, rows, splits.prices, 2)
    return path.cost.mean(axis=1), ((path.scores > 0) == rows.y).mean(axis=1)


def test_features_are_bought_by_gain_per_price_and_rows_pay_for_those_that_they_need():
    splits = screened()
    model = fit(BudgetBoosting(**QUICK), splits)
    assert model.facts["sets"][:3] == [[], [1], [1, 2]]
    cost, right = judged(model, splits)
    assert cost[right > 0.99].min() == pytest.approx(1 + 10 / 2, rel=0.1)
    cost, right = reached(splits, exits=False)
    assert cost[right > 0.99].min() == pytest.approx(11.0)


def test_where_evaluation_has_a_price_fewer_boosters_are_averaged():
    free, priced = (
        fit(BudgetBoosting(**QUICK), screened(split=price)).members.tolist() for price in (0, 1)
    )
    assert free[1:] == [3] * (len(free) - 1)
    assert priced[1] == 1


def test_features_that_help_only_together_are_all_in_the_last_set():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4)).astype(np.float32)
    rows = Examples(X, (X[:, 0] * X[:, 1] > 0).astype(float))
    splits = Splits(
        rows, rows, rows, prices=Prices.additive(np.ones(4)), task=Task.BINARY, classes=2
    )
    *_, (cost, right) = zip(*reached(splits, leaves=16), strict=True)
    assert right > 0.9
    assert cost == 4


def test_of_more_features_than_rows_sets_double_and_rows_are_divided_once():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 200)).astype(np.float32)
    rows = Examples(X, (X[:, 3] > 0).astype(float))
    prices = Prices.additive(np.ones(200))
    splits = Splits(rows, rows, rows, prices=prices, task=Task.BINARY, classes=2)
    model = fit(BudgetBoosting(**QUICK), splits)
    size = [len(features) for features in model.facts["sets"]]
    assert [min(2 * k, 200) for k in size[:-1] if k >= 40] == [k for k in size if k >= 80]
    assert size[-1] == 200
    assert set(model.members[1:].tolist()) == {3}  # six, where rows are divided twice


@pytest.mark.parametrize(
    ("free", "sizes"), [(0, [1, 2, 3, 4, 5, 6, 12, 24]), (8, [8, 10, 12, 15, 24])]
)
def test_after_many_purchases_sets_double_though_each_feature_helps(monkeypatch, free, sizes):
    monkeypatch.setattr(selection, "MANY", 6)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 24)).astype(np.float32)
    rows = Examples(X, X.sum(axis=1).astype(float))
    prices = Prices.additive(np.where(np.arange(24) < free, 0.0, 1.0))
    context = FakeContext(Task.REGRESSION)
    whole = Subsets(BudgetBoosting(), Settings(), rows, prices, context)
    folds = [fold(whole, division) for division in divisions(whole, 3, rng)]
    sets, _ = selection.nested_sets(folds, Settings(max_leaves=8))
    assert [int(one.sum()) for one in sets] == sizes


def test_every_row_and_class_is_held_out_once():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], [90, 10])
    rows = Examples(rng.normal(size=(100, 2)).astype(np.float32), y)
    context = FakeContext(Task.BINARY, 2)
    whole = Subsets(BudgetBoosting(), Settings(), rows, Prices.additive(np.ones(2)), context)
    parts = divisions(whole, 5, rng)
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(100))
    assert [int(y[held].sum()) for _, held in parts] == [2] * 5
    assert all(len(np.intersect1d(fit, held)) == 0 for fit, held in parts)


def test_a_loss_without_a_value_is_judged_by_the_metric():
    splits = task_splits(Task.RANKING, 600)
    model = fit(BudgetBoosting(**QUICK, loss="lambdarank"), splits)
    path = predict_split(model, splits.test, splits.prices, 0)
    assert len(path.points) > 3


def test_below_the_price_of_a_strong_feature_cheap_ones_are_bought_together():
    splits = strong_and_cheap()
    model = fit(BudgetBoosting(**QUICK), splits)
    path = predict_split(model, splits.test, splits.prices, 2)
    below = np.flatnonzero(path.cost.mean(axis=1) < 9)
    assert max(auc(path.scores[k], splits.test.y) for k in below) > 0.74  # .773 is possible
    assert [0, 1] in model.facts["sets"]


def test_two_features_that_help_only_together_are_found_among_noise():
    splits = two_that_help_together()
    model = fit(BudgetBoosting(**(QUICK | {"leaves": 16})), splits)
    both = [features for features in model.facts["sets"] if {0, 1} <= set(features)]
    assert len(both[0]) <= 7
    cost, right = judged(model, splits)
    # without the pair .66
    assert right[cost <= 7].max() > 0.73


def test_what_training_rows_alone_tell_is_not_bought():
    """Feature 0 loses nothing on training rows, though they be held out, and helps few others."""
    splits = encoded_by_labels()
    chosen = []
    for learner in (BudgetBoosting(**QUICK), ForwardSelection(trees=200)):
        model = fit(learner, splits)
        told = ("chosen on validation",) if learner.name == "budget-boosting" else ()
        assert tuple(model.marks) == told
        cost, valid = judged(model, splits, "valid")
        _, test = judged(model, splits)
        within = [np.where(cost <= budget, valid, -np.inf) for budget in (1, 2, 4, 9)]
        # the best, of equals the cheapest
        chosen.append([test[np.lexsort((-cost, quality))[-1]] for quality in within])
    ours, yardstick = np.array(chosen)
    assert (ours > yardstick + 0.02).all()


def test_only_a_model_that_validation_rows_shaped_is_marked():
    """``test_what_training_rows_alone_tell_is_not_bought`` has the other case."""
    model = fit(BudgetBoosting(**QUICK), screened())
    assert model.marks == ()
    assert type(model).from_state(model.state()).marks == ()


@pytest.mark.parametrize("task", Task)
def test_validation_rows_like_the_training_rows_are_no_drift(task):
    found = []
    for seed in range(8):
        splits = task_splits(task, 300, seed=seed)
        context = FakeContext(task, splits.classes, seed=seed)
        whole = Subsets(BudgetBoosting(), Settings(), splits.train, splits.prices, context)
        parts = divisions(whole, 3, np.random.default_rng(seed))
        folds = [fold(whole, part) for part in parts]
        found.append(drifts(folds, splits.valid, Settings(max_leaves=4)))
    assert found == [False] * 8


def test_the_last_stage_is_boosted_while_the_metric_rises():
    """A wavy boundary with 3% wrong labels: the loss turns long before the accuracy."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 8)).astype(np.float32)
    wave = np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1])
    positive = wave + X[:, 2] * X[:, 3] + 0.5 * X[:, 4] > 0
    y = np.where(rng.random(3000) < 0.03, ~positive, positive).astype(float)
    settings = Settings(max_leaves=16, learning_rate=0.2)
    prices, context = Prices.additive(np.ones(8)), FakeContext(Task.BINARY, 2)
    whole = Subsets(BudgetBoosting(), settings, Examples(X, y), prices, context)
    folds = [fold(whole, part) for part in divisions(whole, 3, np.random.default_rng(0))]
    everything = np.ones(8, dtype=bool)
    plain = converged(folds, everything, settings, 300, 2)
    longer = converged(folds, everything, settings, 300, 2, by_metric=True)
    assert total(longer) > total(plain)
    assert quality(longer) > quality(plain)


def test_leaves_are_chosen_for_small_sets_and_for_large_ones():
    splits = task_splits(Task.BINARY, 900)
    model = fit(BudgetBoosting(**{k: v for k, v in QUICK.items() if k != "leaves"}), splits)
    sizes = [int(size) for size in model.facts["leaves"]]
    assert sizes[0] == len(model.facts["sets"][1])
    assert all(later >= 2 * size for size, later in pairwise(sizes[:-1]))
    assert sizes[-1] == splits.train.X.shape[1]
