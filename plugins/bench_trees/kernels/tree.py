"""A whole tree in one call: leaves are scored, chosen and split until something has to be done
outside, which ``grow`` returns: payments, more room, or work that is worth several threads."""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int32Array, Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels import growth, leaves, splitting
from bench_trees.kernels.calling import calling
from bench_trees.kernels.growth import (
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
    value_leaves,
)
from bench_trees.kernels.leaves import accumulate, add_counts, add_to_rows, collect, divide
from bench_trees.kernels.splitting import Limits, Units, best_cuts

DONE, SPLIT, SCORE, ROOM = range(4)  # what is to be done outside
COUNT, SLOTS, FOUND, WAITING = range(4)  # of ``Growing.state``
ROOT = 0
"""The slot of the root's histogram, which outlasts the tree where the next one follows from it:
without hessians."""


class Growing(NamedTuple):
    """A growing tree; there is room for nodes and for slots, so many splits and pairs."""

    state: (
        Int64Array  # nodes, slots, splits of ``moves`` (-1: leaves need scores), pairs of ``work``
    )
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
    packed: Int64Array
    hessian: Int64Array
    packed_in_order: Int64Array
    hessian_in_order: Int64Array


class Columns(NamedTuple):
    """What may be split: words and features with more than one value; bins (d,) for numbers."""

    groups: Int64Array
    features: Int64Array
    bins: Int64Array


class Owed(NamedTuple):
    """The three terms of eq. 13, as ``choose`` reads them."""

    coupled: Float64Array
    lazy: Float64Array
    split: Float64Array


class Carried(NamedTuple):
    """What takes the histogram in slot ROOT from one tree's root to that of the next one, as
    ``descend`` left it; ``known``: whether this is done, or all rows counted."""

    known: bool
    counted: Int64Array  # (slots, 2), as ``add_counts`` reads them
    rows: int  # that begin ``spare``, with what they have too much in ``packed_in_order``


class Extent(NamedTuple):
    """How far to go: leaves of the tree; what one thread does, rows of a split, cells to score."""

    leaves: int
    rows: int
    cells: int


@calling(growth, leaves, splitting)
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
) -> int:
    """Grow a tree, a new one where it has no nodes, until it is DONE or needs something outside.

    SPLIT: the splits of ``moves`` are to be paid and made; SCORE: those of ``work`` to be scored;
    ROOM: for as many nodes and slots as the splits of ``moves`` need.
    """
    state = tree.state
    if state[COUNT] == 0:
        _begin(tree, rows, sums, rules)
    while state[COUNT] < 2 * extent.leaves - 1:
        if state[FOUND] < 0 or (state[WAITING] > 0 and not rules.level):
            if _cells(tree, columns, carried) > extent.cells:
                return SCORE
            _score(tree, rows, columns, sums, limits, carried)
        state[FOUND] = choose(
            tree.nodes,
            state[COUNT],
            tree.gain,
            tree.cut,
            owed.coupled,
            owed.lazy,
            owed.split,
            columns.bins,
            rules,
            tree.moves,
        )
        found = state[FOUND]
        if found == 0:
            break
        if found < 0:
            continue
        moves = tree.moves[:found]
        charged, touched, slots = _demands(moves, owed)
        if state[COUNT] + 2 * found > len(tree.work) or state[SLOTS] + slots > len(sums.hist):
            return ROOM
        if charged or touched > extent.rows:
            return SPLIT
        divide(
            rows.words,
            moves,
            rows.rows,
            rows.spare,
            rows.packed,
            rows.hessian,
            rows.packed_in_order,
            rows.hessian_in_order,
        )
        add_children(tree, sums, rules)
    return DONE


@njit(inline="always")
def _begin(tree: Growing, rows: Rows, sums: Sums, rules: Rules) -> None:
    """A new root alone, which waits for its gains."""
    order = rows.rows
    for i in range(len(order)):
        order[i] = i
    root = tree.nodes.integers[0]
    root[:] = 0
    slot = ROOT + 1 if sums.hist.shape[1] == 1 else ROOT
    root[END], root[SLOT] = len(order), slot
    root[PACKED], root[HESSIAN] = rows.packed.sum(), rows.hessian.sum()
    zero = int(np.int64(0))  # no literal, for which ``begin_node`` would be compiled once more
    begin_node(tree.nodes, zero, zero, sums, rules)
    work = tree.work[0]
    work[:] = 0
    work[1], work[2], work[3], work[6] = len(order), slot, -1, -1
    tree.state[COUNT], tree.state[SLOTS] = 1, slot + 1
    tree.state[FOUND], tree.state[WAITING] = -1, 1


@njit(inline="always")
def _cells(tree: Growing, columns: Columns, carried: Carried) -> int:
    """Cells that are counted, and bins that are read, to score what waits."""
    waiting = tree.state[WAITING]
    total = 512 * waiting
    for pair in tree.work[:waiting]:
        if pair[3] < 0 and carried.known:
            total += carried.rows + 256 * len(carried.counted)
        else:
            total += pair[1] - pair[0]
    cells: int = total * len(columns.features)
    return cells


@njit(inline="always")
def _score(
    tree: Growing, rows: Rows, columns: Columns, sums: Sums, limits: Limits, carried: Carried
) -> None:
    """Histograms and best cuts of what waits."""
    work, hist = tree.work[: tree.state[WAITING]], sums.hist
    order, g, h = rows.rows, rows.packed_in_order, rows.hessian_in_order
    pairs = work.copy()
    if work[0, 3] < 0:
        if carried.known:
            order = rows.spare
            pairs[0, 1], pairs[0, 3], pairs[0, 4] = carried.rows, ROOT, 1  # far: rows with gaps
            add_counts(hist, carried.counted, 0, hist.shape[2], sums.count_bits, ROOT)
        else:
            g, h = rows.packed, rows.hessian
            pairs[0, 2] = ROOT
    accumulate(rows.words, order, g, h, pairs, columns.groups, sums.first, hist)
    if work[0, 3] < 0 and work[0, 2] != ROOT:
        for channel in range(hist.shape[1]):
            for b in range(hist.shape[2]):
                hist[work[0, 2], channel, b] = hist[ROOT, channel, b]
    units = Units(sums.count_bits, sums.gradient, sums.hessian)
    best_cuts(hist, work, columns.features, sums.first, units, limits, tree.gain, tree.cut)
    _scored(tree)


@njit(inline="always")
def _scored(tree: Growing) -> None:
    """What waited has its gains."""
    for pair in tree.work[: tree.state[WAITING]]:
        for node in pair[5:7]:
            if node >= 0:
                tree.nodes.integers[node, STATE] = SCORED
    tree.state[WAITING], tree.state[FOUND] = 0, 0


@njit(inline="always")
def _demands(moves: Int64Array, owed: Owed) -> tuple[bool, int, int]:
    """Whether a split is to be paid; rows that are moved; slots that children may need."""
    charged, touched, slots = len(owed.lazy) > 0, 0, 0
    for move in moves:
        charged |= owed.coupled[move[COLUMN]] > 0
        touched += move[LAST_ROW] - move[FIRST_ROW]
        slots += move[SCORABLE]
    return charged, touched, slots


@calling(growth, leaves, splitting)
def add_children(tree: Growing, sums: Sums, rules: Rules) -> None:
    """Give divided nodes their children, which wait to be scored where they may be split."""
    state = tree.state
    moves, work = tree.moves[: state[FOUND]], tree.work[state[WAITING] :]
    pairs = attach(moves, tree.nodes, state[COUNT], state[SLOTS], sums, rules, work)
    state[COUNT] += 2 * len(moves)
    state[SLOTS] += pairs
    state[WAITING] += pairs


class Descent(NamedTuple):
    """How the leaves of squared loss step: down the mean gradient of their rows."""

    learning_rate: float
    l2: float
    count_bits: int
    unit: float
    alone: bool  # one thread does all


@calling(growth, leaves, splitting)
def descend(
    nodes: Nodes,
    tree: GrownTree,
    rows: Rows,
    copies: Int64Array,
    how: Descent,
    own: Int64Array,
    counted: Int64Array,
) -> tuple[float, int, int]:
    """Give the leaves their values, in units of the gradient in ``own``; bring the gradients of
    rows up to date, if alone. The change of the sum of squares; and what ``Carried`` has for the
    next tree: how many slots, in ``counted``, and rows."""
    bits, count = how.count_bits, len(tree.feature)
    change = value_leaves(nodes, tree.ends, how.learning_rate, how.l2, bits, own)
    for k in range(len(own)):
        tree.value[tree.leaves[k]] = own[k] * how.unit
    moved = np.empty((count, 3), np.int64)
    slots, ranges = carry(nodes, count, tree.ends, own, counted, moved)
    total = collect(moved[:ranges], rows.rows, copies, bits, rows.spare, rows.packed_in_order)
    if how.alone:
        add_to_rows(rows.packed, rows.rows, tree.spans, own << bits, copies)
    return change, slots, total
