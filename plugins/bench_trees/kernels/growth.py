"""Choice of the next leaf to split and its split; its children; the finished tree.

Nodes are numbered in the order of their creation. A node's integers are a row of ``nodes`` with the
columns below, and its ``scores`` are::

    floor   a raw gain up to this is rounding
    net     its highest net gain that may be taken, -inf if none

A finished tree can be renumbered as if its splits had been made best first.
"""

from typing import NamedTuple, Self

import numpy as np

from bench_trees.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    UInt32Array,
    UInt64Array,
)
from bench_trees.kernels.compiling import ONE, inner
from bench_trees.kernels.histograms import (
    GAPS,
    LARGE,
    LARGE_NODE,
    SMALL,
    SMALL_NODE,
    START,
    STOP,
)
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
from bench_trees.kernels.splitting import Cuts, Owed, Rules, Sums

NODES, SLOTS, FOUND, WAITING, TREES, WRITTEN, ANSWERED = range(7)  # of ``Growing.state``
DEPTH, BEGIN, END = 0, 1, 2  # its rows are at positions BEGIN:END of the row order
PACKED, HESSIAN, COUNT = 3, 4, 5  # sums of its rows in fixed point; their multiplicity
SLOT = 6  # of its histogram
STATE = 7  # NEW, then SCORED; SETTLED while ``net`` and FEATURE describe the best split
FEATURE, CUT = 8, 9  # of its best split, as ``best_cuts`` writes it
LEFT, RIGHT = 10, 11  # children, -1 at a leaf
COLUMNS = 12
NEW, SCORED, SETTLED = 0, 1, 2
FLOOR, NET = 0, 1
ROUNDING = 1e-12  # a raw gain below this share of the node's own score is rounding, not gain


class Nodes(NamedTuple):
    """The nodes of a growing tree, one per row."""

    integers: Int64Array  # (m, COLUMNS)
    scores: Float64Array  # (m, 2)


class Rows(NamedTuple):
    """Codes and gradients, and the rows in leaf order."""

    words: UInt64Array
    order: UInt32Array
    spare: UInt32Array
    values: Int64Array  # (n, channels) packed gradients, and hessians if these differ
    in_order: Int64Array  # the same for smaller children, in leaf order
    copies: Int64Array  # (n,) the multiplicity, or (0,) if all are 1


class UsableFeatures(NamedTuple):
    """Features with more than one value, which may be split, and their words."""

    groups: Int64Array  # of the words
    begins: Int64Array  # start of each word's features, and their end
    features: Int64Array
    bins: Int64Array  # (d,) for numbers
    edges: Float32Array  # of all features, feature j's from offset[j] on
    offset: Int64Array


class Growing(NamedTuple):
    """A growing tree, with room for nodes and slots, and as many splits and pairs."""

    state: (
        Int64Array  # nodes, slots, splits of ``moves`` (-1: leaves need scores), pairs of ``work``;
        # finished trees, and their nodes; the request just answered
    )
    sizes: Int64Array  # (trees,) nodes of each finished tree
    nodes: Nodes
    cuts: Cuts
    moves: Int64Array  # (m, MOVE)
    work: Int64Array  # (m, PAIR), waiting for scores
    root: Int64Array  # (1, PAIR), rows counted to score the root
    steps: Int64Array  # (m,) of leaves, in units of the gradient and packed
    values: Float64Array  # (m,) of leaves


@inner
def _choose(tree: Growing, owed: Owed, usable: UsableFeatures, rules: Rules) -> int:
    """Fill ``moves`` with the next splits and return their number; -1 if the next leaf in order has
    no gains yet."""
    (table, scores), moves = tree.nodes, tree.moves
    chosen = -ONE
    count = 0
    for i in range(tree.state[NODES]):
        node = table[i]
        if node[LEFT] >= 0 or not _may_split(node, rules):
            continue
        if node[STATE] == SCORED:
            _settle(tree, i, owed, usable.features, rules)
        if node[STATE] == SETTLED and scores[i, NET] == -np.inf:
            continue
        if rules.every:
            if node[STATE] == SETTLED:
                _write(tree, i, usable.bins, rules, moves[count])
                count += 1
        elif chosen < 0:
            chosen = i
        elif rules.level:
            deeper = node[DEPTH] - table[chosen, DEPTH]
            if deeper < 0 or (deeper == 0 and node[BEGIN] < table[chosen, BEGIN]):
                chosen = i
        elif scores[i, NET] > scores[chosen, NET]:
            chosen = i
    if rules.every or chosen < 0:
        return count
    if table[chosen, STATE] == NEW:
        return -1
    _write(tree, chosen, usable.bins, rules, moves[0])
    return 1


@inner
def _may_split(node: Int64Array, rules: Rules) -> bool:
    """True if depth and rows allow a split."""
    return bool(node[DEPTH] != rules.max_depth and node[COUNT] >= 2 * rules.min_rows)


@inner
def _settle(tree: Growing, i: int, owed: Owed, features: Int64Array, rules: Rules) -> None:
    """Set the node's highest net gain that may be taken and the lowest feature that has it."""
    node, scores, gain = tree.nodes.integers[i], tree.nodes.scores[i], tree.cuts.gain[i]
    coupled, lazy, split = owed
    best, feature = -np.inf, 0
    for j in features:
        if rules.above_floor and gain[j] <= scores[FLOOR]:
            continue
        charge = coupled[j]
        if len(lazy):
            charge += lazy[i, j]
        net = gain[j] - (charge + split[j] * node[COUNT])  # eq. 12 less eq. 13
        if net > best:
            best, feature = net, j
    scores[NET] = best if rules.always or best > 0 else -np.inf
    node[FEATURE] = feature
    node[STATE] = SETTLED


@inner
def _write(tree: Growing, i: int, bins: Int64Array, rules: Rules, move: Int64Array) -> None:
    """Write the split of a leaf as a move of its rows."""
    node = tree.nodes.integers[i]
    feature = node[FEATURE]
    node[CUT] = tree.cuts.cut[i, feature]
    move[NODE], move[FIRST_ROW], move[LAST_ROW] = i, node[BEGIN], node[END]
    move[COLUMN], move[MISSING] = feature, bins[feature]
    move[CODE], move[MISSING_LEFT] = node[CUT] // 2, node[CUT] % 2
    move[SCORABLE] = node[DEPTH] + 1 != rules.max_depth


@inner
def _add_children(tree: Growing, sums: Sums, rules: Rules) -> None:
    """Give divided nodes their children, which wait for scores if one of them may be split."""
    state, nodes, table = tree.state, tree.nodes, tree.nodes.integers
    for m in range(state[FOUND]):
        move = tree.moves[m]
        parent = table[move[NODE]]
        left, right = state[NODES], state[NODES] + 1
        state[NODES] += 2
        a, b = table[left], table[right]
        parent[LEFT], parent[RIGHT] = left, right
        a[BEGIN], a[END] = parent[BEGIN], move[MIDDLE]
        b[BEGIN], b[END] = move[MIDDLE], parent[END]
        begin, missing = sums.first[move[COLUMN]], sums.first[move[COLUMN] + 1] - 1
        for channel in range(sums.hist.shape[1]):
            bins = sums.hist[parent[SLOT], channel]
            left_sum = bins[missing] if move[MISSING_LEFT] else np.int64(0)
            for code in range(begin, begin + move[CODE] + 1):
                left_sum += bins[code]
            a[PACKED + channel] = left_sum
            b[PACKED + channel] = parent[PACKED + channel] - left_sum
        _begin_node(nodes, left, parent[DEPTH] + 1, sums, rules)
        _begin_node(nodes, right, parent[DEPTH] + 1, sums, rules)
        small, large = left, right
        if b[END] - b[BEGIN] < a[END] - a[BEGIN]:
            small, large = right, left
        table[small, SLOT], table[large, SLOT] = -1, parent[SLOT]
        if _may_split(a, rules) or _may_split(b, rules):
            table[small, SLOT] = state[SLOTS]
            pair = tree.work[state[WAITING]]
            pair[START], pair[STOP] = table[small, BEGIN], table[small, END]
            pair[SMALL], pair[LARGE] = table[small, SLOT], parent[SLOT]
            pair[GAPS], pair[SMALL_NODE], pair[LARGE_NODE] = 1, small, large
            state[SLOTS] += 1
            state[WAITING] += 1


@inner
def _begin_node(nodes: Nodes, i: int, depth: int, sums: Sums, rules: Rules) -> None:
    """Make node i a leaf without gains; its rows and their sums are known."""
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
    """A tree whose nodes have their final order, with its leaves' rows."""

    feature: Int64Array  # (nodes,) -1 at a leaf
    threshold: Float64Array  # infinite at the last bin, where every number goes left
    missing_left: BoolArray
    left: Int64Array  # numbers of nodes within the tree
    right: Int64Array
    value: Float64Array
    leaves: Int64Array  # their numbers
    ends: Int64Array  # the numbers that they had during growth
    spans: Int64Array  # (leaves, 2) begin and end of their rows; valid until the next tree is grown

    @classmethod
    def leaf(cls, nodes: int = 1) -> Self:
        """Leaves of value 0 to be overwritten; by default a single one."""
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
    """Write the values of leaves, rounded to units of the gradient, to ``steps``; return the change
    of the sum of squares."""
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
    leaf_steps: Int64Array,
    counted: Int64Array,
    moved: Int64Array,
) -> tuple[int, int]:
    """Record how the steps ``leaf_steps`` of the leaves ``ends`` change the root's histogram;
    return the numbers of rows of ``counted`` and ``moved``. Counting every root takes 1.2 to 1.3
    times as long from 10000 rows on.

    ``counted``: (slot, step), the step of every copy counted in the histogram of a leaf, or of its
    parent if it has none. ``moved``: (begin, end, step), rows of a smaller child and the difference
    of its step from its parent's.
    """
    table = nodes.integers
    steps = np.empty(count, np.int64)
    for i in range(count):
        steps[i] = 0
    for k in range(len(ends)):
        steps[ends[k]] = leaf_steps[k]
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
                moved[ranges, 0], moved[ranges, 1] = (table[small, BEGIN], table[small, END])
                moved[ranges, 2] = steps[source] - steps[small]
                ranges += 1
        if source >= 0 and steps[source] != 0:
            counted[slots, 0], counted[slots, 1] = table[source, SLOT], steps[source]
            slots += 1
    return slots, ranges


@inner
def _finish(
    nodes: Nodes,
    count: int,
    best_first: bool,
    usable: UsableFeatures,
    first: int,
    leaf: int,
    out: GrownTree,
) -> None:
    """Write the tree of ``count`` nodes, without values, from node ``first`` and leaf ``leaf`` of
    ``out`` on. With ``best_first`` nodes are numbered as in best-first growth: by highest net gain,
    on ties the first created."""
    edges, offset = usable.edges, usable.offset
    table = nodes.integers[:count]
    order = np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    if best_first:
        rank = np.empty(count, np.int64)  # 0: not there yet, -1: split
        for i in range(count):
            rank[i] = 0
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
