"""What boosted trees of ours and of other libraries have in common, and sets of features."""

from dataclasses import fields, replace

import numpy as np
import pytest
from bench_methods.baselines import CheapestFirst, GreedyOrder, RandomOrder
from bench_methods.budget_boosting import BudgetBoosting
from bench_methods.catboost import CatBoost
from bench_methods.cegb import CEGB
from bench_methods.cost_tree import CostTree
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.forward_selection import ForwardSelection
from bench_methods.gbrt import GBRT
from bench_methods.gbrt_subset import SubsetGBRT
from bench_methods.lightgbm import LightGBM, LightGBMCEGB
from bench_methods.miser import GreedyMiser
from bench_methods.scikit import RandomForest
from bench_methods.xgboost import XGBoost
from helpers.boosted_cases import examples, fit, mean_cost, path, prices
from helpers.toys import ALL_TASKS

from bench_core import Task
from bench_core.metrics import default_metric

OURS = [
    GBRT(trees=15),
    GreedyMiser(trees=15, tradeoff=0.05),
    CEGB(trees=15, tradeoff=0.05),
    CEGB(trees=15, tradeoff=0.05, acquisition="all-rows", order="level", depth=3, stop="raw"),
]
PEERS = [
    LightGBM(trees=15),
    LightGBMCEGB(trees=15, tradeoff=0.05),
    LightGBMCEGB(trees=15, tradeoff=0.05, acquisition="all-rows"),
    XGBoost(trees=15),
    CatBoost(trees=15, tradeoff=0.02, acquisition="all-rows"),
    CatBoost(trees=15, tradeoff=0.02, grow="SymmetricTree"),
    RandomForest(trees=15),
]
ORDER = {"trees": 30, "learning_rate": 0.2}
SETS = [
    *(kind(**ORDER) for kind in (RandomOrder, CheapestFirst, GreedyOrder)),
    ForwardSelection(trees=20, learning_rate=0.4, min_rows=5, leaves=4),
    *(CostTree(criterion=criterion) for criterion in ("eg2", "cs-id3", "idx")),
]
OF_CLASSIFIERS = [
    kind(base=base, tradeoff=0.001)
    for kind in (CSTCSingle, CSCC, CSTC, ASTC)
    for base in (GBRT(trees=15), None)
]
PRICED = OURS[1:]


def learners(some=OURS):
    return pytest.mark.parametrize("learner", some, ids=lambda one: one.name)


@pytest.mark.parametrize(
    ("learner", "task"),
    [
        pytest.param(learner, task, id=f"{learner.name}-{task}")
        for learner in OURS + PEERS + SETS + OF_CLASSIFIERS
        for task in sorted(ALL_TASKS & learner.tasks)
    ],
)
def test_every_task_is_learned_better_than_by_a_constant(learner, task):
    train = examples(task)
    metric = default_metric(task)
    found = path(fit(learner, train, task), train)
    last = found[-1]
    constant = np.zeros(last.scores.shape)
    if task is Task.REGRESSION:
        constant += train.y.mean()
    sign = 1 if metric.higher_is_better else -1
    got, base = (
        sign * metric.values(s, train.y, train.queries).mean for s in (last.scores, constant)
    )
    assert got > base + 0.05
    assert last.scores.shape == ((300, 3) if task is Task.MULTICLASS else (300,))
    if learner in SETS:
        costs = [mean_cost(p, prices()) for p in found]
        assert costs[0] == 0
        assert costs == sorted(costs)


@learners()
def test_points_count_trees_and_the_last_is_the_whole_model(learner):
    train = examples(Task.MULTICLASS)
    model = fit(learner, train, Task.MULTICLASS)
    points = [p.point["trees"] for p in path(model, train)]
    assert points == list(range(3, 46, 3))
    assert model.ensemble.trees == 45


@learners(PRICED)
@pytest.mark.parametrize("task", sorted(ALL_TASKS))
def test_a_huge_tradeoff_leaves_the_free_constant(learner, task):
    train = examples(task)
    (only,) = path(fit(replace(learner, tradeoff=1e6, trees=3, **net(learner)), train, task), train)
    assert dict(only.point) == {"trees": 0}
    assert mean_cost(only, prices()) == 0
    assert len(np.unique(only.scores, axis=0)) == 1


def net(learner):
    return {"stop": "net"} if any(f.name == "stop" for f in fields(learner)) else {}


@learners([SubsetGBRT(trees=20), GreedyMiser(trees=20, tradeoff=0.0)])
def test_without_limits_or_prices_the_last_point_is_plain_boosting(learner):
    train = examples(Task.REGRESSION)
    ours, plain = (
        path(fit(one, train, Task.REGRESSION), train)[-1] for one in (learner, GBRT(trees=20))
    )
    assert np.allclose(ours.scores, plain.scores, rtol=0, atol=1e-9)
    assert mean_cost(ours, prices()) == mean_cost(plain, prices())


@learners([*OURS, PEERS[0], *PEERS[3:5], BudgetBoosting(trees=20, leaves=4)])
def test_lambdarank_learns_to_rank(learner):
    train = examples(Task.RANKING)
    last = path(fit(replace(learner, loss="lambdarank"), train, Task.RANKING), train)[-1]
    metric = default_metric(Task.RANKING)
    got = metric.values(last.scores, train.y, train.queries).mean
    assert got > metric.values(np.zeros(300), train.y, train.queries).mean + 0.1
