"""The learners as a whole: parameters, odd data, promises."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from helpers.cronus_cases import examples, prices
from helpers.fakes import FakeContext

from bench_core import DiscountGroup, Examples, Task, price_list

N = 400
KINDS = [CSTCSingle, CSCC, CSTC, ASTC]


def last(model, data):
    return list(model.predict_path(data.features))[-1]


@pytest.mark.parametrize("kind", KINDS[:3])
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
