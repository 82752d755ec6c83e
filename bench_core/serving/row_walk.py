"""The compiled walk of single rows: a program as a few arrays, and the kernel that walks them.

The kernel walks a row to its end. In other modes it pauses after each step, so that numpy can apply
the gate to all rows (``on_demand``). ``bench_c`` uses the same arrays.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from bench_trees.kernels.compiling import inner, kernel

from bench_core.arrays import FloatArray, Int32Array, IntArray
from bench_core.costs.model import CostModel
from bench_core.serving.block_walk import needs_of
from bench_core.serving.program import COMBINE, GATES, Program, segments
from bench_core.serving.row_state import ENDED, GATED, REJECTED

CELL, KEY, LEFT = range(3)  # of a node
VALUE, SPLITS = range(2)  # of a leaf
ROOT, LEVELS, OUTPUT, BILLED = range(4)  # of a use
FIRST_USE, LAST_USE, FIRST_COLUMN, LAST_COLUMN, FIRST_READ, LAST_READ = range(6)  # of a step
CARRY, COMBINED, GATE, THEN, OTHERWISE, STOP_THEN, STOP_OTHERWISE, SEGMENT = range(6, 14)
FIRST_PRICE, LAST_PRICE = 14, 15


class Packed(NamedTuple):
    """The trees of all steps in walking order (``bench_trees.inference.Layout``), and the steps.

    A feature has two cells, 2 c and 2 c + 1. In the first a missing value is the smallest key and
    goes left; in the second it is the largest and goes right. A leaf uses the cell after all of
    these, and a key that no cell exceeds.
    """

    nodes: Int32Array  # (N, 3) cell, key of the threshold, left child (a leaf: itself)
    leaves: FloatArray  # (N, 2) value times weight, multipliers on the way there
    uses: Int32Array  # (u, 4) of trees: root, levels, output, billed (1) or not (0)
    steps: Int32Array  # (p, 16), FIRST_USE ... LAST_PRICE
    gates: FloatArray  # (p, 1 + K) the value of the gate, the bias
    columns: Int32Array  # (c, 2) feature, output
    factors: FloatArray  # (c, 3) weight, mean, factor
    reads: Int32Array  # (r,) features that a step needs for every row
    vectors: FloatArray  # (m, K)
    multiplier: FloatArray  # (f,) of a split on each feature
    prices: FloatArray  # (q, 2) output, weight


def pack(program: Program, costs: CostModel) -> Packed:
    """Pack a program."""
    from bench_trees.inference import lay_out

    steps, features = program.steps, program.features

    def joined(parts: Any, *names: str) -> list[Any]:
        return [np.concatenate([getattr(part, name) for part in parts]) for name in names]

    uses = joined(steps, "trees", "weights", "fresh")
    layout = lay_out(program.trees, needs_of(program, costs), *uses)
    pair = 2 * np.searchsorted(features, layout.columns) + (layout.missing > 0)
    inner = layout.left != np.arange(len(layout.left))
    cell = np.append(pair, 2 * len(features))[np.where(inner, layout.cell, -1)]
    columns = [step.columns for step in steps]
    feature, output = joined(columns, "feature", "output")
    needed = [np.searchsorted(features, step.reads) for step in steps]
    vectors = program.trees.vectors
    vectors = np.zeros((0, program.outputs)) if vectors is None else vectors
    return Packed(
        nodes=_table(cell, layout.key, layout.left),
        leaves=np.column_stack([layout.value, layout.splits]),
        uses=_table(layout.root, layout.levels, layout.output, uses[2] & (layout.levels > 0)),
        steps=_steps(program, needed),
        gates=np.array([[step.value, *step.bias] for step in steps], dtype=np.float64),
        columns=_table(np.searchsorted(features, feature), output),
        factors=np.column_stack(joined(columns, "weight", "mean", "factor")).astype(np.float64),
        reads=np.concatenate(needed).astype(np.int32),
        vectors=np.ascontiguousarray(vectors, dtype=np.float64),
        multiplier=program.multiplier[features].astype(np.float64),
        prices=np.column_stack(joined([step.prices for step in steps], "output", "weight")),
    )


def _table(*columns: Any) -> Int32Array:
    return np.column_stack(columns).astype(np.int32)


def _steps(program: Program, needed: list[IntArray]) -> Int32Array:
    stops = sorted(stop.step for stop in program.stops)
    ends, rows = segments(program), []
    use = column = read = price = 0
    for number, step in enumerate(program.steps):
        first = use, column, read
        priced, price = price, price + len(step.prices)
        use, column = use + len(step.trees), column + len(step.columns.feature)
        read += len(needed[number])
        onward = step.then, step.otherwise
        passed = [any(number <= s and (to < 0 or s < to) for s in stops) for to in onward]
        how = step.carry, COMBINE.index(step.combine), GATES.index(step.gate)
        pairs = first[0], use, first[1], column, first[2], read
        rows.append([*pairs, *how, *onward, *passed, ends[number], priced, price])
    return np.array(rows, dtype=np.int32)


# Entries of ``State.place``. AHEAD: the last step whose features were requested; LEVEL, DEPTH:
# levels that its trees have descended, and must; ASKED: values to read; under a cap also USE: the
# tree that is descended, AGREED: 1 if its next split may be evaluated. MODE stays from row to row.
STEP, LAST, ENDED_HOW, AHEAD, LEVEL, DEPTH, ASKED, TREES, USE, AGREED, MODE, PLACES = range(12)
WHOLE, BY_STEP, CAPPED_BY_STEP = range(3)  # of MODE
DONE_SPLITS, DONE_TREES, WAY_SPLITS, WAY_TREES = range(4)  # of ``State.due``
LAST_ONE, MIN, AND, ADD = range(len(COMBINE))
ALWAYS, SCORE, CLASS, LARGEST = range(4)
_U: Any = np.uint64  # unsigned indices are never counted from the end


class State(NamedTuple):
    """State of a row during a walk: f features, u uses of trees, K outputs."""

    values: Any  # float32 (f,)
    keys: Any  # int32 (2 f + 1,), the last for leaves
    have: Any  # uint8 (f,): 1 if the value is known
    need: Any  # uint8 (f + 1,): 1 if a tree or a column needs it
    requests: Any  # int64 (f + 1,): features requested or needed
    replies: Any  # float32 (f,): their values
    at: Any  # int32 (u,): nodes
    place: Any  # int64 (PLACES,)
    paths: Any  # float64 (1,): multipliers of the splits passed
    due: Any  # float64 (4,): under a cap splits and trees done, and those of the way in a tree
    scores: Any  # float64 (2, K): the step's sums, the score
    prices: Any  # float64 (q,): of the sensors that steps weigh


def new_state(program: Packed, outputs: int) -> State:
    """Return memory for one row at a time."""
    count = len(program.multiplier)
    return State(
        values=np.empty(count, np.float32),
        keys=np.zeros(2 * count + 1, np.int32),
        have=np.empty(count, np.uint8),
        need=np.empty(count + 1, np.uint8),
        requests=np.empty(count + 1, np.int64),
        replies=np.empty(count, np.float32),
        at=np.empty(len(program.uses), np.int32),
        place=np.empty(PLACES, np.int64),
        paths=np.empty(1),
        due=np.zeros(4),
        scores=np.empty((2, outputs)),
        prices=np.empty(len(program.prices)),
    )


@kernel
def ways(program: Packed, row: State) -> Generator[int, None, None]:
    """Walk row after row through the program. Yields the number of features needed, listed in
    ``requests``, and reads their values from ``replies``; yields 0 at the end of a row or, by
    ``MODE``, of a step. A generator, since passing all these arrays takes as long as a hundred
    trees."""
    while True:
        row.have[:] = row.need[:] = 0
        row.place[:MODE] = 0
        row.place[LAST] = row.place[AHEAD] = row.place[LEVEL] = -1
        row.paths[0] = 0.0
        row.scores[:] = 0.0
        while row.place[STEP] >= 0:
            yield _advance(program, row)
            _take(row)


@inner
def _advance(program: Any, row: Any) -> int:
    place, steps, outputs = row.place, program.steps, row.scores.shape[1]
    while place[STEP] >= 0:
        p = place[STEP]
        count = 0
        if place[MODE] == CAPPED_BY_STEP:
            count = _descend_in_order(program, row, p)
        elif place[AHEAD] < p:
            count = _descend(program, row, p)
        if count > 0:
            return count
        for k in range(outputs):
            before = row.scores[0, k] if steps[p, CARRY] else 0.0
            row.scores[0, k] = before + program.gates[p, 1 + k]
        for u in range(steps[p, FIRST_USE], steps[p, LAST_USE]):
            node, output = _U(row.at[_U(u)]), program.uses[_U(u), OUTPUT]
            value = program.leaves[node, VALUE]
            if output >= 0:
                row.scores[0, output] += value
            else:
                for k in range(outputs):
                    row.scores[0, k] += program.vectors[int(value), k]
            place[TREES] += program.uses[_U(u), BILLED]
            row.paths[0] += program.leaves[node, SPLITS]
        _add_columns(program, row, p)
        if place[MODE] != WHOLE:
            return 0
        _leave(program, row, p)
    return 0


@inner
def _take(row: Any) -> None:
    """Convert the given values to keys: integers in the order of the floats; -0.0 is 0.0."""
    bits = row.replies.view(np.int32)
    for k in range(row.place[ASKED]):
        c = _U(row.requests[k])
        row.replies[k] += np.float32(0)
        number = bits[k] ^ (bits[k] >> 31 & 0x7FFFFFFF)
        missing = bits[k] & 0x7FFFFFFF > 0x7F800000
        row.values[c] = row.replies[k]
        row.keys[_U(2) * c] = -(2**31) if missing else number
        row.keys[_U(2) * c + _U(1)] = 2**31 - 1 if missing else number
        row.have[c] = 1
    row.place[ASKED] = 0


@inner
def _descend(program: Any, row: Any, p: int) -> int:
    """Descend all trees of a segment, level by level and without branches, as far as features are
    known. Returns the number of features needed to continue. A row at its leaf stays there."""
    place, steps, nodes, at = row.place, program.steps, program.nodes, row.at
    keys, need, have, requests = row.keys, row.need, row.have, row.requests
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
            requests[_U(count)] = c
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
    return 0


@inner
def _descend_in_order(program: Any, row: Any, p: int) -> int:
    """Descend one tree of a step after another. Returns 1 before each split that costs something
    or needs an unknown feature, then the number of features that the step's columns lack."""
    place, steps, nodes, uses = row.place, program.steps, program.nodes, program.uses
    due = row.due
    if place[LEVEL] < 0:
        place[USE], place[LEVEL] = steps[p, FIRST_USE], 0
        due[DONE_SPLITS], due[DONE_TREES] = row.paths[0], place[TREES]
    while place[USE] < steps[p, LAST_USE]:
        u = _U(place[USE])
        billed = uses[u, BILLED]
        if place[LEVEL] == 0:
            row.at[u], place[LEVEL] = uses[u, ROOT], 1
            due[WAY_SPLITS], due[WAY_TREES] = 0.0, billed
        node = _U(row.at[u])
        c = nodes[node, CELL] >> 1
        if c == len(row.have):  # a leaf
            due[DONE_SPLITS] += program.leaves[node, SPLITS]
            due[DONE_TREES] += billed
            place[USE], place[LEVEL] = place[USE] + 1, 0
        elif place[AGREED] or (row.have[_U(c)] and not billed):
            above = row.keys[_U(nodes[node, CELL])] > nodes[node, KEY]
            row.at[u], place[AGREED] = nodes[node, LEFT] + above, 0
        else:
            due[WAY_SPLITS] += program.multiplier[c] * billed
            row.requests[0], place[AGREED] = c, 1
            return 1
    due[WAY_SPLITS] = due[WAY_TREES] = 0.0
    count = 0
    for i in range(steps[p, FIRST_READ], steps[p, LAST_READ]):
        row.requests[_U(count)] = program.reads[i]
        count += 1 - row.have[program.reads[i]]
    if count == 0:
        place[LEVEL] = -1
    return count


@inner
def _add_columns(program: Any, row: Any, p: Any) -> None:
    columns, factors, scores = program.columns, program.factors, row.scores
    for c in range(program.steps[p, FIRST_COLUMN], program.steps[p, LAST_COLUMN]):
        x = np.float64(row.values[columns[c, 0]])
        scaled = (x - factors[c, 1]) * factors[c, 2] if np.isfinite(x) else 0.0
        scores[0, columns[c, 1]] += factors[c, 0] * scaled
    for c in range(program.steps[p, FIRST_PRICE], program.steps[p, LAST_PRICE]):
        scores[0, int(program.prices[c, 0])] += program.prices[c, 1] * row.prices[c]


@inner
def _leave(program: Any, row: Any, p: Any) -> None:
    """Combine scores, and follow the gate."""
    place, scores, steps = row.place, row.scores, program.steps
    for k in range(scores.shape[1]):
        new, score = scores[0, k], scores[1, k]
        if steps[p, COMBINED] == ADD:
            new += score
        elif steps[p, COMBINED] == MIN:
            new = np.minimum(score, new)
        elif steps[p, COMBINED] == AND:
            new = -np.logaddexp(np.logaddexp(-score, -new), -score - new)
        scores[1, k] = new
    gate, value = steps[p, GATE], program.gates[p, 0]
    passes = gate == ALWAYS or (gate == SCORE and scores[1, 0] >= value)
    if gate == CLASS:
        passes = _likeliest(scores[1]) <= value
    elif gate == LARGEST:
        best = 0
        for k in range(1, scores.shape[1]):
            best = k if scores[1, k] > scores[1, best] else best
        passes = best == value
    onward = steps[p, THEN] if passes else steps[p, OTHERWISE]
    place[LAST], place[STEP] = p, onward
    if onward < 0:
        place[ENDED_HOW] = REJECTED if onward == -2 else ENDED if passes else GATED


@inner
def _likeliest(score: Any) -> Any:
    """Return the probability of the most likely class, as ``gates.largest_probability``."""
    if len(score) == 1:
        return 1.0 / (1.0 + np.exp(-abs(score[0])))
    best, total = score[0], 0.0
    for k in range(1, len(score)):
        best = max(best, score[k])
    for k in range(len(score)):  # array expressions take long to compile
        total += np.exp(score[k] - best)
    return 1.0 / (1.0 + (total - 1.0))
