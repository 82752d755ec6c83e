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
result would have to be packed bit by bit. What is written so, with the plain loops for machines and
numbas that do not take it, stands in ``bench_core.traversal``, since exported models share it.
"""

import numpy as np

from bench_core.traversal import leaves, llvm, trees, vectors
from bench_core.traversal.calling import calling, inner
from bench_core.traversal.leaves import add_leaves
from bench_core.traversal.trees import (
    FEW,
    add_lengths,
    aligned,
    descend,
    descend_few,
    find_leaves,
    gather,
    settle,
)
from bench_core.traversal.vectors import (
    above,
    above_or_missing,
    number_few,
    transpose,
)
from bench_trees.arrays import Float32Array, Int64Array, UInt64Array
from bench_trees.kernels.records import Layout, Steps, Walked

ROWS_PER_WORD = vectors.ROWS


@inner
def _compare(layout: Layout, tile: Float32Array, above_cut: UInt64Array) -> None:
    """The rows of a tile that are above each distinct threshold of a column."""
    column, threshold, missing_left = layout.cut_column, layout.cut, layout.missing_left
    for k in range(len(threshold)):
        at = np.int64(column[k]) * ROWS_PER_WORD
        if missing_left[k]:
            above(above_cut, k, tile, at, threshold[k])
        else:
            above_or_missing(above_cut, k, tile, at, threshold[k])


@calling(leaves, llvm, trees, vectors)
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
    value, cost, root, output = layout.value, layout.splits, layout.root, layout.output
    short, counts = layout.short, aligned(2 * ROWS_PER_WORD).view(np.uint16)
    source, of_cut, column, after = layout.source, layout.of_cut, layout.column, layout.after
    outputs, words, last = bias.shape[1], done.bits.shape[2], len(before.splits) - 1
    tile = aligned(4 * (len(layout.columns) + 1) * ROWS_PER_WORD).view(np.float32)
    above_cut = np.zeros(len(layout.cut), dtype=np.uint64)
    sets = np.zeros(2 * layout.widest + 1, dtype=np.uint64)
    need = np.zeros(len(layout.columns), dtype=np.uint64)
    marks, leaf = layout.mark.view(np.uint8), aligned(ROWS_PER_WORD)
    got = np.zeros(words * ROWS_PER_WORD, dtype=np.uint64)
    turned = np.zeros(words * ROWS_PER_WORD, dtype=np.uint64)
    near, found = np.zeros((2, ROWS_PER_WORD), dtype=np.int64)
    total = aligned(8 * outputs * ROWS_PER_WORD).view(np.float64)
    spent = aligned(8 * ROWS_PER_WORD).view(np.float64)
    for place in range(start, stop):
        begin = place * ROWS_PER_WORD
        count = min(ROWS_PER_WORD, len(picked) - begin)
        for r in range(ROWS_PER_WORD):
            near[r] = picked[begin + min(r, count - 1)]
        gather(tile, X, near, layout.columns, layout.squares)
        _compare(layout, tile, above_cut)
        got[:] = 0
        need[:] = 0
        sets[0] = ~np.uint64(0) >> np.uint64(ROWS_PER_WORD - count)
        for r in range(count):
            spent[r] = before.splits[last, begin + r]
            for k in range(outputs):
                total[ROWS_PER_WORD * k + r] = before.scores[last, begin + r, k]
            for w in range(words):
                got[w * ROWS_PER_WORD + r] = before.bits[last, begin + r, w]
        for w in range(words):  # from words of sensors per row to words of rows per sensor
            transpose(got, w * ROWS_PER_WORD)
        t = pending = 0
        for p in range(len(ends)):
            for k in range(outputs):
                for r in range(ROWS_PER_WORD * k, ROWS_PER_WORD * (k + 1)):
                    total[r] = (total[r] if carry[p] else 0.0) + bias[p, k]
            while t < ends[p]:
                first, end, line = root[t], root[t + 1], ROWS_PER_WORD * output[t]
                if end - first <= FEW:
                    descend_few(first, end, source, of_cut, column, above_cut, sets, need)
                    number_few(leaf, sets, marks, 4 * first, end - first)
                    add_leaves(total, line, leaf, end - first + 1, value, first + t, 1.0)
                    if len(short) == 0:
                        add_leaves(spent, 0, leaf, end - first + 1, cost, first + t, 1.0)
                    else:
                        pending = add_lengths(
                            pending, spent, counts, leaf, end - first + 1, short, first + t
                        )
                else:
                    descend(first, end, source, of_cut, column, after, above_cut, sets, need)
                    find_leaves(first, end - first, marks, sets, leaf, found, first + t)
                    for r in range(ROWS_PER_WORD):
                        total[line + r] += value[np.uint64(found[r])]
                        spent[r] += cost[np.uint64(found[r])]
                t += 1
            pending = settle(spent, counts)
            for r in range(count):
                done.splits[p, begin + r] = spent[r]
                for k in range(outputs):
                    done.scores[p, begin + r, k] = total[ROWS_PER_WORD * k + r]
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
