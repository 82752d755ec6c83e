"""BudgetRF against its rule written out, and what is served against a plain walk of the trees."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetRF
from bench_methods.budget_forest.rf import bag
from helpers.boosted_cases import COST, examples, fit, mean_cost, path, prices
from helpers.fakes import FakeContext
from helpers.pruning_cases import forest_of
from helpers.random_trees import leaves_of
from helpers.random_trees import path as walk
from scipy.stats import chi2, chi2_contingency

from bench_core import Examples, InputError, Task, price_list

TASKS = (Task.BINARY, Task.MULTICLASS, Task.RANKING)


def impurity(counts, alpha):
    """The threshold-pairs impurity as printed."""
    total = 0.0
    for j in range(len(counts)):
        for i in range(j):
            product = max(0.0, counts[i] - alpha) * max(0.0, counts[j] - alpha)
            total += max(0.0, product - alpha**2)
    return total


def naive_tree(X, y, copies, cost, alpha, classes, significance=1.0):
    """The tree by the rule, as nested tuples (feature, counts, left, right)."""

    def tells(left, right):
        if significance == 1:
            return True
        table = np.array([count(left), count(right)])
        table = table[:, table.sum(axis=0) > 0]
        found = chi2_contingency(table, correction=False, lambda_="log-likelihood")
        chance = chi2.sf(found.statistic / 2, table.shape[1] - 1)  # halved: a bootstrap sample
        return bool(chance * X.shape[1] <= significance)

    def count(rows):
        return tuple(int(copies[rows & (y == k)].sum()) for k in range(classes))

    def grown(rows):
        whole = impurity(count(rows), alpha)
        best = None
        for f in range(X.shape[1]):
            missing = rows & np.isnan(X[:, f])
            cuts = []
            for cut in np.unique(X[rows & ~missing, f]):
                low = rows & (X[:, f] <= cut)
                for left in (low, low | missing)[: 2 if missing.any() else 1]:
                    right = rows & ~left
                    if not left.any() or not right.any():
                        continue
                    a, b = impurity(count(left), alpha), impurity(count(right), alpha)
                    cuts.append((max(a, b), a + b, len(cuts), left, right))
            if not cuts:
                continue
            worst, _, _, left, right = min(cuts, key=lambda c: c[:3])
            gain = whole - worst
            if gain > 0:
                key = (not tells(left, right), cost[f] / gain, -gain, f)
                if best is None or key < best[0]:
                    best = (key, f, left, right)
        if best is None:
            return (-1, count(rows))
        return (best[1], count(rows), grown(best[2]), grown(best[3]))

    return grown(copies > 0)


def as_tuples(forest, node):
    counts = tuple(int(c) for c in forest.counts[node])
    trees = forest.trees
    if trees.feature[node] < 0:
        return (-1, counts)
    left, right = (as_tuples(forest, int(side[node])) for side in (trees.left, trees.right))
    return (int(trees.feature[node]), counts, left, right)


@pytest.mark.parametrize("significance", [1.0, 0.9, 0.2])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_trees_grow_by_the_printed_rule_among_features_that_tell(
    seed, classes, alpha, significance
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (50, 4)).astype(np.float32)
    y = np.clip((X[:, 1] * classes) // 6, 0, classes - 1) if significance < 1 else X[:, 0]
    y = np.where(rng.random(50) < 0.6, y % classes, rng.integers(0, classes, 50)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    train = Examples(X, y, multiplicity=rng.integers(1, 4, 50))
    cost = np.array([1.0, 3.0, 2.0, 0.0])
    task = Task.BINARY if classes == 2 else Task.MULTICLASS
    context = FakeContext(task, classes, seed=seed)
    learner = BudgetRF(trees=2, alpha=alpha, significance=significance, min_rows=1)
    model = learner.fit(train, train, price_list(cost), context)
    for tree in (0, 1):
        copies = bag(np.random.default_rng([seed, tree]), train)
        expected = naive_tree(X, y, copies, cost, alpha, classes, significance)
        forest = forest_of(model)
        assert as_tuples(forest, int(forest.trees.start[tree])) == expected


def test_bags_draw_every_copy_with_the_same_chance():
    train = Examples(np.zeros((3, 1), np.float32), np.zeros(3), multiplicity=np.array([1, 2, 7]))
    bags = [bag(np.random.default_rng(k), train) for k in range(2000)]
    assert all(b.sum() == 10 for b in bags)
    spread = np.sqrt(10 * np.array([0.1, 0.2, 0.7]) * (1 - np.array([0.1, 0.2, 0.7])) / 2000)
    assert np.all(np.abs(np.mean(bags, axis=0) - [1, 2, 7]) < 5 * spread)


def walked(model, X):
    """Mean shares (n, K), features read (n, d) and splits (n,), row by row and tree by tree."""
    trees, counts = forest_of(model)
    shares = (counts / counts.sum(axis=1, keepdims=True))[leaves_of(trees, X)].mean(axis=0)
    read, splits = np.zeros(X.shape, dtype=bool), np.zeros(len(X))
    for i, row in enumerate(X):
        for tree in range(trees.trees):
            tested = walk(trees, tree, row).features
            read[i, tested] = True
            splits[i] += len(tested)
    return shares, read, splits


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_log_odds_of_mean_shares_and_bills_those_of_the_paths(task):
    train = examples(task, 80)
    model = fit(BudgetRF(trees=4), train, task)
    share, read, splits = walked(model, train.X)
    last = path(model, train)[-1]
    clipped = np.clip(share, 1e-6, 1 - 1e-6)
    if task is Task.MULTICLASS:
        assert np.allclose(last.scores, np.log(clipped), rtol=0, atol=1e-12)
    else:
        odds = np.log(clipped[:, 1] / (1 - clipped[:, 1]))
        assert np.allclose(last.scores, odds, rtol=0, atol=1e-9)
    bill = last.bills["path"]
    assert bill.acquired.unpack().tolist() == read.tolist()
    assert np.asarray(bill.splits).tolist() == splits.tolist()
    assert np.broadcast_to(bill.trees, 80).tolist() == [4.0] * 80


def test_trees_are_added_while_validation_rows_stay_within_the_budget():
    train = examples(Task.BINARY)
    whole = path(fit(BudgetRF(trees=20, depth=3), train, Task.BINARY), train)
    shares = [mean_cost(p, prices()) / COST.sum() for p in whole]
    budget = (shares[5] + shares[6]) / 2
    model = fit(BudgetRF(trees=20, depth=3, budget=budget), train, Task.BINARY, threads=3)
    assert len(path(model, train)) == sum(share <= budget for share in shares)


def test_a_budget_that_allows_no_tree_leaves_the_free_constant():
    train = examples(Task.MULTICLASS)
    (only,) = path(fit(BudgetRF(budget=0.0), train, Task.MULTICLASS), train)
    assert mean_cost(only, prices()) == 0
    shares = np.bincount(train.y.astype(int)) / 300
    assert np.allclose(np.exp(only.scores[0]), shares)


@pytest.mark.parametrize("label", [-1.0, 3.0])
def test_labels_that_are_no_classes_are_one_clear_line(label):
    train = examples(Task.MULTICLASS)
    wrong = replace(train, y=np.where(np.arange(300) == 7, label, train.y))
    with pytest.raises(InputError, match=r"budget-rf: training labels must be classes 0 to 2$"):
        fit(BudgetRF(trees=2), wrong, Task.MULTICLASS)


def test_for_ranking_grades_from_the_relevant_one_on_are_one_class():
    train = examples(Task.RANKING)
    ranked = fit(BudgetRF(trees=3, relevant_grade=2), train, Task.RANKING)
    binary = fit(BudgetRF(trees=3), Examples(train.X, (train.y >= 2).astype(float)), Task.BINARY)
    assert path(ranked, train)[-1].scores.tolist() == path(binary, train)[-1].scores.tolist()


def test_depth_rows_and_alpha_stop_trees_early():
    train = examples(Task.BINARY)
    learner = BudgetRF(trees=2, significance=1.0, min_rows=1)
    forest = forest_of(fit(learner, train, Task.BINARY))
    whole = forest.trees
    assert np.all(np.min(forest.counts[whole.feature < 0], axis=1) == 0)  # pure
    for stop in ({"depth": 2}, {"min_rows": 20}, {"alpha": 10.0}):
        small = forest_of(fit(replace(learner, **stop), train, Task.BINARY)).trees
        assert len(small.feature) < len(whole.feature)
    rows = fit(BudgetRF(trees=2, min_rows=20), train, Task.BINARY)
    assert rows.counts.sum(axis=1).min() >= 20
