"""Whole trees in one call: leaves are scored, chosen and split until something has to be done
outside, which ``grow`` returns: payments, or more room. What is worth several threads is posted for
those that help. Under squared loss the rows' gradients are brought up to date, and the next tree
begins; under others the scores are."""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels import (
    division,
    gradients,
    growth,
    histograms,
    intrinsics,
    pieces,
    sharing,
    splitting,
)
from bench_trees.kernels.compiling import calling
from bench_trees.kernels.division import _arrange, _cut_up, _partition, _settle
from bench_trees.kernels.gradients import _collect, _finest_unit
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
    Rules,
    Sums,
    _attach,
    _begin_node,
    _carry,
    _choose,
    _value_leaves,
    finish,
)
from bench_trees.kernels.growth import COUNT as MULTIPLICITY
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.pieces import (
    ADD,
    BEGIN,
    COUNT,
    COUNTED,
    FOUND,
    HELP,
    KNOWN,
    MOVED,
    PAID,
    PART,
    PARTITION,
    PIECE,
    ROOT,
    SCORE_WORDS,
    SETTLE,
    SIZES,
    SLOTS,
    STEP,
    SUM,
    TREES,
    WAITING,
    WORDS,
    WRITTEN,
    Growing,
    Shared,
    _do,
)
from bench_trees.kernels.sharing import ONE

DONE, DIVERGED, PAY, OPEN, SCORE, ROOM = range(6)  # what is to be done outside
WORTH = 40_000  # cells, or rows, below which others are not asked to help: some 10 us


class Descent(NamedTuple):
    """How leaves step; those of squared loss down the mean gradient of their rows."""

    learning_rate: float
    share: float  # of a squared unit of the gradient in ``squares``
    least: float  # a finer unit is out of the question while ``squares`` is above this
    squares: Float64Array  # (1,) sum of the squares of gradients; (0,) for other losses


class Extent(NamedTuple):
    """How far to go: trees, and leaves of each; whether leaves are scored outside."""

    trees: int
    leaves: int
    outside: bool


@calling(
    division, gradients, growth, histograms, intrinsics, pieces, sharing, splitting, borrowing=True
)
def grow(
    shared: Shared,
    rules: Rules,
    extent: Extent,
    descent: Descent,
    scratch: Int64Array,
    board: Int64Array,
    helping: bool,
) -> int:
    """Grow trees, the first a new one where there are no nodes, until they are DONE or one needs
    something outside. They are written to ``out`` one behind the other. With squared loss a root
    that is not split ends them; with others it is a tree, and each is that of the next output.

    DIVERGED: gradients are not finite; PAY: the splits of ``moves`` are to be paid; OPEN: accounts
    of their children to be opened, which were made; SCORE: the leaves of ``work`` to be scored;
    ROOM: for as many nodes and slots as the splits of ``moves`` need, and for another tree.
    ``scratch`` (SCRATCH,): the thread's own, zeros before and after but for the last seven.
    ``board``: where others help, else (0,). They call the same with ``helping``, which compiles no
    second kernel, and have a share in the work until the board says that no more will come.
    """
    tree, rows, columns, sums = shared.tree, shared.rows, shared.columns, shared.sums
    owed, carried, out = shared.owed, shared.carried, shared.out
    state, nodes, work, squares = tree.state, tree.nodes, tree.work, descent.squares
    if helping:
        none = int(np.int64(0))  # no literal, for which kernels would be compiled once more
        _do(shared, int(np.int64(HELP)), none, len(board) == 0, board, scratch)
        return DONE
    while True:
        if state[COUNT] == 0 and not _begin(shared, rules, board, scratch):
            return DIVERGED
        found = 0
        if state[PAID] != 0:
            found = state[FOUND]
        elif state[COUNT] < 2 * extent.leaves - 1:
            if state[FOUND] < 0 or (state[WAITING] > 0 and not rules.level):
                if extent.outside:
                    return SCORE
                _score(shared, board, scratch)
            found = _choose(
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
            charged, slots = _demands(moves, owed.coupled, len(owed.lazy) > 0)
            if state[COUNT] + 2 * found > len(work) or state[SLOTS] + slots > len(sums.hist):
                return ROOM
            if charged and state[PAID] == 0:
                return PAY
            state[PAID] = 0
            _divide(shared, moves, board, scratch)
            _add_children(tree, sums, rules)
            if len(owed.lazy) > 0:
                return OPEN
        elif found == 0:
            if state[COUNT] == 1 and len(squares) > 0:
                return DONE
            first, leaf = state[WRITTEN], (state[WRITTEN] + state[TREES]) // 2
            finish(
                nodes, state[COUNT], rules.every, columns.edges, columns.offset, first, leaf, out
            )
            tree.sizes[state[TREES]] = state[COUNT]
            if len(squares) > 0:
                _descend(shared, first, leaf, descent, board, scratch)
                words = CODES_PER_WORD * len(columns.groups)
                cells = (len(rows.rows) - carried.state[MOVED]) * words
                carried.state[KNOWN] = carried.state[COUNTED] * sums.hist.shape[2] < cells
            elif state[COUNT] > 1:
                _step_by_sums(shared, first, leaf, descent.learning_rate, board, scratch)
            state[TREES] += 1
            state[WRITTEN] += state[COUNT]
            if state[TREES] == extent.trees or (len(squares) > 0 and squares[0] <= descent.least):
                return DONE
            state[COUNT] = 0
            if len(out.feature) - state[WRITTEN] - state[TREES] <= len(work):
                state[FOUND] = 0
                return ROOM


@njit(inline="always")
def _begin(shared: Shared, rules: Rules, board: Int64Array, scratch: Int64Array) -> bool:
    """A new root alone, which waits for its gains; whether its gradients are finite."""
    tree, sums, newton, n = shared.tree, shared.sums, shared.newton, len(shared.rows.rows)
    state, root, work = tree.state, tree.nodes.integers[0], tree.work[0]
    channels, pieces = sums.hist.shape[1], (n + PIECE - 1) // PIECE
    if len(newton.gradient) > 0:
        _all_rows(shared, int(np.int64(SIZES)), board, scratch)
        for channel in range(channels):
            size = 0.0
            for piece in range(pieces):
                size += newton.sizes[piece, channel]
            sums.units[channel] = _finest_unit(size, newton.room[channel])
            if np.isnan(sums.units[channel]):
                return False
    _all_rows(shared, int(np.int64(BEGIN)), board, scratch)
    g, h = np.int64(0), np.int64(0)
    for piece in range(pieces):
        g += tree.parts[piece, 0]
        h += tree.parts[piece, 1]
    slot = ROOT + 1 if channels == 1 else ROOT
    root[PACKED], root[HESSIAN] = g, h if channels > 1 else 0
    root[growth.BEGIN], root[END], root[SLOT] = 0, n, slot
    work[0], work[1], work[2], work[3] = 0, n, slot, -1
    work[4], work[5], work[6] = 0, 0, -1
    state[COUNT], state[SLOTS], state[FOUND], state[WAITING] = 1, slot + 1, -1, 1
    zero = int(np.int64(0))  # no literal, for which kernels would be compiled once more
    _begin_node(tree.nodes, zero, zero, sums, rules)
    return True


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
def _score(shared: Shared, board: Int64Array, scratch: Int64Array) -> None:
    """Histograms and best cuts of what waits."""
    tree, columns, state = shared.tree, shared.columns, shared.tree.state
    cells = _cells(state, tree.work, shared.carried.state) * len(columns.features)
    for i in range(state[WAITING]):
        for column in range(5, 7):
            if tree.work[i, column] >= 0:
                tree.reached[tree.work[i, column]] = -np.inf
    words = len(columns.groups)
    alone = len(board) == 0 or cells <= WORTH or words > ONE
    state[WORDS] = max(1, words if alone else WORTH * words // cells)
    pieces = (words + state[WORDS] - 1) // state[WORDS]
    _do(shared, int(np.int64(SCORE_WORDS)), pieces, alone, board, scratch)
    _scored(state, tree.work[: state[WAITING]], tree.nodes.integers)


@njit(inline="always")
def _divide(shared: Shared, moves: Int64Array, board: Int64Array, scratch: Int64Array) -> None:
    """The rows of splits to those of their children."""
    rows, parts, touched = shared.rows, shared.tree.parts, 0
    for m in range(len(moves)):
        touched += moves[m, LAST_ROW] - moves[m, FIRST_ROW]
    # alone: one part a split, of which the rows that go left move once
    alone = len(board) == 0 or touched <= PART
    count = _cut_up(moves, len(rows.rows) if alone else PART, parts)
    parts = parts[:count]
    if alone:
        _partition(rows.words, parts, rows.rows, rows.rows, rows.spare)
    else:
        _do(shared, int(np.int64(PARTITION)), count, alone, board, scratch)
    _arrange(parts, moves)
    if alone:
        _settle(parts, alone, rows.spare, rows.rows, rows.values, rows.in_order)
    else:
        _do(shared, int(np.int64(SETTLE)), count, alone, board, scratch)


@njit(inline="always")
def _scored(state: Int64Array, work: Int64Array, table: Int64Array) -> None:
    """What waited has its gains."""
    for i in range(len(work)):
        for column in range(5, 7):
            if work[i, column] >= 0:
                table[work[i, column], STATE] = SCORED
    state[WAITING], state[FOUND] = 0, 0


@njit(inline="always")
def _demands(moves: Int64Array, coupled: Float64Array, lazy: bool) -> tuple[bool, int]:
    """Whether a split is to be paid; slots that children may need."""
    charged, slots = lazy, 0
    for i in range(len(moves)):
        charged |= coupled[moves[i, COLUMN]] > 0
        slots += moves[i, SCORABLE]
    return charged, slots


@njit(inline="always")
def _add_children(tree: Growing, sums: Sums, rules: Rules) -> None:
    """Give divided nodes their children, which wait to be scored where they may be split."""
    state = tree.state
    moves, work = tree.moves[: state[FOUND]], tree.work[state[WAITING] :]
    pairs = _attach(moves, tree.nodes, state[COUNT], state[SLOTS], sums, rules, work)
    state[COUNT] += 2 * len(moves)
    state[SLOTS] += pairs
    state[WAITING] += pairs


@njit(inline="always")
def _descend(
    shared: Shared, first: int, leaf: int, how: Descent, board: Int64Array, scratch: Int64Array
) -> None:
    """Give the leaves of squared loss their values; bring the gradients of rows up to date, and
    note by what the next tree's root differs."""
    tree, rows, sums, out, carried = (
        shared.tree,
        shared.rows,
        shared.sums,
        shared.out,
        shared.carried,
    )
    nodes, count, bits = tree.nodes, tree.state[COUNT], sums.count_bits
    ends = out.ends[leaf : leaf + (count + 1) // 2]
    steps = tree.steps[: len(ends)]
    change = _value_leaves(nodes, ends, how.learning_rate, shared.limits.l2, bits, steps)
    how.squares[0] += how.share * change
    for k in range(len(steps)):
        out.value[first + out.leaves[leaf + k]] = steps[k] * sums.units[0]
    moved = tree.work[:, :3]  # room, as nothing waits
    slots, ranges = _carry(nodes, count, ends, steps, carried.counted, moved)
    moved = moved[:ranges]
    total = _collect(moved, rows.rows, rows.copies, bits, rows.spare, rows.in_order)
    carried.state[COUNTED], carried.state[MOVED] = slots, total
    for k in range(len(steps)):
        steps[k] <<= bits
    tree.leaves[0], tree.leaves[1] = leaf, len(ends)
    _all_rows(shared, int(np.int64(STEP)), board, scratch)


@njit(inline="always")
def _step_by_sums(
    shared: Shared,
    first: int,
    leaf: int,
    learning_rate: float,
    board: Int64Array,
    scratch: Int64Array,
) -> None:
    """Give the leaves of other losses Newton steps from the sums of their rows' gradients and
    hessians, times the learning rate, and add them to the scores."""
    tree, out = shared.tree, shared.out
    count = (tree.state[COUNT] + 1) // 2
    tree.leaves[0], tree.leaves[1] = leaf, count
    alone = len(board) == 0 or len(shared.rows.rows) <= WORTH or count > ONE
    _do(shared, int(np.int64(SUM)), count, alone, board, scratch)
    for k in range(count):
        below = tree.sums[k, 1]
        if len(shared.newton.hessian) == 0:
            below = float(tree.nodes.integers[out.ends[leaf + k], MULTIPLICITY])
        below += shared.limits.l2
        value = learning_rate * (-tree.sums[k, 0] / below) if below > 0 else 0.0
        out.value[first + out.leaves[leaf + k]] = tree.values[k] = value
    _all_rows(shared, int(np.int64(ADD)), board, scratch)


@njit(inline="always")
def _all_rows(shared: Shared, kind: int, board: Int64Array, scratch: Int64Array) -> None:
    """A task whose pieces are rows."""
    n = len(shared.rows.rows)
    pieces = (n + PIECE - 1) // PIECE
    _do(shared, kind, pieces, len(board) == 0 or n <= WORTH, board, scratch)
