"""Small random cascade problems shared by the tests of Cronus."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from bench_methods.cronus.cascade import Cascade, optimise
from bench_models.descent import DescentSettings
from bench_models.problem import Problem
from bench_trees import Ensemble

from bench_core import Task
from helpers.random_trees import stump


def problem(seed=0, n=60, trees=6, sensors=4, **changed):
    """Correlated columns, unbalanced labels that depend on them; every tree needs some sensor."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    columns = 0.4 * latent + 0.5 * rng.normal(size=(trees, n))
    y = np.where(latent + 0.5 * rng.normal(size=n) > 0.7, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    multiplicity = rng.integers(1, 4, size=n)
    share = multiplicity / multiplicity.sum()
    needs = (rng.random((sensors, trees)) < 0.4).astype(float)
    needs[rng.integers(0, sensors, size=trees), np.arange(trees)] = 1.0
    values = {
        "columns": columns.astype(np.float32),
        "y": y,
        "weight": share * np.where(y > 0, 3.5, 1.0),
        "share": share,
        "tree_cost": rng.uniform(0.5, 1.5, size=trees),
        "sensor_cost": rng.choice([1.0, 5.0, 20.0], size=sensors),
        "needs": needs,
        "slope": 5.0,
    }
    return Problem(**{**values, **changed})


def cascade(p, stages=3, seed=0, zeros=0.0):
    """Random weights, some of them zero, and thresholds within the range of the scores."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(stages, p.trees))
    weights[rng.random(weights.shape) < zeros] = 0.0
    threshold = rng.normal(scale=0.5, size=stages)
    threshold[-1] = -np.inf
    return Cascade(weights, rng.normal(scale=0.3, size=stages), threshold)


def position(p, penalty, c):
    """The cascade with its true loss."""
    return optimise(p, penalty, c, DescentSettings(cycles=0))


@dataclass(frozen=True)
class Fixed:
    """A base learner whose model is a given ensemble."""

    name: ClassVar[str] = "fixed"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    ensemble: Any = None

    def fit(self, train, valid, prices, context):
        return SimpleNamespace(ensemble=self.ensemble)


def forest(seed, X, residual, trees=8, rate=0.3):
    """Depth-2 trees on random features and cuts, leaves fitted to the residual, as in boosting.

    Cuts are values of the data, so ties at thresholds occur; missing values go left or right.
    """
    rng = np.random.default_rng(seed)
    columns = {
        name: [] for name in ("feature", "threshold", "left", "right", "missing_left", "value")
    }
    residual = residual - residual.mean()
    for t in range(trees):
        first = 7 * t
        tests = [(int(rng.integers(X.shape[1])), X[rng.integers(len(X))]) for _ in range(3)]
        cuts = [(f, np.float32(np.nan_to_num(row[f]))) for f, row in tests]
        side = [bool(b) for b in rng.random(3) < 0.5]
        goes = [
            np.where(np.isnan(X[:, f]), s, X[:, f] <= c)
            for (f, c), s in zip(cuts, side, strict=True)
        ]
        leaf = np.where(goes[0], np.where(goes[1], 3, 4), np.where(goes[2], 5, 6))
        value = np.zeros(7)
        for node in range(3, 7):
            if (leaf == node).any():
                value[node] = rate * residual[leaf == node].mean()
        residual = residual - value[leaf]
        columns["feature"] += [f for f, _ in cuts] + [-1] * 4
        columns["threshold"] += [c for _, c in cuts] + [0.0] * 4
        columns["left"] += [first + 1, first + 3, first + 5] + [-1] * 4
        columns["right"] += [first + 2, first + 4, first + 6] + [-1] * 4
        columns["missing_left"] += side + [False] * 4
        columns["value"] += value.tolist()
    return Ensemble(
        start=np.arange(0, 7 * trees + 1, 7, dtype=np.int32),
        feature=np.array(columns["feature"], np.int32),
        threshold=np.array(columns["threshold"], np.float32),
        left=np.array(columns["left"], np.int32),
        right=np.array(columns["right"], np.int32),
        missing_left=np.array(columns["missing_left"], np.bool_),
        value=np.array(columns["value"], np.float64),
        output=np.zeros(trees, np.int32),
        base=np.zeros(1),
        features=X.shape[1],
    )


def stumps(features, cuts, low, high):
    """One split each: ``low`` where x <= cut, else ``high``."""
    each = zip(features, low, high, cuts, strict=True)
    return Ensemble.concat([stump(*one, features=max(features) + 1) for one in each])
