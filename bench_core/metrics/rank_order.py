"""Compiled sorting of the rows of each query. Imported only when a ranking metric is computed.

It stands apart from ``ranking_kernels``, which looks at the order alone: numba's cache notices
changes of the file that a compiled function is in, not of those it calls into.
"""

# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray, IntArray
from bench_core.metrics.labels import Ranked

_fast: Any = njit(cache=True, nogil=True)
_SHORT = 32  # rows that insertion sort takes


@_fast
def rank(ranked: Ranked, scores: FloatArray, depth: int) -> None:
    """Order the best ``depth`` rows of each query, and all that tie with the last of them.

    Equal scores stand in row order. Fills ``order``, ``stop`` and ``tied``.
    """
    order, stop, tied = ranked.order, ranked.stop, ranked.tied
    for j in range(len(stop)):
        a, b = ranked.bounds[j], ranked.bounds[j + 1]
        if depth < b - a and depth <= _SHORT:
            stop[j] = _best(scores, a, b, depth, order)
        else:
            _sort(scores, a, b, order)
            stop[j] = b
        tied[a] = False
        for i in range(a + 1, stop[j]):
            tied[i] = scores[order[i]] == scores[order[i - 1]]


@_fast
def _insert(scores: FloatArray, order: IntArray, start: int, last: int, row: int) -> None:
    """Put ``row`` behind all of ``order[start:last]`` that score at least as much; what stood
    in ``order[last]`` is lost."""
    score = scores[row]
    i = last
    while i > start and scores[order[i - 1]] < score:
        order[i] = order[i - 1]
        i -= 1
    order[i] = row


@_fast
def _best(scores: FloatArray, a: int, b: int, depth: int, order: IntArray) -> int:
    """Order the best ``depth`` of rows ``a:b`` and their ties; returns where they end."""
    last = a + depth - 1
    for row in range(a, last + 1):
        _insert(scores, order, a, row, row)
    worst = scores[order[last]]
    for row in range(last + 1, b):
        if scores[row] > worst:
            _insert(scores, order, a, last, row)
            worst = scores[order[last]]
    end = last + 1
    while end > a and scores[order[end - 1]] == worst:
        end -= 1
    for row in range(a, b):  # the rows that tie with the last one, each in its turn
        if scores[row] == worst:
            order[end] = row
            end += 1
    return end


@_fast
def _sort(scores: FloatArray, a: int, b: int, order: IntArray) -> None:
    """Order all rows ``a:b``: a stable merge sort over runs of insertion sort."""
    width = _SHORT
    for start in range(a, b, width):
        for row in range(start, min(start + width, b)):
            _insert(scores, order, start, row, row)
    if b - a <= width:
        return
    spare = np.empty(b - a, dtype=np.int64)
    while width < b - a:
        for start in range(a, b, 2 * width):
            middle, end = min(start + width, b), min(start + 2 * width, b)
            i, k = start, middle
            for to in range(start, end):
                if k == end or (i < middle and scores[order[i]] >= scores[order[k]]):
                    spare[to - a] = order[i]
                    i += 1
                else:
                    spare[to - a] = order[k]
                    k += 1
        for i in range(a, b):
            order[i] = spare[i - a]
        width *= 2
