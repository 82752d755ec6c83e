"""BudgetPrune against its linear program, every pruning in turn, and the bills of its models."""

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune, BudgetRF
from bench_methods.budget_forest.forest import errors, inner_nodes
from bench_methods.budget_forest.pruning import build
from bench_methods.scikit import RandomForest
from bench_models.tradeoff import LossPrices
from helpers.boosted_cases import examples, fit, mean_cost, paid, path
from helpers.fakes import FakeContext
from helpers.pruning_cases import (
    all_prunings,
    forest_of,
    misclassified,
    program_value,
    solved,
    value_of,
)

from bench_core import DiscountGroup, Examples, InputError, Task, price_list

PRICED = price_list(
    np.array([1.0, 5.0, 20.0, 24.0]),
    discounted=[DiscountGroup((2, 3), (6.0, 10.0))],
    split=0.1,
    tree=0.3,
)


def small(seed, rows=40, **learner):
    """A small forest on noisy labels, and rows that pay, some of them many times."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (rows, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1:3].sum(axis=1) + rng.normal(0, 3, rows) > 5).astype(float)
    train = Examples(X, y)
    grown = BudgetRF(**{"trees": 3, "depth": 3, "significance": 1.0, "min_rows": 1, **learner})
    forest = forest_of(fit(grown, train, Task.BINARY, price_list(np.ones(5)), seed=seed))
    valid = rng.integers(0, 5, (12, 5)).astype(np.float32)
    copies = rng.integers(1, 4, 12) if seed % 2 else None
    return forest, Examples(valid, np.zeros(12), None, copies)


def charged(seed):
    """Plain, shared, discounted or derived features, with or without prices of evaluation."""
    cost = np.array([1.0, 2.0, 2.0, 5.0, 3.0])
    more = [
        {},
        {"shared": [[1, 2]]},
        {"discounted": [DiscountGroup((3, 4), (2.5, 0.5))]},
        {"derived": {4: [0, 1]}, "split": 0.05, "tree": 0.2},
    ][seed % 4]
    return price_list(cost, **more)


def problem_of(forest, valid, at):
    """The problem and lambda at tradeoff 1."""
    loss, trees = errors(*forest), forest.trees
    unit = LossPrices.of(at, 1.0, loss.constant(trees))
    return build(trees, loss, valid, at, unit, 1), unit.tau


@pytest.mark.parametrize("seed", range(50))
def test_prunings_reach_the_optimum_of_the_linear_program(seed):
    forest, valid = small(seed)
    at = charged(seed)
    problem, tau = problem_of(forest, valid, at)
    found = solved(problem, 0.7, 0.1)
    assert found.gap <= 1e-9
    for tradeoff, objective in zip((0.7, 0.1), found.objective, strict=True):
        lost = misclassified(forest)
        expected = program_value(forest.trees, lost, valid, at, tradeoff * tau)
        assert objective / problem.unit == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_path_holds_a_best_of_all_prunings_at_every_tradeoff(seed):
    """At its own tradeoff each point is best, and none is missing between the points."""
    forest, valid = small(seed, trees=2, depth=2)
    at, inner = charged(seed), inner_nodes(forest.trees)[0]
    problem, tau = problem_of(forest, valid, at)
    found, lost = solved(problem), misclassified(forest)

    def values(kept):  # a line in the tradeoff: its value at 0, its slope
        start, end = (value_of(forest.trees, lost, kept, valid, at, x) for x in (0.0, tau))
        return np.array([start, end - start])

    every = np.array([values(kept) for kept in all_prunings(forest.trees)])
    path = [set(inner[found.critical > tradeoff].tolist()) for tradeoff in found.tradeoffs]
    points = np.array([values(kept) for kept in path])
    assert len(points) >= 2
    assert not path[0]
    for tradeoff, point in zip(found.tradeoffs, points, strict=True):
        assert point @ [1, tradeoff] == pytest.approx((every @ [1, tradeoff]).min(), abs=1e-9)
    for tradeoff in np.geomspace(found.tradeoffs[-1], 2 * found.tradeoffs[0], 300):
        best = (every @ [1, tradeoff]).min()
        assert (points @ [1, tradeoff]).min() == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_after_any_number_of_passes_bound_and_objective_enclose_the_optimum(seed):
    forest, valid = small(seed, rows=200, trees=8, depth=6)
    problem, _ = problem_of(forest, valid, charged(seed))
    tradeoffs = (0.5, 0.2, 0.05)
    best = solved(problem, *tradeoffs)
    assert best.gap <= 1e-9
    gaps = []
    for passes in (1, 10, 50):
        early = solved(problem, *tradeoffs, passes=passes)
        assert np.all(early.objective >= best.objective * (1 - 1e-9))
        assert np.all(early.objective * (1 - early.gap) <= best.objective * (1 + 1e-9))
        gaps.append(early.gap)
    assert gaps[-1] <= 1e-2 <= gaps[0]


def fitted(task, at, **pruner):
    """The base's model, the pruned model and the rows both were fitted on."""
    rows = examples(task)
    base = BudgetRF(trees=6, depth=6, significance=1.0, min_rows=1)
    pruned = fit(BudgetPrune(base=base, **pruner), rows, task, at)
    return fit(base, rows, task, at), pruned, rows


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS, Task.RANKING])
def test_the_objective_is_what_the_served_trees_err_and_their_bills_cost(task):
    base, model, rows = fitted(task, PRICED, tradeoff=0.2)
    f = forest_of(model)
    assert 6 < f.trees.nodes < forest_of(base).trees.nodes
    leaf = f.counts[f.trees.feature < 0]
    error = (leaf.sum(axis=1) - leaf.max(axis=1)).sum() / leaf.sum()
    last = path(model, rows)[-1]
    expected = error + model.facts["lambda"] * mean_cost(last, PRICED)
    assert model.facts["objective"] == pytest.approx(expected)


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS, Task.RANKING])
def test_points_of_the_path_are_those_of_the_model_of_their_tradeoff(task):
    """Where costs jump, the first trees of a pruning are points, too."""
    base, whole, rows = fitted(task, PRICED)
    jumps = [p for p in path(whole, rows) if "first" in p.point]
    points = [p for p in path(whole, rows) if "first" not in p.point]
    tradeoffs = [p.point["tradeoff"] for p in points]
    assert min(len(points), len(jumps)) >= 3
    assert tradeoffs == sorted(set(tradeoffs), reverse=True)
    assert tradeoffs[-1] == 0
    pairs = [(path(base, rows)[-1], points[-1])]
    for point in [*points[:-1:2], *jumps]:
        found = path(fitted(task, PRICED, tradeoff=point.point["tradeoff"])[1], rows)
        first = [p for p in found if p.point["trees"] == point.point.get("first")]
        pairs.append(((first or found)[-1], point))
    for one, point in pairs:
        assert np.allclose(one.scores, point.scores, rtol=0, atol=1e-9)
        assert np.array_equal(paid(one, PRICED), paid(point, PRICED))


def test_a_path_has_a_hundred_points_at_most_and_no_large_gap():
    rows = examples(Task.BINARY, 3000)
    base, at = BudgetRF(trees=20, significance=1.0, min_rows=1), price_list(np.arange(1, 1.7, 0.2))
    points = path(fit(BudgetPrune(base=base), rows, Task.BINARY, at), rows)
    assert 30 < len(points) <= 100
    cost = np.sort([mean_cost(p, at) for p in points])
    assert np.diff(cost).max() < 0.4 * cost[-1]  # the first sensor is a fifth of all


def test_a_forest_of_scikit_learn_is_pruned_from_the_bags_it_grew_on():
    train, at = examples(Task.MULTICLASS), price_list(np.ones(4))
    base = RandomForest(trees=5, min_rows=5)
    pruned = (BudgetPrune(base=base, tradeoff=tradeoff) for tradeoff in (0.0, 0.7))
    before, free, expensive = (
        path(fit(learner, train, Task.MULTICLASS, at), train)[-1] for learner in (base, *pruned)
    )
    assert np.mean(free.scores.argmax(axis=1) == before.scores.argmax(axis=1)) > 0.9
    assert mean_cost(expensive, at) < 0.8 * mean_cost(free, at)


def test_without_validation_rows_it_says_so():
    train = examples(Task.BINARY)
    nobody = Examples(train.X[:0], train.y[:0])
    with pytest.raises(InputError, match="validation rows"):
        BudgetPrune().fit(train, nobody, price_list(np.ones(4)), FakeContext(Task.BINARY, 2))


def test_forests_of_pure_leaves_are_pruned():
    train = examples(Task.MULTICLASS)
    learner = BudgetPrune(base=RandomForest(trees=4, features=1.0, min_rows=1))
    *_, whole = path(fit(learner, train, Task.MULTICLASS, price_list(np.ones(4))), train)
    assert (whole.scores.argmax(axis=1) == train.y).mean() > 0.9
