"""Small data sets for the tests of boosted-tree learners."""

from dataclasses import replace

import numpy as np
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.subsets import Subsets

from bench_core import Examples, Queries, Splits, Task, price_list
from helpers.fakes import FakeContext, fit_after_needs

COST = np.array([1.0, 5.0, 20.0, 50.0])
CLASSES = {Task.RANKING: 0, Task.REGRESSION: 0, Task.BINARY: 2, Task.MULTICLASS: 3}


def prices(scale=1.0, **more):
    return price_list(scale * COST, **more)


def examples(task, n=300, seed=0):
    """Four features, costlier ones better, one cell in ten missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    signal = X.astype(float) @ np.array([0.3, 0.5, 1.0, 1.5]) + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = {
        Task.RANKING: np.digitize(signal, [-1.5, 0.0, 1.5, 3.0]).astype(float),
        Task.REGRESSION: signal,
        Task.BINARY: (signal > 0).astype(float),
        Task.MULTICLASS: np.digitize(signal, [-1.0, 1.0]).astype(float),
    }[task]
    queries = Queries.from_sizes(np.full(n // 10, 10)) if task is Task.RANKING else None
    return Examples(X, y, queries)


def complete(task, n=200, copies=False):
    """Examples without missing cells, columns of different size."""
    train = examples(task, n)
    X = np.nan_to_num(train.X) * np.array([1, 10, 0.1, 3], dtype=np.float32) + 2
    m = np.random.default_rng(1).integers(1, 4, n) if copies else None
    return replace(train, X=X.astype(np.float32), multiplicity=m)


def standardised(train):
    mean = np.average(train.X.astype(float), axis=0, weights=train.weights)
    off = train.X - mean
    return off / np.sqrt(np.average(off**2, axis=0, weights=train.weights))


def fit(learner, train, task, at=None, **context):
    """Fit a learner and the learners that it needs; validation rows are those of training."""
    how = FakeContext(task, CLASSES[task], **context)
    facts = at or prices(), task, CLASSES[task], how.feature_names
    how.splits = Splits(train, train, train, *facts)
    return fit_after_needs(learner, train, train, at or prices(), how)


def subsets(train, task, at=None, shape=None, **settings):
    """What is trained on subsets of the features."""
    learner, context = BoostedTrees(**settings), FakeContext(task, CLASSES[task])
    return Subsets(learner, shape or learner.settings(task, 8), train, at or prices(), context)


def coins(*weights, n=400, seed=0):
    """Columns of +-1, and their weighted sum: each column explains its squared weight."""
    X = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, len(weights))).astype(np.float32)
    return Examples(X, X.astype(float) @ np.array(weights))


def bought(learner, train, at, task=Task.REGRESSION, **context):
    """The features that the model of each point tests."""
    models = fit(learner, train, task, at, **context).models
    return [sorted(set(m.ensemble.feature.tolist()) - {-1}) for m in models]


def path(model, data):
    return list(model.predict_path(data.features))


def paid(prediction, at, queries=None):
    """The costs of rows (n,), evaluation included."""
    bill, n = prediction.bills["path"], len(prediction.scores)
    return bill.feature_cost(at, n, queries) + bill.evaluation_cost(at, n)


def mean_cost(prediction, at):
    return float(paid(prediction, at).mean())


def curve(model, part, at):
    """Points of a model of classes, their accuracies and mean costs."""
    points, accuracy, cost = [], [], []
    for p in model.predict_path(part.features):
        answers = p.scores > 0 if p.scores.ndim == 1 else p.scores.argmax(axis=1)
        points.append(dict(p.point))
        accuracy.append(np.average(answers == part.y, weights=part.weights))
        cost.append(np.average(paid(p, at), weights=part.weights))
    return points, np.array(accuracy), np.array(cost)
