"""The rows of every query by descending score, the one thing all ranking metrics look at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, IntArray
from bench_core.metrics.labels import Labels, unwritable


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
