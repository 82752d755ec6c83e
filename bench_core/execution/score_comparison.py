"""Comparison of scores in the audit: class by class, relative to their own spread over rows.

No large number hides a change of the others: neither a class that is masked by a large negative
score, nor an offset of all rows, of a row (over its classes) or of a query (over its rows).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.data import Queries

TOLERANCE = 1e-9
"""Tolerance relative to the spread of a class, and to a score: an exponential of a rounded number
has a large relative error."""
LARGEST = 1e-6
"""Largest tolerance relative to the spread and a score's distance from the middle of its class."""
_ULPS = 8 * np.finfo(np.float64).eps
"""Scores closer than that, relative to their size, count as equal."""


class Spread(NamedTuple):
    """Middle (K,) and spread (K,) of scores over rows, by class."""

    middle: FloatArray
    size: FloatArray

    @classmethod
    def of(cls, scores: FloatArray) -> Self:
        """Spread of scores (n, K): the median gap between neighbours among the different scores,
        times the number of gaps. A few gaps of any size do not change it."""
        sizes = np.zeros(scores.shape[1])
        for k, column in enumerate(scores.T):
            values = np.unique(column)
            gaps = np.diff(values)
            gaps = gaps[gaps > _ULPS * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))]
            sizes[k] = np.median(gaps) * len(gaps) if len(gaps) else 0.0
        return cls(np.median(scores, axis=0), sizes)


def spreads(scores: FloatArray, queries: Queries | None) -> list[Spread]:
    """Spreads of scores (n,) or (n, K), and of their differences within rows or queries."""
    with np.errstate(over="ignore", invalid="ignore"):
        return [Spread.of(view) for view in _views(scores, queries)]


def close(
    before: FloatArray,
    after: FloatArray,
    scale: list[Spread],
    queries: Queries | None = None,
    tolerance: float = TOLERANCE,
) -> BoolArray:
    """True for rows (n,) with equal scores (n,) or (n, K), except for rounding errors. ``scale``
    are the ``spreads`` of many rows at the same point."""
    largest = max(LARGEST, tolerance)
    same = np.ones(len(before), dtype=bool)
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.maximum(np.abs(before), np.abs(after)).reshape(len(before), -1)
        pairs = zip(_views(before, queries), _views(after, queries), scale, strict=True)
        for first, second, (middle, spread) in pairs:
            slack = tolerance * size
            most = largest * (np.abs(first - middle) + spread)
            slack = np.where(spread > 0, np.minimum(slack, most), slack)
            near = np.abs(first - second) <= tolerance * spread + slack
            same &= (near | (first == second)).all(axis=1)
    return same


def _views(scores: FloatArray, queries: Queries | None) -> list[FloatArray]:
    """Scores as (n, K), and relative to the middle one of each row or, with ``queries``, query."""
    if scores.ndim == 2:
        return [scores, scores - np.median(scores, axis=1, keepdims=True)]
    column = scores[:, None]
    if queries is None:
        return [column]
    starts, sizes = queries.boundaries[:-1], queries.sizes
    order = np.lexsort((scores, np.repeat(np.arange(len(sizes)), sizes)))
    middle = scores[order[starts + sizes // 2]]
    return [column, column - np.repeat(middle, sizes)[:, None]]
