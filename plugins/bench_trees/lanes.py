"""Sixty-four rows in one machine word.

A set of rows of a tile of 64 is a ``uint64``: bit r stands for row r. Comparing a whole column
of the tile with a threshold is a handful of vector instructions when it is written as one
vector comparison (LLVM picks what the machine has); the same loop in plain numba is 10 to 15
times slower, because its result would have to be packed bit by bit.

The kernels stand in one file because numba's cache only notices changes of the file that a
compiled function is in, not of those it calls into.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

LANES = 64
_intrinsic: Any = intrinsic


@_intrinsic
def above(typingctx: Any, tile: Any, at: Any, threshold: Any, missing_left: Any) -> Any:
    """The rows r whose ``tile[at + r]`` goes right: above the threshold, or missing if so told."""
    signature = types.uint64(tile, types.int64, types.float32, types.boolean)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        vector = ir.VectorType(ir.FloatType(), LANES)
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(vector))
        column = builder.load(place)
        column.align = 4
        unset = ir.Constant(vector, ir.Undefined)
        index = ir.IntType(32)
        single = builder.insert_element(unset, args[2], ir.Constant(index, 0))
        spread = ir.Constant(ir.VectorType(index, LANES), [0] * LANES)
        limit = builder.shuffle_vector(single, unset, spread)
        word = ir.IntType(LANES)
        ordered = builder.bitcast(builder.fcmp_ordered(">", column, limit), word)
        unordered = builder.bitcast(builder.fcmp_unordered(">", column, limit), word)
        return builder.select(args[3], ordered, unordered)

    return signature, generate


@_intrinsic
def lowest(typingctx: Any, rows: Any) -> Any:
    """The smallest member of a set of rows that is not empty."""
    signature = types.int64(types.uint64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return signature, generate


@njit(cache=True, nogil=True)
def transpose(square: Any) -> None:
    """Turn uint64 (64,), a square of bits, about its diagonal: bit j of word i to bit i of word j.

    Swaps ever smaller off-diagonal blocks; sizes are constants so that each round is unrolled.
    """
    _swap(square, 32, np.uint64(0x00000000FFFFFFFF))
    _swap(square, 16, np.uint64(0x0000FFFF0000FFFF))
    _swap(square, 8, np.uint64(0x00FF00FF00FF00FF))
    _swap(square, 4, np.uint64(0x0F0F0F0F0F0F0F0F))
    _swap(square, 2, np.uint64(0x3333333333333333))
    _swap(square, 1, np.uint64(0x5555555555555555))


@njit(cache=True, nogil=True)
def _swap(square: Any, size: int, low: Any) -> None:
    shift = np.uint64(size)
    for start in range(0, LANES, 2 * size):
        for i in range(start, start + size):
            swap = ((square[i] >> shift) ^ square[i + size]) & low
            square[i] ^= swap << shift
            square[i + size] ^= swap


@njit(cache=True, nogil=True)
def _widest(root: Any) -> int:
    widest = 0
    for t in range(len(root) - 1):
        widest = max(widest, root[t + 1] - root[t])
    return widest


@njit(cache=True, nogil=True)
def _first(count: int) -> Any:
    """The set of the first ``count`` >= 1 rows of a tile."""
    return ~np.uint64(0) >> np.uint64(LANES - count)


@njit(cache=True, nogil=True)
def _fill(tile: Any, source: Any, columns: Any, begin: int, count: int) -> None:
    """Gather the used columns of up to 64 rows, one column after the other."""
    X, picked = source
    for r in range(count):
        row = X[picked[begin + r]]
        for c in range(len(columns)):
            tile[c * LANES + r] = row[columns[c]]


@njit(cache=True, nogil=True)
def _descend(shape: Any, t: int, tile: Any, live: Any, reached: Any, got: Any, leaf: Any) -> None:
    """Send the ``live`` rows of a tile down tree t: their ``leaf`` (64,), sensors ``got`` (s,).

    ``reached`` (nodes of the tree,) is scratch: which rows arrive at each node.
    """
    _, start, needed, root, column, threshold, missing_left, right, after = shape
    origin = root[t]
    reached[0] = live
    i = origin
    while i < root[t + 1]:
        here = reached[i - origin]
        if here == 0:
            i = np.int64(after[i])
            continue
        c = column[i]
        if c >= 0:
            turn = above(tile, np.int64(c) * LANES, threshold[i], missing_left[i])
            reached[i + 1 - origin] = here & ~turn
            reached[right[i] - origin] = here & turn
            for k in range(start[c], start[c + 1]):
                got[needed[k]] |= here
        else:
            while here != 0:
                leaf[lowest(here)] = i
                here &= here - np.uint64(1)
        i += 1


@njit(cache=True, nogil=True)
def walk_tiles(
    shape: Any, paying: Any, source: Any, plan: Any, since: Any, into: Any, start: int, stop: int
) -> None:
    """Walk the tiles ``start:stop`` through all steps; arguments as in ``inference.walk``.

    ``into`` holds what is reported: scores (p, n, K), bits (p, n, w) and splits (p, n); ``since``
    the same before the first step.
    """
    columns, root = shape[0], shape[3]
    value, cost, output = paying
    ends, bias, carry = plan
    scores_since, bits_since, splits_since = since
    scores, bits, splits = into
    rows, outputs, words = len(source[1]), bias.shape[1], bits.shape[2]
    tile = np.zeros(len(columns) * LANES, dtype=np.float32)
    reached = np.zeros(_widest(root), dtype=np.uint64)
    got = np.zeros(words * LANES, dtype=np.uint64)
    leaf = np.zeros(LANES, dtype=np.int64)
    total = np.zeros((outputs, LANES))
    spent = np.zeros(LANES)
    for place in range(start, stop):
        begin = place * LANES
        count = min(LANES, rows - begin)
        _fill(tile, source, columns, begin, count)
        got[:] = 0
        for r in range(count):
            spent[r] = splits_since[begin + r]
            for k in range(outputs):
                total[k, r] = scores_since[begin + r, k]
        t = 0
        for p in range(len(ends)):
            for k in range(outputs):
                if not carry[p]:
                    total[k] = 0.0
                total[k] += bias[p, k]
            while t < ends[p]:
                _descend(shape, t, tile, _first(count), reached, got, leaf)
                line = total[output[t]]
                for r in range(count):
                    line[r] += value[leaf[r]]
                    spent[r] += cost[leaf[r]]
                t += 1
            for r in range(count):
                splits[p, begin + r] = spent[r]
                for k in range(outputs):
                    scores[p, begin + r, k] = total[k, r]
            _report_bits(bits[p], bits_since, got, begin, count)


@njit(cache=True, nogil=True)
def _report_bits(bits: Any, since: Any, got: Any, begin: int, count: int) -> None:
    """Turn a word of rows per sensor into words of sensors per row, and add ``since``."""
    square = np.empty(LANES, dtype=np.uint64)
    for w in range(bits.shape[1]):
        square[:] = got[w * LANES : (w + 1) * LANES]
        transpose(square)
        for r in range(count):
            bits[begin + r, w] = since[begin + r, w] | square[r]


@njit(cache=True, nogil=True)
def add_cells(scores: Any, X: Any, rows: Any, columns: Any, outputs: Any, by: Any) -> None:
    """See ``inference.add_columns``."""
    for i in range(len(rows)):
        for j in range(len(columns)):
            cell = np.float64(X[rows[i], columns[j]])
            if not np.isnan(cell):
                scores[i, outputs[j]] += by[j] * cell
