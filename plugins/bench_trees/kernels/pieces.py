"""Pieces of a tree's growth, which threads do side by side.

What has to be done for a level of leaves, or for all rows, is a task, and its pieces write nowhere
else than others of them do.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import (
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt32Array,
    UInt64Array,
)
from bench_trees.kernels import histograms
from bench_trees.kernels.compiling import inner_borrowing
from bench_trees.kernels.division import _partition, _settle
from bench_trees.kernels.gradients import _add_steps, _add_up, _sum_of_sizes, _write_integers
from bench_trees.kernels.growth import GrownTree, Nodes, Sums
from bench_trees.kernels.histograms import accumulate, add_counts
from bench_trees.kernels.sharing import (
    ENDED,
    PATIENCE,
    _all_done,
    _finished,
    _kind,
    _post,
    _rest,
    _take,
)
from bench_trees.kernels.splitting import Limits, Owed, Units, best_cuts

COUNT, SLOTS, FOUND, WAITING, TREES, WRITTEN, PAID, WORDS = range(8)  # of ``Growing.state``
KNOWN, COUNTED, MOVED = range(3)  # of ``Carried.state``
ROOT = 0
"""The slot of the root's histogram, which outlasts the tree where the next one follows from it:
without hessians."""

HELP, SIZES, BEGIN, SCORE_WORDS, PARTITION, SETTLE, STEP, SUM, ADD = range(9)  # tasks
PIECE = 1 << 15  # rows of a piece of SIZES, BEGIN, STEP and ADD
PART = 1 << 14  # rows of a piece of PARTITION and SETTLE
SCRATCH = histograms.SCRATCH + 7  # numbers, 0 at first, that a thread needs to work with


class Growing(NamedTuple):
    """A growing tree; there is room for nodes and for slots, so many splits and pairs."""

    state: (
        Int64Array  # nodes, slots, splits of ``moves`` (-1: leaves need scores), pairs of ``work``;
        # trees that are done, and their nodes; whether the splits are paid; words of a piece
    )
    sizes: Int64Array  # (trees,) nodes of each that is done
    nodes: Nodes
    gain: Float64Array  # (m, d), as ``best_cuts`` leaves them
    cut: Int32Array
    reached: Float64Array  # (m,), as ``best_cuts`` uses it
    moves: Int64Array  # (m, MOVE)
    work: Int64Array  # (m, 7), pairs that wait to be scored
    parts: Int64Array  # of splits, as ``_cut_up`` writes them
    steps: Int64Array  # (m,) of leaves, in units of the gradient and packed
    sums: Float64Array  # (m, 2) of leaves, of gradients and hessians
    values: Float64Array  # (m,) of leaves
    leaves: Int64Array  # (2,) where those of the tree begin in ``GrownTree.spans``; their number


class Rows(NamedTuple):
    """Codes and gradients, and the rows in leaf order."""

    words: UInt64Array
    rows: UInt32Array
    spare: UInt32Array
    values: Int64Array  # (n, channels), of ``FixedPoint``
    in_order: Int64Array  # the same of smaller children, in leaf order
    copies: Int64Array  # (n,) the multiplicity, or (0,) where all are 1


class Columns(NamedTuple):
    """What may be split: words and features with more than one value; bins (d,) for numbers, and
    their edges, those of feature j from offset[j] on."""

    groups: Int64Array
    begins: Int64Array  # where the features of each group begin, and their end
    features: Int64Array
    bins: Int64Array
    edges: Float32Array
    offset: Int64Array


class Carried(NamedTuple):
    """What takes the histogram in slot ROOT from one tree's root to that of the next one."""

    state: Int64Array  # whether this is done, or all rows counted; slots; rows that begin ``spare``
    counted: Int64Array  # (m, 2), as ``add_counts`` reads them
    # what the rows have too much is in ``Rows.in_order``


class Newton(NamedTuple):
    """What other losses than the squared one grow trees from, one for each of K outputs: gradients
    per copy, row after row and output after output. With squared loss all are empty."""

    gradient: Float64Array  # (K n,)
    hessian: Float64Array  # (K n,), or (n,) of all outputs, or (0,) where all are 1
    scores: Float64Array  # (K n, 1), which are brought up to date
    room: Float64Array  # (2,) what sums of gradients and hessians may reach, in units
    sizes: Float64Array  # (pieces, 2) sums of the sizes of a piece's gradients and hessians


class Shared(NamedTuple):
    """All that a piece reads and writes."""

    tree: Growing
    rows: Rows
    columns: Columns
    sums: Sums
    owed: Owed
    limits: Limits
    carried: Carried
    newton: Newton
    out: GrownTree


@inner_borrowing
def _do_piece(shared: Shared, kind: int, piece: int, scratch: Int64Array) -> None:
    """A piece of a task of that kind, with the thread's own ``scratch`` (SCRATCH,)."""
    tree, rows, out = shared.tree, shared.rows, shared.out
    leaf, leaves = tree.leaves[0], tree.leaves[1]
    begin, end = piece * PIECE, min((piece + 1) * PIECE, len(rows.rows))
    if kind == SIZES:
        _measure(shared, begin, end, shared.newton.sizes[piece])
    elif kind == BEGIN:
        _begin_rows(shared, begin, end, tree.parts[piece])
    elif kind == SCORE_WORDS:
        start = piece * tree.state[WORDS]
        stop = min(start + tree.state[WORDS], len(shared.columns.groups))
        _score_words(shared, start, stop, scratch)
    elif kind == PARTITION:
        parts = tree.parts[piece : piece + 1]
        _partition(rows.words, parts, rows.rows, rows.spare, rows.spare)
    elif kind == SETTLE:
        parts = tree.parts[piece : piece + 1]
        stay = bool(np.bool_(False))  # no literal, for which it would be compiled once more
        _settle(parts, stay, rows.spare, rows.rows, rows.values, rows.in_order)
    elif kind == SUM:
        own = out.spans[leaf + piece : leaf + piece + 1]
        slopes = _slopes(shared)
        _add_up(slopes[0], slopes[1], rows.copies, rows.rows, own, tree.sums[piece : piece + 1])
    else:
        spans = out.spans[leaf : leaf + leaves]
        if kind == STEP:
            steps = tree.steps[:leaves]
            _add_steps(rows.values, rows.rows, spans, steps, rows.copies, begin, end)
        else:
            none, values = rows.copies[:0], tree.values[:leaves]
            n = len(rows.rows)
            scores = shared.newton.scores[tree.state[TREES] * n : (tree.state[TREES] + 1) * n]
            _add_steps(scores, rows.rows, spans, values, none, begin, end)


@njit(inline="always")
def _slopes(shared: Shared) -> tuple[Float64Array, Float64Array]:
    """Gradients (n,) of the output whose tree grows, and hessians (n,) or (0,)."""
    newton, n = shared.newton, len(shared.rows.rows)
    at = shared.tree.state[TREES] * n
    second = max(0, min(at, len(newton.hessian) - n))
    return newton.gradient[at : at + n], newton.hessian[second : second + n]


@njit(inline="always")
def _measure(shared: Shared, begin: int, end: int, out: Float64Array) -> None:
    """Sums of the sizes of the gradients and hessians of rows begin:end, times copies."""
    slopes, copies = _slopes(shared), shared.rows.copies[begin:end]
    out[0] = _sum_of_sizes(slopes[0][begin:end], copies)
    out[1] = _sum_of_sizes(slopes[1][begin:end], copies[: len(slopes[1])])


@njit(inline="always")
def _begin_rows(shared: Shared, begin: int, end: int, out: Int64Array) -> None:
    """Rows begin:end of a new root in order, with their gradients and hessians as integers; the
    sums of these."""
    rows, sums = shared.rows, shared.sums
    own, order = rows.values[begin:end], rows.rows
    if len(shared.newton.gradient) > 0:
        slopes, copies = _slopes(shared), rows.copies[begin:end]
        # no literals, for which it would be compiled once more
        one, zero = int(np.int64(1)), int(np.int64(0))
        _write_integers(
            slopes[0][begin:end], copies, sums.units[0], sums.count_bits, one, own, zero
        )
        if len(slopes[1]) > 0:
            _write_integers(slopes[1][begin:end], copies, sums.units[1], zero, zero, own, one)
    for i in range(begin, end):
        order[i] = i
    g, h, last = np.int64(0), np.int64(0), own.shape[1] - 1
    for i in range(len(own)):
        g += own[i, 0]
        h += own[i, last]
    out[0], out[1] = g, h


@inner_borrowing
def _do(
    shared: Shared, kind: int, pieces: int, alone: bool, board: Int64Array, scratch: Int64Array
) -> None:
    """Do a task, with whoever helps unless ``alone``; where its kind is HELP, pieces of the tasks
    that another thread posts, until no more will come."""
    done = waited = 0
    if not alone and kind != HELP:
        _post(board, kind, pieces)
    while True:
        piece = (done if done < pieces else ENDED) if alone else _take(board)
        if piece >= 0:
            _do_piece(shared, kind if alone else _kind(board), piece, scratch)
            if not alone:
                _finished(board)
            done += 1
            waited = 0
        elif piece == ENDED or (waited == PATIENCE if kind == HELP else _all_done(board, pieces)):
            return
        else:
            _rest(waited)
            waited += 1


@njit(inline="always")
def _score_words(shared: Shared, start: int, stop: int, scratch: Int64Array) -> None:
    """Histograms and best cuts of what waits, for some of the words."""
    tree, rows, columns, carried = shared.tree, shared.rows, shared.columns, shared.carried
    sums, owed, limits = shared.sums, shared.owed, shared.limits
    work, hist, first = tree.work[: tree.state[WAITING]], sums.hist, sums.first
    features = columns.features[columns.begins[start] : columns.begins[stop]]
    begin, last = first[features[0]], first[features[-1] + 1]
    order, values = rows.rows, rows.in_order
    pairs = work
    if work[0, 3] < 0:
        pairs = scratch[histograms.SCRATCH :].reshape(1, 7)
        for column in range(7):
            pairs[0, column] = work[0, column]
        if carried.state[KNOWN]:
            order, counted = rows.spare, carried.counted[: carried.state[COUNTED]]
            pairs[0, 1], pairs[0, 3] = carried.state[MOVED], ROOT
            pairs[0, 2] = ROOT + 1
            pairs[0, 4] = 1  # rows with gaps
            add_counts(hist, counted, begin, last, sums.count_bits, ROOT)
        else:
            values = rows.values
            pairs[0, 2] = ROOT
    for number in range(start, stop):
        accumulate(rows.words, order, values, pairs, columns.groups, number, first, hist, scratch)
    if work[0, 3] < 0 and work[0, 2] != ROOT:
        for channel in range(hist.shape[1]):
            for b in range(begin, last):
                hist[work[0, 2], channel, b] = hist[ROOT, channel, b]
    units = Units(sums.count_bits, sums.units[0], sums.units[1])
    best_cuts(hist, work, features, first, units, limits, owed, tree.gain, tree.cut, tree.reached)
