"""One row through a program, compiled; the plain Python walk gives the same bits.

Trees are walked level by level, many side by side and without branches, so that the processor has
work while it waits for memory. The link of a node says which cell it compares and where its left
child is; the outcome is added, since siblings lie side by side. Beside the left child's own link is
the threshold of its parent: a step reads one place. A leaf leads to itself. Cells and thresholds are whole numbers in the order of the float32 that they stand for (``compiled.keys``). A
feature has two places: in the first a missing cell is the smallest number, which goes left, in the
second the largest, which goes right; a node names the one that its ``missing_left`` asks for.

    ints     where the parts begin, number of outputs | trees of each segment, deepest first: levels
             | uses in order: place among those, output, whether billed
             | steps: FIRST_USE ... | columns: feature, output, whether scaled | features: number in
             the data, whether its sensors yield it alone, first of its sensors | sensors
    nodes    uint32 or uint64 (2 N + T,)   of each node: its link, ``BITS`` low bits of which are the
             place of the cell, and the threshold of its parent | links of the trees' roots
    floats   nodes: value, multipliers on the path | weights of uses | steps: value of the gate,
             bias (K) | columns: weight, mean, factor | prices of sensors | of a split, of a tree
    place    int64 (PLACES,): STEP ...   sums float64 (SUMS + 3 K,): SPLITS ..., then the step's own
             sums, the score, and the score at the last stop
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from bench_core.serving.records import Cells, Row

OUTPUTS, LEVELS, RANKS, TREE_OUTPUTS, BILLED, STEPS, COLUMNS = range(7)
FEATURES, ALONE, SENSORS_OF, SENSORS, LEAVES, WEIGHTS, GATES, FACTORS, PRICES, RULES = range(7, 17)
FIRST_USE, LAST_USE, FIRST_COLUMN, LAST_COLUMN, CARRY, COMBINE, GATED, THEN, ELSE = range(9)
STOP_THEN, STOP_ELSE, SEGMENT, STEP_WIDTH = range(9, 13)
(LAST, MIN, AND, ADD), COUNTED, BITS = range(4), 17, 18
STEP, USE, TREES, LEVEL, WALKED, LAST_STEP, STOPPED, STOP_AT, AT_HAND, LEFT = range(10)
INNER, PLACES = range(10, 12)
(SPLITS, PRICE, CAP, SUMS), (END, GATE, REJECTED, CAPPED) = range(4), range(4)

_I: Any = np.uint64  # unsigned places are never counted from the end
_BLOCK = 64  # trees side by side: their nodes fit the first cache
F = TypeVar("F")
# without counts of references to arrays, which take time: who calls keeps the arrays
_bare: Callable[[F], F] = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]


@njit(cache=True, nogil=True)
def walk_rows(
    ints: Any, nodes: Any, floats: Any, cap: float, X: Any, bought: Any, places: Any, sums: Any
) -> None:
    """Take rows ``X`` (n, d) through the program: ``sums`` (n, SUMS + 3 K), ``places`` (n, PLACES)
    and the sensors ``bought`` (n, s) of each, zero before. Of each row PRICE becomes its bill."""
    asked, cells = np.empty(ints[COUNTED], dtype=np.int64), _cells(ints, nodes)
    left = np.empty(ints[COUNTED], dtype=np.uint32)
    for i in range(len(X)):
        row = Row(cells, asked, left, bought[i], places[i], sums[i])
        _walk_row(ints, nodes, floats, row, X[i], cap)


@_bare
def at_hand(ints: Any, nodes: Any, floats: Any, row: Any, line: Any) -> Any:
    """Take the row that stands in ``line`` (d,) through the program whenever it is asked to: a call
    without arguments. The caller keeps all arrays."""
    while True:
        _walk_row(ints, nodes, floats, row, line, np.inf)
        yield 0


@_bare
def _walk_row(ints: Any, nodes: Any, floats: Any, row: Any, line: Any, cap: float) -> None:
    cells, features = row.cells, ints[ints[FEATURES] :]
    values, bits, keys = cells.values, cells.values.view(np.uint32), cells.keys
    _begin(row, cap, cap == np.inf)
    for c in range(len(values)):
        values[_I(c)] = line[_I(features[_I(c)])]
    for c in range(len(values)):
        _put(keys, _I(c), bits[_I(c)])
    while _advance(ints, nodes, floats, row) > 0:
        pass
    _bill(ints, floats, row)


@_bare
def ways(ints: Any, nodes: Any, floats: Any, row: Any, state: Any, start: Any, room: Any) -> Any:
    """Take row after row through the program: yields how many features are asked for, those of
    ``numbers`` (f,), whose values must then stand in ``given``, float32 (f,), else they are missing;
    0 at the end, when PRICE is the bill. The caller keeps all arrays: ``state``, bytes of the row
    but for its values, ``start``, those of a row that asks first, ``order`` (f,) of all that it
    asked for, a cap (1,)."""
    (order, numbers, given, cap), features = room, ints[ints[FEATURES] :]
    bits = given.view(np.uint32)
    _begin(row, np.inf, False)
    first, count, total = _advance(ints, nodes, floats, row), 0, 0
    for i in range(len(state)):
        start[_I(i)] = state[_I(i)]
    while True:
        for k in range(count):
            c = _I(row.asked[_I(k)])
            row.cells.values[c] = given[_I(k)]
            _put(row.cells.keys, c, bits[_I(k)])
        if count == 0 and cap[0] == np.inf:
            for i in range(len(state)):
                state[_I(i)] = start[_I(i)]
            count, total = first, 0
        else:
            if count == 0:
                _begin(row, cap[0], False)
                total = 0
            count = _advance(ints, nodes, floats, row)
        for k in range(count):
            number = features[_I(row.asked[_I(k)])]
            order[_I(total + k)] = numbers[_I(k)] = number
            given[_I(k)] = np.nan
        total += count
        if count == 0:
            _bill(ints, floats, row)
        yield count


@njit(cache=True, nogil=True)
def _cells(ints: Any, nodes: Any) -> Any:
    count, trees = ints[COUNTED], ints[RANKS] - ints[LEVELS]
    values, have = np.empty(count, dtype=np.float32), np.empty(count, dtype=np.uint8)
    keys, need = np.zeros(2 * count + 1, dtype=np.uint32), np.empty(2 * count + 1, dtype=np.uint8)
    return Cells(values, keys, have, need, np.empty(trees, dtype=nodes.dtype))


@_bare
def _begin(row: Any, cap: float, at_hand: Any) -> None:
    row.bought[:], row.place[:], row.sums[:], row.sums[CAP] = 0, 0, 0.0, cap
    row.cells.have[:], row.cells.need[:], row.place[AT_HAND] = at_hand, 0, at_hand
    if not at_hand:
        row.place[LEFT] = len(row.left)
        for c in range(len(row.left)):
            row.left[_I(c)] = c
    row.place[USE] = row.place[WALKED] = row.place[LAST_STEP] = row.place[STOP_AT] = -1


@_bare
def _put(keys: Any, c: Any, bits: Any) -> None:
    """Whole numbers in the order of a value of these bits, at both places; -0.0 is 0.0."""
    missing = np.uint32(0xFFFFFFFF) if bits & np.uint32(0x7FFFFFFF) > 0x7F800000 else np.uint32(0)
    key = np.uint32(~bits if bits >> np.uint32(31) else bits | np.uint32(0x80000000))
    key = np.uint32(0x80000000) if key == np.uint32(0x7FFFFFFF) else key
    keys[_I(2) * c] = key & ~missing
    keys[_I(2) * c + _I(1)] = key | missing


@_bare
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


@_bare
def _walk(ints: Any, nodes: Any, floats: Any, row: Any, line: int) -> int:
    """Take all trees of a segment to their leaves; how many features are asked for before."""
    cells, place = row.cells, row.place
    end = ints[STEPS] + ints[line + SEGMENT] * STEP_WIDTH
    first, stop = ints[line + FIRST_USE], ints[end + LAST_USE]
    levels, bits = ints[ints[LEVELS] : ints[RANKS]], _I(ints[BITS])
    if place[LEVEL] == 0:
        roots = nodes[len(nodes) - len(levels) :]
        for u in range(first, stop):
            cells.at[_I(u)] = roots[_I(u)]
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
                cells.need[_I(cells.at[_I(u)]) & ((_I(1) << bits) - _I(1))] = 1
        place[LEVEL] += 1
        count = _buy(ints, floats, row, _needed(row), 0.0, 0)
    return count


@_bare
def _go_down(nodes: Any, bits: Any, cells: Any, first: int, stop: int, ahead: bool) -> None:
    """Trees one level down; what they need is noted where they are, or ``ahead`` of that."""
    at, need, own, low = cells.at, cells.need, cells.keys, (_I(1) << bits) - _I(1)
    for u in range(first, stop):
        link = _I(at[_I(u)])
        cell, child = link & low, _I(2) * (link >> bits)
        link = _I(nodes[child + _I(2) * _I(nodes[child + _I(1)] < own[cell])])
        need[link & low if ahead else cell] = 1
        at[_I(u)] = link


@_bare
def _to_leaves(nodes: Any, bits: Any, cells: Any, first: int, stop: int) -> None:
    """Trees down to their last level: only their places are of use then."""
    at, need, own, low = cells.at, cells.need, cells.keys, (_I(1) << bits) - _I(1)
    for u in range(first, stop):
        link = _I(at[_I(u)])
        cell, child = link & low, link >> bits
        need[cell] = 1
        at[_I(u)] = (child + _I(nodes[_I(2) * child + _I(1)] < own[cell])) << bits


@_bare
def _need_columns(ints: Any, cells: Any, first: int, stop: int) -> None:
    for c in range(first, stop):
        cells.need[2 * ints[ints[COLUMNS] + 3 * c] + 1] = 1


@_bare
def _needed(row: Any) -> Any:
    """Move the needed features that are not there from those left, in rising order; how many."""
    asked, left, count, rest = row.asked, row.left, _I(0), _I(0)
    have, need = row.cells.have, row.cells.need
    for k in range(row.place[LEFT]):
        c = _I(left[_I(k)])
        needed = _I((need[_I(2) * c] | need[_I(2) * c + _I(1)]) & (have[c] ^ 1))
        asked[count], left[rest] = c, c
        count, rest = count + needed, rest + (needed ^ _I(1))
    row.place[LEFT] = rest
    return np.int64(count)


@_bare
def _add_leaves(ints: Any, floats: Any, row: Any, line: int) -> None:
    """Add what the trees of a step say, in their order, and the splits on their ways."""
    place, sums, at = row.place, row.sums, row.cells.at
    first, stop = ints[line + FIRST_USE], ints[line + LAST_USE]
    ranks, outputs = ints[ints[RANKS] :], ints[ints[TREE_OUTPUTS] :]
    billed, weights, leaves = ints[ints[BILLED] :], floats[ints[WEIGHTS] :], floats[ints[LEAVES] :]
    splits, trees, own, bits = sums[SPLITS], place[TREES], sums[SUMS], _I(ints[BITS])
    for u in range(first, stop):
        leaf = _I(2) * (_I(at[_I(ranks[_I(u)])]) >> bits)
        trees += billed[_I(u)]
        splits += leaves[leaf + _I(1)] if billed[_I(u)] else 0.0
        if outputs[_I(u)] == 0:
            own += leaves[leaf] * weights[_I(u)]
        else:
            sums[SUMS + outputs[_I(u)]] += leaves[leaf] * weights[_I(u)]
    sums[SPLITS], place[TREES], sums[SUMS] = splits, trees, own


@_bare
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
            bill = sums[PRICE] + _evaluated(ints, floats, splits, place[TREES] + 1)
            if billed and not bill <= sums[CAP]:
                place[STOPPED] = CAPPED
                return 0
            if cell // 2 < len(cells.have) and not cells.have[cell // 2]:
                row.asked[0] = cell // 2
                return _buy(ints, floats, row, 1, splits, place[TREES] + billed)
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
    return _buy(ints, floats, row, _needed(row), sums[SPLITS], place[TREES])


@_bare
def _evaluated(ints: Any, floats: Any, splits: float, trees: int) -> Any:
    return floats[ints[RULES]] * splits + floats[ints[RULES] + 1] * np.float64(trees)


@_bare
def _buy(ints: Any, floats: Any, row: Any, count: int, splits: float, trees: int) -> int:
    """Buy the sensors of ``count`` features; how many features are asked for: those that can be
    read from then on and could not before. 0, and the row stops, where a cap forbids it."""
    asked, have, capped, alone, free = row.asked, row.cells.have, row.sums[CAP] < np.inf, 1, False
    for k in range(count):
        alone &= ints[_I(ints[ALONE]) + _I(asked[_I(k)])]
    if capped or not alone:  # else it is billed at the end
        for c in asked[:count]:
            first, stop = ints[ints[SENSORS_OF] + c], ints[ints[SENSORS_OF] + c + 1]
            free |= first == stop
            for i in range(first, stop):
                row.bought[ints[ints[SENSORS] + i]] |= 2
    if count == 0 or (capped and not _afford(ints, floats, row, splits, trees)):
        return 0
    if not alone:
        return _readable(ints, row, free)
    for k in range(count):
        have[_I(asked[_I(k)])] = 1
    return count


@_bare
def _afford(ints: Any, floats: Any, row: Any, splits: float, trees: int) -> Any:
    """Pay for the sensors marked 2, if that is within the cap; else the row stops."""
    sums, bought = row.sums, row.bought
    before, sums[PRICE] = sums[PRICE], _price(ints, floats, bought)
    affords = sums[PRICE] + _evaluated(ints, floats, splits, trees) <= sums[CAP]
    if not affords:
        sums[PRICE], row.place[STOPPED] = before, CAPPED
    for s in range(len(bought)):
        bought[s] = (bought[s] != 0) if affords else bought[s] & 1
    return affords


@_bare
def _readable(ints: Any, row: Any, free: bool) -> int:
    """How many features can be read and could not before; those of no sensor if ``free``."""
    asked, bought, have, count = row.asked, row.bought, row.cells.have, 0
    for c in range(len(have)):
        first, stop = ints[ints[SENSORS_OF] + c], ints[ints[SENSORS_OF] + c + 1]
        readable = have[c] == 0 and (first < stop or free)
        for i in range(first, stop):
            readable &= bought[ints[ints[SENSORS] + i]] != 0
        if readable:
            have[c] = 1
            asked[count] = c
            count += 1
    return count


@_bare
def _price(ints: Any, floats: Any, bought: Any) -> float:
    """The prices of what is bought, added as ``Acquired.cost`` adds them."""
    total, sensors, prices = 0.0, len(bought), floats[ints[PRICES] :]
    for w in range(0, sensors, 64):
        word = 0.0
        for b in range(w, min(w + 64, sensors), 8):
            part = 0.0
            for s in range(b, min(b + 8, sensors)):
                part += prices[_I(s)] if bought[_I(s)] else 0.0
            word += part
        total += word
    return total


@_bare
def _bill(ints: Any, floats: Any, row: Any) -> None:
    """Make PRICE the whole bill; without a cap, what the row came to is bought."""
    place, sums, bought, need = row.place, row.sums, row.bought, row.cells.need
    if sums[CAP] == np.inf:
        sensors_of, sensors, k = ints[ints[SENSORS_OF] :], ints[ints[SENSORS] :], np.int32(0)
        for c in range(len(need) // 2):
            used, stop = need[_I(2 * c)] | need[_I(2 * c + 1)], sensors_of[_I(c + 1)]
            while k < stop:
                bought[_I(sensors[_I(k)])] |= used
                k += np.int32(1)
    evaluated = _evaluated(ints, floats, sums[SPLITS], place[TREES])
    sums[PRICE] = _price(ints, floats, row.bought) + evaluated


@_bare
def _add_columns(ints: Any, floats: Any, row: Any, line: int) -> None:
    for c in range(ints[line + FIRST_COLUMN], ints[line + LAST_COLUMN]):
        at, by = ints[COLUMNS] + 3 * c, ints[FACTORS] + 3 * c
        x, weight, sums = np.float64(row.cells.values[ints[at]]), floats[by], row.sums
        if ints[at + 2]:
            scaled = (x - floats[by + 1]) * floats[by + 2] if np.isfinite(x) else 0.0
            sums[SUMS + ints[at + 1]] += weight * scaled
        elif not np.isnan(x):
            sums[SUMS + ints[at + 1]] += weight * x


@_bare
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
