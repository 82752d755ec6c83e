"""Loops over 64 rows side by side, compiled into the kernels that walk trees.

Splits of a tree stand in preorder, left child first. The rows that turn right and left at split i
of a tree stand at places 2 i + 1 and 2 i + 2 of ``sets``, all rows at place 0; ``source`` of a
split is the place of those that come to it. Leaves are numbered from left to right, and ``mark`` is
the number of the first leaf of a split's right subtree: the last turn of a row to the right names
its leaf.
"""

from typing import Any

import numpy as np

from bench_core.traversal.calling import inner
from bench_core.traversal.leaves import TABLE, add_bytes
from bench_core.traversal.vectors import ROWS, SQUARE, number, turn_cells

FEW = TABLE - 1
"""The most splits of a tree for ``descend_few``, ``number_few`` and ``add_leaves``."""
_ENOUGH = 5  # columns of a square for which copying all 16 takes less time
_MOST = 256  # lengths that 16 bits hold the sum of
_ONE, _TWO = np.uint64(1), np.uint64(2)  # unsigned places are never negative


def squares(columns: Any, width: int) -> tuple[Any, Any, Any]:
    """How ``gather`` copies sorted ``columns`` of rows of ``width`` cells.

    Where squares begin, int64 (b,); the place of each of their columns in ``columns``, the end of
    these where it is not among them, int32 (16 b,); and the places of the rest, int64.
    """
    begin, places, rest, k = [], [], [], 0
    while k < len(columns):
        first = max(0, min(int(columns[k]), width - SQUARE))
        stop = int(np.searchsorted(columns, first + SQUARE))
        if width >= SQUARE and stop - k >= _ENOUGH:
            own = np.full(SQUARE, len(columns))
            own[columns[k:stop] - first] = np.arange(k, stop)
            begin.append(first)
            places += own.tolist()
            k = stop
        else:
            rest.append(k)
            k += 1
    return np.array(begin, np.int64), np.array(places, np.int32), np.array(rest, np.int64)


@inner
def aligned(size: int) -> Any:
    """Zeros (size,), uint8, that begin where a line of the cache does."""
    room = np.zeros(size + 64, dtype=np.uint8)
    first = -np.int64(room.ctypes.data) & 63
    return room[first : first + size]


@inner
def gather(cells: Any, X: Any, rows: Any, columns: Any, how: Any) -> None:
    """Copy columns of 64 rows of ``X`` (n, d), one column after the other, ``how`` as ``squares``
    says; ``cells`` float32 (64 (c + 1),)."""
    begin, places, rest = how
    for r in range(0, ROWS, SQUARE):
        for b in range(len(begin)):
            turn_cells(cells, r, X, rows, begin[b], places, SQUARE * b)
    for k in range(len(rest)):
        at, j = ROWS * rest[k], np.uint64(columns[rest[k]])
        for r in range(ROWS):
            cells[np.uint64(at + r)] = X[rows[r], j]


@inner
def descend_few(
    first: int, stop: int, source: Any, of_cut: Any, column: Any, above: Any, sets: Any, need: Any
) -> None:
    """Send the rows ``sets[0]`` down a small tree; ``need``: those that have read a column."""
    k: Any = _ONE
    for i in range(np.uint64(first), np.uint64(stop)):
        here = sets[np.uint64(source[i])]
        turn = here & above[np.uint64(of_cut[i])]
        sets[k], sets[k + _ONE] = turn, here ^ turn
        need[np.uint64(column[i])] |= here
        k += _TWO


@inner
def descend(
    first: int,
    stop: int,
    source: Any,
    of_cut: Any,
    column: Any,
    after: Any,
    above: Any,
    sets: Any,
    need: Any,
) -> None:
    """``descend_few`` that jumps over subtrees that nobody comes to, to the first split ``after``.

    In a small tree the processor would often guess wrong whether to jump.
    """
    origin = np.uint64(first)
    i: Any = origin
    k: Any = _ONE
    while i < np.uint64(stop):
        here = sets[np.uint64(source[i])]
        if here == 0 and after[i] > 0:
            i = np.uint64(after[i])
            while k < _TWO * (i - origin):
                sets[k] = 0
                k += _TWO
            continue
        turn = here & above[np.uint64(of_cut[i])]
        sets[k], sets[k + _ONE] = turn, here ^ turn
        need[np.uint64(column[i])] |= here
        i += _ONE
        k += _TWO


def lengths(path: Any, multiplier: Any) -> Any:
    """Sums of multipliers (l,) as bytes that ``add_lengths`` can look up; none where they are no
    whole numbers below 256, of which sums in any order are the same."""
    whole = np.all(multiplier == np.floor(multiplier)) and np.all((path >= 0) & (path < _MOST))
    return np.concatenate([path, np.zeros(TABLE)]).astype(np.uint8) if whole else np.zeros(0, "u1")


@inner
def add_lengths(
    pending: int, sums: Any, counts: Any, leaf: Any, count: int, table: Any, at: int
) -> int:
    """Add ``table[at + leaf[r]]`` to ``counts[r]``, uint16 (64,).

    When as many trees are ``pending`` as these can hold, they are added to ``sums`` (64,). How many
    are pending then.
    """
    add_bytes(counts, leaf, count, table, at)
    return settle(sums, counts) if pending + 1 == _MOST else pending + 1


@inner
def settle(sums: Any, counts: Any) -> int:
    """Add what is pending to ``sums``; then nothing is."""
    for r in range(ROWS):
        sums[r] += np.float64(counts[r])
        counts[r] = 0
    return 0


@inner
def find_leaves(
    first: int, count: int, marks: Any, sets: Any, leaf: Any, found: Any, at: int
) -> None:
    """The leaves, int64 (64,), that the rows came to, from ``at`` on; a byte of their numbers after
    the other."""
    for r in range(ROWS):
        found[r] = at
    byte = 0
    while count >> (8 * byte) > 0:
        number(leaf, sets, marks, 4 * first + byte, count)
        for r in range(ROWS):
            found[r] += np.int64(leaf[r]) << (8 * byte)
        byte += 1
