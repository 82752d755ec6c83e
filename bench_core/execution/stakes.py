"""What a lie would earn, by point and query or row: where a sampled audit looks most.

A model that peeks gains by being right where it would be wrong at that price. So the stakes of a
point are what its answers are better than those of the best cheaper point (of the best constant,
where nothing is cheaper), and nothing where another point is as good for no more: a point that no
budget chooses earns nothing. An honest model has stakes too, where it learns most for its money.

How good the answer for a row is, is measured alike for all metrics: 1 for the right class and up to
half as much for its rank or margin; of numbers how near they are; of rankings the covariance of
scores' and labels' ranks in the query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray, IntArray
from bench_core.data import Examples, Features
from bench_core.execution.predict import Path, units

MOST_UNITS = 20_000
"""Among so many random queries or rows at most the stakes are looked for."""


def aimed(
    path: Path, examples: Examples, classes: int, most: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """At most ``most`` units, in random order, and a point of each; fewer, or none, where no more
    have anything at stake. Drawn by what is at stake, none twice."""
    among = rng.permutation(len(units(examples.features)) - 1)[:MOST_UNITS]
    stakes = stakes_of(path, examples, classes, among)
    total = stakes.sum(axis=0)
    count = min(most, int(np.count_nonzero(total)))
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    places = rng.choice(len(among), size=count, replace=False, p=total / total.sum())
    until = np.cumsum(stakes[:, places], axis=0)
    points = (until < rng.random(count) * until[-1]).sum(axis=0)
    return among[places], np.minimum(points, len(stakes) - 1)


def stakes_of(path: Path, examples: Examples, classes: int, among: IntArray) -> FloatArray:
    """What is at stake (points, units) for these units."""
    rows, own = _rows_of(examples.features, among)
    y = np.asarray(examples.y[rows], dtype=np.float64)
    cost = np.zeros(len(path.points))
    good = np.zeros((len(path.points), len(among)), dtype=np.float32)
    for p in range(len(path.points)):
        scores = np.asarray(path.scores[p][rows], dtype=np.float64)
        good[p] = np.bincount(own, _good(scores, y, own, examples, classes), len(among))
        cost[p] = path.cost[p][rows].mean()
        path.forget()
    mean, stakes = good.mean(axis=1), np.zeros(good.shape)
    before = np.bincount(own, _constant(y, examples, classes), len(among))
    for p in np.lexsort((-mean, cost)):
        if mean[p] > before.mean():
            stakes[p] = np.maximum(good[p] - before, 0)
            before = good[p]
    return stakes


def _rows_of(features: Features, among: IntArray) -> tuple[IntArray, IntArray]:
    """The rows of these units, and the place of each one's unit among them."""
    boundaries = units(features)
    sizes = np.diff(boundaries)[among]
    own = np.repeat(np.arange(len(among)), sizes)
    first = np.cumsum(sizes) - sizes
    return np.arange(len(own)) - first[own] + boundaries[among][own], own


def _good(
    scores: FloatArray, y: FloatArray, own: IntArray, examples: Examples, classes: int
) -> FloatArray:
    """How good the answer for each row is."""
    if scores.ndim == 2:
        at = np.arange(len(y)), y.astype(np.int64)
        others = scores.copy()
        others[at] = -np.inf
        margin = scores[at] - others.max(axis=1)
        return _right(margin > 0, np.clip(margin / _size(margin), -1, 1))
    if classes == 2:
        side = np.where(y > 0.5, 1.0, -1.0)
        return _right(np.sign(scores) == side, side * _ranks(scores))
    if examples.queries is not None:
        return _centred(_ranks(scores), own) * _centred(_ranks(y), own)
    near: FloatArray = -np.minimum(np.abs(scores - y) / _size(y - y.mean()), 3.0)
    return near


def _right(there: NDArray[np.bool_], how: FloatArray) -> FloatArray:
    found: FloatArray = there + 0.5 * how
    return found


def _constant(y: FloatArray, examples: Examples, classes: int) -> FloatArray:
    """How good the best constant is for each row."""
    if classes >= 2:
        values, places = np.unique(y, return_inverse=True)
        most = values[np.bincount(places).argmax()]
        return np.asarray(y == most, dtype=np.float64)
    if examples.queries is not None:
        return np.zeros(len(y))
    near: FloatArray = -np.minimum(np.abs(y - y.mean()) / _size(y - y.mean()), 3.0)
    return near


def _ranks(values: FloatArray) -> FloatArray:
    """From -1 for the least to 1, equal ones alike."""
    of, places, many = np.unique(values, return_inverse=True, return_counts=True)
    if len(of) < 2:
        return np.zeros(len(values))
    middle = np.cumsum(many) - (many + 1) / 2
    found: FloatArray = (2 * middle / (len(values) - 1) - 1)[places]
    return found


def _centred(values: FloatArray, own: IntArray) -> FloatArray:
    """Less the mean of their unit."""
    found: FloatArray = values - (np.bincount(own, values) / np.bincount(own))[own]
    return found


def _size(values: NDArray[Any]) -> float:
    return float(np.abs(values).mean()) or 1.0
