"""Ranks and best scores within queries, for many sets of rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from bench_core import Queries
from bench_core.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class QueryGroups:
    """The queries of n rows: ``starts`` and ``sizes`` (q,), and each row's query ``of`` (n,)."""

    starts: IntArray
    sizes: IntArray

    @classmethod
    def over(cls, rows: int, queries: Queries | None) -> QueryGroups:
        """Every row is a query of its own where there are none."""
        ends = np.arange(rows + 1) if queries is None else queries.boundaries
        return cls(ends[:-1], np.diff(ends))

    @classmethod
    def by(cls, query: IntArray) -> Self:
        """From each row's query (n,), rows of one query together."""
        starts = np.flatnonzero(np.diff(query, prepend=-1))
        return cls(starts, np.diff(starts, append=len(query)))

    @cached_property
    def of(self) -> IntArray:
        """Each row's query."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def kth_best(scores: FloatArray, on: BoolArray, groups: QueryGroups, k: int) -> FloatArray:
    """The k-th best score among the rows of each query that are ``on``, (P, q), or -inf."""
    order = np.lexsort((-scores, groups.of))
    here = on[:, order]
    setting, place = np.nonzero(here & (_counted(here, groups) == k))
    best = np.full((len(on), len(groups.sizes)), -np.inf)
    best[setting, groups.of[place]] = scores[order[place]]
    return best


def ranks(
    scores: FloatArray, on: BoolArray, groups: QueryGroups, weights: IntArray | None = None
) -> IntArray:
    """1 + the number of rows of the query that are ``on`` and score higher, (P, n).

    ``weights`` (n,): how many rows each stands for.
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
    """Sums along the sorted rows, begun anew with each query: (P, n)."""
    total = np.cumsum(here, axis=1, dtype=np.int64)
    before = total[:, groups.starts] - here[:, groups.starts]
    inside: IntArray = total - before[:, groups.of]
    return inside
