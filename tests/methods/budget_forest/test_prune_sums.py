"""BudgetPrune on trees whose values are added or averaged: losses, optima, models and bills."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune
from bench_methods.budget_forest.forest import inner_nodes, prunable
from bench_methods.budget_forest.pruning import build
from bench_methods.catboost import CatBoost
from bench_methods.cegb import CEGB
from bench_methods.gbrt import GBRT
from bench_methods.lightgbm import LightGBM
from bench_methods.scikit import RandomForest
from bench_models.tradeoff import LossPrices
from bench_models.tree_average import TreeAverage
from helpers.boosted_cases import CLASSES, examples, fit, mean_cost, path, prices
from helpers.fakes import FakeContext
from helpers.pruning_cases import all_prunings, moved, program_value, solved, value_of
from helpers.random_trees import leaves_of

from bench_core import DiscountGroup, Task, price_list

BASES = {
    "boosted": (GBRT(trees=2, depth=2, l2=0.0), Task.BINARY),
    "boosted for three classes": (GBRT(trees=1, depth=2, l2=0.0), Task.MULTICLASS),
    "averaged": (RandomForest(trees=2, depth=2), Task.RANKING),
}
CHARGES = [
    {},
    {"shared": [[1, 2]]},
    {"discounted": [DiscountGroup((2, 3), (1.5, 4.5))]},
    {"derived": {3: [0, 1]}, "split": 0.05, "tree": 0.2},
]


def case(kind, seed):
    """A small base, its context, other rows that say what is lost, rows that pay, prices."""
    base, task = BASES[kind]
    at = price_list(np.array([1.0, 2.0, 2.0, 5.0]), **CHARGES[seed % 4])
    fitted = fit(base, examples(task, 80, seed), task, at)
    context = FakeContext(task, CLASSES[task], models={base: fitted})
    copies = np.random.default_rng(seed).integers(1, 4, 12) if seed % 2 else None
    valid = examples(Task.REGRESSION, 12, seed + 200)
    return base, context, examples(task, 40, seed + 100), replace(valid, multiplicity=copies), at


def outputs_of(model):
    """What the leaves add (L, K)."""
    if isinstance(model, TreeAverage):
        trees = model.trees
        return np.array([trees.vectors[int(v)] for v in trees.value[trees.feature < 0]])
    return np.array(model.ensemble.value[model.ensemble.feature < 0][:, None])


def problem_of(whole, valid, at):
    """The problem and lambda at tradeoff 1."""
    unit = LossPrices.of(at, 1.0, whole.loss.constant(whole.trees))
    return build(whole.trees, whole.loss, valid, at, unit, 1), unit.tau


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", BASES)
def test_a_node_loses_what_its_rows_move_by_when_it_answers_with_their_mean(kind, seed):
    base, context, train, _, _ = case(kind, seed)
    if seed % 2:
        train = replace(train, multiplicity=np.arange(40) % 3 + 1)
    whole = prunable(base, context, train)
    _, lost = moved(whole.trees, outputs_of(context.models[base]), train)
    assert np.allclose(whole.loss.node / whole.loss.rows, lost, rtol=1e-10, atol=1e-12)
    assert whole.loss.rows == train.weights.sum()
    assert whole.loss.constant(whole.trees) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", BASES)
def test_of_all_prunings_the_best_is_found_and_it_is_the_optimum_of_the_program(kind, seed):
    base, context, train, valid, at = case(kind, seed)
    whole = prunable(base, context, train)
    trees, inner = whole.trees, inner_nodes(whole.trees)[0]
    _, lost = moved(trees, outputs_of(context.models[base]), train)
    problem, tau = problem_of(whole, valid, at)
    assert tau == pytest.approx(1 / at.everything)
    found = solved(problem, 1.0, 0.5, 0.1)
    for tradeoff, objective in zip((1.0, 0.5, 0.1), found.objective, strict=True):
        price = tradeoff * tau
        known = {
            frozenset(k): value_of(trees, lost, k, valid, at, price) for k in all_prunings(trees)
        }
        best = min(known.values())
        ties = [k for k, value in known.items() if value <= best + 1e-9]
        kept = frozenset(inner[found.critical > tradeoff].tolist())
        assert kept == frozenset.intersection(*ties)
        assert objective / problem.unit == pytest.approx(best, abs=1e-9)
        assert program_value(trees, lost, valid, at, price) == pytest.approx(best, abs=1e-7)


SERVED = {
    "boosted": (GBRT(trees=8, depth=3, l2=0.0), Task.BINARY),
    "ranking": (GBRT(trees=8, depth=3, l2=0.0), Task.RANKING),
    "regression": (GBRT(trees=8, depth=3, l2=0.0), Task.REGRESSION),
    "three classes": (GBRT(trees=4, depth=3, l2=0.0), Task.MULTICLASS),
    "cost-aware": (CEGB(trees=8), Task.BINARY),
    "lightgbm": (LightGBM(trees=8), Task.BINARY),
    "averaged": (RandomForest(trees=8, depth=4), Task.RANKING),
    "averaged numbers": (RandomForest(trees=8, depth=4), Task.REGRESSION),
    "vectors": (CatBoost(trees=6, depth=3), Task.MULTICLASS),
}


@pytest.mark.parametrize("kind", SERVED)
def test_without_a_tradeoff_nothing_changes(kind):
    base, task = SERVED[kind]
    rows, at = examples(task), prices(split=0.1, tree=0.2)
    model, whole = (fit(m, rows, task, at) for m in (BudgetPrune(base=base, tradeoff=0.0), base))
    assert model.facts["pruned"] == 0
    for got, before in zip(path(model, rows), path(whole, rows), strict=True):
        assert dict(got.point) == dict(before.point)
        assert np.array_equal(got.scores, before.scores)
        assert mean_cost(got, at) == mean_cost(before, at)


@pytest.mark.parametrize("kind", SERVED)
def test_a_huge_tradeoff_leaves_the_mean_score_for_nothing(kind):
    base, task = SERVED[kind]
    rows, at = examples(task), prices(tree=0.2)
    learners = BudgetPrune(base=base, tradeoff=1e6), base
    last, before = (path(fit(learner, rows, task, at), rows)[-1] for learner in learners)
    assert mean_cost(last, at) == 0
    mean = np.broadcast_to(before.scores.mean(axis=0), last.scores.shape)
    assert np.allclose(last.scores, mean, rtol=0, atol=1e-12)


def added(model, rows):
    """What each tree adds to each row (T, n), from the scores of all prefixes."""
    scores = np.array([p.scores for p in path(model, rows)])
    return np.diff(scores, axis=0, prepend=np.zeros((1, len(rows))))


def test_a_new_leaf_adds_the_mean_of_what_its_rows_got():
    rows, base = examples(Task.BINARY), GBRT(trees=5, depth=3, l2=0.0)
    learners = BudgetPrune(base=base, tradeoff=0.4), base
    model, whole = (fit(learner, rows, Task.BINARY) for learner in learners)
    assert 0 < model.facts["pruned"] < len(inner_nodes(whole.ensemble)[0])
    trees, outputs = model.ensemble, added(whole, rows)
    for t, leaf in enumerate(leaves_of(trees, rows.X)):
        shift = trees.base[0] if t == 0 else 0.0
        for node in np.unique(leaf):
            mean = outputs[t][leaf == node].mean() - shift
            assert trees.value[node] == pytest.approx(mean, abs=1e-12)
