"""Which rows are in which leaf: one array of row numbers, a range of it for every leaf."""

from __future__ import annotations

import numpy as np
from numba import njit

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.prefetch import AHEAD, prefetch
from bench_trees.threads import Workers

PIECE = 1 << 15  # rows that one thread moves at a time


class RowOrder:
    """Row numbers in leaf order, rising within every leaf.

    ``rows`` uint32 (n,); ``spare`` (n,) is room to work in.
    """

    def __init__(self, words: UInt64Array, crew: Workers) -> None:
        self.words = words
        self.crew = crew
        self.rows = np.empty(words.shape[1], np.uint32)
        self.spare = np.empty(words.shape[1], np.uint32)

    def reset(self) -> None:
        """All rows in one leaf."""
        self.rows[:] = np.arange(len(self.rows), dtype=np.uint32)

    def split(
        self, begin: int, end: int, feature: int, missing: int, cut: int, missing_left: bool
    ) -> int:
        """Move the rows of code <= cut before the others, NaN where it belongs; the border."""
        lefts: dict[int, tuple[int, int]] = {}

        def piece(start: int, stop: int) -> None:
            a, b = begin + start, begin + stop
            count = partition(
                self.words[feature // CODES_PER_WORD],
                8 * (feature % CODES_PER_WORD),
                missing,
                cut,
                missing_left,
                a,
                b,
                self.rows,
                self.spare,
            )
            lefts[a] = (b, count)

        self.crew.run(piece, end - begin, PIECE)
        place = begin
        for a, (_, count) in sorted(lefts.items()):
            if place < a:
                self.rows[place : place + count] = self.rows[a : a + count]
            place += count
        border = place
        for a, (b, count) in sorted(lefts.items()):
            moved = b - a - count
            self.rows[place : place + moved] = self.spare[a : a + moved]
            place += moved
        return border


@njit(cache=True, nogil=True)
def partition(
    column: UInt64Array,
    shift: int,
    missing: int,
    cut: int,
    missing_left: bool,
    begin: int,
    end: int,
    rows: UInt32Array,
    spare: UInt32Array,
) -> int:
    """Rows begin:end of code <= cut in place, the others to the same place of ``spare``, both in
    order; how many the former are. ``column`` holds the code ``shift`` bits up."""
    left = begin
    right = begin
    by = np.uint64(shift)
    low = np.uint64(255)
    for i in range(begin, end):
        prefetch(column, rows[min(i + AHEAD, end - 1)])
        r = rows[i]
        code = np.int64((column[r] >> by) & low)
        goes = int((code <= cut) | (missing_left & (code == missing)))
        rows[left] = r
        spare[right] = r
        left += goes
        right += 1 - goes
    return left - begin


@njit(cache=True, nogil=True)
def gather(
    values: Int64Array,
    rows: UInt32Array,
    begin: int,
    end: int,
    out: Int64Array,
) -> None:
    """Values of the rows at positions begin:end, to the same positions."""
    for i in range(begin, end):
        out[i] = values[rows[i]]


@njit(cache=True, nogil=True)
def add_to_rows(values: Int64Array, rows: UInt32Array, step: int, copies: Int64Array) -> None:
    """Add ``step`` per copy to the values of ``rows``."""
    if len(copies) == 0:
        for r in rows:
            values[r] += step
    else:
        for r in rows:
            values[r] += step * copies[r]
