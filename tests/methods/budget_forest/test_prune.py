"""BudgetPrune against its linear program, every pruning in turn, and the bills of its models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune, BudgetRF
from bench_methods.budget_forest.forest import CountedForest, errors, inner_nodes, pruned
from bench_methods.budget_forest.problem import PruningProblem, build
from bench_methods.budget_forest.pruning_kernels import best_closures, tree_isotonic
from bench_methods.budget_forest.solvers import cut, smoothed_dual, subgradient
from bench_methods.scikit import RandomForest
from bench_models.tradeoff import LossPrices
from bench_trees.threads import workers
from helpers.boosted_cases import CLASSES, examples, mean_cost, path
from helpers.fakes import FakeContext
from helpers.pruning_cases import all_prunings, forest_of, misclassified, program_value, value_of
from helpers.real_cases import letters

from bench_core import DiscountGroup, Examples, InputError, Prices, Task, price_list
from bench_core.conformance import check_learner
from bench_core.conformance.tasks import with_learners

TRADEOFFS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 50.0)


def small(seed: int, rows: int = 40, **learner: Any) -> tuple[CountedForest, Examples]:
    """A small forest on noisy labels, and rows that pay, some of them many times."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (rows, 5)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0]) + X[:, 1:3].sum(axis=1) + rng.normal(0, 3, rows) > 5).astype(float)
    train = Examples(X, y)
    forest_learner = BudgetRF(**{"trees": 3, "depth": 3, **learner})
    context = FakeContext(Task.BINARY, 2, seed=seed)
    forest = forest_of(forest_learner.fit(train, train, price_list(np.ones(5)), context))
    valid = rng.integers(0, 5, (12, 5)).astype(np.float32)
    copies = rng.integers(1, 4, 12) if seed % 2 else None
    return forest, Examples(valid, np.zeros(12), None, copies)


def charged(seed: int) -> Prices:
    """Plain, shared, discounted or derived features, with or without prices of evaluation."""
    cost = np.array([1.0, 2.0, 2.0, 5.0, 3.0])
    more: dict[str, Any] = [
        {},
        {"shared": [[1, 2]]},
        {"discounted": [DiscountGroup((3, 4), (2.5, 0.5))]},
        {"derived": {4: [0, 1]}, "split": 0.05, "tree": 0.2},
    ][seed % 4]
    return price_list(cost, **more)


def problem_of(
    forest: CountedForest, valid: Examples, at: Prices, tradeoff: float
) -> tuple[PruningProblem, float]:
    loss, trees = errors(forest), forest.trees
    loss_prices = LossPrices.of(at, tradeoff, loss.constant(trees))
    with workers(1) as crew:
        return build(trees, loss, valid, at, loss_prices, crew), loss_prices.tau


def objective(problem: PruningProblem, kept: Any) -> float:
    with workers(1) as crew:
        return problem.objective(kept, crew) / problem.unit


@pytest.mark.parametrize("seed", range(50))
def test_the_cut_is_the_optimum_of_the_linear_program(seed: int) -> None:
    forest, valid = small(seed)
    at = charged(seed)
    for tradeoff in (0.1, 0.7):
        problem, tau = problem_of(forest, valid, at, tradeoff)
        expected = program_value(forest.trees, misclassified(forest), valid, at, tau)
        assert objective(problem, cut(problem)) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_of_all_prunings_the_cut_finds_the_best_and_of_these_the_smallest(seed: int) -> None:
    forest, valid = small(seed, trees=2, depth=2)
    at, inner = charged(seed), inner_nodes(forest.trees)[0]
    for tradeoff in (0.0, 0.1, 0.5):
        problem, tau = problem_of(forest, valid, at, tradeoff)
        lost, prunings = misclassified(forest), all_prunings(forest.trees)
        known = {frozenset(k): value_of(forest.trees, lost, k, valid, at, tau) for k in prunings}
        best = min(known.values())
        ties = [k for k, value in known.items() if value <= best + 1e-9]
        kept = frozenset(inner[cut(problem)].tolist())
        assert kept == frozenset.intersection(*ties)
        assert objective(problem, cut(problem)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_prunings_are_nested_as_the_penalty_rises(seed: int) -> None:
    forest, valid = small(seed, trees=6, depth=5)
    kept = [cut(problem_of(forest, valid, charged(seed), t)[0]) for t in TRADEOFFS]
    for cheap, expensive in pairwise(kept):
        assert not np.any(expensive & ~cheap)
    assert kept[0].any()
    assert not kept[-1].any()


@pytest.mark.parametrize("seed", range(10))
def test_bounds_and_prunings_of_the_other_solvers_enclose_the_optimum(seed: int) -> None:
    forest, valid = small(seed, rows=200, trees=8, depth=6)
    for tradeoff in (0.05, 0.2, 0.5):
        problem, _ = problem_of(forest, valid, charged(seed), tradeoff)
        optimum = objective(problem, cut(problem))
        with workers(2) as crew:
            streamed = smoothed_dual(problem, crew, tolerance=1e-3, passes=300)
            authors = subgradient(problem, crew, iterations=100)
        for search in (streamed, authors):
            assert search.bound / problem.unit <= optimum * (1 + 1e-9)
            assert search.objective / problem.unit >= optimum * (1 - 1e-9)
            assert objective(problem, search.kept) == pytest.approx(search.objective / problem.unit)
        assert streamed.gap <= 1e-3
        assert authors.objective / problem.unit <= 1.05 * optimum


@pytest.mark.parametrize("seed", range(5))
def test_a_closure_is_the_best_top_part_of_its_tree(seed: int) -> None:
    forest, _ = small(seed, trees=1, depth=3)
    inner, above = inner_nodes(forest.trees)
    parent = above[inner]
    worth = np.random.default_rng(seed).normal(size=len(inner))
    kept = np.zeros(len(inner), dtype=bool)
    value = best_closures(parent, worth, kept)
    place = {int(u): k for k, u in enumerate(inner)}
    sums = [sum(worth[place[u]] for u in some) for some in all_prunings(forest.trees)]
    assert value == pytest.approx(max(sums))
    assert worth[kept].sum() == pytest.approx(value)


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_is_the_nearest_point_that_falls_from_parent_to_child(seed: int) -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    nodes = 12
    parent = np.array([-1, *(rng.integers(0, k) for k in range(1, nodes))], dtype=np.int32)
    target, weight = rng.normal(size=nodes), rng.uniform(0.2, 3, nodes)
    got = np.empty(nodes)
    tree_isotonic(parent, target, weight, got)
    rules = {
        "type": "ineq",
        "fun": lambda x: x[parent[1:]] - x[1:],
        "jac": lambda x: np.eye(nodes)[parent[1:]] - np.eye(nodes)[1:],
    }
    expected = minimize(
        lambda x: float((weight * (x - target) ** 2).sum()),
        np.zeros(nodes),
        jac=lambda x: 2 * weight * (x - target),
        constraints=rules,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert np.allclose(got, expected, rtol=0, atol=1e-5)
    assert np.all(got[1:] <= got[parent[1:]] + 1e-12)


def fitted(
    task: Task, at: Prices, train: Examples | None = None, **pruner: Any
) -> tuple[Any, Any, Examples]:
    """The base's model, the pruned model and the rows both were fitted on."""
    rows = train or examples(task)
    base = BudgetRF(trees=6, depth=6)
    context = FakeContext(task, CLASSES[task])
    context.models = {base: base.fit(rows, rows, at, context)}
    model = BudgetPrune(**{"base": base, **pruner}).fit(rows, rows, at, context)
    return context.models[base], model, rows


@pytest.mark.parametrize("solver", ["cut", "streamed", "subgradient"])
@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS, Task.RANKING])
def test_the_objective_is_what_the_served_trees_err_and_their_bills_cost(
    task: Task, solver: str
) -> None:
    at = price_list(
        np.array([1.0, 5.0, 20.0, 24.0]),
        discounted=[DiscountGroup((2, 3), (6.0, 10.0))],
        split=0.1,
        tree=0.3,
    )
    base, model, rows = fitted(task, at, tradeoff=0.2, solver=solver)
    f = forest_of(model)
    assert 6 < f.trees.nodes < forest_of(base).trees.nodes
    leaf = f.counts[f.trees.feature < 0]
    error = (leaf.sum(axis=1) - leaf.max(axis=1)).sum() / leaf.sum()
    last = path(model, rows)[-1]
    expected = error + model.facts["lambda"] * mean_cost(last, at)
    assert model.facts["objective"] == pytest.approx(expected)


def test_of_a_forest_that_is_not_pruned_nothing_changes() -> None:
    at = price_list(np.zeros(4))
    train = examples(Task.BINARY, 100)
    base, model, _ = fitted(Task.BINARY, at, replace(train, y=np.arange(100) % 2.0))
    assert model.facts["lambda"] == 0
    if model.facts["pruned"] == 0:
        assert path(model, train)[-1].scores.tolist() == path(base, train)[-1].scores.tolist()
    forest = forest_of(base)
    same = pruned(forest, np.ones(len(inner_nodes(forest.trees)[0]), dtype=bool))
    assert np.array_equal(same.counts, forest.counts)
    for name in ("start", "feature", "threshold", "left", "right", "missing_left"):
        assert np.array_equal(getattr(same.trees, name), getattr(forest.trees, name)), name


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS])
def test_a_huge_tradeoff_leaves_the_bags_constants_for_nothing(task: Task) -> None:
    at = price_list(np.array([1.0, 5.0, 20.0, 50.0]), tree=0.5)
    _, model, rows = fitted(task, at, tradeoff=1e6)
    last = path(model, rows)[-1]
    assert mean_cost(last, at) == 0
    assert len(np.unique(last.scores, axis=0)) == 1


def test_costs_fall_as_the_tradeoff_rises() -> None:
    at = price_list(np.array([1.0, 1.2, 1.4, 1.6]))
    costs = []
    for tradeoff in TRADEOFFS:
        _, model, rows = fitted(Task.BINARY, at, tradeoff=tradeoff)
        costs.append(mean_cost(path(model, rows)[-1], at))
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) > 4


def test_auto_streams_what_would_not_fit_into_the_cut(monkeypatch: Any) -> None:
    at = price_list(np.ones(4))
    assert fitted(Task.BINARY, at)[1].facts["solver"] == "cut"
    monkeypatch.setattr("bench_methods.budget_forest.prune.CUT_PINS", 10)
    facts = fitted(Task.BINARY, at)[1].facts
    assert facts["solver"] == "streamed"
    assert facts["gap"] <= 1e-3


def test_streaming_gives_the_same_bits_for_any_number_of_threads() -> None:
    forest, valid = small(3, rows=200, trees=8, depth=6)
    problem, _ = problem_of(forest, valid, charged(0), 0.2)
    found = []
    for threads in (1, 3):
        with workers(threads) as crew:
            search = smoothed_dual(problem, crew, tolerance=0.0, passes=30)
        found.append((search.bound, search.objective, search.kept.tobytes()))
    assert found[0] == found[1]


def test_a_forest_of_scikit_learn_is_pruned_from_the_bags_it_grew_on() -> None:
    train, at = examples(Task.MULTICLASS), price_list(np.ones(4))
    base = RandomForest(trees=5, min_rows=5)
    context = FakeContext(Task.MULTICLASS, 3)
    context.models = {base: base.fit(train, train, at, context)}
    free = BudgetPrune(base=base, tradeoff=0.0).fit(train, train, at, context)
    expensive = BudgetPrune(base=base, tradeoff=0.7).fit(train, train, at, context)
    share = np.exp(path(free, train)[-1].scores)
    before = np.exp(path(context.models[base], train)[-1].scores)
    assert np.mean(share.argmax(axis=1) == before.argmax(axis=1)) > 0.9
    assert mean_cost(path(expensive, train)[-1], at) < 0.8 * mean_cost(path(free, train)[-1], at)


def test_without_validation_rows_it_says_so() -> None:
    train = examples(Task.BINARY)
    nobody = Examples(train.X[:0], train.y[:0])
    with pytest.raises(InputError, match="validation rows"):
        BudgetPrune().fit(train, nobody, price_list(np.ones(4)), FakeContext(Task.BINARY, 2))


@pytest.mark.parametrize("solver", ["cut", "streamed"])
def test_every_promise_of_a_learner_is_kept(solver: Any) -> None:
    check_learner(BudgetPrune(base=BudgetRF(trees=4), tradeoff=0.3, solver=solver))


@pytest.mark.parametrize("change", [{"tradeoff": -1.0}, {"tolerance": -1.0}, {"iterations": 0}])
def test_values_out_of_range_are_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        with_learners(BudgetPrune(**change))


def test_on_letters_pruning_saves_features_at_the_same_accuracy(real_data: Path) -> None:
    train, test = letters(real_data)
    at = Prices.additive(np.ones(16))
    base = BudgetRF(trees=20)
    context = FakeContext(Task.BINARY, 2)
    context.models = {base: base.fit(train, test, at, context)}
    pruned = BudgetPrune(base=base, tradeoff=0.3).fit(train, test, at, context)
    (accuracy, cost), (before, full) = (
        (float(np.mean((p.scores > 0) == test.y)), mean_cost(p, at))
        for p in (path(m, test)[-1] for m in (pruned, context.models[base]))
    )
    assert accuracy > before - 0.01
    assert cost < full - 0.3
