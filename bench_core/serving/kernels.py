"""One row through a program, compiled; the plain Python walk gives the same bits.

A tree is walked without branches, so that the processor works on several trees at once: every node
is followed for as many levels as the tree has, a leaf leads to itself, and siblings lie side by
side, so that the outcome of a comparison is added to a number. Only a cell that is not there yet
leaves the loop. A feature has two places for its cell: in the first one a missing cell is -inf,
which goes left at every threshold, in the second NaN, which goes right; a node reads the one that
its ``missing_left`` asks for.

    ints     where the parts begin, number of outputs | nodes: threshold (float32), place of the
             cell, left child, feature | uses of trees: root, levels, output, whether billed
             | steps: FIRST_USE ... | columns: feature, output, whether scaled
    floats   nodes: value, multipliers on the path | weights of uses | steps: value of the gate,
             bias (K) | columns: weight, mean, factor
    cells    float32 (2 f + 1,)   two for each of f features; the last one is for leaves
    have     uint8 (2 f + 1,)     0 not there, 1 there, 3 read
    place    int64 (PLACES,): STEP ...   sums float64 (SUMS + 3 K,): SPLITS ..., then the step's own
             sums, the score, and the score at the last stop
"""

from typing import Any

import numpy as np
from numba import njit

NODES, USES, STEPS, COLUMNS, LEAVES, WEIGHTS, GATES, FACTORS, OUTPUTS, HEADER = range(10)
FIRST_USE, LAST_USE, FIRST_COLUMN, LAST_COLUMN, CARRY, COMBINE, GATED, THEN, ELSE = range(9)
STOP_THEN, STOP_ELSE, STEP_WIDTH = range(9, 12)
LAST, MIN, AND, ADD = range(4)
STEP, USE, TREES, NEW_TREE, LAST_STEP, STOPPED, STOP_AT, AT_HAND, PLACES = range(9)
SPLITS, NEW_SPLITS, PRICE, CAP, SPLIT, TREE, SUMS = range(7)
END, GATE, REJECTED, CAPPED = range(4)
DONE, READS = -1, -2
"""What ``advance`` returns besides a feature: the way is over; all columns of the step."""

_I: Any = np.uint64  # unsigned places are never counted from the end


@njit(cache=True, nogil=True)
def advance(ints: Any, floats: Any, cells: Any, have: Any, place: Any, sums: Any) -> int:
    """Go on until a feature is needed that is not there: its number; DONE, or READS."""
    outputs = ints[OUTPUTS]
    while place[STEP] >= 0:
        line = ints[STEPS] + place[STEP] * STEP_WIDTH
        gate = ints[GATES] + place[STEP] * (1 + outputs)
        if place[USE] < 0:
            for k in range(outputs):
                if not ints[line + CARRY]:
                    sums[SUMS + k] = 0.0
                sums[SUMS + k] += floats[gate + 1 + k]
            place[USE] = ints[line + FIRST_USE]
        if place[AT_HAND]:
            _read_trees(ints, floats, cells, have, place, sums, ints[line + LAST_USE])
        else:
            needed = _trees(ints, floats, cells, have, place, sums, ints[line + LAST_USE])
            if needed >= 0 or place[STOPPED] == CAPPED:
                return needed
            place[NEW_TREE], sums[NEW_SPLITS] = 0, 0.0
        some = ints[line + FIRST_COLUMN] < ints[line + LAST_COLUMN]
        if some and not _columns(ints, floats, cells, have, sums, line):
            return READS
        _leave(ints, sums, place, line, floats[gate])
    return DONE


@njit(cache=True, nogil=True)
def _trees(ints: Any, floats: Any, cells: Any, have: Any, place: Any, sums: Any, stop: int) -> int:
    """Add the trees up to use ``stop``; the feature that is not there, or DONE."""
    thresholds = ints.view(np.float32)
    nodes, uses = _I(ints[NODES]), _I(ints[USES])
    leaves, weights = _I(ints[LEAVES]), _I(ints[WEIGHTS])
    splits, trees = sums[SPLITS], place[TREES]
    capped = sums[CAP] < np.inf
    u, needed = place[USE], DONE
    while u < stop:
        at = uses + _I(4 * u)
        node, levels, output = _I(ints[at]), ints[at + _I(1)], ints[at + _I(2)]
        billed = ints[at + _I(3)]
        for _ in range(levels):
            i = nodes + _I(4) * node
            cell, below = _I(ints[i + _I(1)]), _I(ints[i + _I(2)])
            if capped and billed:
                path = floats[leaves + _I(2) * below + _I(1)]
                if not _within(sums, splits + path, trees + 1):
                    place[STOPPED] = CAPPED
                    break
            if not have[cell]:
                needed = ints[i + _I(3)]
                place[NEW_TREE] = billed
                path = floats[leaves + _I(2) * below + _I(1)]
                sums[NEW_SPLITS] = path if billed else 0.0
                break
            have[cell] = 3
            node = below + _I(not cells[cell] <= thresholds[i])
        if needed >= 0 or place[STOPPED] == CAPPED:
            break
        found = leaves + _I(2) * node
        if billed:
            trees += 1
            splits += floats[found + _I(1)]
        sums[SUMS + output] += floats[found] * floats[weights + _I(u)]
        u += 1
    place[USE], place[TREES], sums[SPLITS] = u, trees, splits
    return needed


@njit(cache=True, nogil=True)
def _read_trees(
    ints: Any, floats: Any, cells: Any, have: Any, place: Any, sums: Any, stop: int
) -> None:
    """Add the trees up to use ``stop`` where all cells are there and nothing is capped."""
    thresholds = ints.view(np.float32)
    nodes, leaves, weights = _I(ints[NODES]), _I(ints[LEAVES]), _I(ints[WEIGHTS])
    splits, trees = sums[SPLITS], place[TREES]
    at = _I(ints[USES] + 4 * place[USE])
    for u in range(place[USE], stop):
        node = _I(ints[at])
        for _ in range(ints[at + _I(1)]):
            i = nodes + _I(4) * node
            cell = _I(ints[i + _I(1)])
            have[cell] = 3
            node = _I(ints[i + _I(2)]) + _I(not cells[cell] <= thresholds[i])
        found = leaves + _I(2) * node
        if ints[at + _I(3)]:
            trees += 1
            splits += floats[found + _I(1)]
        sums[SUMS + ints[at + _I(2)]] += floats[found] * floats[weights + _I(u)]
        at += _I(4)
    place[USE], place[TREES], sums[SPLITS] = stop, trees, splits


@njit(cache=True, nogil=True)
def _within(sums: Any, splits: float, trees: int) -> Any:
    return sums[PRICE] + (sums[SPLIT] * splits + sums[TREE] * np.float64(trees)) <= sums[CAP]


@njit(cache=True, nogil=True)
def _columns(ints: Any, floats: Any, cells: Any, have: Any, sums: Any, line: int) -> bool:
    """Add the columns of a step, if all are there."""
    first, stop = ints[line + FIRST_COLUMN], ints[line + LAST_COLUMN]
    for c in range(first, stop):
        if not have[2 * ints[ints[COLUMNS] + 3 * c] + 1]:
            return False
    for c in range(first, stop):
        at, by = ints[COLUMNS] + 3 * c, ints[FACTORS] + 3 * c
        cell = 2 * ints[at] + 1
        have[cell] = 3
        x, weight = np.float64(cells[cell]), floats[by]
        if ints[at + 2]:
            scaled = (x - floats[by + 1]) * floats[by + 2] if np.isfinite(x) else 0.0
            sums[SUMS + ints[at + 1]] += weight * scaled
        elif not np.isnan(x):
            sums[SUMS + ints[at + 1]] += weight * x
    return True


@njit(cache=True, nogil=True)
def _leave(ints: Any, sums: Any, place: Any, line: int, value: float) -> None:
    """Combine scores, and go where the gate leads."""
    outputs = ints[OUTPUTS]
    for k in range(outputs):
        own, score = sums[SUMS + k], sums[SUMS + outputs + k]
        if ints[line + COMBINE] == LAST:
            score = own
        elif ints[line + COMBINE] == ADD:
            score += own
        elif not (score < own or np.isnan(score)):
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


@njit(cache=True, nogil=True)
def price_of(bits: Any, tables: Any) -> float:
    """The prices of the sensors in ``bits`` (w,), added as ``Acquired.cost`` adds them."""
    total = 0.0
    for w in range(len(bits)):
        word = 0.0
        for k in range(8):
            word += tables[w, k, (bits[w] >> np.uint64(8 * k)) & np.uint64(255)]
        total += word
    return total


@njit(cache=True, nogil=True)
def _fill(X: Any, row: int, features: Any, cells: Any) -> None:
    """The cells of a row at both of their places."""
    for c in range(len(features)):
        x = X[row, features[c]]
        cells[2 * c] = -np.inf if np.isnan(x) else x
        cells[2 * c + 1] = x


@njit(cache=True, nogil=True)
def _buy(
    ints: Any, need: int, have: Any, place: Any, sums: Any, bits: Any, needs: Any, tables: Any
) -> None:
    """Buy a feature, or all columns of the step, if that is within the cap."""
    line, first, count = ints[STEPS] + place[STEP] * STEP_WIDTH, 0, 1
    if need == READS:
        first = ints[COLUMNS] + 3 * ints[line + FIRST_COLUMN]
        count = ints[line + LAST_COLUMN] - ints[line + FIRST_COLUMN]
    wanted = np.empty_like(bits)
    for w in range(len(bits)):
        wanted[w] = bits[w]
        for k in range(count):
            wanted[w] |= needs[need if need >= 0 else ints[first + 3 * k], w]
    sums[PRICE] = price_of(wanted, tables)
    splits, trees = sums[SPLITS] + sums[NEW_SPLITS], place[TREES] + place[NEW_TREE]
    if not _within(sums, splits, trees):
        place[STOPPED] = CAPPED
        return
    for w in range(len(bits)):
        bits[w] = wanted[w]
    for k in range(count):
        c = need if need >= 0 else ints[first + 3 * k]
        have[2 * c] = have[2 * c + 1] = 1


@njit(cache=True, nogil=True)
def walk_rows(
    ints: Any,
    floats: Any,
    features: Any,
    needs: Any,
    tables: Any,
    limits: Any,
    X: Any,
    sums: Any,
    places: Any,
    bought: Any,
) -> None:
    """Take rows ``X`` (n, d) through the program: ``sums`` (n, SUMS + 3 K), ``places`` (n, PLACES)
    and the sensors ``bought`` (n, s) of each, zero before; ``limits`` are the cap and the prices of
    a split and of a tree. Of each row PRICE becomes its whole bill."""
    count = len(features)
    cells = np.empty(2 * count + 1, dtype=np.float32)
    have = np.empty(2 * count + 1, dtype=np.uint8)
    bits = np.empty(needs.shape[1], dtype=np.uint64)
    cells[2 * count] = -np.inf
    for i in range(len(X)):
        _fill(X, i, features, cells)
        have[:] = 1 if limits[0] == np.inf else 0
        have[2 * count] = 1
        bits[:] = 0
        place, total = places[i], sums[i]
        place[USE] = place[LAST_STEP] = place[STOP_AT] = -1
        place[AT_HAND] = limits[0] == np.inf
        total[CAP : CAP + 3] = limits
        need = advance(ints, floats, cells, have, place, total)
        while need != DONE and place[STOPPED] != CAPPED:
            _buy(ints, need, have, place, total, bits, needs, tables)
            if place[STOPPED] != CAPPED:
                need = advance(ints, floats, cells, have, place, total)
        if limits[0] == np.inf:
            for c in range(count):
                if (have[2 * c] | have[2 * c + 1]) & 2:
                    for w in range(len(bits)):
                        bits[w] |= needs[c, w]
        for s in range(bought.shape[1]):
            bought[i, s] = (bits[s >> 6] >> np.uint64(s & 63)) & np.uint64(1)
        total[PRICE] = price_of(bits, tables) + (
            limits[1] * total[SPLITS] + limits[2] * np.float64(place[TREES])
        )
