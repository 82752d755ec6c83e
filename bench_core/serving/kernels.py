"""One row through a program, compiled; the plain Python walk gives the same bits.

Trees are walked level by level, many side by side and without branches, so that the processor has
work while it waits for memory. The link of a node says which cell it compares and where its left
child is; the outcome is added, since siblings lie side by side. Beside the left child's own link is
the threshold of its parent: a step reads one place. A leaf leads to itself. Cells and thresholds
are whole numbers in the order of the float32 that they stand for (``compiled.keys``). A feature has
two places: in the first a missing cell is the smallest number, which goes left, in the second the
largest, which goes right; a node names the one that its ``missing_left`` asks for. ``layout`` says
what stands where.
"""

from typing import Any

import numpy as np
from numba import njit

from bench_core.serving.buying import bill, buy, evaluated
from bench_core.serving.layout import (
    ADD,
    AT_HAND,
    BILLED,
    BITS,
    CAP,
    CAPPED,
    CARRY,
    COLUMNS,
    COMBINE,
    COUNT,
    COUNTED,
    ELSE,
    END,
    FACTORS,
    FEATURES,
    FIRST_COLUMN,
    FIRST_USE,
    GATE,
    GATED,
    GATES,
    INNER,
    LAST,
    LAST_COLUMN,
    LAST_STEP,
    LAST_USE,
    LEAVES,
    LEFT,
    LEVEL,
    LEVELS,
    OUTPUTS,
    PRICE,
    RANKS,
    REJECTED,
    SEGMENT,
    SPLITS,
    STEP,
    STEP_WIDTH,
    STEPS,
    STOP_AT,
    STOP_ELSE,
    STOP_THEN,
    STOPPED,
    SUMS,
    THEN,
    TOTAL,
    TREE_OUTPUTS,
    TREES,
    USE,
    WALKED,
    WEIGHTS,
    U,
    bare,
)
from bench_core.serving.records import Cells, Row

_BLOCK = 64  # trees side by side: their nodes fit the first cache


@njit(cache=True, nogil=True)
def walk_rows(
    ints: Any, nodes: Any, floats: Any, cap: float, X: Any, bought: Any, places: Any, sums: Any
) -> None:
    """Take rows ``X`` (n, d) through the program: ``sums`` (n, SUMS + 3 K), ``places`` (n, PLACES)
    and the sensors ``bought`` (n, s) of each, zero before. Of each row PRICE becomes its bill."""
    cells = _cells(ints, nodes)
    asked = np.empty(ints[COUNTED], dtype=np.uint32)
    left = np.empty_like(asked)
    for i in range(len(X)):
        row = Row(cells, asked, left, bought[i], places[i], sums[i])
        _walk_row(ints, nodes, floats, row, X[i], cap)


@bare
def at_hand(ints: Any, nodes: Any, floats: Any, row: Any, line: Any) -> Any:
    """Take the row that stands in ``line`` (d,) through the program whenever it is asked to: a call
    without arguments. The caller keeps all arrays."""
    while True:
        _walk_row(ints, nodes, floats, row, line, np.inf)
        yield 0


@bare
def _walk_row(ints: Any, nodes: Any, floats: Any, row: Any, line: Any, cap: float) -> None:
    cells, features = row.cells, ints[ints[FEATURES] :]
    values, bits, keys = cells.values, cells.values.view(np.uint32), cells.keys
    _begin(row, cap, cap == np.inf)
    for c in range(len(values)):
        values[U(c)] = line[U(features[U(c)])]
    for c in range(len(values)):
        _put(keys, U(c), bits[U(c)])
    while _advance(ints, nodes, floats, row) > 0:
        pass
    bill(ints, floats, row)


@bare
def ways(ints: Any, nodes: Any, floats: Any, row: Any, state: Any, start: Any, room: Any) -> Any:
    """Take row after row through the program: yields how many features are asked for, those of
    ``numbers`` (f,), whose values must then stand in ``given``, float32 (f,), or are missing.
    0 at the end, when PRICE is the bill. The caller keeps all arrays: ``state``, bytes of the row
    but for its values, ``start``, those of a row that asks first, ``order`` (f,) of all that it
    asked for, a cap (1,)."""
    _begin(row, np.inf, False)
    row.place[COUNT] = _advance(ints, nodes, floats, row)
    for i in range(len(state)):
        start[U(i)] = state[U(i)]
    row.place[COUNT] = 0
    while True:
        _ask(ints, nodes, floats, row, state, start, room)
        yield row.place[COUNT]


@bare
def _ask(ints: Any, nodes: Any, floats: Any, row: Any, state: Any, start: Any, room: Any) -> None:
    """Go on to the next question, whose COUNT is 0 at the end of a row's way."""
    (order, numbers, given, cap), features, place = room, ints[ints[FEATURES] :], row.place
    bits, count = given.view(np.uint32), place[COUNT]
    for k in range(count):
        c = U(row.asked[U(k)])
        row.cells.values[c] = given[U(k)]
        _put(row.cells.keys, c, bits[U(k)])
    if count == 0 and cap[0] == np.inf:
        for i in range(len(state)):
            state[U(i)] = start[U(i)]
    else:
        if count == 0:
            _begin(row, cap[0], False)
        place[COUNT] = _advance(ints, nodes, floats, row)
    count, total = place[COUNT], place[TOTAL]
    for k in range(count):
        number = features[U(row.asked[U(k)])]
        order[U(total + k)] = numbers[U(k)] = number
        given[U(k)] = np.nan
    place[TOTAL] = total + count
    if count == 0:
        bill(ints, floats, row)


@njit(cache=True, nogil=True)
def _cells(ints: Any, nodes: Any) -> Any:
    count, trees = ints[COUNTED], ints[RANKS] - ints[LEVELS]
    values, have = np.empty(count, dtype=np.float32), np.empty(count, dtype=np.uint8)
    keys, need = np.zeros(2 * count + 1, dtype=np.uint32), np.empty(2 * count + 1, dtype=np.uint8)
    return Cells(values, keys, have, need, np.empty(trees, dtype=nodes.dtype))


@bare
def _begin(row: Any, cap: float, at_hand: Any) -> None:
    row.bought[:], row.place[:], row.sums[:], row.sums[CAP] = 0, 0, 0.0, cap
    row.cells.have[:], row.cells.need[:], row.place[AT_HAND] = at_hand, 0, at_hand
    if not at_hand:
        row.place[LEFT] = len(row.left)
        for c in range(len(row.left)):
            row.left[U(c)] = c
    row.place[USE] = row.place[WALKED] = row.place[LAST_STEP] = row.place[STOP_AT] = -1


@bare
def _put(keys: Any, c: Any, bits: Any) -> None:
    """Whole numbers in the order of a value of these bits, at both places; -0.0 is 0.0."""
    missing = np.uint32(0xFFFFFFFF) if bits & np.uint32(0x7FFFFFFF) > 0x7F800000 else np.uint32(0)
    key = np.uint32(~bits if bits >> np.uint32(31) else bits | np.uint32(0x80000000))
    key = np.uint32(0x80000000) if key == np.uint32(0x7FFFFFFF) else key
    keys[U(2) * c] = key & ~missing
    keys[U(2) * c + U(1)] = key | missing


@bare
def _advance(ints: Any, nodes: Any, floats: Any, row: Any) -> int:
    """Go on until features are needed: how many are asked for, 0 at the end of the way."""
    place, sums, outputs = row.place, row.sums, ints[OUTPUTS]
    while place[STEP] >= 0:
        line = ints[STEPS] + place[STEP] * STEP_WIDTH
        gate = ints[GATES] + place[STEP] * (1 + outputs)
        if place[USE] < 0:
            for k in range(outputs):
                if not ints[line + CARRY]:
                    sums[SUMS + k] = 0.0
                sums[SUMS + k] += floats[gate + 1 + k]
            place[USE] = ints[line + FIRST_USE]
        if sums[CAP] < np.inf:
            count = _by_tree(ints, nodes, floats, row, line)
            if count > 0 or place[STOPPED] == CAPPED:
                return count
        else:
            if place[WALKED] < place[STEP]:
                count = _walk(ints, nodes, floats, row, line)
                if count > 0:
                    return count
                place[WALKED], place[LEVEL] = ints[line + SEGMENT], 0
            _add_leaves(ints, floats, row, line)
        _add_columns(ints, floats, row, line)
        _leave(ints, sums, place, line, floats[gate])
    return 0


@bare
def _walk(ints: Any, nodes: Any, floats: Any, row: Any, line: int) -> int:
    """Take all trees of a segment to their leaves; how many features are asked for before."""
    cells, place = row.cells, row.place
    end = ints[STEPS] + ints[line + SEGMENT] * STEP_WIDTH
    first, stop = ints[line + FIRST_USE], ints[end + LAST_USE]
    levels, bits = ints[ints[LEVELS] : ints[RANKS]], U(ints[BITS])
    if place[LEVEL] == 0:
        roots = nodes[len(nodes) - len(levels) :]
        for u in range(first, stop):
            cells.at[U(u)] = roots[U(u)]
        _need_columns(ints, cells, ints[line + FIRST_COLUMN], ints[end + LAST_COLUMN])
    if place[AT_HAND]:
        for begin in range(first, stop, _BLOCK):
            end = min(begin + _BLOCK, stop)
            for _ in range(levels[begin] - 1):
                _go_down(nodes, bits, cells, begin, end, False)
            if levels[begin] > 0:
                _to_leaves(nodes, bits, cells, begin, end)
        return 0
    count = 0
    while count == 0:
        if place[LEVEL] > 0:
            stop = inner = place[INNER]
            if first < stop and levels[first] == place[LEVEL]:
                inner = first
            while first < inner and levels[inner - 1] == place[LEVEL]:
                inner -= 1
            _go_down(nodes, bits, cells, first, inner, True)
            _to_leaves(nodes, bits, cells, inner, stop)
            if first == inner:
                return 0
            place[INNER] = inner
        else:
            place[INNER] = stop
            while first < place[INNER] and levels[place[INNER] - 1] == 0:
                place[INNER] -= 1
            for u in range(first, stop):
                cells.need[U(cells.at[U(u)]) & ((U(1) << bits) - U(1))] = 1
        place[LEVEL] += 1
        count = buy(ints, floats, row, _needed(row), 0.0, 0)
    return count


@bare
def _go_down(nodes: Any, bits: Any, cells: Any, first: int, stop: int, ahead: bool) -> None:
    """Trees one level down; what they need is noted where they are, or ``ahead`` of that."""
    at, need, own, low = cells.at, cells.need, cells.keys, (U(1) << bits) - U(1)
    for u in range(first, stop):
        link = U(at[U(u)])
        cell, child = link & low, U(2) * (link >> bits)
        link = U(nodes[child + U(2) * U(nodes[child + U(1)] < own[cell])])
        need[link & low if ahead else cell] = 1
        at[U(u)] = link


@bare
def _to_leaves(nodes: Any, bits: Any, cells: Any, first: int, stop: int) -> None:
    """Trees down to their last level: only their places are of use then."""
    at, need, own, low = cells.at, cells.need, cells.keys, (U(1) << bits) - U(1)
    for u in range(first, stop):
        link = U(at[U(u)])
        cell, child = link & low, link >> bits
        need[cell] = 1
        at[U(u)] = (child + U(nodes[U(2) * child + U(1)] < own[cell])) << bits


@bare
def _need_columns(ints: Any, cells: Any, first: int, stop: int) -> None:
    for c in range(first, stop):
        cells.need[2 * ints[ints[COLUMNS] + 3 * c] + 1] = 1


@bare
def _needed(row: Any) -> Any:
    """Move the needed features that are not there from those left, in rising order; how many."""
    asked, left, count, rest = row.asked, row.left, U(0), U(0)
    have, need = row.cells.have, row.cells.need
    for k in range(row.place[LEFT]):
        c = U(left[U(k)])
        needed = U((need[U(2) * c] | need[U(2) * c + U(1)]) & (have[c] ^ 1))
        asked[count], left[rest] = c, c
        count, rest = count + needed, rest + (needed ^ U(1))
    row.place[LEFT] = rest
    return np.int64(count)


@bare
def _add_leaves(ints: Any, floats: Any, row: Any, line: int) -> None:
    """Add what the trees of a step say, in their order, and the splits on their ways."""
    place, sums, at = row.place, row.sums, row.cells.at
    first, stop = ints[line + FIRST_USE], ints[line + LAST_USE]
    ranks, outputs = ints[ints[RANKS] :], ints[ints[TREE_OUTPUTS] :]
    billed, weights, leaves = ints[ints[BILLED] :], floats[ints[WEIGHTS] :], floats[ints[LEAVES] :]
    splits, trees, own, bits = sums[SPLITS], place[TREES], sums[SUMS], U(ints[BITS])
    for u in range(first, stop):
        leaf = U(2) * (U(at[U(ranks[U(u)])]) >> bits)
        trees += billed[U(u)]
        splits += leaves[leaf + U(1)] if billed[U(u)] else 0.0
        if outputs[U(u)] == 0:
            own += leaves[leaf] * weights[U(u)]
        else:
            sums[SUMS + outputs[U(u)]] += leaves[leaf] * weights[U(u)]
    sums[SPLITS], place[TREES], sums[SUMS] = splits, trees, own


@bare
def _by_tree(ints: Any, nodes: Any, floats: Any, row: Any, line: int) -> int:
    """Add the trees of a step under a cap, and buy its columns; how many features are asked for."""
    cells, place, sums = row.cells, row.place, row.sums
    roots, bits, leaves = nodes[len(nodes) - ints[RANKS] + ints[LEVELS] :], ints[BITS], ints[LEAVES]
    while place[USE] < ints[line + LAST_USE]:
        u = place[USE]
        tree, billed = ints[ints[RANKS] + u], ints[ints[BILLED] + u]
        link = np.int64(roots[tree])
        for _ in range(ints[ints[LEVELS] + tree]):
            cell, child = link & ((1 << bits) - 1), link >> bits
            splits = sums[SPLITS] + (floats[leaves + 2 * child + 1] if billed else 0.0)
            whole = sums[PRICE] + evaluated(ints, floats, splits, place[TREES] + 1)
            if billed and not whole <= sums[CAP]:
                place[STOPPED] = CAPPED
                return 0
            if cell // 2 < len(cells.have) and not cells.have[cell // 2]:
                row.asked[0] = cell // 2
                return buy(ints, floats, row, 1, splits, place[TREES] + billed)
            child += np.int64(nodes[2 * child + 1] < cells.keys[cell])
            link = np.int64(nodes[2 * child])
        leaf = leaves + 2 * (link >> bits)
        if billed:
            place[TREES] += 1
            sums[SPLITS] += floats[leaf + 1]
        output = SUMS + ints[ints[TREE_OUTPUTS] + u]
        sums[output] += floats[leaf] * floats[ints[WEIGHTS] + u]
        place[USE] += 1
    _need_columns(ints, cells, ints[line + FIRST_COLUMN], ints[line + LAST_COLUMN])
    return buy(ints, floats, row, _needed(row), sums[SPLITS], place[TREES])


@bare
def _add_columns(ints: Any, floats: Any, row: Any, line: int) -> None:
    for c in range(ints[line + FIRST_COLUMN], ints[line + LAST_COLUMN]):
        at, by = ints[COLUMNS] + 3 * c, ints[FACTORS] + 3 * c
        x, weight, sums = np.float64(row.cells.values[ints[at]]), floats[by], row.sums
        if ints[at + 2]:
            scaled = (x - floats[by + 1]) * floats[by + 2] if np.isfinite(x) else 0.0
            sums[SUMS + ints[at + 1]] += weight * scaled
        elif not np.isnan(x):
            sums[SUMS + ints[at + 1]] += weight * x


@bare
def _leave(ints: Any, sums: Any, place: Any, line: int, value: float) -> None:
    """Combine scores, and go where the gate leads."""
    outputs = ints[OUTPUTS]
    for k in range(outputs):
        own, score = sums[SUMS + k], sums[SUMS + outputs + k]
        if ints[line + COMBINE] == ADD:
            score += own
        elif ints[line + COMBINE] == LAST or not (score < own or np.isnan(score)):
            score = own
        sums[SUMS + outputs + k] = score
    passes = not ints[line + GATED] or sums[SUMS + outputs] >= value
    onward = ints[line + THEN] if passes else ints[line + ELSE]
    if ints[line + STOP_THEN] if passes else ints[line + STOP_ELSE]:
        place[STOP_AT] = place[STEP]
        for k in range(outputs):
            sums[SUMS + 2 * outputs + k] = sums[SUMS + outputs + k]
    place[LAST_STEP], place[STEP], place[USE] = place[STEP], onward, -1
    if onward < 0:
        place[STOPPED] = REJECTED if onward == -2 else END if passes else GATE
