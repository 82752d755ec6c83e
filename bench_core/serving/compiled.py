"""A program packed for ``kernels``: rows by compiled code, with the bits of the plain walk.

What the kernels do not know is walked in Python: kernels of support vectors, gates and combines
that need ``exp``, and what compares the rows of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bench_core.arrays import FloatArray, Int32Array, IntArray
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import PerQueryPrices
from bench_core.serving.program import COMBINE, GATES, Program, Step, Trees


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


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """What the kernels, and the C source, read; see ``kernels`` for the order of columns.

    ``features`` (f,) are the cells, by number in the data. ``uses`` (u, 4) of trees with
    ``weights`` (u,); ``gates`` (p, 1 + K): values and biases; ``factors`` (c, 3).
    """

    features: IntArray
    nodes: Int32Array
    uses: IntArray
    steps: IntArray
    columns: IntArray
    leaves: FloatArray
    weights: FloatArray
    gates: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, program: Program) -> Self:
        """Of a program as it is."""
        features, steps = program.features, program.steps
        nodes, leaves, levels, root = _nodes(program, features)
        used = np.concatenate([s.trees for s in steps]).astype(np.int64)
        billed = np.concatenate([s.fresh for s in steps]) & (levels[used] > 0)
        columns = _joined(steps, "feature", "output", "scaled")
        columns[:, 0] = np.searchsorted(features, columns[:, 0])
        return cls(
            features=features,
            nodes=nodes,
            uses=np.stack([root[used], levels[used], program.trees.output[used], billed], axis=1),
            steps=_steps(program),
            columns=columns,
            leaves=leaves,
            weights=np.concatenate([s.weights for s in steps]),
            gates=np.array([[s.value, *s.bias] for s in steps], dtype=np.float64),
            factors=_joined(steps, "weight", "mean", "factor"),
        )

    def flat(self, outputs: int) -> tuple[Int32Array, FloatArray]:
        """All whole numbers in one array, after a header, and all others in another one."""
        parts = self.nodes, self.uses, self.steps, self.columns
        values = self.leaves, self.weights, self.gates, self.factors
        header = np.zeros(9, dtype=np.int64)
        header[:4] = len(header) + np.cumsum([0, *(part.size for part in parts[:-1])])
        header[4:8] = np.cumsum([0, *(value.size for value in values[:-1])])
        header[8] = outputs
        ints = np.concatenate([header, *(part.ravel() for part in parts)])
        return ints.astype(np.int32), np.concatenate([value.ravel() for value in values])


def _nodes(program: Program, features: IntArray) -> tuple[Any, ...]:
    """Nodes (N, 4) of each tree level by level, siblings side by side, their values and paths
    (N, 2), levels and first nodes (T,) of trees."""
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
    nodes = np.zeros((len(owner), 4), dtype=np.int32)
    nodes[:, 0] = np.float32(np.inf).view(np.int32)
    nodes[:, 1], nodes[:, 2] = 2 * len(features), np.arange(len(nodes))
    own, cell = place[inner], np.searchsorted(features, trees.feature[inner])
    nodes[own, 0] = trees.threshold[inner].view(np.int32)
    nodes[own, 1] = 2 * cell + ~trees.missing_left[inner]
    nodes[own, 2], nodes[own, 3] = pair, cell
    leaves = np.zeros((len(owner), 2))
    leaves[place, 0], leaves[place, 1] = trees.value, path
    levels = np.zeros(len(trees), dtype=np.int64)
    np.maximum.at(levels, owner, level)
    return nodes, leaves, levels, first


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
    for number, step in enumerate(program.steps):
        passed = []
        for onward in (step.then, step.otherwise):
            until = count if onward < 0 else onward
            passed.append(any(number <= stop < until for stop in stops))
        uses, columns = use + len(step.trees), column + len(step.columns.feature)
        how = step.carry, COMBINE.index(step.combine), GATES.index(step.gate)
        rows.append([use, uses, column, columns, *how, step.then, step.otherwise, *passed])
        use, column = uses, columns
    return np.array(rows, dtype=np.int64)


def _joined(steps: Sequence[Step], *names: str) -> Any:
    """Fields of all columns side by side (c, 3)."""
    parts = [np.stack([getattr(s.columns, name) for name in names], axis=1) for s in steps]
    return np.concatenate(parts)
