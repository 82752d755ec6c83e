"""Which leaf of a growing tree is split next, and on what; its children; the tree that remains.

Nodes are numbered in the order in which they appear. A node's integers are a row of ``nodes`` with
the columns below, and its ``scores`` are::

    floor   a raw gain up to this is rounding
    net     its highest net gain that may be taken, -inf if none

A tree that is done can be renumbered as if its splits had been made best first.
"""

from typing import NamedTuple, Self

import numpy as np

from bench_trees.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
)
from bench_trees.kernels.compiling import calling, inner
from bench_trees.kernels.partition import (
    CODE,
    COLUMN,
    FIRST_ROW,
    LAST_ROW,
    MIDDLE,
    MISSING,
    MISSING_LEFT,
    NODE,
    SCORABLE,
)

DEPTH, BEGIN, END = 0, 1, 2  # its rows are at positions BEGIN:END of the row order
PACKED, HESSIAN, COUNT = 3, 4, 5  # sums of its rows in fixed point; their multiplicity
SLOT = 6  # of its histogram
STATE = 7  # NEW, then SCORED; SETTLED while ``net`` and FEATURE are those of the best split
FEATURE, CUT = 8, 9  # of its best split, as ``best_cuts`` writes it
LEFT, RIGHT = 10, 11  # children, -1 at a leaf
COLUMNS = 12
NEW, SCORED, SETTLED = 0, 1, 2
FLOOR, NET = 0, 1
ROUNDING = 1e-12  # a raw gain below this share of the node's own score is rounding, not gain


class Nodes(NamedTuple):
    """The nodes of a growing tree, one a row."""

    integers: Int64Array  # (m, COLUMNS)
    scores: Float64Array  # (m, 2)


class Rules(NamedTuple):
    """The settings that decide on splits."""

    max_depth: int  # -1: no limit
    min_rows: int
    l2: float
    level: bool  # level by level, left to right; else the highest net gain first
    every: bool  # all leaves that are worth it at once
    above_floor: bool  # raw gains must be above rounding
    always: bool  # net gains may be negative


@inner
def _choose(
    nodes: Nodes,
    count: int,
    gain: Float64Array,
    cut: Int32Array,
    coupled: Float64Array,
    lazy: Float64Array,
    split: Float64Array,
    features: Int64Array,
    bins: Int64Array,
    rules: Rules,
    moves: Int64Array,
) -> int:
    """Fill ``moves`` with the next splits of ``count`` nodes and return their number; -1 where the
    next leaf in order has no gains yet.

    ``gain`` and ``cut`` (m, d) are those of the nodes, at ``features`` that may be split. A split
    of node i on feature j is charged coupled[j] + lazy[i, j] + split[j] * rows; ``lazy`` is (0, d)
    where nothing is lazy. ``bins`` (d,): for numbers.
    """
    table, scores = nodes.integers, nodes.scores
    nothing = np.empty(0)
    chosen = int(np.int64(-1))  # no literal, for which ``_write`` would be compiled once more
    found = 0
    for i in range(count):
        node = table[i]
        if node[LEFT] >= 0 or not _may_split(node, rules):
            continue
        if node[STATE] == SCORED:
            owed = lazy[i] if len(lazy) else nothing
            _settle(node, scores[i], gain[i], coupled, owed, split, features, rules)
        if node[STATE] == SETTLED and scores[i, NET] == -np.inf:
            continue
        if rules.every:
            if node[STATE] == SETTLED:
                _write(table, i, cut, bins, rules, moves[found])
                found += 1
        elif chosen < 0:
            chosen = i
        elif rules.level:
            other = table[chosen]
            if (node[DEPTH], node[BEGIN]) < (other[DEPTH], other[BEGIN]):
                chosen = i
        elif scores[i, NET] > scores[chosen, NET]:
            chosen = i
    if rules.every or chosen < 0:
        return found
    if table[chosen, STATE] == NEW:
        return -1
    _write(table, chosen, cut, bins, rules, moves[0])
    return 1


@inner
def _may_split(node: Int64Array, rules: Rules) -> bool:
    """True if depth and rows allow a split."""
    return bool(node[DEPTH] != rules.max_depth and node[COUNT] >= 2 * rules.min_rows)


@inner
def _settle(
    node: Int64Array,
    scores: Float64Array,
    gain: Float64Array,
    coupled: Float64Array,
    lazy: Float64Array,
    split: Float64Array,
    features: Int64Array,
    rules: Rules,
) -> None:
    """The node's highest net gain that may be taken and its lowest feature."""
    best, feature = -np.inf, 0
    for j in features:
        if rules.above_floor and gain[j] <= scores[FLOOR]:
            continue
        owed = coupled[j]
        if len(lazy):
            owed += lazy[j]
        net = gain[j] - (owed + split[j] * node[COUNT])  # eq. 12 less eq. 13
        if net > best:
            best, feature = net, j
    scores[NET] = best if rules.always or best > 0 else -np.inf
    node[FEATURE] = feature
    node[STATE] = SETTLED


@inner
def _write(
    table: Int64Array, i: int, cut: Int32Array, bins: Int64Array, rules: Rules, move: Int64Array
) -> None:
    node = table[i]
    feature = node[FEATURE]
    node[CUT] = cut[i, feature]
    move[NODE], move[FIRST_ROW], move[LAST_ROW] = i, node[BEGIN], node[END]
    move[COLUMN], move[MISSING] = feature, bins[feature]
    move[CODE], move[MISSING_LEFT] = node[CUT] // 2, node[CUT] % 2
    move[SCORABLE] = node[DEPTH] + 1 != rules.max_depth


class Sums(NamedTuple):
    """Histograms, where each feature's bins begin, and how to read them (``fixed_point``)."""

    hist: Int64Array  # (slots, channels, bins)
    first: Int64Array
    count_bits: int
    units: Float64Array  # (2,) of gradients and hessians


@inner
def _attach(
    moves: Int64Array,
    nodes: Nodes,
    count: int,
    slots: int,
    sums: Sums,
    rules: Rules,
    work: Int64Array,
) -> int:
    """Give the nodes of ``moves`` their children, numbers ``count`` and up; write the pairs of
    which one may be split, with slots from ``slots`` on, to ``work``, and return their number.

    A row of ``work`` is as ``accumulate`` and ``best_cuts`` read it.
    """
    table = nodes.integers
    pairs = 0
    for m in range(len(moves)):
        move = moves[m]
        parent = table[move[NODE]]
        left, right = count + 2 * m, count + 2 * m + 1
        a, b = table[left], table[right]
        parent[LEFT], parent[RIGHT] = left, right
        a[BEGIN], a[END], b[BEGIN], b[END] = parent[BEGIN], move[MIDDLE], move[MIDDLE], parent[END]
        begin, missing = sums.first[move[COLUMN]], sums.first[move[COLUMN] + 1] - 1
        for channel in range(sums.hist.shape[1]):
            bins = sums.hist[parent[SLOT], channel]
            a[PACKED + channel] = bins[begin : begin + move[CODE] + 1].sum()
            if move[MISSING_LEFT]:
                a[PACKED + channel] += bins[missing]
            b[PACKED + channel] = parent[PACKED + channel] - a[PACKED + channel]
        _begin_node(nodes, left, parent[DEPTH] + 1, sums, rules)
        _begin_node(nodes, right, parent[DEPTH] + 1, sums, rules)
        small, large = left, right
        if b[END] - b[BEGIN] < a[END] - a[BEGIN]:
            small, large = right, left
        table[small, SLOT], table[large, SLOT] = -1, parent[SLOT]
        if _may_split(a, rules) or _may_split(b, rules):
            table[small, SLOT] = slots + pairs
            work[pairs, 0], work[pairs, 1] = table[small, BEGIN], table[small, END]
            work[pairs, 2], work[pairs, 3] = table[small, SLOT], parent[SLOT]
            work[pairs, 4], work[pairs, 5], work[pairs, 6] = 1, small, large
            pairs += 1
    return pairs


@inner
def _begin_node(nodes: Nodes, i: int, depth: int, sums: Sums, rules: Rules) -> None:
    """Node i is a leaf without gains; its rows and their sums are known."""
    node = nodes.integers[i]
    node[DEPTH], node[STATE], node[FEATURE], node[CUT] = depth, NEW, -1, 0
    node[LEFT], node[RIGHT] = -1, -1
    node[COUNT] = node[PACKED] & ((np.int64(1) << sums.count_bits) - 1)
    plain = sums.hist.shape[1] == 1  # a row's hessian is its multiplicity
    if plain:
        node[HESSIAN] = 0
    g = (node[PACKED] >> sums.count_bits) * sums.units[0]
    h = (float(node[COUNT]) if plain else node[HESSIAN] * sums.units[1]) + rules.l2
    nodes.scores[i, FLOOR] = ROUNDING * g * g / h if h > 0 else 0.0
    nodes.scores[i, NET] = -np.inf


class GrownTree(NamedTuple):
    """A tree whose nodes have their final order, and its leaves' rows."""

    feature: Int64Array  # (nodes,) -1 at a leaf
    threshold: Float64Array  # infinite at the last bin, where every number goes left
    missing_left: BoolArray
    left: Int64Array  # numbers of nodes within the tree
    right: Int64Array
    value: Float64Array
    leaves: Int64Array  # their numbers
    ends: Int64Array  # the numbers that they had while the tree grew
    spans: Int64Array  # (leaves, 2) where their rows begin and end; until the next tree is grown

    @classmethod
    def leaf(cls, nodes: int = 1) -> Self:
        """Nothing but leaves of value 0, to be overwritten; by default a single one."""
        feature, left, right = np.full((3, nodes), -1)
        threshold, value = np.zeros((2, nodes))
        ends = np.zeros((nodes + 1) // 2, np.int64)
        missing, spans = np.zeros(nodes, np.bool_), np.zeros((len(ends), 2), np.int64)
        return cls(feature, threshold, missing, left, right, value, ends, ends.copy(), spans)


@inner
def _value_leaves(
    nodes: Nodes,
    ends: Int64Array,
    learning_rate: float,
    l2: float,
    count_bits: int,
    steps: Int64Array,
) -> float:
    """Write the values of leaves, rounded to units of the gradient, to ``steps``; the change of the
    sum of squares."""
    change = 0.0
    for k in range(len(ends)):
        node = nodes.integers[ends[k]]
        g = node[PACKED] >> count_bits
        rows = node[COUNT]
        steps[k] = np.int64(np.rint(-learning_rate * g / (rows + l2)))
        change += float(steps[k]) * (2 * float(g) + float(rows) * float(steps[k]))
    return change


@inner
def _carry(
    nodes: Nodes,
    count: int,
    ends: Int64Array,
    own: Int64Array,
    counted: Int64Array,
    moved: Int64Array,
) -> tuple[int, int]:
    """Write the difference between this root's histogram and the next tree's, where the leaves
    ``ends`` make the steps ``own``; return how many rows of ``counted`` and ``moved`` there are.

    ``counted``: (slot, step), the step of every copy counted in the histogram of a leaf, or of its
    parent if it has none. ``moved``: (begin, end, step), rows of a smaller child whose own step
    differs from its parent's by that.
    """
    table = nodes.integers
    steps = np.zeros(count, np.int64)
    for k in range(len(ends)):
        steps[ends[k]] = own[k]
    slots, ranges = 0, 0
    for i in range(count):
        source = -1
        if table[i, LEFT] < 0:
            if table[i, STATE] != NEW:
                source = i
        elif table[table[i, LEFT], STATE] == NEW:
            small, source = table[i, LEFT], table[i, RIGHT]
            if table[small, SLOT] == table[i, SLOT]:
                small, source = source, small
            if steps[small] != steps[source]:
                moved[ranges, 0], moved[ranges, 1] = table[small, BEGIN], table[small, END]
                moved[ranges, 2] = steps[source] - steps[small]
                ranges += 1
        if source >= 0 and steps[source] != 0:
            counted[slots, 0], counted[slots, 1] = table[source, SLOT], steps[source]
            slots += 1
    return slots, ranges


@calling()
def finish(
    nodes: Nodes,
    count: int,
    best_first: bool,
    edges: Float32Array,
    offset: Int64Array,
    first: int,
    leaf: int,
    out: GrownTree,
) -> None:
    """The tree of ``count`` nodes, but for its values, from node ``first`` and leaf ``leaf`` of
    ``out`` on. With ``best_first`` nodes are numbered as
    they appear when the open node of highest net gain, on ties the one that appeared first, is
    always split next."""
    table = nodes.integers[:count]
    order = np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    if best_first:
        rank = np.zeros(count, np.int64)  # 0: not yet there, -1: split
        order[0], rank[0], filled = 0, 1, 1
        while True:
            best = -1
            for at in range(filled):
                i = order[at]
                open_split = rank[i] > 0 and table[i, LEFT] >= 0
                if open_split and (best < 0 or nodes.scores[i, NET] > nodes.scores[best, NET]):
                    best = i
            if best < 0:
                break
            rank[best] = -1
            for child in (table[best, LEFT], table[best, RIGHT]):
                order[filled] = child
                rank[child] = 1
                filled += 1
    number = np.empty(count, np.int64)
    for new in range(count):
        number[order[new]] = new
    for new in range(count):
        node, at = table[order[new]], first + new
        if node[LEFT] < 0:
            out.leaves[leaf], out.ends[leaf] = new, order[new]
            out.spans[leaf, 0], out.spans[leaf, 1] = node[BEGIN], node[END]
            leaf += 1
            continue
        j = node[FEATURE]
        edge = offset[j] + node[CUT] // 2
        out.feature[at] = j
        out.threshold[at] = edges[edge] if edge < offset[j + 1] else np.inf
        out.missing_left[at] = node[CUT] % 2 == 1
        out.left[at], out.right[at] = number[node[LEFT]], number[node[RIGHT]]
