"""A program as a few arrays, which the compiled walk of a row and the C source read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, Int32Array, IntArray
from bench_core.costs.model import CostModel
from bench_core.serving.batch import needs_of
from bench_core.serving.program import COMBINE, GATES, Program, segments

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
