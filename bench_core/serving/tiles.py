"""Many rows through a segment of a program, 64 at a time, as bits of one machine word.

A set of rows of a tile is a ``uint64``. Each distinct threshold of a feature is compared once, by
one vector operation; a split divides the set that reaches it with the outcome, and the same set is
what needs the split's feature. Trees stand in preorder, left child first, so that a walk goes
through their splits from front to back and jumps over large subtrees that no row has reached.
Turning right names the first leaf of the right subtree: a row's last turn holds. Sums are those of
``kernels``, tree by tree for each row, whatever rows stand beside it.

The comparison and the finding of leaves are written as vector operations; the plain loops are what
runs without compilation and with ``BENCH_PLAIN_KERNELS=1``.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from bench_core.serving.compiled import Model
from bench_core.serving.kernels import (
    ADD,
    CARRY,
    COMBINE,
    ELSE,
    END,
    FIRST_COLUMN,
    FIRST_USE,
    GATE,
    GATED,
    LAST,
    LAST_COLUMN,
    LAST_STEP,
    LAST_USE,
    PRICE,
    REJECTED,
    SPLITS,
    STEP,
    STOPPED,
    SUMS,
    THEN,
    TREES,
)

TILE = 64  # rows
_ONE, _TWO, _I = np.uint64(1), np.uint64(2), np.uint64
_intrinsic: Any = intrinsic
_config: Any = config
_cgutils: Any = cgutils
PLAIN = bool(_config.DISABLE_JIT or os.environ.get("BENCH_PLAIN_KERNELS"))


class Tile(NamedTuple):
    """Rows side by side."""

    cells: Any  # float32 (64 f,)
    need: Any  # uint64 (f,): rows that need a feature
    paid: Any  # uint64 (s,): rows that have paid a sensor
    above: Any  # uint64 (c,): rows above a cut
    sets: Any  # uint64: the rows at each place of a tree
    leaf: Any  # int32 (64,)
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
def number(
    typingctx: Any, leaf: Any, sets: Any, marks: Any, at: Any, count: Any, shift: Any
) -> Any:
    """Set bits ``shift`` to ``shift + 7`` of ``leaf[r]``, zero before, to ``marks[at + 4 * i]`` of
    the last of ``count`` splits i at which row r turns right, which ``sets[2 * i + 1]`` says:
    int32 (64,), uint64 and uint8.

    The marks of 64 rows stay in a register, which a store for every split would take longer.
    """
    signature = types.void(leaf, sets, marks, types.int64, types.int64, types.int32)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into, turns, first = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(sig.args[:3], args[:3], strict=True)
        )
        word, flags = ir.IntType(64), ir.VectorType(ir.IntType(1), TILE)
        last = _cgutils.alloca_once_value(builder, _spread(builder, ir.IntType(8)(0)))
        with _cgutils.for_range(builder, args[4]) as loop:
            turn = builder.gep(turns, [builder.add(builder.shl(loop.index, word(1)), word(1))])
            rows = builder.bitcast(builder.load(turn), flags)
            mark = builder.gep(first, [builder.add(args[3], builder.shl(loop.index, word(2)))])
            spread = _spread(builder, builder.load(mark))
            builder.store(builder.select(rows, spread, builder.load(last)), last)
        wide = ir.VectorType(ir.IntType(32), TILE)
        found = builder.shl(builder.zext(builder.load(last), wide), _spread(builder, args[5]))
        place = builder.bitcast(into, ir.PointerType(wide))
        before = builder.load(place)
        before.align = 4
        builder.store(builder.or_(before, found), place).align = 4
        return context.get_dummy_value()

    return signature, generate


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
def _plainly_number(leaf: Any, sets: Any, marks: Any, at: int, count: int, shift: int) -> None:
    found = np.zeros(TILE, dtype=np.int32)
    for i in range(count):
        for r in range(TILE):
            if sets[2 * i + 1] >> _I(r) & _ONE:
                found[r] = marks[at + 4 * i]
    leaf |= found << shift


if PLAIN:
    above, above_or_missing, number = _plainly_above, _plainly_above_or_missing, _plainly_number


@njit(cache=True, nogil=True)
def walk_segment(
    model: Model, begin: int, last: int, X: Any, rows: Any, bought: Any, places: Any, sums: Any
) -> None:
    """Take the picked ``rows`` of ``X`` (n, d) through the steps ``begin`` to ``last``; the other
    arrays are those of ``kernels.walk_rows``. PRICE is the bill up to there."""
    outputs, count = model.gates.shape[1] - 1, len(model.features)
    tile = Tile(
        np.zeros(TILE * count, dtype=np.float32),
        np.zeros(count, dtype=np.uint64),
        np.zeros(len(model.prices), dtype=np.uint64),
        np.zeros(len(model.splits.cell), dtype=np.uint64),
        np.zeros(_places(model.splits.root), dtype=np.uint64),
        np.zeros(TILE, dtype=np.int32),
        np.zeros((outputs, TILE)),
        np.zeros((outputs, TILE)),
        np.zeros(TILE),
    )
    for at in range(0, len(rows), TILE):
        picked = rows[at : at + TILE]
        _fill(model, tile, X, picked, sums, bought, begin > 0)
        _compare(model.splits, tile, begin)
        tile.sets[0] = ~_I(0) >> _I(TILE - len(picked))
        trees = 0
        for p in range(begin, last + 1):
            trees += _add_trees(model, tile, p)
            _add_columns(model, tile, p)
            _combine(tile, model.steps[p, COMBINE])
        _pay(model, tile, bought, picked)
        _report(model, tile, last, picked, trees, places, sums)


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
def _places(root: Any) -> int:
    """Of the tree with the most."""
    most = 0
    for t in range(len(root) - 1):
        most = max(most, root[t + 1] - root[t])
    return 2 * most + 1


@njit(cache=True, nogil=True)
def _compare(splits: Any, tile: Any, begin: int) -> None:
    """Compare with all thresholds of the segment that begins with a step."""
    for k in range(splits.first[begin], splits.first[begin + 1]):
        cut = _I(splits.cuts[k])
        cell = _I(splits.cell[cut])
        column = (cell >> _ONE) * _I(TILE)
        if cell & _ONE:
            tile.above[cut] = above_or_missing(tile.cells, column, splits.threshold[cut])
        else:
            tile.above[cut] = above(tile.cells, column, splits.threshold[cut])


@njit(cache=True, nogil=True)
def _descend(splits: Any, t: int, tile: Any) -> None:
    """Send the rows of a tile down tree t."""
    feature, of_cut, source, after = splits.feature, splits.of_cut, splits.source, splits.after
    need, sets, above_cut = tile.need, tile.sets, tile.above
    origin, end = _I(splits.root[t]), _I(splits.root[t + 1])
    i: Any = origin
    k: Any = _ONE
    while i < end:
        here = sets[_I(source[i])]
        if here == 0 and after[i] > 0:  # nobody came: past the whole subtree
            i = _I(after[i])
            while k < _TWO * (i - origin):
                sets[k] = 0
                k += _TWO
            continue
        turn = here & above_cut[_I(of_cut[i])]
        sets[k], sets[k + _ONE] = turn, here ^ turn
        need[_I(feature[i])] |= here
        i += _ONE
        k += _TWO


@njit(cache=True, nogil=True)
def _find_leaves(root: Any, marks: Any, t: int, sets: Any, leaf: Any) -> None:
    """The leaves that the rows came to in tree t; a byte of their numbers after the other."""
    first, count = root[t], root[t + 1] - root[t]
    for r in range(TILE):
        leaf[r] = 0
    byte = 0
    while count >> (8 * byte) > 0:
        number(leaf, sets, marks, 4 * first + byte, count, 8 * byte)
        byte += 1


@njit(cache=True, nogil=True)
def _add_trees(model: Any, tile: Any, p: int) -> int:
    """Begin step p and add its trees; how many are billed."""
    splits, uses, weights = model.splits, model.uses, model.weights
    root, leaves, marks = splits.root, splits.leaves, splits.mark.view(np.uint8)
    sets, leaf, own, spent = tile.sets, tile.leaf, tile.own, tile.splits
    billed = 0
    for k in range(len(own)):
        if not model.steps[p, CARRY]:
            own[k] = 0.0
        own[k] += model.gates[p, 1 + k]
    for u in range(model.steps[p, FIRST_USE], model.steps[p, LAST_USE]):
        t, output, weight = uses[u, 0], _I(uses[u, 1]), weights[u]
        _descend(splits, t, tile)
        _find_leaves(root, marks, t, sets, leaf)
        first, counts = _I(root[t] + t), np.float64(uses[u, 2])
        billed += uses[u, 2]
        for r in range(TILE):
            at = first + _I(leaf[r])
            own[output, _I(r)] += leaves[at, 0] * weight
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
    eight = np.empty(len(paid), dtype=np.uint8)  # whether eight rows have paid, by sensor
    for begin in range(0, len(picked), 8):
        for s in range(len(paid)):
            eight[s] = paid[s] >> _I(begin)
        for r in range(begin, min(begin + 8, len(picked))):
            line, bit = bought[picked[r]], np.uint8(1 << (r - begin))
            for s in range(len(paid)):
                line[s] = (eight[s] & bit) != 0


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
def _report(
    model: Any, tile: Any, last: int, picked: Any, trees: int, places: Any, sums: Any
) -> None:
    """The bills of the rows, and where step ``last`` leads them."""
    total = _prices(model.prices, tile.paid)
    outputs, step, value = len(tile.own), model.steps[last], model.gates[last, 0]
    for r in range(len(picked)):
        place, own = places[picked[r]], sums[picked[r]]
        place[TREES] += trees
        evaluated = model.rules[0] * tile.splits[r] + model.rules[1] * np.float64(place[TREES])
        own[SPLITS], own[PRICE] = tile.splits[r], total[r] + evaluated
        for k in range(outputs):
            own[SUMS + k] = tile.own[k, r]
            own[SUMS + outputs + k] = tile.score[k, r]
        passes = not step[GATED] or tile.score[0, r] >= value
        onward = step[THEN] if passes else step[ELSE]
        place[LAST_STEP], place[STEP] = last, onward
        place[STOPPED] = REJECTED if onward == -2 else END if passes else GATE
