"""The rows of every query by descending score, the one thing all ranking metrics look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_core.data import FloatArray, IntArray
from bench_core.metrics.labels import Labels, unwritable

BoolArray = NDArray[np.bool_]


class Ranked(NamedTuple):
    """Queries in rank order, perhaps no deeper than the metrics look.

    ``bounds`` (q+1,) row boundaries of the queries; ``order`` (n,) the rows of query j by
    descending score in ``order[bounds[j]:stop[j]]``, equal scores in row order; ``tied`` (n,)
    whether ``order[i]`` ties with ``order[i-1]`` of the same query; ``copies`` (n,) how many
    documents each row (not place) stands for.
    """

    bounds: IntArray
    order: IntArray
    stop: IntArray
    tied: BoolArray
    copies: IntArray

    def untied(self) -> Ranked:
        """The same order, taken as it is: nothing ties."""
        return self._replace(tied=np.zeros(len(self.tied), dtype=np.bool_))


def bounds(labels: Labels) -> IntArray:
    """Row boundaries of the queries (q+1,)."""
    assert labels.queries is not None
    return unwritable(np.ascontiguousarray(labels.queries.boundaries, dtype=np.int64))


def rank(scores: FloatArray, labels: Labels, depth: int) -> Ranked:
    """Order the best ``depth`` rows of each query, and all that tie with the last of them.

    ``scores`` (n,) float64, contiguous, without NaN.
    """
    from bench_core.metrics import ordering

    b = bounds(labels)
    ranked = Ranked(
        bounds=b,
        order=np.empty(len(scores), dtype=np.int64),
        stop=np.empty(len(b) - 1, dtype=np.int64),
        tied=np.empty(len(scores), dtype=np.bool_),
        copies=labels.copies,
    )
    ordering.rank(ranked, unwritable(scores), depth)
    return ranked
