"""Trees that avoid missing cells: splits by hand, rows walked one by one, caps."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from bench_methods.cost_tree import MATree
from bench_methods.cost_tree.model import CostTreeGrower, GrowthSettings, Target
from bench_models.boosting import binned
from helpers.boosted_cases import CLASSES, examples, path, prices
from helpers.boosted_cases import fit as fit_small
from helpers.fakes import FakeContext

from bench_core import Examples, Task, price_list
from bench_core.conformance import task_splits
from bench_core.conformance.tasks import fit

WHOLE = MATree(min_rows=1, price_power=0.0)
TASKS = sorted(MATree.tasks)
nan = np.nan


def root(model):
    return int(model.policy.feature[0])


def two_features():
    """Feature 0 parts 8 of 10 rows rightly and is missing in the other two, a row of each class;
    feature 1 is always there and parts 8 of 10 rightly."""
    X = np.array([[0, 0]] * 4 + [[1, 1]] * 4 + [[nan, 1], [nan, 0]], np.float32)
    return Examples(X, np.array([0.0] * 4 + [1.0] * 4 + [0.0, 1.0]))


@pytest.mark.parametrize(("alpha", "feature"), [(0.0, 0), (2.5, 0), (2.7, 1)])
def test_missing_cells_count_alpha_against_a_feature(alpha, feature):
    """Of 10 rows, half of them 1, feature 0 gains 8 bits, feature 1 gains 10 - 10 H(1/5) = 2.78:
    .8 against .278 in all, .8 - .2 alpha against .278: equal at alpha = 2.61."""
    train = two_features()
    model = fit_small(
        MATree(min_rows=1, price_power=0.0, alpha=alpha), train, Task.BINARY, price_list(np.ones(2))
    )
    assert root(model) == feature


def test_a_price_counts_as_in_cost_tree():
    """.8 / (c + 1) against .278 / 2, prices in units of their median: c = 2 p / (p + 1) and
    2 / (p + 1) for prices p and 1. At p = 3: .8 / 2.5 = .32 against .278 / 1.5 = .185; at p = 30:
    .8 / 2.935 = .273 against .278 / 1.065 = .261; less .2 alpha for feature 0."""
    train = two_features()
    for alpha, price, feature in ((0.0, 3, 0), (0.0, 30, 0), (0.5, 3, 0), (0.5, 30, 1)):
        learner = MATree(min_rows=1, alpha=alpha)
        model = fit_small(learner, train, Task.BINARY, price_list(np.array([price, 1.0])))
        assert root(model) == feature


def test_a_row_without_the_cell_is_answered_by_the_node():
    """The root has 5 + 5 rows: log-odds 0 for the rows without feature 0, though both have feature
    1, which would part them. They pay for what they asked."""
    train = two_features()
    model = fit_small(WHOLE, train, Task.BINARY, price_list(np.array([1.0, 4.0])))
    *_, last = path(model, train)
    assert last.scores[8:] == pytest.approx([0.0, 0.0])
    # the other rows: (0 + 1) / (4 + 2) of class 1 on the left
    assert last.scores[[0, 7]] == pytest.approx([-np.log(5), np.log(5)])
    assert last.bills["path"].acquired.unpack().tolist() == [[True, False]] * 10


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_first_split_is_the_best_of_all_cuts(task):
    """Against every feature and cut of 60 rows, from the rows that have the cell alone."""
    train = examples(task, n=60)
    model = fit_small(MATree(min_rows=5, price_power=0.0, alpha=0.3), train, task)
    y, n = train.y, len(train)

    def impurity(rows):
        if task is Task.REGRESSION:
            return float(((y[rows] - y[rows].mean()) ** 2).sum())
        share = np.bincount(y[rows].astype(int)) / len(rows)
        some = share[share > 0]
        return float(-len(rows) * (some * np.log2(some)).sum())

    whole = impurity(np.arange(n)) if task is Task.REGRESSION else n
    found = {}
    for j in range(4):
        there = np.flatnonzero(~np.isnan(train.X[:, j]))
        for cut in np.unique(train.X[there, j])[:-1]:
            low = train.X[there, j] <= cut
            if min(low.sum(), (~low).sum()) >= 5:
                gain = impurity(there) - impurity(there[low]) - impurity(there[~low])
                found[j, float(cut)] = gain / whole - 0.3 * (1 - len(there) / n)
    feature, cut = max(found, key=lambda key: found[key])
    assert root(model) == feature
    threshold = model.policy.threshold[model.policy.left[0]]
    following = np.nanmin(np.where(train.X[:, feature] > cut, train.X[:, feature], nan))
    assert cut <= threshold < following


FITTED = cache(lambda task: fit(MATree(min_rows=4, alpha=0.1), task_splits(task, 600)))


def by_hand(policy, prices, x, pruning, cap):
    """A row's answer and sensors: down the tree, a sensor at a time while it can be paid."""
    bought = {s for s in range(prices.sensors) if prices.sensor[s] == 0}
    at, spent = 0, 0.0
    while policy.feature[at] >= 0:
        j = int(policy.feature[at])
        needs = {int(s) for s in prices.sensors_of(j)} - bought
        if needs and policy.rank[at] > pruning:
            break
        price = sum(float(prices.sensor[s]) for s in needs)
        if spent + price > cap + 1e-9:
            break
        spent, bought = spent + price, bought | needs
        at = int(policy.left[at] if x[j] <= policy.threshold[at] else policy.right[at])
    return policy.score[at], bought


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_every_row_walks_the_tree_and_pays_for_its_own_path(task):
    splits, model = task_splits(task, 600), FITTED(task)
    found = [*model.predict_path(splits.test.features)]
    assert len(found) > 5
    last = len(found) - 1
    for pruning in {0, last // 2, last}:
        bought = found[pruning].bills["path"].acquired.unpack()
        for i, x in enumerate(splits.test.X):
            answer, own = by_hand(model.policy, splits.prices, x, pruning, np.inf)
            assert set(np.flatnonzero(bought[i]).tolist()) == own
            assert found[pruning].scores[i] == pytest.approx(
                answer if task is Task.MULTICLASS else answer[0]
            )


def test_under_any_cap_a_row_goes_as_far_as_it_can_pay():
    """Plain prices, so that each feature is one purchase."""
    splits = task_splits(Task.BINARY, 600)
    cost = np.array([1.0, 1, 4, 4, 8, 6, 16, 2, 2, 3])
    at = price_list(cost)
    model = fit(MATree(min_rows=4, alpha=0.1), replace(splits, prices=at))
    differ = set()
    for cap in (0.0, 1.0, 3.0, 7.0, 20.0, 100.0):
        found = model.predict_capped(splits.test.features, cap, at)
        paid = found.bills["path"].feature_cost(at, len(splits.test))
        assert paid.max() <= cap
        for i, x in enumerate(splits.test.X):
            answer, own = by_hand(model.policy, at, x, 10**6, cap)
            assert paid[i] == pytest.approx(sum(cost[j] for j in own))
            assert found.scores[i] == pytest.approx(answer[0])
        differ.add(float(paid.mean()))
    assert len(differ) > 3


def test_more_alpha_asks_less_often_in_vain():
    """Copies of the features of which most cells are missing, and which cost nothing more."""
    rng = np.random.default_rng(0)
    splits = examples(Task.BINARY, n=2000)
    X = np.concatenate([splits.X, splits.X], axis=1)
    X[:, :4] = np.where(rng.random((2000, 4)) < 0.4, nan, X[:, :4])
    train = Examples(X, splits.y)
    at = price_list(np.ones(8))
    shares = []
    for alpha in (0.0, 0.3, 1.0):
        model = fit_small(MATree(alpha=alpha, price_power=0.0), train, Task.BINARY, at)
        bought = [*path(model, train)][-1].bills["path"].acquired.unpack()
        shares.append((bought & np.isnan(X)).any(axis=1).mean())
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1] + 0.02


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_the_loss_that_prunes_is_that_of_the_training_rows(task):
    """Leaves for missing cells lose what their rows lose by the node's answer."""
    train, context = examples(task, n=200), FakeContext(task, CLASSES[task])
    bins, codes = binned(train, 255, context)
    target, how = Target.of(train, context), GrowthSettings("idx", 0.0, 3, 5, 0.1)
    tree = CostTreeGrower(bins, codes, target, prices(), how, lambda *_: None).tree()
    total = 0.0
    for x, y in zip(train.X, train.y, strict=True):
        at = 0
        while tree.feature[at] >= 0:
            low = x[tree.feature[at]] <= np.float32(tree.threshold[at])
            at = tree.left[at] if low else tree.right[at]
        own = tree.summed[at]
        total += (
            (y - own[0]) ** 2 / 2 if task is Task.REGRESSION else -np.log(own[int(y)] / own.sum())
        )
    leaves = sum(loss for loss, f in zip(tree.loss, tree.feature, strict=True) if f < 0)
    assert leaves == pytest.approx(total)
    assert any(np.isinf(t) for t in tree.threshold)
