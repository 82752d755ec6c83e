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
    SCORED,
    SLOT,
    STATE,
    Nodes,
    Rules,
    Sums,
    attach,
    begin_node,
    choose,
)
from bench_trees.kernels.leaves import accumulate, divide
from bench_trees.kernels.splitting import Limits, Units, best_cuts

DONE, SPLIT, SCORE, ROOM = range(4)  # what is to be done outside
COUNT, SLOTS, FOUND, WAITING = range(4)  # of ``Growing.state``
ROOT = 0
"""The slot of the root's histogram, which outlasts the tree."""


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


class Extent(NamedTuple):
    """How far to go: leaves of the tree; rows of a split and cells to score that one thread does;
    whether slot ROOT has the root's histogram."""

    leaves: int
    rows: int
    cells: int
    known: bool


@calling(growth, leaves, splitting)
def grow(
    tree: Growing,
    rows: Rows,
    columns: Columns,
    sums: Sums,
    owed: Owed,
    rules: Rules,
    limits: Limits,
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
            if _cells(tree, columns, extent) > extent.cells:
                return SCORE
            _score(tree, rows, columns, sums, limits, extent.known)
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
        if state[COUNT] + 2 * found > len(tree.work) or state[SLOTS] + found > len(sums.hist):
            return ROOM
        moves = tree.moves[:found]
        if _charged(moves, owed) or (moves[:, LAST_ROW] - moves[:, FIRST_ROW]).sum() > extent.rows:
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
    root[END], root[SLOT] = len(order), ROOT + 1
    root[PACKED], root[HESSIAN] = rows.packed.sum(), rows.hessian.sum()
    zero = int(np.int64(0))  # no literal, for which ``begin_node`` would be compiled once more
    begin_node(tree.nodes, zero, zero, sums, rules)
    work = tree.work[0]
    work[:] = 0
    work[1], work[2], work[3], work[6] = len(order), ROOT + 1, -1, -1
    tree.state[COUNT], tree.state[SLOTS] = 1, ROOT + 2
    tree.state[FOUND], tree.state[WAITING] = -1, 1


@njit(inline="always")
def _cells(tree: Growing, columns: Columns, extent: Extent) -> int:
    """Cells that are counted, and bins that are read, to score what waits."""
    waiting = tree.state[WAITING]
    total = 512 * waiting
    for pair in tree.work[:waiting]:
        if pair[3] >= 0 or not extent.known:
            total += pair[1] - pair[0]
    cells: int = total * len(columns.features)
    return cells


@njit(inline="always")
def _score(
    tree: Growing, rows: Rows, columns: Columns, sums: Sums, limits: Limits, known: bool
) -> None:
    """Histograms and best cuts of what waits."""
    work, hist, groups = tree.work[: tree.state[WAITING]], sums.hist, columns.groups
    g, h = rows.packed_in_order, rows.hessian_in_order
    if work[0, 3] < 0:
        if not known:
            root = work.copy()
            root[0, 2] = ROOT
            g, h = rows.packed, rows.hessian
            accumulate(rows.words, rows.rows, g, h, root, groups, sums.first, hist)
        for channel in range(hist.shape[1]):
            for b in range(hist.shape[2]):
                hist[work[0, 2], channel, b] = hist[ROOT, channel, b]
    else:
        accumulate(rows.words, rows.rows, g, h, work, groups, sums.first, hist)
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
def _charged(moves: Int64Array, owed: Owed) -> bool:
    """Whether a split is to be paid."""
    charged = len(owed.lazy) > 0
    for move in moves:
        charged |= owed.coupled[move[COLUMN]] > 0
    return charged


@calling(growth, leaves, splitting)
def add_children(tree: Growing, sums: Sums, rules: Rules) -> None:
    """Give divided nodes their children, which wait to be scored where they may be split."""
    state = tree.state
    moves, work = tree.moves[: state[FOUND]], tree.work[state[WAITING] :]
    pairs = attach(moves, tree.nodes, state[COUNT], state[SLOTS], sums, rules, work)
    state[COUNT] += 2 * len(moves)
    state[SLOTS] += pairs
    state[WAITING] += pairs
