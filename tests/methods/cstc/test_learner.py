"""The learners as a whole: parameters, odd data, promises."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from helpers.cronus_cases import Fixed, forest
from helpers.fakes import FakeContext

from bench_core import DiscountGroup, Examples, Queries, Task, price_list

N, D = 400, 6
KINDS = [CSTCSingle, CSCC, CSTC, ASTC]
JOINT = KINDS[:3]
TASKS = [Task.REGRESSION, Task.RANKING, Task.BINARY]


def prices(scale=1.0):
    cost = scale * np.array([1.0, 1.0, 5.0, 20.0, 20.0, 50.0])
    return price_list(cost, shared=[[3, 4]], split=scale * 0.25, tree=scale * 0.5)


def examples(task, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n, D)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    known = np.nan_to_num(X)
    signal = known @ np.array([1.0, 0.6, 0.8, 0.7, 0.0, 1.2]) + rng.normal(size=n)
    signal += np.where(known[:, 0] > 4, 2.0, -1.0) * known[:, 3]
    y = {
        Task.REGRESSION: signal,
        Task.RANKING: np.digitize(signal, np.quantile(signal, [0.3, 0.6, 0.85, 0.95])),
        Task.BINARY: signal > np.median(signal),
    }[task].astype(float)
    queries = Queries.from_sizes(np.full(n // 10, 10)) if task is Task.RANKING else None
    return Examples(X, y, queries)


def fit(kind, train, task, **changed):
    at = changed.pop("at", None) or prices()
    base = Fixed(forest(3, train.X, train.y, trees=12))
    how = {"base": base, "tradeoff": 0.02, **changed}
    learner = kind(**how)
    return learner.fit(train, examples(task, seed=1), at, FakeContext(task, 2))


def last(model, data):
    return list(model.predict_path(data.features))[-1]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_better_than_a_constant(kind, task):
    test = examples(task, seed=2)
    for base in ({}, {"base": None}):
        scores = last(fit(kind, examples(task), task, tradeoff=0.001, **base), test).scores
        assert np.corrcoef(scores, test.y)[0, 1] > 0.5


@pytest.mark.parametrize("kind", JOINT)
def test_of_two_like_features_the_one_whose_sensor_is_bought_already_is_taken(kind):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N))
    X = np.column_stack([a, b + 0.02 * rng.normal(size=N), b + 0.02 * rng.normal(size=N)])
    train = Examples(X.astype(np.float32), 3 * a + b)
    cost = np.array([10.0, 10.0, 10.0])
    how = {"at": None, "base": None, "tradeoff": 0.1, "rho": 0.0}
    if kind is not CSTCSingle:
        how["prune"] = False
    for group, other in ((1, 2), (2, 1)):
        plans = {
            "shared": price_list(cost, shared=[[0, group]]),
            "discounted": price_list(cost, discounted=[DiscountGroup((0, group), (0.5, 0.5))]),
            "derived": price_list(cost, derived={group: [0]}),
        }
        for at in plans.values():
            learner = kind(**{k: v for k, v in how.items() if k != "at"})
            model = learner.fit(train, train, at, FakeContext(Task.REGRESSION))
            used = set(model.stages[0].entries.tolist())
            assert group in used
            assert other not in used


@pytest.mark.parametrize("kind", KINDS)
def test_standardised_features_give_the_same_model_in_any_unit(kind):
    train = examples(Task.REGRESSION)
    how = {"base": None, "standardise": True}
    unit = np.array([1.0, 1024.0, 1.0, 1 / 1024, 1.0, 2.0], dtype=np.float32)
    other = replace(train, X=train.X * unit)
    valid = examples(Task.REGRESSION, seed=1)
    learner = kind(**how)
    context = FakeContext(Task.REGRESSION)
    one = learner.fit(train, valid, prices(), context)
    two = learner.fit(other, replace(valid, X=valid.X * unit), prices(), context)
    assert last(two, other).scores == pytest.approx(last(one, train).scores, rel=1e-6)
