"""Traversal of trees by 64 rows at once, as bits of one machine word.

A relative of QuickScorer (Lucchese et al., SIGIR 2015) and RapidScorer (Ye et al., KDD 2018), which
replace branches by operations on bit vectors. There a bit stands for a leaf that a row may still
reach; here it stands for a row that reaches a split, because that set is also who pays for the
split's sensors. A tile is 64 rows, a set of its rows a ``uint64``, and a split divides one set::

    row                 63 ........................ 0
    here                 0 1 1 0 1 1 ...      1 0 1 1     rows that arrive at split i of a tree
    x > threshold        0 1 0 1 1 0 ...      0 0 1 1     the same for all splits like it
    sets[2 i + 1]        0 1 0 0 1 0 ...      0 0 1 1     turn right: their conjunction
    sets[2 i + 2]        0 0 1 0 0 1 ...      1 0 0 0     turn left: the rest

    tile   float32   | 64 cells of column 0 | 64 cells of column 1 | ...    columns that are used
    need   uint64    rows that have read column 0 | ... column 1 | ...

As in RapidScorer, equal splits are merged: each distinct threshold of a column is compared once a
tile, and what is left of a split are a few operations on words, without a branch.
A column is compared by a handful of vector instructions when it is written as one comparison (LLVM
picks what the machine has); the same loop in plain numba is 10 to 15 times slower, because its
result would have to be packed bit by bit. The plain loops are here too: they are what runs without
compilation, and with ``BENCH_PLAIN_KERNELS=1``, should a newer numba not take the hand-written LLVM
any more (numba keeps what it compiled, so with an empty ``NUMBA_CACHE_DIR``).
"""

import os
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bench_trees.arrays import Float32Array, Int32Array, Int64Array, UInt64Array
from bench_trees.kernels.calling import inner
from bench_trees.kernels.records import Layout, Steps, Walked

ROWS_PER_WORD = 64
_ONE, _TWO = np.uint64(1), np.uint64(2)  # unsigned places are never negative
_WIDE = np.uint64(ROWS_PER_WORD)
_intrinsic: Any = intrinsic
_config: Any = config
_cgutils: Any = cgutils
PLAIN = bool(_config.DISABLE_JIT or os.environ.get("BENCH_PLAIN_KERNELS"))


@_intrinsic
def above(typingctx: Any, tile: Any, at: Any, threshold: Any) -> Any:
    """The rows r whose ``tile[at + r]`` is above the threshold."""
    return types.uint64(tile, types.int64, types.float32), _comparing(False)


@_intrinsic
def above_or_missing(typingctx: Any, tile: Any, at: Any, threshold: Any) -> Any:
    """The rows r whose ``tile[at + r]`` is above the threshold or missing."""
    return types.uint64(tile, types.int64, types.float32), _comparing(True)


def _comparing(missing: bool) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        vector = ir.VectorType(ir.FloatType(), ROWS_PER_WORD)
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(vector))
        column = builder.load(place)
        column.align = 4
        limit = _spread(builder, args[2])
        word = ir.IntType(ROWS_PER_WORD)
        compare = builder.fcmp_unordered if missing else builder.fcmp_ordered
        return builder.bitcast(compare(">", column, limit), word)

    return generate


def _spread(builder: Any, value: Any) -> Any:
    """The same for all rows."""
    unset = ir.Constant(ir.VectorType(value.type, ROWS_PER_WORD), ir.Undefined)
    index = ir.IntType(32)
    single = builder.insert_element(unset, value, index(0))
    zeros = ir.Constant(ir.VectorType(index, ROWS_PER_WORD), [0] * ROWS_PER_WORD)
    return builder.shuffle_vector(single, unset, zeros)


@_intrinsic
def number(
    typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any, shift: Any
) -> Any:
    """Set bits ``shift`` to ``shift + 7`` of ``leaf[r]``, zero before, to ``marks[at + 4 * i]`` of
    the last of ``count`` splits i at which row r turns right, which ``sets[2 * i + 1]`` says:
    int32 (64,), uint64 and uint8.

    The marks of 64 rows stay in a register, which a store for every split would take longer.
    """
    signature = types.void(leaf, sets, marks, types.int64, types.int64, types.int32)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, turns, first = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(sig.args[:3], args[:3], strict=True)
        )
        word, flags = ir.IntType(64), ir.VectorType(ir.IntType(1), ROWS_PER_WORD)
        last = _cgutils.alloca_once_value(builder, _spread(builder, ir.IntType(8)(0)))
        with _cgutils.for_range(builder, args[4]) as loop:
            turn = builder.gep(turns, [builder.add(builder.shl(loop.index, word(1)), word(1))])
            rows = builder.bitcast(builder.load(turn), flags)
            mark = builder.gep(first, [builder.add(args[3], builder.shl(loop.index, word(2)))])
            spread = _spread(builder, builder.load(mark))
            builder.store(builder.select(rows, spread, builder.load(last)), last)
        wide = ir.VectorType(ir.IntType(32), ROWS_PER_WORD)
        found = builder.shl(builder.zext(builder.load(last), wide), _spread(builder, args[5]))
        place = builder.bitcast(into, ir.PointerType(wide))
        before = builder.load(place)
        before.align = 4
        builder.store(builder.or_(before, found), place).align = 4
        return context.get_dummy_value()

    return signature, generate


@_intrinsic
def transpose(typingctx: Any, squares: Any, at: Any) -> Any:
    """Turn ``squares[at : at + 64]``, a square of bits, about its diagonal: bit j of word i to
    bit i of word j.

    Ever smaller off-diagonal blocks change places: those of 32, 16 and 8 rows between vectors of
    eight words; the eight by eight bits of each last block are brought into one word and back.
    """
    signature = types.void(squares, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        eight = ir.VectorType(ir.IntType(64), 8)
        number = ir.IntType(32)
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        first = builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(eight))
        places = [builder.gep(first, [ir.Constant(number, k)]) for k in range(8)]
        parts = [builder.load(place) for place in places]
        for part in parts:
            part.align = 8
        for apart, shift, low in ((4, 32, 0xFFFFFFFF), (2, 16, 0xFFFF0000FFFF), (1, 8, _BYTES)):
            for k in range(8):
                if not k & apart:
                    pair = parts[k], parts[k + apart]
                    parts[k], parts[k + apart] = _swapped(builder, *pair, shift, low)
        for place, part in zip(places, parts, strict=True):
            builder.store(_turned_blocks(builder, part), place).align = 8
        return context.get_dummy_value()

    return signature, generate


_BYTES = 0x00FF00FF00FF00FF


def _all_eight(value: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(64), 8), [value] * 8)


def _swapped(builder: Any, one: Any, other: Any, shift: int, low: int) -> tuple[Any, Any]:
    """The high bits of ``one`` change places with the ``low`` bits of ``other``."""
    moved = builder.xor(builder.lshr(one, _all_eight(shift)), other)
    moved = builder.and_(moved, _all_eight(low))
    return builder.xor(one, builder.shl(moved, _all_eight(shift))), builder.xor(other, moved)


def _turned_blocks(builder: Any, words: Any) -> Any:
    """Eight words by eight bytes are eight blocks of eight by eight bits; each is turned."""
    words = _turned_bytes(builder, words)
    for shift, low in ((28, 0xF0F0F0F0), (14, 0xCCCC0000CCCC), (7, 0x00AA00AA00AA00AA)):
        moved = builder.xor(words, builder.lshr(words, _all_eight(shift)))
        moved = builder.and_(moved, _all_eight(low))
        words = builder.xor(builder.xor(words, moved), builder.shl(moved, _all_eight(shift)))
    return _turned_bytes(builder, words)


def _turned_bytes(builder: Any, words: Any) -> Any:
    """Byte j of word i to byte i of word j."""
    order = [8 * (b % 8) + b // 8 for b in range(64)]
    flat = builder.bitcast(words, ir.VectorType(ir.IntType(8), 64))
    flat = builder.shuffle_vector(flat, flat, ir.Constant(ir.VectorType(ir.IntType(32), 64), order))
    return builder.bitcast(flat, words.type)


@njit(cache=True, nogil=True)
def _plainly_above(tile: Float32Array, at: int, threshold: float) -> np.uint64:
    rows = np.uint64(0)
    for r in range(ROWS_PER_WORD):
        if tile[np.int64(at) + r] > threshold:
            rows |= _ONE << np.uint64(r)
    return rows


@njit(cache=True, nogil=True)
def _plainly_above_or_missing(tile: Float32Array, at: int, threshold: float) -> np.uint64:
    rows = np.uint64(0)
    for r in range(ROWS_PER_WORD):
        if not tile[np.int64(at) + r] <= threshold:
            rows |= _ONE << np.uint64(r)
    return rows


@njit(cache=True, nogil=True)
def _plainly_number(
    leaf: Int32Array, sets: UInt64Array, marks: Any, at: int, count: int, shift: int
) -> None:
    found = np.zeros(ROWS_PER_WORD, dtype=np.int32)
    for i in range(count):
        for r in range(ROWS_PER_WORD):
            if sets[2 * i + 1] >> np.uint64(r) & _ONE:
                found[r] = marks[at + 4 * i]
    leaf |= found << shift


@njit(cache=True, nogil=True)
def _plainly_transpose(squares: UInt64Array, at: int) -> None:
    before = squares[at : at + ROWS_PER_WORD].copy()
    squares[at : at + ROWS_PER_WORD] = 0
    for i in range(ROWS_PER_WORD):
        for j in range(ROWS_PER_WORD):
            squares[at + j] |= (before[i] >> np.uint64(j) & _ONE) << np.uint64(i)


if PLAIN:
    above, above_or_missing = _plainly_above, _plainly_above_or_missing
    number, transpose = _plainly_number, _plainly_transpose


@inner
def _fill(
    tile: Float32Array,
    X: Float32Array,
    picked: Int64Array,
    columns: Int32Array,
    begin: int,
    count: int,
) -> None:
    """Gather the used columns of up to 64 rows, one column after the other.

    Eight rows at a time, so that what is written lies side by side; beyond the last row it is
    repeated.
    """
    last = begin + count - 1
    for r in range(0, ROWS_PER_WORD, 8):
        i = begin + r
        a, b = X[picked[min(i, last)]], X[picked[min(i + 1, last)]]
        c, d = X[picked[min(i + 2, last)]], X[picked[min(i + 3, last)]]
        e, f = X[picked[min(i + 4, last)]], X[picked[min(i + 5, last)]]
        g, h = X[picked[min(i + 6, last)]], X[picked[min(i + 7, last)]]
        at = np.uint64(r)
        for k in range(len(columns)):
            j = np.uint64(columns[k])
            tile[at] = a[j]
            tile[at + np.uint64(1)] = b[j]
            tile[at + np.uint64(2)] = c[j]
            tile[at + np.uint64(3)] = d[j]
            tile[at + np.uint64(4)] = e[j]
            tile[at + np.uint64(5)] = f[j]
            tile[at + np.uint64(6)] = g[j]
            tile[at + np.uint64(7)] = h[j]
            at += _WIDE


@inner
def _compare(layout: Layout, tile: Float32Array, above_cut: UInt64Array) -> None:
    """The rows of a tile that are above each distinct threshold of a column."""
    column, threshold, missing_left = layout.cut_column, layout.cut, layout.missing_left
    for k in range(len(threshold)):
        at = np.uint64(column[k]) * _WIDE
        if missing_left[k]:
            above_cut[k] = above(tile, at, threshold[k])
        else:
            above_cut[k] = above_or_missing(tile, at, threshold[k])


@inner
def _descend(
    layout: Layout, t: int, above_cut: UInt64Array, sets: UInt64Array, need: UInt64Array
) -> None:
    """Send the rows ``sets[0]`` of a tile down tree t: those that turn right at its split i are
    ``sets[2 i + 1]``, left ``sets[2 i + 2]``; ``need``: those that have read a column."""
    column, cut, source, after = layout.column, layout.of_cut, layout.source, layout.after
    origin, end = np.uint64(layout.root[t]), np.uint64(layout.root[t + 1])
    i, k = origin, _ONE
    while i < end:
        here = sets[np.uint64(source[i])]
        if here == 0 and after[i] > 0:  # nobody came: past the whole subtree
            i = np.uint64(after[i])
            while k < _TWO * (i - origin):
                sets[k] = 0
                k += _TWO
            continue
        turn = here & above_cut[np.uint64(cut[i])]
        sets[k], sets[k + _ONE] = turn, here ^ turn
        need[np.uint64(column[i])] |= here
        i += _ONE
        k += _TWO


@inner
def _find_leaves(layout: Layout, marks: Any, t: int, sets: UInt64Array, leaf: Int32Array) -> None:
    """The leaves that the rows of a tile came to in tree t, counted from left to right."""
    first, count = layout.root[t], layout.root[t + 1] - layout.root[t]
    for r in range(ROWS_PER_WORD):
        leaf[r] = 0
    byte = 0
    while count >> (8 * byte) > 0:
        number(leaf, sets, marks, 4 * first + byte, count, 8 * byte)
        byte += 1


@njit(cache=True, nogil=True)
def walk_tiles(
    layout: Layout,
    X: Float32Array,
    picked: Int64Array,
    steps: Steps,
    before: Walked,
    done: Walked,
    start: int,
    stop: int,
) -> None:
    """Walk the tiles ``start:stop`` through all steps, from the last step of ``before``, into
    ``done``; see ``inference.walk``."""
    ends, bias, carry = steps
    value, cost = layout.value, layout.splits
    rows, outputs, words = len(picked), bias.shape[1], done.bits.shape[2]
    last = len(before.splits) - 1
    tile = np.zeros(len(layout.columns) * ROWS_PER_WORD, dtype=np.float32)
    above_cut = np.zeros(len(layout.cut), dtype=np.uint64)
    sets = np.zeros(2 * layout.widest + 1, dtype=np.uint64)
    need = np.zeros(len(layout.columns), dtype=np.uint64)
    marks = layout.mark.view(np.uint8)
    got = np.zeros(words * ROWS_PER_WORD, dtype=np.uint64)
    turned = np.zeros(words * ROWS_PER_WORD, dtype=np.uint64)
    leaf = np.zeros(ROWS_PER_WORD, dtype=np.int32)
    total = np.zeros((outputs, ROWS_PER_WORD))
    spent = np.zeros(ROWS_PER_WORD)
    for place in range(start, stop):
        begin = place * ROWS_PER_WORD
        count = min(ROWS_PER_WORD, rows - begin)
        live = ~np.uint64(0) >> np.uint64(ROWS_PER_WORD - count)
        _fill(tile, X, picked, layout.columns, begin, count)
        _compare(layout, tile, above_cut)
        got[:] = 0
        need[:] = 0
        sets[0] = live
        for r in range(count):
            spent[r] = before.splits[last, begin + r]
            for k in range(outputs):
                total[k, r] = before.scores[last, begin + r, k]
            for w in range(words):
                got[w * ROWS_PER_WORD + r] = before.bits[last, begin + r, w]
        for w in range(words):  # from words of sensors per row to words of rows per sensor
            transpose(got, w * ROWS_PER_WORD)
        t = int(np.int64(0))  # no literal, for which ``_descend`` would be compiled once more
        for p in range(len(ends)):
            for k in range(outputs):
                for r in range(ROWS_PER_WORD):
                    total[k, r] = (total[k, r] if carry[p] else 0.0) + bias[p, k]
            while t < ends[p]:
                _descend(layout, t, above_cut, sets, need)
                _find_leaves(layout, marks, t, sets, leaf)
                line, first = total[layout.output[t]], np.uint64(layout.root[t] + t)
                for r in range(ROWS_PER_WORD):
                    at = first + np.uint64(leaf[r])
                    line[r] += value[at]
                    spent[r] += cost[at]
                t += 1
            for r in range(count):
                done.splits[p, begin + r] = spent[r]
                for k in range(outputs):
                    done.scores[p, begin + r, k] = total[k, r]
            _pay(layout, need, got)
            _report_bits(done.bits[p], got, turned, begin, count)


@inner
def _pay(layout: Layout, need: UInt64Array, got: UInt64Array) -> None:
    """Who has read a column has paid its sensors."""
    for c in range(len(need)):
        for k in range(layout.start[c], layout.start[c + 1]):
            got[layout.needed[k]] |= need[c]


@inner
def _report_bits(
    bits: UInt64Array, got: UInt64Array, turned: UInt64Array, begin: int, count: int
) -> None:
    """Turn words of rows per sensor into words of sensors per row."""
    words = bits.shape[1]
    for i in range(len(got)):
        turned[i] = got[i]
    for w in range(words):
        transpose(turned, w * ROWS_PER_WORD)
    for r in range(count):
        for w in range(words):
            bits[begin + r, w] = turned[w * ROWS_PER_WORD + r]
