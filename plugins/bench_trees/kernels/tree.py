"""Complete trees in one call, since a Python step per level takes half the time of a small tree.

``grow`` scores leaves, chooses splits and divides rows until it must return for payments or more
room. Under squared loss the rows' gradients are then updated, under other losses the scores are,
and the next tree begins.

Other threads help (``task_queue``): they are in ``grow`` too.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels.compiling import ONE, ZERO, calling, inner
from bench_trees.kernels.gradients import (
    NEAR,
    _add_steps,
    _collect,
    _finest_unit,
    _slope,
    _sum,
    _sum_of_sizes,
    _write_integers,
    class_gradients,
)
from bench_trees.kernels.growth import (
    ANSWERED,
    BEGIN,
    COUNT,
    END,
    FOUND,
    HESSIAN,
    NODES,
    PACKED,
    SCORED,
    SLOT,
    SLOTS,
    STATE,
    TREES,
    WAITING,
    WRITTEN,
    Growing,
    GrownTree,
    Rows,
    UsableFeatures,
    _add_children,
    _begin_node,
    _carry,
    _choose,
    _finish,
    _value_leaves,
)
from bench_trees.kernels.histograms import (
    GAPS,
    LARGE,
    LARGE_NODE,
    PAIR,
    SMALL,
    SMALL_NODE,
    START,
    STOP,
    _accumulate,
    _add_counts,
)
from bench_trees.kernels.intrinsics import add_at_once
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.partition import COLUMN, SCORABLE, _gather, _partition
from bench_trees.kernels.splitting import Owed, Rules, Sums, best_cuts
from bench_trees.kernels.task_queue import FINISHED, KIND, PARTS, _claim, _hand_out

DONE, DIVERGED, PAY, OPEN, ROOM = range(5)  # actions required outside
GROWING = -1
KNOWN, COUNTED, MOVED = range(3)  # of ``Carried.state``
SCORING, DIVIDING = ZERO, ONE  # kinds of tasks
ROOT = 0
"""The slot of the root's histogram, which is kept if the next tree's follows from it: without
hessians."""


class Carried(NamedTuple):
    """The difference between the histogram in slot ROOT and the next tree's root."""

    state: Int64Array  # 1 if this is done, or all rows counted; slots; rows that begin ``spare``
    counted: Int64Array  # (m, 2), in the form for ``add_counts``
    # the rows' excess is in ``Rows.in_order``


class Newton(NamedTuple):
    """Gradients per copy and scores of losses except the squared one, row after row and output
    after output of K. With squared loss all are empty."""

    gradient: Float64Array  # (K n,)
    hessian: Float64Array  # (K n,), or (n,) of all outputs, or (0,) if all are 1
    scores: Float64Array  # (K n, 1), updated
    room: Float64Array  # (2,) limits of sums of gradients and hessians, in units
    # for losses of classes, whose gradients are updated as well; else both are (0,)
    y: Float64Array  # (n,) labels
    start: Float64Array  # (K n,) scores at the start


class Descent(NamedTuple):
    """Step sizes of leaves; with squared loss they follow the mean gradient of their rows."""

    learning_rate: float
    share: float  # of a squared unit of the gradient in ``squares``
    least: float  # no finer unit is possible while ``squares`` is above this
    squares: Float64Array  # (1,) sum of the squares of gradients; (0,) for other losses


class Extent(NamedTuple):
    """Limits of one call."""

    trees: int
    leaves: int  # of each tree
    cells: int  # counted for a level on one thread; more are worth several
    parts: int  # of a task
    queue: Int64Array
    helper: bool  # of the thread that grows trees


class TreeData(NamedTuple):
    """A growing tree, its rows and its charges, which all threads share."""

    tree: Growing
    rows: Rows
    usable: UsableFeatures
    sums: Sums
    rules: Rules
    owed: Owed
    carried: Carried


@calling()
def grow(
    data: TreeData,
    newton: Newton,
    out: GrownTree,
    extent: Extent,
    descent: Descent,
    scratch: Int64Array,
) -> int:
    """Grow trees until they are DONE or one needs an action outside; without nodes start a new one.
    They are written to ``out`` one after another. With squared loss an unsplit root ends them; with
    others it is a tree, and each tree belongs to the next output. With losses of classes an
    iteration of only such trees is dropped and ends them. An iteration after which the loss may be
    above its start ends them too.

    DIVERGED: gradients are not finite. PAY: pay for the splits of ``moves``. OPEN: open accounts of
    their children, which were made. ROOM: make room for the nodes and slots that ``moves`` need,
    and for another tree. The next call needs the request in ANSWERED. ``scratch``: see
    ``accumulate``.
    """
    # one way out: else numba takes twice as long to compile it
    tree, rows, usable, sums, rules, owed, carried = data
    state, nodes, work, squares = tree.state, tree.nodes, tree.work, descent.squares
    request, answered = GROWING, state[ANSWERED]
    if extent.helper:
        _do(data, extent, ZERO, ZERO, scratch)
        request = DONE
    while request == GROWING:
        if state[NODES] == 0:
            if len(out.feature) - state[WRITTEN] - state[TREES] <= len(work):
                state[FOUND] = 0
                request = ROOM
                continue
            if not _begin(tree, sums, newton, rows, rules, carried.state):
                request = DIVERGED
                continue
        count = 0
        if answered == PAY:
            count = state[FOUND]
        elif state[NODES] < 2 * extent.leaves - 1:
            if state[FOUND] < 0 or (state[WAITING] > 0 and not rules.level):
                large = _cells(tree, carried) * len(usable.features) > extent.cells
                parts = min(extent.parts if large else 1, len(usable.groups))
                _do(data, extent, SCORING, parts, scratch)
                for i in range(state[WAITING]):
                    for column in range(SMALL_NODE, LARGE_NODE + 1):
                        if work[i, column] >= 0:
                            nodes.integers[work[i, column], STATE] = SCORED
                state[WAITING], state[FOUND] = 0, 0
            count = _choose(tree, owed, usable, rules)
        state[FOUND] = count
        if count > 0:
            moves = tree.moves[:count]
            charged, slots = _demands(moves, owed.coupled, len(owed.lazy) > 0)
            if state[NODES] + 2 * count > len(work) or state[SLOTS] + slots > len(sums.hist):
                request = ROOM
                continue
            if charged and answered != PAY:
                request = PAY
                continue
            _do(data, extent, DIVIDING, count, scratch)
            answered = DONE
            _add_children(tree, sums, rules)
            if len(owed.lazy) > 0:
                request = OPEN
        elif count == 0:
            answered = DONE
            if state[NODES] == 1 and len(squares) > 0:
                request = DONE
                continue
            first, leaf = state[WRITTEN], (state[WRITTEN] + state[TREES]) // 2
            _finish(nodes, state[NODES], rules.every, usable, first, leaf, out)
            tree.sizes[state[TREES]] = state[NODES]
            if len(squares) > 0:
                _descend(tree, rows, sums, rules.l2, carried, out, first, leaf, descent)
                words = CODES_PER_WORD * len(usable.groups)
                cells = (len(rows.order) - carried.state[MOVED]) * words
                carried.state[KNOWN] = carried.state[COUNTED] * sums.hist.shape[2] < cells
            elif state[NODES] > 1:
                _step_by_sums(tree, rows, newton, rules.l2, out, first, leaf, descent.learning_rate)
            state[TREES] += 1
            state[WRITTEN] += state[NODES]
            if len(newton.y) > 0 and not _next_gradients(tree, newton, rows.copies):
                request = DONE
            if state[TREES] == extent.trees or (len(squares) > 0 and squares[0] <= descent.least):
                request = DONE
            if request == GROWING:
                state[NODES] = 0
        else:
            answered = DONE
    state[ANSWERED] = DONE
    return request


@inner
def _do(data: TreeData, extent: Extent, kind: int, parts: int, scratch: Int64Array) -> None:
    """Do all parts of a task, together with the helpers; a helper does parts of any task."""
    queue, helper, rows = extent.queue, extent.helper, data.rows
    worth = parts > 1 and (kind == SCORING or len(rows.order) > NEAR)
    shared = helper or (len(queue) > 0 and worth)
    if shared and not helper:
        _hand_out(queue, kind, parts)
    left = parts
    while True:
        if shared:
            left = _claim(queue, helper)
            kind, parts = queue[KIND], queue[PARTS]
        if left == 0:
            break
        left -= 1
        if kind == SCORING:
            words = len(data.usable.groups)
            _score(data, left * words // parts, (left + 1) * words // parts, scratch)
        else:
            move = data.tree.moves[left]
            _partition(rows.words, move, rows.order, rows.spare)
            if move[SCORABLE]:
                _gather(move, rows.order, rows.values, rows.in_order)
        if shared:
            add_at_once(queue, FINISHED, ONE)


@inner
def _score(data: TreeData, start: int, stop: int, scratch: Int64Array) -> None:
    """Histograms and best cuts of the leaves of ``work``, for the words start:stop."""
    tree, rows, sums, carried = data.tree, data.rows, data.sums, data.carried
    work, groups, hist, first = (
        tree.work[: tree.state[WAITING]],
        data.usable.groups,
        sums.hist,
        sums.first,
    )
    features = data.usable.features[data.usable.begins[start] : data.usable.begins[stop]]
    begin, last = first[features[0]], first[features[-1] + 1]
    order, values, pairs = rows.order, rows.in_order, work
    is_root = work[0, LARGE] < 0
    if is_root:
        pairs = tree.root
        if carried.state[KNOWN]:
            order, counted = rows.spare, carried.counted[: carried.state[COUNTED]]
            _add_counts(hist, counted, begin, last, sums.count_bits, ROOT)
        else:
            values = rows.values
    for number in range(start, stop):
        _accumulate(rows.words, order, values, pairs, groups, number, first, hist, scratch)
    if is_root and work[0, SMALL] != ROOT:
        for channel in range(hist.shape[1]):
            for b in range(begin, last):
                hist[work[0, SMALL], channel, b] = hist[ROOT, channel, b]
    best_cuts(sums, work, features, data.rules, data.owed, tree.cuts)


@njit(inline="always")
def _cells(tree: Growing, carried: Carried) -> int:
    """Number of counted cells of a feature and of bins read, to score the waiting leaves."""
    work, state = tree.work, carried.state
    total: int = 512 * tree.state[WAITING]
    for i in range(tree.state[WAITING]):
        if work[i, LARGE] < 0 and state[KNOWN]:
            total += state[MOVED] + 256 * state[COUNTED]
        else:
            total += work[i, STOP] - work[i, START]
    return total


@njit(inline="always")
def _begin(
    tree: Growing, sums: Sums, newton: Newton, rows: Rows, rules: Rules, carried: Int64Array
) -> bool:
    """Begin a tree with a root waiting for its gains. False if its gradients are not finite."""
    state, root, work, n = tree.state, tree.nodes.integers[0], tree.work[0], len(rows.order)
    channels = sums.hist.shape[1]
    if len(newton.gradient) > 0:
        gradient, hessian = _slopes(newton, state[TREES], n)
        sums.units[0] = _finest_unit(_sum_of_sizes(gradient, rows.copies), newton.room[0])
        if channels > 1:
            sums.units[1] = _finest_unit(_sum_of_sizes(hessian, rows.copies), newton.room[1])
        if np.isnan(sums.units[0]) or np.isnan(sums.units[channels - 1]):
            return False
    g, h = np.int64(0), np.int64(0)
    for begin in range(0, n, NEAR):
        sums_of_rows = _begin_rows(rows, sums, newton, state[TREES], begin, min(begin + NEAR, n))
        g += sums_of_rows[0]
        h += sums_of_rows[1]
    slot = ROOT + 1 if channels == 1 else ROOT
    root[PACKED], root[HESSIAN] = g, h if channels > 1 else 0
    root[BEGIN], root[END], root[SLOT] = 0, n, slot
    work[START], work[STOP], work[SMALL], work[LARGE] = 0, n, slot, -1
    work[GAPS], work[SMALL_NODE], work[LARGE_NODE] = 0, 0, -1
    # either all rows, in order, are counted to ROOT, or the excess of some is subtracted from it
    rows_of_root = tree.root[0]
    for column in range(PAIR):
        rows_of_root[column] = work[column]
    rows_of_root[SMALL] = ROOT
    if carried[KNOWN]:
        rows_of_root[STOP], rows_of_root[SMALL], rows_of_root[LARGE] = carried[MOVED], slot, ROOT
        rows_of_root[GAPS] = 1
    state[NODES], state[SLOTS], state[FOUND], state[WAITING] = 1, slot + 1, -1, 1
    _begin_node(tree.nodes, ZERO, ZERO, sums, rules)
    return True


@njit(inline="always")
def _next_gradients(tree: Growing, newton: Newton, copies: Int64Array) -> bool:
    """Gradients for the next iteration, if one is over. False if boosting must or may end.

    A convex loss l has l(start) >= l(f) + <its gradient at f, start - f>: if the last term is not
    negative, l(f) is not above l(start).
    """
    state, n = tree.state, len(newton.y)
    outputs = len(newton.scores) // n
    if state[TREES] % outputs > 0:
        return True
    split = 0
    for t in range(state[TREES] - outputs, state[TREES]):
        split += tree.sizes[t] - 1
    if split == 0:
        state[TREES] -= outputs
        state[WRITTEN] -= outputs
        return False
    class_gradients(newton.scores, newton.y, ZERO, n, newton.gradient, newton.hessian)
    return bool(_slope(newton.gradient, newton.scores, newton.start, copies) <= 0)


@njit(inline="always")
def _slopes(newton: Newton, trees: int, n: int) -> tuple[Float64Array, Float64Array]:
    """Gradients (n,) of the output for tree number ``trees``, and hessians (n,) or (0,)."""
    at = trees * n % len(newton.gradient)
    second = max(0, min(at, len(newton.hessian) - n))
    return newton.gradient[at : at + n], newton.hessian[second : second + n]


@njit(inline="always")
def _begin_rows(
    rows: Rows, sums: Sums, newton: Newton, output: int, begin: int, end: int
) -> tuple[int, int]:
    """Put rows begin:end of a new root in order, with their gradients and hessians as integers;
    return the sums of these."""
    values, order = rows.values[begin:end], rows.order
    if len(newton.gradient) > 0:
        slopes, copies = _slopes(newton, output, len(order)), rows.copies[begin:end]
        _write_integers(
            slopes[0][begin:end], copies, sums.units[0], sums.count_bits, ONE, values, ZERO
        )
        if len(slopes[1]) > 0:
            _write_integers(slopes[1][begin:end], copies, sums.units[1], ZERO, ZERO, values, ONE)
    for i in range(begin, end):
        order[i] = i
    g, h, last = np.int64(0), np.int64(0), values.shape[1] - 1
    for i in range(len(values)):
        g += values[i, 0]
        h += values[i, last]
    return int(g), int(h)


@njit(inline="always")
def _demands(moves: Int64Array, coupled: Float64Array, lazy: bool) -> tuple[bool, int]:
    """True if a split must be paid; the slots that children may need."""
    charged, slots = lazy, 0
    for i in range(len(moves)):
        charged |= coupled[moves[i, COLUMN]] > 0
        slots += moves[i, SCORABLE]
    return charged, slots


@njit(inline="always")
def _descend(
    tree: Growing,
    rows: Rows,
    sums: Sums,
    l2: float,
    carried: Carried,
    out: GrownTree,
    first: int,
    leaf: int,
    how: Descent,
) -> None:
    """Give the leaves of squared loss their values; update the rows' gradients, and note the change
    of the next tree's root."""
    nodes, count, bits = tree.nodes, tree.state[NODES], sums.count_bits
    ends = out.ends[leaf : leaf + (count + 1) // 2]
    steps = tree.steps[: len(ends)]
    change = _value_leaves(nodes, ends, how.learning_rate, l2, bits, steps)
    how.squares[0] += how.share * change
    for k in range(len(steps)):
        out.value[first + out.leaves[leaf + k]] = steps[k] * sums.units[0]
    moved = tree.work[:, :3]  # free, as nothing waits
    slots, ranges = _carry(nodes, count, ends, steps, carried.counted, moved)
    moved = moved[:ranges]
    total = _collect(moved, rows.order, rows.copies, bits, rows.spare, rows.in_order)
    carried.state[COUNTED], carried.state[MOVED] = slots, total
    for k in range(len(steps)):
        steps[k] <<= bits
    spans = out.spans[leaf : leaf + len(ends)]
    _add_steps(rows.values, rows.order, spans, steps, rows.copies)


@njit(inline="always")
def _step_by_sums(
    tree: Growing,
    rows: Rows,
    newton: Newton,
    l2: float,
    out: GrownTree,
    first: int,
    leaf: int,
    learning_rate: float,
) -> None:
    """Give the leaves of other losses Newton steps times the learning rate, and add them to the
    scores. Steps come from the sums of the rows' gradients and hessians."""
    order, copies = rows.order, rows.copies
    n, count = len(order), (tree.state[NODES] + 1) // 2
    gradient, hessian = _slopes(newton, tree.state[TREES], n)
    spans = out.spans[leaf : leaf + count]
    for k in range(count):
        leaf_rows = order[spans[k, 0] : spans[k, 1]]
        below = l2
        if len(hessian) > 0:
            below += _sum(hessian, copies, leaf_rows)
        else:
            below += float(tree.nodes.integers[out.ends[leaf + k], COUNT])
        total = _sum(gradient, copies, leaf_rows)
        value = learning_rate * (-total / below) if below > 0 else 0.0
        out.value[first + out.leaves[leaf + k]] = tree.values[k] = value
    at = tree.state[TREES] * n % len(newton.scores)
    _add_steps(newton.scores[at : at + n], order, spans, tree.values[:count], copies[:0])
