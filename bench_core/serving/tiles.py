"""Many rows through a segment of a program, 64 at a time, as bits of one machine word.

A set of rows of a tile is a ``uint64``; a split divides the set that reaches it by one vector
comparison, and the same set is what needs the split's feature. Trees stand in preorder, left child
first, so that a walk goes through their splits from front to back and jumps over subtrees that no
row has reached. Turning right names the first leaf of the right subtree: a row's last turn holds.
Sums are those of ``kernels``, tree by tree for each row, whatever rows stand beside it.

The comparison and the noting of leaves are written as vector operations; the plain loops are what
runs without compilation and with ``BENCH_PLAIN_KERNELS=1``.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.extending import intrinsic

from bench_core.serving.kernels import (
    ADD,
    CARRY,
    COMBINE,
    FIRST_COLUMN,
    FIRST_USE,
    LAST,
    LAST_COLUMN,
    LAST_USE,
    PRICE,
    SPLITS,
    SUMS,
    TREES,
)

TILE, SLOTS = 64, 256  # rows; splits of a tree, the last for what nobody looks at
_ONE, _I = np.uint64(1), np.uint64
_intrinsic: Any = intrinsic
_config: Any = config
PLAIN = bool(_config.DISABLE_JIT or os.environ.get("BENCH_PLAIN_KERNELS"))


class Splits(NamedTuple):
    """Trees in preorder. ``root`` and ``table`` (T + 1,) bound the splits and the leaves of trees;
    what leads to a split, and ``mark``, is counted from its tree's first one."""

    root: Any
    table: Any
    threshold: Any  # float32 (m,)
    cell: Any  # int32 (m,): twice its place, 1 more where missing cells go right
    left: Any  # uint8 (m,), as the next: SLOTS - 1 for leaves
    right: Any
    after: Any  # uint8 (m,): the first split beyond the subtree
    mark: Any  # uint8 (m,): the first leaf of the right subtree
    leaves: Any  # float64 (l, 2): value, multipliers on the path


class Model(NamedTuple):
    """A program; columns of ``steps``, ``columns`` and ``factors`` as in ``kernels``."""

    splits: Splits
    uses: Any  # int64 (u, 3): tree, output, whether billed
    weights: Any
    steps: Any
    gates: Any
    columns: Any
    factors: Any
    features: Any  # int64 (f,); feature c needs sensors[start[c] : start[c + 1]]
    start: Any
    sensors: Any
    prices: Any
    rules: Any  # prices of a split and of a tree


class Tile(NamedTuple):
    """Rows side by side."""

    cells: Any  # float32 (64 f,)
    need: Any  # uint64 (f,): rows that need a feature
    paid: Any  # uint64 (s,): rows that have paid a sensor
    reached: Any  # uint64 (SLOTS,): rows that reach a split
    leaf: Any  # uint8 (64,)
    own: Any  # float64 (K, 64), as the next
    score: Any
    splits: Any  # float64 (64,)


@_intrinsic
def above(typingctx: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """The rows r whose ``cells[at + r]`` is above the threshold."""
    return types.uint64(cells, types.int64, types.float32), _comparing(False)


@_intrinsic
def above_or_missing(typingctx: Any, cells: Any, at: Any, threshold: Any) -> Any:
    """The rows r whose ``cells[at + r]`` is above the threshold or missing."""
    return types.uint64(cells, types.int64, types.float32), _comparing(True)


def _comparing(missing: bool) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        vector = ir.VectorType(ir.FloatType(), TILE)
        column = builder.load(builder.bitcast(builder.gep(data, [args[1]]), ir.PointerType(vector)))
        column.align = 4
        compare = builder.fcmp_unordered if missing else builder.fcmp_ordered
        return builder.bitcast(compare(">", column, _spread(builder, args[2])), ir.IntType(TILE))

    return generate


def _spread(builder: Any, value: Any) -> Any:
    """The same for every row of a tile."""
    unset, index = ir.Constant(ir.VectorType(value.type, TILE), ir.Undefined), ir.IntType(32)
    single = builder.insert_element(unset, value, ir.Constant(index, 0))
    zeros = ir.Constant(ir.VectorType(index, TILE), [0] * TILE)
    return builder.shuffle_vector(single, unset, zeros)


@_intrinsic
def note(typingctx: Any, leaf: Any, rows: Any, value: Any) -> Any:
    """Set ``leaf[r]`` to ``value`` for every row r of the set."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        place = builder.bitcast(data, ir.PointerType(ir.VectorType(ir.IntType(8), TILE)))
        before = builder.load(place)
        before.align = 1
        chosen = builder.bitcast(args[1], ir.VectorType(ir.IntType(1), TILE))
        after = builder.select(chosen, _spread(builder, args[2]), before)
        builder.store(after, place).align = 1
        return context.get_dummy_value()

    return types.void(leaf, types.uint64, types.uint8), generate


@njit(cache=True, nogil=True)
def _plainly_above(cells: Any, at: int, threshold: float) -> Any:
    rows = _I(0)
    for r in range(TILE):
        rows |= _I(cells[np.int64(at) + r] > threshold) << _I(r)
    return rows


@njit(cache=True, nogil=True)
def _plainly_above_or_missing(cells: Any, at: int, threshold: float) -> Any:
    rows = _I(0)
    for r in range(TILE):
        rows |= _I(not cells[np.int64(at) + r] <= threshold) << _I(r)
    return rows


@njit(cache=True, nogil=True)
def _plainly_note(leaf: Any, rows: Any, value: int) -> None:
    for r in range(TILE):
        if rows >> _I(r) & _ONE:
            leaf[r] = value


if PLAIN:
    above, above_or_missing, note = _plainly_above, _plainly_above_or_missing, _plainly_note


@njit(cache=True, nogil=True)
def walk_segment(
    model: Model, number: int, last: int, X: Any, rows: Any, bought: Any, places: Any, sums: Any
) -> None:
    """Take the picked ``rows`` of ``X`` (n, d) through the steps ``number`` to ``last``; the other
    arrays are those of ``kernels.walk_rows``. PRICE is the bill up to there."""
    outputs, count = model.gates.shape[1] - 1, len(model.features)
    tile = Tile(
        np.zeros(TILE * count, dtype=np.float32),
        np.zeros(count, dtype=np.uint64),
        np.zeros(len(model.prices), dtype=np.uint64),
        np.zeros(SLOTS, dtype=np.uint64),
        np.zeros(TILE, dtype=np.uint8),
        np.zeros((outputs, TILE)),
        np.zeros((outputs, TILE)),
        np.zeros(TILE),
    )
    for begin in range(0, len(rows), TILE):
        picked = rows[begin : begin + TILE]
        _fill(model, tile, X, picked, sums, bought, number > 0)
        live = ~_I(0) >> _I(TILE - len(picked))
        trees = 0
        for p in range(number, last + 1):
            trees += _add_trees(model, tile, p, live)
            _add_columns(model, tile, p)
            _combine(tile, model.steps[p, COMBINE])
        _pay(model, tile, bought, picked)
        _report(model, tile, picked, trees, places, sums)


@njit(cache=True, nogil=True)
def _fill(model: Any, tile: Any, X: Any, picked: Any, sums: Any, bought: Any, later: bool) -> None:
    """What is known of the rows, where some may be on their way from steps before."""
    outputs, last = len(tile.own), len(picked) - 1
    tile.need[:], tile.paid[:] = 0, 0
    for r in range(0, len(picked), 8):  # eight at a time, so that what is written lies together
        one, two = X[picked[r]], X[picked[min(r + 1, last)]]
        three, four = X[picked[min(r + 2, last)]], X[picked[min(r + 3, last)]]
        five, six = X[picked[min(r + 4, last)]], X[picked[min(r + 5, last)]]
        seven, eight = X[picked[min(r + 6, last)]], X[picked[min(r + 7, last)]]
        cells = tile.cells[r:]
        for c in range(len(model.features)):
            j, at = _I(model.features[_I(c)]), _I(TILE) * _I(c)
            cells[at], cells[at + _I(1)] = one[j], two[j]
            cells[at + _I(2)], cells[at + _I(3)] = three[j], four[j]
            cells[at + _I(4)], cells[at + _I(5)] = five[j], six[j]
            cells[at + _I(6)], cells[at + _I(7)] = seven[j], eight[j]
    for r in range(len(picked)):
        tile.splits[r] = sums[picked[r], SPLITS]
        for k in range(outputs):
            tile.own[k, r] = sums[picked[r], SUMS + k]
            tile.score[k, r] = sums[picked[r], SUMS + outputs + k]
        if later:
            for s in range(len(tile.paid)):
                tile.paid[s] |= _I(bought[picked[r], s]) << _I(r)


@njit(cache=True, nogil=True)
def _descend(splits: Any, t: int, tile: Any, live: Any) -> None:
    """Send the rows ``live`` down tree t to their ``leaf``."""
    threshold, cell, mark = splits.threshold, splits.cell, splits.mark
    left, right, after = splits.left, splits.right, splits.after
    need, reached, leaf, cells = tile.need, tile.reached, tile.leaf, tile.cells
    origin = _I(splits.root[t])
    i, end = origin, _I(splits.root[t + 1])
    leaf[:] = 0
    reached[0] = live
    while i < end:
        here = reached[i - origin]
        if here == 0:  # nobody came: past the whole subtree
            i = origin + _I(after[i])
            continue
        c = _I(cell[i])
        column = (c >> _ONE) * _I(TILE)
        if c & _ONE:
            turn = here & above_or_missing(cells, column, threshold[i])
        else:
            turn = here & above(cells, column, threshold[i])
        need[c >> _ONE] |= here
        note(leaf, turn, mark[i])
        reached[_I(right[i])] = turn
        reached[_I(left[i])] = here & ~turn
        i += _ONE


@njit(cache=True, nogil=True)
def _add_trees(model: Any, tile: Any, p: int, live: Any) -> int:
    """Begin step p and add its trees; how many are billed."""
    splits, leaves, spent, leaf = model.splits, model.splits.leaves, tile.splits, tile.leaf
    billed = 0
    for k in range(len(tile.own)):
        if not model.steps[p, CARRY]:
            tile.own[k] = 0.0
        tile.own[k] += model.gates[p, 1 + k]
    for u in range(model.steps[p, FIRST_USE], model.steps[p, LAST_USE]):
        t, weight = model.uses[u, 0], model.weights[u]
        line, first = tile.own[model.uses[u, 1]], _I(splits.table[t])
        _descend(splits, t, tile, live)
        counts = np.float64(model.uses[u, 2])
        billed += model.uses[u, 2]
        for r in range(TILE):
            at = first + _I(leaf[r])
            line[r] += leaves[at, 0] * weight
            spent[r] += leaves[at, 1] * counts
    return billed


@njit(cache=True, nogil=True)
def _add_columns(model: Any, tile: Any, p: int) -> None:
    """Add the columns of step p, which every row here needs."""
    for c in range(model.steps[p, FIRST_COLUMN], model.steps[p, LAST_COLUMN]):
        place, output, scaled = model.columns[c]
        weight, mean, factor = model.factors[c]
        tile.need[place] = ~_I(0)
        for r in range(TILE):
            x = np.float64(tile.cells[TILE * place + r])
            if scaled:
                tile.own[output, r] += weight * ((x - mean) * factor if np.isfinite(x) else 0.0)
            elif not np.isnan(x):
                tile.own[output, r] += weight * x


@njit(cache=True, nogil=True)
def _combine(tile: Any, how: int) -> None:
    for k in range(len(tile.own)):
        for r in range(TILE):
            own, score = tile.own[k, r], tile.score[k, r]
            if how == ADD:
                tile.score[k, r] = score + own
            elif how == LAST or not (score < own or np.isnan(score)):
                tile.score[k, r] = own


@njit(cache=True, nogil=True)
def _pay(model: Any, tile: Any, bought: Any, picked: Any) -> None:
    """Who needs a feature has paid its sensors."""
    paid = tile.paid
    for c in range(len(tile.need)):
        for k in range(model.start[c], model.start[c + 1]):
            paid[model.sensors[k]] |= tile.need[c]
    for r in range(len(picked)):
        line = bought[picked[r]]
        for s in range(len(line)):
            line[s] = np.uint8(paid[s] >> _I(r) & _ONE)


@njit(cache=True, nogil=True)
def _prices(prices: Any, paid: Any) -> Any:
    """What each row has paid; by bytes and words of sensors, as ``Acquired.cost`` adds."""
    total, word, part = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE)
    for s in range(len(paid)):
        if paid[s]:
            for r in range(TILE):
                part[r] += prices[s] if paid[s] >> _I(r) & _ONE else 0.0
        if s % 8 == 7 or s == len(paid) - 1:
            for r in range(TILE):
                word[r] += part[r]
                part[r] = 0.0
        if s % 64 == 63 or s == len(paid) - 1:
            for r in range(TILE):
                total[r] += word[r]
                word[r] = 0.0
    return total


@njit(cache=True, nogil=True)
def _report(model: Any, tile: Any, picked: Any, trees: int, places: Any, sums: Any) -> None:
    """Where the rows are now, and their bills."""
    total = _prices(model.prices, tile.paid)
    outputs = len(tile.own)
    for r in range(len(picked)):
        i = picked[r]
        places[i, TREES] += trees
        evaluated = model.rules[0] * tile.splits[r] + model.rules[1] * np.float64(places[i, TREES])
        sums[i, SPLITS], sums[i, PRICE] = tile.splits[r], total[r] + evaluated
        for k in range(outputs):
            sums[i, SUMS + k] = tile.own[k, r]
            sums[i, SUMS + outputs + k] = tile.score[k, r]
