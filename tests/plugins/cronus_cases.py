"""Small random cascade problems shared by the tests of Cronus."""

from __future__ import annotations

from typing import Any

import numpy as np
from bench_plugins.cronus.objective import Cascade, Problem


def problem(
    seed: int = 0, n: int = 60, trees: int = 6, sensors: int = 4, **changed: Any
) -> Problem:
    """Correlated columns, unbalanced labels that depend on them, every tree needs some sensor."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=n)
    columns = 0.4 * latent + 0.5 * rng.normal(size=(trees, n))
    y = np.where(latent + 0.5 * rng.normal(size=n) > 0.7, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    multiplicity = rng.integers(1, 4, size=n)
    share = multiplicity / multiplicity.sum()
    needs = (rng.random((sensors, trees)) < 0.4).astype(float)
    needs[rng.integers(0, sensors, size=trees), np.arange(trees)] = 1.0
    values: dict[str, Any] = {
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


def cascade(p: Problem, stages: int = 3, seed: int = 0, zeros: float = 0.0) -> Cascade:
    """Random weights, some of them zero, and thresholds within the range of the scores."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(stages, p.trees))
    weights[rng.random(weights.shape) < zeros] = 0.0
    threshold = rng.normal(scale=0.5, size=stages)
    threshold[-1] = -np.inf
    return Cascade(weights, rng.normal(scale=0.3, size=stages), threshold)
