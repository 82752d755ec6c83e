"""One row through a packed program, compiled: on until features are needed that are not there."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bench_core.serving.packed import (
    BILLED,
    CARRY,
    CELL,
    COMBINED,
    FIRST_COLUMN,
    FIRST_READ,
    FIRST_USE,
    GATE,
    KEY,
    LAST_COLUMN,
    LAST_READ,
    LAST_USE,
    LEFT,
    LEVELS,
    OTHERWISE,
    OUTPUT,
    ROOT,
    SEGMENT,
    SPLITS,
    STOP_OTHERWISE,
    STOP_THEN,
    THEN,
    VALUE,
    Packed,
)
from bench_core.serving.program import COMBINE
from bench_core.serving.rows import CAPPED, ENDED, GATED, REJECTED

STEP, LAST, STOP, HOW, USE, AHEAD, LEVEL, DEPTH, ASKED, TREES, PLACES = range(11)
PATHS, PRICE, CAP, SPLIT, TREE, COUNTED_PATHS, COUNTED_TREES, SUMS = range(8)
MIN, ADD = COMBINE.index("min"), COMBINE.index("add")
_U: Any = np.uint64  # an index that is never counted from the end


class State(NamedTuple):
    """A row on its way, of f features, u uses of trees and K outputs."""

    values: Any  # float32 (f,)
    keys: Any  # int32 (2 f + 1,), the last for leaves
    have: Any  # uint8 (f,): whether the value is there
    need: Any  # uint8 (f + 1,): whether a tree or a column has come to it
    asked: Any  # int32 (f + 1,): features whose values are to come, or are needed
    given: Any  # float32 (f,): their values
    at: Any  # int32 (u,): nodes
    place: Any  # int64 (PLACES,)
    sums: Any  # float64 (SUMS,)
    scores: Any  # float64 (3, K): the step's own sums, the score, the score at the last stop


@njit(cache=True, nogil=True)
def ways(program: Packed, row: State) -> Generator[int, None, None]:
    """Row after row through the program: yields how many features are needed, named in ``asked``,
    and takes their values from ``given``; 0 at the end of a way. A generator, since handing over
    all these arrays takes as long as a hundred trees.

    Before a row begins its cap stands in ``sums``; who ends a way early sets HOW to CAPPED.
    """
    while True:
        _begin(row)
        count = 1
        while count > 0:
            count = _advance(program, row)
            yield count
            if row.place[HOW] == CAPPED:
                break
            _take(row)


@njit(inline="always")
def _begin(row: Any) -> None:
    place, sums = row.place, row.sums
    row.have[:] = row.need[:] = 0
    place[:] = 0
    place[LAST] = place[STOP] = place[USE] = place[AHEAD] = place[LEVEL] = -1
    sums[PATHS] = sums[PRICE] = 0.0
    row.scores[:] = 0.0


@njit(inline="always")
def _advance(program: Any, row: Any) -> int:
    place = row.place
    while place[STEP] >= 0:
        p = place[STEP]
        if place[USE] < 0:
            for k in range(row.scores.shape[1]):
                before = row.scores[0, k] if program.steps[p, CARRY] else 0.0
                row.scores[0, k] = before + program.gates[p, 1 + k]
            place[USE] = program.steps[p, FIRST_USE]
        capped = row.sums[CAP] < np.inf
        count = _by_tree(program, row, p) if capped else _segment(program, row, p)
        if count > 0 or place[HOW] == CAPPED:
            return count
        _add_columns(program, row, p)
        _leave(program, row, p)
    return 0


@njit(inline="always")
def _take(row: Any) -> None:
    """The values given, as keys: integers in the order of the floats; -0.0 is 0.0."""
    bits = row.given.view(np.int32)
    for k in range(row.place[ASKED]):
        c = _U(row.asked[k])
        row.given[k] += np.float32(0)
        number = bits[k] ^ (bits[k] >> 31 & 0x7FFFFFFF)
        missing = bits[k] & 0x7FFFFFFF > 0x7F800000
        row.values[c] = row.given[k]
        row.keys[_U(2) * c] = -(2**31) if missing else number
        row.keys[_U(2) * c + _U(1)] = 2**31 - 1 if missing else number
        row.have[c] = 1
    row.place[ASKED] = 0


@njit(inline="always")
def _segment(program: Any, row: Any, p: int) -> int:
    """Without a cap: all trees of a segment down, level by level and without branches, then the
    leaves of a step; how many features are needed before. A row at its leaf stays there."""
    place, steps, nodes, at = row.place, program.steps, program.nodes, row.at
    keys, need, have, asked = row.keys, row.need, row.have, row.asked
    if place[AHEAD] < p:
        last = steps[p, SEGMENT]
        first, stop = steps[p, FIRST_USE], steps[last, LAST_USE]
        if place[LEVEL] < 0:
            place[LEVEL] = place[DEPTH] = 0
            for u in range(first, stop):
                at[_U(u)] = program.uses[_U(u), ROOT]
                need[_U(nodes[_U(at[_U(u)]), CELL] >> 1)] = 1
                place[DEPTH] = max(place[DEPTH], program.uses[_U(u), LEVELS])
            for i in range(steps[p, FIRST_READ], steps[last, LAST_READ]):
                need[program.reads[i]] = 1
        while True:
            count = 0
            for c in range(len(have)):
                asked[_U(count)] = c
                count += need[_U(c)] & ~have[_U(c)]
            if count > 0:
                return count
            if place[LEVEL] == place[DEPTH]:
                break
            for u in range(first, stop):
                node = _U(at[_U(u)])
                above = keys[_U(nodes[node, CELL])] > nodes[node, KEY]
                node = _U(nodes[node, LEFT] + above)
                at[_U(u)] = node
                need[_U(nodes[node, CELL] >> 1)] = 1
            place[LEVEL] += 1
        place[AHEAD], place[LEVEL] = last, -1
    for u in range(steps[p, FIRST_USE], steps[p, LAST_USE]):
        _add_leaf(program, row, u, at[_U(u)])
    return 0


@njit(inline="always")
def _by_tree(program: Any, row: Any, p: Any) -> int:
    """Under a cap: one tree after the other, as far as evaluating them is within it."""
    place, sums, nodes, uses = row.place, row.sums, program.nodes, program.uses
    steps = program.steps
    while place[USE] < steps[p, LAST_USE]:
        u = place[USE]
        if place[LEVEL] < 0:
            row.at[u], place[LEVEL] = uses[u, ROOT], 0
        node = _U(row.at[u])
        while _U(nodes[node, LEFT]) != node:
            child, cell = _U(nodes[node, LEFT]), _U(nodes[node, CELL])
            sums[COUNTED_PATHS] = sums[PATHS] + program.leaves[child, SPLITS]
            sums[COUNTED_TREES] = place[TREES] + uses[u, BILLED]
            walked = sums[SPLIT] * sums[COUNTED_PATHS] + sums[TREE] * sums[COUNTED_TREES]
            if uses[u, BILLED] and not sums[PRICE] + walked <= sums[CAP]:
                place[HOW] = CAPPED
                return 0
            if not row.have[cell >> _U(1)]:
                row.at[u], row.asked[0] = node, cell >> _U(1)
                return 1
            node = child + _U(row.keys[cell] > nodes[node, KEY])
        _add_leaf(program, row, u, node)
        place[USE], place[LEVEL] = u + 1, -1
    sums[COUNTED_PATHS], sums[COUNTED_TREES] = sums[PATHS], place[TREES]
    count = 0
    for i in range(steps[p, FIRST_READ], steps[p, LAST_READ]):
        row.asked[count] = program.reads[i]
        count += not row.have[program.reads[i]]
    return count


@njit(inline="always")
def _add_leaf(program: Any, row: Any, u: Any, node: Any) -> None:
    value, output = program.leaves[_U(node), VALUE], program.uses[_U(u), OUTPUT]
    if output >= 0:
        row.scores[0, output] += value
    else:
        for k in range(row.scores.shape[1]):
            row.scores[0, k] += program.vectors[int(value), k]
    row.place[TREES] += program.uses[_U(u), BILLED]
    row.sums[PATHS] += program.leaves[_U(node), SPLITS]


@njit(inline="always")
def _add_columns(program: Any, row: Any, p: Any) -> None:
    columns, factors, own = program.columns, program.factors, row.scores
    for c in range(program.steps[p, FIRST_COLUMN], program.steps[p, LAST_COLUMN]):
        x, output = np.float64(row.values[columns[c, 0]]), columns[c, 1]
        if columns[c, 2]:
            scaled = (x - factors[c, 1]) * factors[c, 2] if np.isfinite(x) else 0.0
            own[0, output] += factors[c, 0] * scaled
        elif not np.isnan(x):
            own[0, output] += factors[c, 0] * x


@njit(inline="always")
def _leave(program: Any, row: Any, p: Any) -> None:
    """Combine scores, and go where the gate leads."""
    place, scores, steps, outputs = row.place, row.scores, program.steps, row.scores.shape[1]
    for k in range(outputs):
        own, score = scores[0, k], scores[1, k]
        if steps[p, COMBINED] == ADD:
            own += score
        elif steps[p, COMBINED] == MIN:
            own = np.minimum(score, own)
        scores[1, k] = own
    passes = steps[p, GATE] == 0 or scores[1, 0] >= program.gates[p, 0]
    onward = steps[p, THEN] if passes else steps[p, OTHERWISE]
    if steps[p, STOP_THEN] if passes else steps[p, STOP_OTHERWISE]:
        place[STOP] = p
        for k in range(outputs):
            scores[2, k] = scores[1, k]
    place[LAST], place[STEP], place[USE] = p, onward, -1
    if onward < 0:
        place[HOW] = REJECTED if onward == -2 else ENDED if passes else GATED
