"""Whole trees in one call: leaves are scored, chosen and split until something has to be done
outside, which ``grow`` returns: payments, more room, or work that is worth several threads. Under
squared loss the rows' gradients are brought up to date, and the next tree begins."""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_core.traversal.calling import calling
from bench_trees.arrays import (
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt32Array,
    UInt64Array,
)
from bench_trees.kernels import division, gradients, growth, histograms, intrinsics, splitting
from bench_trees.kernels.division import divide
from bench_trees.kernels.gradients import add_to_rows, collect
from bench_trees.kernels.growth import (
    BEGIN,
    COLUMN,
    END,
    FIRST_ROW,
    HESSIAN,
    LAST_ROW,
    PACKED,
    SCORABLE,
    SCORED,
    SLOT,
    STATE,
    GrownTree,
    Nodes,
    Rules,
    Sums,
    attach,
    begin_node,
    carry,
    choose,
    finish,
    value_leaves,
)
from bench_trees.kernels.histograms import accumulate, add_counts
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.splitting import Limits, Owed, Units, best_cuts

DONE, SPLIT, SCORE, ROOM = range(4)  # what is to be done outside
COUNT, SLOTS, FOUND, WAITING, TREES, WRITTEN = range(6)  # of ``Growing.state``
KNOWN, COUNTED, MOVED = range(3)  # of ``Carried.state``
ROOT = 0
"""The slot of the root's histogram, which outlasts the tree where the next one follows from it:
without hessians."""


class Growing(NamedTuple):
    """A growing tree; there is room for nodes and for slots, so many splits and pairs."""

    state: (
        Int64Array  # nodes, slots, splits of ``moves`` (-1: leaves need scores), pairs of ``work``;
        # trees that are done, and their nodes
    )
    sizes: Int64Array  # (trees,) nodes of each that is done
    nodes: Nodes
    gain: Float64Array  # (m, d), as ``best_cuts`` leaves them
    cut: Int32Array
    moves: Int64Array  # (m, MOVE)
    work: Int64Array  # (m, 7), pairs that wait to be scored


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
    features: Int64Array
    bins: Int64Array
    edges: Float32Array
    offset: Int64Array


class Carried(NamedTuple):
    """What takes the histogram in slot ROOT from one tree's root to that of the next one."""

    state: Int64Array  # whether this is done, or all rows counted; slots; rows that begin ``spare``
    counted: Int64Array  # (m, 2), as ``add_counts`` reads them
    # what the rows have too much is in ``Rows.in_order``


class Descent(NamedTuple):
    """How the leaves of squared loss step: down the mean gradient of their rows."""

    learning_rate: float
    alone: bool  # one thread does all
    share: float  # of a squared unit of the gradient in ``squares``
    least: float  # a finer unit is out of the question while ``squares`` is above this
    squares: Float64Array  # (1,) sum of the squares of gradients; (0,) for other losses


class Extent(NamedTuple):
    """How far to go: trees, and leaves of each; what one thread does, rows of a split, cells to
    score."""

    trees: int
    leaves: int
    rows: int
    cells: int


@calling(division, gradients, growth, histograms, intrinsics, splitting)
def grow(
    tree: Growing,
    rows: Rows,
    columns: Columns,
    sums: Sums,
    owed: Owed,
    rules: Rules,
    limits: Limits,
    carried: Carried,
    extent: Extent,
    descent: Descent,
    out: GrownTree,
) -> int:
    """Grow trees, the first a new one where there are no nodes, until they are DONE or one needs
    something outside. They are written to ``out`` one behind the other; a root that is not split
    ends them. Only squared loss gives them values, and goes on to the next one.

    SPLIT: the splits of ``moves`` are to be paid and made; SCORE: those of ``work`` to be scored;
    ROOM: for as many nodes and slots as the splits of ``moves`` need.
    """
    state, nodes, work, squares = tree.state, tree.nodes, tree.work, descent.squares
    while True:
        if state[COUNT] == 0:
            slot = ROOT + 1 if sums.hist.shape[1] == 1 else ROOT
            _begin(state, nodes.integers[0], work[0], rows.rows, rows.values, slot)
            zero = int(np.int64(0))  # no literal, for which kernels would be compiled once more
            begin_node(nodes, zero, zero, sums, rules)
        found = 0
        if state[COUNT] < 2 * extent.leaves - 1:
            if state[FOUND] < 0 or (state[WAITING] > 0 and not rules.level):
                if _cells(state, work, carried.state) * len(columns.features) > extent.cells:
                    return SCORE
                _score(tree, rows, columns, sums, owed, limits, carried)
            found = choose(
                nodes,
                state[COUNT],
                tree.gain,
                tree.cut,
                owed.coupled,
                owed.lazy,
                owed.split,
                columns.features,
                columns.bins,
                rules,
                tree.moves,
            )
        state[FOUND] = found
        if found > 0:
            moves = tree.moves[:found]
            charged, touched, slots = _demands(moves, owed.coupled, len(owed.lazy) > 0)
            if state[COUNT] + 2 * found > len(work) or state[SLOTS] + slots > len(sums.hist):
                return ROOM
            if charged or touched > extent.rows:
                return SPLIT
            divide(rows.words, moves, rows.rows, rows.spare, rows.values, rows.in_order)
            add_children(tree, sums, rules)
        elif found == 0:
            if state[COUNT] == 1:
                return DONE
            first, leaf = state[WRITTEN], (state[WRITTEN] + state[TREES]) // 2
            finish(
                nodes, state[COUNT], rules.every, columns.edges, columns.offset, first, leaf, out
            )
            tree.sizes[state[TREES]] = state[COUNT]
            state[TREES] += 1
            state[WRITTEN] += state[COUNT]
            if len(squares) == 0:
                return DONE
            _descend(nodes, first, leaf, state[COUNT], rows, sums, limits.l2, descent, out, carried)
            cells = (len(rows.rows) - carried.state[MOVED]) * CODES_PER_WORD * len(columns.groups)
            carried.state[KNOWN] = carried.state[COUNTED] * sums.hist.shape[2] < cells
            room = len(out.feature) - state[WRITTEN] - state[TREES] > len(work)
            if not room or state[TREES] == extent.trees or squares[0] <= descent.least:
                return DONE
            state[COUNT] = 0


@njit(inline="always")
def _begin(
    state: Int64Array,
    root: Int64Array,
    work: Int64Array,
    order: UInt32Array,
    values: Int64Array,
    slot: int,
) -> None:
    """A new root alone, which waits for its gains."""
    for i in range(len(order)):
        order[i] = i
    g, h, last = np.int64(0), np.int64(0), values.shape[1] - 1
    for i in range(len(values)):
        g += values[i, 0]
        h += values[i, last]
    root[PACKED], root[HESSIAN] = g, h if last > 0 else 0
    root[BEGIN], root[END], root[SLOT] = 0, len(order), slot
    work[0], work[1], work[2], work[3] = 0, len(order), slot, -1
    work[4], work[5], work[6] = 0, 0, -1
    state[COUNT], state[SLOTS], state[FOUND], state[WAITING] = 1, slot + 1, -1, 1


@njit(inline="always")
def _cells(state: Int64Array, work: Int64Array, carried: Int64Array) -> int:
    """Cells of a feature that are counted, and bins that are read, to score what waits."""
    total: int = 512 * state[WAITING]
    for i in range(state[WAITING]):
        if work[i, 3] < 0 and carried[KNOWN]:
            total += carried[MOVED] + 256 * carried[COUNTED]
        else:
            total += work[i, 1] - work[i, 0]
    return total


@njit(inline="always")
def _score(
    tree: Growing,
    rows: Rows,
    columns: Columns,
    sums: Sums,
    owed: Owed,
    limits: Limits,
    carried: Carried,
) -> None:
    """Histograms and best cuts of what waits."""
    work, hist = tree.work[: tree.state[WAITING]], sums.hist
    order, values = rows.rows, rows.in_order
    pairs = work.copy()
    if work[0, 3] < 0:
        if carried.state[KNOWN]:
            order, counted = rows.spare, carried.counted[: carried.state[COUNTED]]
            pairs[0, 1], pairs[0, 3] = carried.state[MOVED], ROOT
            pairs[0, 4] = 1  # rows with gaps
            add_counts(hist, counted, 0, hist.shape[2], sums.count_bits, ROOT)
        else:
            values = rows.values
            pairs[0, 2] = ROOT
    accumulate(rows.words, order, values, pairs, columns.groups, sums.first, hist)
    if work[0, 3] < 0 and work[0, 2] != ROOT:
        for channel in range(hist.shape[1]):
            for b in range(hist.shape[2]):
                hist[work[0, 2], channel, b] = hist[ROOT, channel, b]
    units = Units(sums.count_bits, sums.gradient, sums.hessian)
    features, first = columns.features, sums.first
    best_cuts(hist, work, features, first, units, limits, owed, tree.gain, tree.cut)
    _scored(tree.state, work, tree.nodes.integers)


@njit(inline="always")
def _scored(state: Int64Array, work: Int64Array, table: Int64Array) -> None:
    """What waited has its gains."""
    for i in range(len(work)):
        for column in range(5, 7):
            if work[i, column] >= 0:
                table[work[i, column], STATE] = SCORED
    state[WAITING], state[FOUND] = 0, 0


@njit(inline="always")
def _demands(moves: Int64Array, coupled: Float64Array, lazy: bool) -> tuple[bool, int, int]:
    """Whether a split is to be paid; rows that are moved; slots that children may need."""
    charged, touched, slots = lazy, 0, 0
    for i in range(len(moves)):
        charged |= coupled[moves[i, COLUMN]] > 0
        touched += moves[i, LAST_ROW] - moves[i, FIRST_ROW]
        slots += moves[i, SCORABLE]
    return charged, touched, slots


@calling(division, gradients, growth, histograms, intrinsics, splitting)
def add_children(tree: Growing, sums: Sums, rules: Rules) -> None:
    """Give divided nodes their children, which wait to be scored where they may be split."""
    state = tree.state
    moves, work = tree.moves[: state[FOUND]], tree.work[state[WAITING] :]
    pairs = attach(moves, tree.nodes, state[COUNT], state[SLOTS], sums, rules, work)
    state[COUNT] += 2 * len(moves)
    state[SLOTS] += pairs
    state[WAITING] += pairs


@njit(inline="always")
def _descend(
    nodes: Nodes,
    first: int,
    leaf: int,
    count: int,
    rows: Rows,
    sums: Sums,
    l2: float,
    how: Descent,
    out: GrownTree,
    carried: Carried,
) -> None:
    """Give the leaves their values; bring the gradients of rows up to date, if alone, and note by
    what the next tree's root differs."""
    bits, end = sums.count_bits, leaf + (count + 1) // 2
    ends = out.ends[leaf:end]
    steps = np.empty(len(ends), np.int64)  # in units of the gradient
    change = value_leaves(nodes, ends, how.learning_rate, l2, bits, steps)
    how.squares[0] += how.share * change
    for k in range(len(steps)):
        out.value[first + out.leaves[leaf + k]] = steps[k] * sums.gradient
    moved = np.empty((count, 3), np.int64)
    slots, ranges = carry(nodes, count, ends, steps, carried.counted, moved)
    moved = moved[:ranges]
    total = collect(moved, rows.rows, rows.copies, bits, rows.spare, rows.in_order)
    carried.state[COUNTED], carried.state[MOVED] = slots, total
    if how.alone:
        for k in range(len(steps)):
            steps[k] <<= bits
        add_to_rows(rows.values, rows.rows, out.spans[leaf:end], steps, rows.copies)
