"""Small problems for the tests of Soft-Cascade and AND-OR, and the definition of serving them."""

import numpy as np
from bench_trees import Ensemble
from scipy.special import expit

from bench_core import Examples, Queries, Task, price_list
from helpers import boosted_cases
from helpers.cronus_cases import Fixed, forest
from helpers.random_trees import path as walk

D = 6


def prices(scale=1.0):
    """Six features from 1 to 50, the last two read from one sensor."""
    cost = scale * np.array([1.0, 5.0, 10.0, 20.0, 50.0, 50.0])
    return price_list(cost, shared=[[4, 5]], split=0.25 * scale)


def data(task, n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(np.float32)
    signal = X @ np.array([0.4, 0.6, 0.8, 1.0, 1.2, 0.0]) + 0.5 * rng.normal(size=n)
    if task is Task.BINARY:
        return Examples(X, (signal > 0.5).astype(float))
    y = np.digitize(signal, [-1.5, 0.0, 1.0, 2.5]).astype(float)
    return Examples(X, y, Queries.from_sizes(np.full(n // 12, 12)))


def fit(kind, train, task, at=None, **how):
    parts = [forest(train.X, train.y, 4, features=np.arange(D) < most) for most in (2, 4, D)]
    learner = kind(base=Fixed(Ensemble.concat(parts)), **{"stages": 3, **how})
    return boosted_cases.fit(learner, train, task, at or prices())


def stage_scores(model, x):
    """Scores of one row by each stage, tree by tree."""
    ensemble = model.chain.ensemble
    return [
        float(s.bias[0])
        + sum(w * walk(ensemble, t, x).value for t, w in zip(s.entries, s.weights, strict=True))
        for s in model.chain.stages
    ]


def probability(z):
    return float(expit(z))


def bits_of(model, x, stages):
    """The sensors on a row's paths through the trees of the first stages."""
    found = set()
    for stage in model.chain.stages[:stages]:
        for tree in stage.entries:
            for feature in walk(model.chain.ensemble, tree, x).features:
                found |= set(model.chain.prices.sensors_of(feature).tolist())
    return found
