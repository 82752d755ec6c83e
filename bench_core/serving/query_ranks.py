"""Ranks of rows within their queries, for P settings at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.data import Queries

INPUTS = 4  # partial score, score scaled to [0, 1] within the query, rank, query size


class QueryGroups:
    """The queries of n rows, cut by ``boundaries`` (q + 1,)."""

    def __init__(self, boundaries: IntArray) -> None:
        self.starts, self.sizes = boundaries[:-1], np.diff(boundaries)

    @classmethod
    def over(cls, rows: int, queries: Queries | None) -> QueryGroups:
        """Return the groups of queries; without queries every row is its own query."""
        return cls(np.arange(rows + 1) if queries is None else queries.boundaries)

    @cached_property
    def of(self) -> IntArray:
        """Query of each row (n,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def kth_best(scores: FloatArray, on: BoolArray, groups: QueryGroups, k: int) -> FloatArray:
    """Return the k-th best score among the ``on`` rows of each query, (P, q), or -inf."""
    order = np.lexsort((-scores, groups.of))
    here = on[:, order]
    setting, place = np.nonzero(here & (_counted(here, groups) == k))
    best = np.full((len(on), len(groups.sizes)), -np.inf)
    best[setting, groups.of[place]] = scores[order[place]]
    return best


def ranks(
    scores: FloatArray, on: BoolArray, groups: QueryGroups, weights: IntArray | None = None
) -> IntArray:
    """Return 1 + the number of ``on`` rows of the query with a higher score, (P, n).

    ``weights`` (n,): number of copies of each row.
    """
    order = np.lexsort((-scores, groups.of))
    here = on[:, order].astype(np.int64)
    if weights is not None:
        here *= weights[order]
    sorted_scores, query = scores[order], groups.of
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (sorted_scores[1:] != sorted_scores[:-1]) | (query[1:] != query[:-1])
    first_equal = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    higher = (_counted(here, groups) - here)[:, first_equal]
    rank = np.empty(on.shape, dtype=np.int64)
    rank[:, order] = higher + 1
    return rank


def _counted(here: Any, groups: QueryGroups) -> IntArray:
    """Return cumulative sums along the sorted rows of each query, (P, n)."""
    total = np.cumsum(here, axis=1, dtype=np.int64)
    before = total[:, groups.starts] - here[:, groups.starts]
    inside: IntArray = total - before[:, groups.of]
    return inside


def describe(scores: FloatArray, groups: QueryGroups) -> Any:
    """Return the classifier's inputs float32 (P, n, 4) from each setting's scores (P, n).

    Ranks are among all documents of the query, by these scores. Copies are ignored, since a served
    model never sees them.
    """
    inputs = np.empty((*scores.shape, INPUTS), dtype=np.float32)
    for p, score in enumerate(scores):
        low = np.minimum.reduceat(score, groups.starts) if len(score) else score
        high = np.maximum.reduceat(score, groups.starts) if len(score) else score
        reach = np.where(high > low, high - low, 1.0)
        inputs[p, :, 0] = score
        inputs[p, :, 1] = (score - low[groups.of]) / reach[groups.of]
        inputs[p, :, 2] = ranks(score, np.ones((1, len(score)), bool), groups)[0]
        inputs[p, :, 3] = groups.sizes[groups.of]
    return inputs


def among_seen(
    scores: FloatArray, on: BoolArray, groups: QueryGroups, most: FloatArray
) -> BoolArray:
    """True for rows among the best ``most`` (P,) of their query's rows up to and including them,
    (P, n).

    All queries advance together, row by row, each with its best scores so far.
    """
    longest = int(groups.sizes.max(initial=0))
    room = np.minimum(most, longest)
    slots = np.arange(max(1, int(room.max(initial=1))))
    unused = slots > room[:, None, None] - 1
    best = np.where(unused, np.inf, np.full((1, len(groups.sizes), 1), -np.inf))
    stays = np.zeros(on.shape, dtype=bool)
    setting = np.arange(len(on))[:, None]
    for place in range(longest):
        queries = np.flatnonzero(groups.sizes > place)
        rows = groups.starts[queries] + place
        values = np.where(on[:, rows], scores[rows], -np.inf)
        at = (setting, queries, best[:, queries].argmin(axis=2))
        lowest = best[at]
        stays[:, rows] = values >= lowest
        best[at] = np.maximum(values, lowest)
    return stays


def below(
    scores: FloatArray, rejected: BoolArray, last: IntArray, groups: QueryGroups
) -> FloatArray:
    """Return scores (n,) with rejected rows below their query's worst survivor, by exit stage, then
    by stage score. Survivors keep their scores; rejected rows follow in steps of one; ties are
    kept."""
    query = groups.of
    survivors = ~rejected
    worst = np.zeros(len(groups.sizes))
    survives = np.unique(query[survivors])
    worst[survives] = np.inf
    np.minimum.at(worst, query[survivors], scores[survivors])
    out = np.flatnonzero(rejected)
    order = out[np.lexsort((-scores[out], -last[out], query[out]))]
    fields = (query[order], last[order], scores[order])
    new = [np.r_[True, np.diff(f) != 0] for f in fields]
    level = np.cumsum(new[0] | new[1] | new[2])
    base = np.maximum.accumulate(np.where(new[0], level, 0))
    lowered = scores.copy()
    lowered[order] = worst[query[order]] - 1.0 - (level - base)
    return lowered
