"""Single rows on demand by compiled code, which needs numba: a program as a few arrays, the kernel
that walks them, and what asks for features.

What the kernel does not know is left to the naive walk: support vectors, gates and combinations
that need ``exp``, gates that compare the rows of a query, and costs that are no sum of prices.
The C source (``c_source``) is made of the same arrays.
"""

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bench_core.arrays import Float32Array, FloatArray, Int32Array, IntArray
from bench_core.costs.model import CostModel
from bench_core.serving.block_walk import needs_of
from bench_core.serving.gates import finished
from bench_core.serving.program import COMBINE, END, GATES, Program, segments
from bench_core.serving.row_state import CAPPED, ENDED, GATED, REJECTED, FeatureNeeds, Purchases

CELL, KEY, LEFT = range(3)  # of a node
VALUE, SPLITS = range(2)  # of a leaf
ROOT, LEVELS, OUTPUT, BILLED = range(4)  # of a use
FIRST_USE, LAST_USE, FIRST_COLUMN, LAST_COLUMN, FIRST_READ, LAST_READ = range(6)  # of a step
CARRY, COMBINED, GATE, THEN, OTHERWISE, STOP_THEN, STOP_OTHERWISE, SEGMENT = range(6, 14)


class Packed(NamedTuple):
    """The trees of all steps in walking order (``bench_trees.inference.Layout``), and the steps.

    A feature of the model has two cells, 2 c and 2 c + 1: in the first a missing value is the
    smallest key and goes left, in the second the largest and goes right. A leaf has the cell after
    all these, and a key that no cell is above.
    """

    nodes: Int32Array  # (N, 3) cell, key of the threshold, left child (a leaf: itself)
    leaves: FloatArray  # (N, 2) value times weight, multipliers on the way there
    uses: Int32Array  # (u, 4) of trees: root, levels, output, whether billed
    steps: Int32Array  # (p, 14), FIRST_USE ... SEGMENT
    gates: FloatArray  # (p, 1 + K) the value of the gate, the bias
    columns: Int32Array  # (c, 3) feature, output, whether scaled
    factors: FloatArray  # (c, 3) weight, mean, factor
    reads: Int32Array  # (r,) features that a step needs whatever the row
    vectors: FloatArray  # (m, K)


def pack(program: Program, costs: CostModel) -> Packed:
    """Of a program as it is."""
    from bench_trees.inference import lay_out

    steps, features = program.steps, program.features
    uses = [np.concatenate([getattr(s, n) for s in steps]) for n in ("trees", "weights", "fresh")]
    layout = lay_out(program.trees, needs_of(program, costs), *uses)
    pair = 2 * np.searchsorted(features, layout.columns) + (layout.missing > 0)
    inner = layout.left != np.arange(len(layout.left))
    cell = np.append(pair, 2 * len(features))[np.where(inner, layout.cell, -1)]
    columns = [s.columns for s in steps]
    needed = [np.searchsorted(features, s.reads) for s in steps]
    numbers = [
        np.concatenate([getattr(c, n) for c in columns]) for n in ("feature", "output", "scaled")
    ]
    numbers[0] = np.searchsorted(features, numbers[0])
    factors = [
        np.concatenate([getattr(c, n) for c in columns]) for n in ("weight", "mean", "factor")
    ]
    vectors = np.zeros((0, program.outputs)) if program.vectors is None else program.vectors
    return Packed(
        nodes=_table(cell, layout.key, layout.left),
        leaves=np.column_stack([layout.value, layout.splits]),
        uses=_table(layout.root, layout.levels, layout.output, uses[2] & (layout.levels > 0)),
        steps=_steps(program, needed),
        gates=np.array([[s.value, *s.bias] for s in steps], dtype=np.float64),
        columns=_table(*numbers),
        factors=np.column_stack(factors).astype(np.float64),
        reads=np.concatenate(needed).astype(np.int32),
        vectors=np.ascontiguousarray(vectors, dtype=np.float64),
    )


def _table(*columns: Any) -> Int32Array:
    return np.column_stack(columns).astype(np.int32)


def _steps(program: Program, needed: list[IntArray]) -> Int32Array:
    stops = sorted(stop.step for stop in program.stops)
    ends, rows = segments(program), []
    use = column = read = 0
    for number, step in enumerate(program.steps):
        first = use, column, read
        use, column = use + len(step.trees), column + len(step.columns.feature)
        read += len(needed[number])
        onward = step.then, step.otherwise
        passed = [any(number <= s and (to < 0 or s < to) for s in stops) for to in onward]
        how = step.carry, COMBINE.index(step.combine), GATES.index(step.gate)
        pairs = first[0], use, first[1], column, first[2], read
        rows.append([*pairs, *how, *onward, *passed, ends[number]])
    return np.array(rows, dtype=np.int32)


# What stands where in ``State.place`` and ``State.sums``. AHEAD: the last step whose features were
# asked for; LEVEL, DEPTH: levels that its trees have gone down, and will; ASKED: values to take.
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


class End(NamedTuple):
    """How a row ended: ``bought`` are numbers of features, in the order asked for."""

    score: Any
    spent: float
    bought: IntArray
    step: int
    how: int


class Room(NamedTuple):
    """Where one row after the other is walked."""

    row: State
    ways: Iterator[int]


def compilable(program: Program) -> bool:
    """Whether the kernel knows all that a row meets on its way."""
    return all(
        s.kernel is None and s.combine != "and" and s.gate in ("always", "score")
        for s in program.steps
    )


class RowWalk:
    """A program and what its features need; may be used by several threads at once."""

    def __init__(self, program: Program, needs: FeatureNeeds) -> None:
        assert needs.prices is not None
        self.program, self.needs, self.prices = program, needs, needs.prices
        self.packed = pack(program, needs.costs)
        self.features = program.features
        self._rooms: list[Room] = []
        single = needs.single
        self.price = None if single is None else self.prices.sensor[single]

    def way(self, cap: float | None) -> Generator[IntArray, Float32Array, End]:
        """One row: yields numbers of features and is sent their values."""
        try:
            room = self._rooms.pop()
        except IndexError:
            room = self._room()
        row = room.row
        row.sums[CAP] = np.inf if cap is None else cap
        if cap is None and self.price is not None:
            bought = yield from self._apart(room)
            price = float(self.price[bought].sum())
        else:
            bought, price = yield from self._priced(room, Purchases(self.needs, cap))
        how = int(row.place[HOW])
        step = int(row.place[STOP if how == CAPPED else LAST])
        walked = self.prices.split * row.sums[PATHS] + self.prices.tree * row.place[TREES]
        score = self._score(row.scores[2 if how == CAPPED else 1], how, step)
        self._rooms.append(room)  # that of a row which was given up is not used again
        return End(score, float(price + walked), bought, step, how)

    def _apart(self, room: Room) -> Generator[IntArray, Float32Array, IntArray]:
        """Each feature has a sensor to itself and there is no cap: what is needed is bought."""
        parts: list[IntArray] = []
        row = room.row
        while (count := next(room.ways)) > 0:
            parts.append(self.features[row.asked[:count]])
            row.given[:count] = yield parts[-1]
            row.place[ASKED] = count
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _priced(
        self, room: Room, bought: Purchases
    ) -> Generator[IntArray, Float32Array, tuple[IntArray, float]]:
        row = room.row
        while (count := next(room.ways)) > 0:
            wanted = self.features[row.asked[:count]].tolist()
            asked = bought.buy(wanted, row.sums[COUNTED_PATHS], row.sums[COUNTED_TREES])
            if asked is None:
                row.place[HOW] = CAPPED
                break
            numbers, count = np.array(asked, dtype=np.int64), len(asked)
            row.asked[:count] = np.searchsorted(self.features, numbers)
            row.given[:count] = yield numbers
            row.place[ASKED], row.sums[PRICE] = count, bought.price
        return np.array(list(bought.features), dtype=np.int64), bought.price

    def _room(self) -> Room:
        count, uses, sums = len(self.features), len(self.packed.uses), np.zeros(SUMS)
        sums[SPLIT], sums[TREE] = self.prices.split, self.prices.tree
        row = State(
            values=np.empty(count, np.float32),
            keys=np.zeros(2 * count + 1, np.int32),
            have=np.empty(count, np.uint8),
            need=np.empty(count + 1, np.uint8),
            asked=np.empty(count + 1, np.int32),
            given=np.empty(count, np.float32),
            at=np.empty(uses, np.int32),
            place=np.empty(PLACES, np.int64),
            sums=sums,
            scores=np.empty((3, self.program.outputs)),
        )
        return Room(row, ways(self.packed, row))

    def _score(self, score: FloatArray, how: int, step: int) -> Any:
        program = self.program
        if step == END:
            found = np.full(program.outputs, np.nan) if program.nothing is None else program.nothing
        else:
            found, finish = score.copy(), program.steps[step].finish
            if how == REJECTED and not isinstance(program.rejected, str):
                found = np.full(program.outputs, float(program.rejected))
            if finish is not None:
                found = finished(finish, found[None])[0]
        return float(found[0]) if program.outputs == 1 else found
