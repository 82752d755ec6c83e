"""Small random cascade problems shared by the tests of Cronus."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from bench_methods.cronus.cascade import Cascade, optimise
from bench_models.descent import DescentSettings
from bench_models.problem import Problem
from bench_trees import Ensemble, Settings

from bench_core import Examples, Queries, Task, price_list
from helpers.grown import boosted
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


def forest(X, y, trees=12, **how):
    """Boosted trees of depth 2 on centred labels."""
    settings = Settings(trees=trees, learning_rate=0.3, max_depth=2, min_rows=1)
    return replace(boosted(X, y - y.mean(), settings=settings, **how), base=np.zeros(1))


def stumps(features, cuts, low, high):
    """One split each: ``low`` where x <= cut, else ``high``."""
    each = zip(features, low, high, cuts, strict=True)
    return Ensemble.concat([stump(*one, features=max(features) + 1) for one in each])


D = 6


def prices(scale=1.0):
    """Six features from 1 to 50, two of them read from one sensor."""
    cost = scale * np.array([1.0, 1.0, 5.0, 20.0, 20.0, 50.0])
    return price_list(cost, shared=[[3, 4]], split=scale * 0.25, tree=scale * 0.5)


def examples(task, n=400, seed=0):
    """Whole numbers, some missing, and a signal in which the first feature turns the fourth."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n, D)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    known = np.nan_to_num(X)
    signal = known @ np.array([1.0, 0.6, 0.8, 0.7, 0.0, 1.2]) + rng.normal(size=n)
    signal += np.where(known[:, 0] > 4, 2.0, -1.0) * known[:, 3]
    y = {
        Task.REGRESSION: signal,
        Task.RANKING: np.digitize(signal, np.quantile(signal, [0.3, 0.6, 0.85, 0.95])),
        Task.BINARY: signal > np.quantile(signal, 0.7),
    }[task].astype(float)
    queries = Queries.from_sizes(np.full(n // 10, 10)) if task is Task.RANKING else None
    return Examples(X, y, queries)
