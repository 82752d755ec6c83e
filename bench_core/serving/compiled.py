"""A program packed for ``kernels``: rows by compiled code, with the bits of the plain walk.

What the kernels do not know is walked in Python: kernels of support vectors, gates and combines
that need ``exp``, and what compares the rows of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray, UInt32Array
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import PerQueryPrices
from bench_core.serving.program import COMBINE, GATES, Program, Step, Trees, segments
from bench_core.serving.tables import Tables


def compilable(program: Program) -> bool:
    """Whether the kernels know all that a row meets on its way."""
    return program.vectors is None and all(
        s.kernel is None and s.combine != "and" and s.gate in ("always", "score")
        for s in program.steps
    )


def prices_of(costs: CostModel) -> SensorPrices | None:
    """What a row by itself pays as additive prices; None where it pays otherwise."""
    if isinstance(costs, PerQueryPrices):
        return costs.prices
    return costs if isinstance(costs, SensorPrices) else None


def keys(values: Float32Array) -> UInt32Array:
    """Whole numbers in the order of the floats; -0.0 is 0.0."""
    bits = (values + np.float32(0)).view(np.uint32)
    return np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """What the kernels, and the C source, read; see ``kernels`` for the order of columns.

    ``features`` (f,) are the cells, by number in the data. Of nodes (N,) the ``thresholds``, the
    place of the ``cell``, and how far ``below`` the left child is; ``leaves`` (N, 2). ``uses``
    (u, 4) of trees: root, levels, output, whether billed, with ``weights`` (u,). ``gates``
    (p, 1 + K): values and biases; ``factors`` (c, 3).
    """

    features: IntArray
    thresholds: UInt32Array
    cell: IntArray
    below: IntArray
    leaves: FloatArray
    uses: IntArray
    weights: FloatArray
    steps: IntArray
    gates: FloatArray
    columns: IntArray
    factors: FloatArray

    @classmethod
    def of(cls, program: Program) -> Self:
        """Of a program as it is."""
        features, steps = program.features, program.steps
        thresholds, cell, below, leaves, levels = _nodes(program, features)
        used = np.concatenate([s.trees for s in steps]).astype(np.int64)
        billed = np.concatenate([s.fresh for s in steps]) & (levels[used] > 0)
        columns = _joined(steps, "feature", "output", "scaled")
        columns[:, 0] = np.searchsorted(features, columns[:, 0])
        root, output = program.trees.start[used], program.trees.output[used]
        return cls(
            features=features,
            thresholds=thresholds,
            cell=cell,
            below=below,
            leaves=leaves,
            uses=np.stack([root, levels[used], output, billed], axis=1).astype(np.int64),
            weights=np.concatenate([s.weights for s in steps]),
            steps=_steps(program),
            gates=np.array([[s.value, *s.bias] for s in steps], dtype=np.float64),
            columns=columns,
            factors=_joined(steps, "weight", "mean", "factor"),
        )

    def flat(self, tables: Tables, prices: SensorPrices) -> tuple[Any, Any, FloatArray]:
        """``ints``, ``links`` and ``floats`` of the kernels."""
        root, levels, output, billed = self.uses.T
        order = self._deepest_first()
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        alone = [len(tables.mates[f]) == 1 for f in tables.features]
        sensors = [prices.sensors_of(f) for f in tables.features]
        ints = [
            self.thresholds.view(np.int32),
            *(root[order], levels[order], rank, output, billed),
            *(self.steps, self.columns, self.features, alone),
            *(np.cumsum([0, *map(len, sensors)]), np.concatenate([*sensors, np.zeros(0)])),
        ]
        rules = np.array([prices.split, prices.tree])
        floats = [self.leaves, self.weights, self.gates, self.factors, prices.sensor, rules]
        begin = 2 + len(ints) + len(floats)
        header = [
            self.gates.shape[1] - 1,
            *(begin + np.cumsum([0, *map(np.size, ints[:-1])])),
            *np.cumsum([0, *map(np.size, floats[:-1])]),
            len(self.features),
        ]
        whole = np.concatenate([np.ravel(part) for part in (header, *ints)]).astype(np.int32)
        narrow = np.uint16 if self.narrow else np.uint32
        links = np.stack([self.cell, self.below], axis=1).astype(narrow)
        return whole, links.ravel(), np.concatenate([np.ravel(part) for part in floats])

    @property
    def narrow(self) -> bool:
        """Whether 16 bits hold the numbers in a node."""
        return max(2 * len(self.features), int(self.below.max(initial=0))) < 1 << 16

    def _deepest_first(self) -> IntArray:
        """The uses of each segment's trees, those of most levels first."""
        segment = np.repeat(self.steps[:, -1], self.steps[:, 1] - self.steps[:, 0])
        return np.lexsort((-self.uses[:, 1], segment))


def _nodes(program: Program, features: IntArray) -> tuple[Any, ...]:
    """Thresholds, cells and ways to left children (N,) of nodes, each tree level by level, siblings
    side by side; their values and paths (N, 2), and levels (T,) of trees."""
    trees = program.trees
    owner = np.repeat(np.arange(len(trees)), np.diff(trees.start))
    level, path = _levels(trees, program.multiplier)
    inner = np.flatnonzero(trees.feature >= 0)
    inner = inner[np.lexsort((level[inner], owner[inner]))]
    first = trees.start[:-1].astype(np.int64)
    before = np.searchsorted(owner[inner], np.arange(len(trees)))  # splits of earlier trees
    pair = first[owner[inner]] + 1 + 2 * (np.arange(len(inner)) - before[owner[inner]])
    place = np.zeros(len(owner), dtype=np.int64)
    place[first] = first
    place[trees.left[inner]], place[trees.right[inner]] = pair, pair + 1
    own, cell = place[inner], np.full(len(owner), 2 * len(features))
    cell[own] = 2 * np.searchsorted(features, trees.feature[inner]) + ~trees.missing_left[inner]
    below = np.zeros(len(owner), dtype=np.int64)
    below[own] = pair - own
    thresholds = np.full(len(owner), np.uint32(0xFFFFFFFF))  # no cell is above that of a leaf
    thresholds[own] = keys(trees.threshold[inner])
    leaves = np.zeros((len(owner), 2))
    leaves[place, 0], leaves[place, 1] = trees.value, path
    levels = np.zeros(len(trees), dtype=np.int64)
    np.maximum.at(levels, owner, level)
    return thresholds, cell, below, leaves, levels


def _levels(trees: Trees, multiplier: FloatArray) -> tuple[IntArray, FloatArray]:
    """How many splits are above every node (N,), and their multipliers, added from the root on."""
    level, path = np.zeros(len(trees.feature), dtype=np.int64), np.zeros(len(trees.feature))
    here = trees.start[:-1].astype(np.int64)
    while len(here := here[trees.feature[here] >= 0]):
        for child in (trees.left[here], trees.right[here]):
            level[child] = level[here] + 1
            path[child] = path[here] + multiplier[trees.feature[here]]
        here = np.concatenate([trees.left[here], trees.right[here]])
    return level, path


def _steps(program: Program) -> IntArray:
    """The numbers of every step, in the order of ``kernels.FIRST_USE``."""
    count, stops = len(program.steps), sorted(stop.step for stop in program.stops)
    use, column, rows = 0, 0, []
    segment = segments(program)
    for number, step in enumerate(program.steps):
        passed = []
        for onward in (step.then, step.otherwise):
            until = count if onward < 0 else onward
            passed.append(any(number <= stop < until for stop in stops))
        uses, columns = use + len(step.trees), column + len(step.columns.feature)
        how = step.carry, COMBINE.index(step.combine), GATES.index(step.gate)
        own = [use, uses, column, columns, *how, step.then, step.otherwise]
        rows.append([*own, *passed, segment[number]])
        use, column = uses, columns
    return np.array(rows, dtype=np.int64)


def _joined(steps: Sequence[Step], *names: str) -> Any:
    """Fields of all columns side by side (c, 3)."""
    parts = [np.stack([getattr(s.columns, name) for name in names], axis=1) for s in steps]
    return np.concatenate(parts)
