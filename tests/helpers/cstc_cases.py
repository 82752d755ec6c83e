"""Small random trees of classifiers, and their loss, written out row by row."""

import numpy as np
from bench_datasets.cstc_synthetic import CSTCSynthetic
from bench_methods.cstc.tree import NONE, ClassifierTree, Shape, optimise
from bench_models.descent import DescentSettings
from scipy.special import expit

from bench_core import Task
from helpers.boosted_cases import paid
from helpers.cronus_cases import problem as random_problem
from helpers.fakes import FakeContext

SHAPES = [
    Shape.balanced(1),
    Shape.balanced(2),
    Shape.balanced(3),
    Shape.chain(4),
    Shape((1, NONE, NONE, NONE), (2, 3, NONE, NONE)),
]


def problem(seed=0, **changed):
    """Problem like Cronus's, without class weights."""
    plain = random_problem(seed, **changed)
    changed = {"weight": plain.share, **changed}
    return random_problem(seed, **changed)


def tree(p, shape, seed=0, zeros=0.3):
    """Random weights, some of them zero, and thresholds within the range of the scores."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(shape.nodes, p.trees))
    weights[rng.random(weights.shape) < zeros] = 0.0
    bias, threshold = (rng.normal(scale=scale, size=shape.nodes) for scale in (0.3, 0.5))
    return ClassifierTree(weights, bias, threshold, shape)


def position(p, penalty, t):
    """The tree with its true loss."""
    return optimise(p, penalty, t, DescentSettings(cycles=0))


def naive_loss(p, penalty, t):
    """Eq. 5 by walking every row down every path. ``depth`` classifiers count for each row: a row
    that ends early counts its last one until then."""
    depth = max(len(t.shape.path(k)) for k in range(t.shape.nodes))
    total = penalty.rho * sum(abs(w) for w in t.weights.ravel())

    def walk(i, k, chance, path):
        f = float(
            t.bias[k] + sum(w * c for w, c in zip(t.weights[k], p.columns[:, i], strict=True))
        )
        risk = chance * p.weight[i] * (f - p.y[i]) ** 2 / 2
        path = [*path, k]
        up = float(expit(p.slope * (f - t.threshold[k])))
        sides = [(t.shape.upper[k], up), (t.shape.lower[k], 1 - up)]
        if t.shape.is_leaf(k):
            sides = [(NONE, 1.0)]
        found = risk
        for child, share in sides:
            if child == NONE:
                found += share * risk * (depth - len(path))
                found += penalty.lam * p.share[i] * chance * share * path_cost(p, t, path)
            else:
                found += walk(i, child, chance * share, path)
        return float(found)

    return total + sum(walk(i, 0, 1.0, []) for i in range(len(p.y)))


def path_cost(p, t, path):
    """The relaxed cost of the classifiers of a path."""
    total = 0.0
    for e, weights in zip(p.tree_cost, t.weights[path].T, strict=True):
        total += e * np.sqrt(sum(w**2 for w in weights))
    for c, needs in zip(p.sensor_cost, p.needs, strict=True):
        squares = sum(t.weights[k, j] ** 2 for k in path for j in np.flatnonzero(needs))
        total += c * np.sqrt(squares)
    return float(total)


def synthetic(seed):
    """The paper's problem."""
    return CSTCSynthetic().prepare(None, "quick", 0, seed)


def tradeoff(splits, lam):
    """The trade-off for ``lam``: tau x (price of all features) / (mean loss of the mean)."""
    return lam * 42.0 / (splits.train.y.var() / 2)


def learned(learner, splits, **context):
    how = FakeContext(Task.REGRESSION, **context)
    return learner.fit(splits.train, splits.valid, splits.prices, how)


def cost_and_error(model, splits):
    """Each test row's cost, and the mean squared error, of the full model."""
    last = list(model.predict_path(splits.test.features))[-1]
    return paid(last, splits.prices), float(np.mean((last.scores - splits.test.y) ** 2))
