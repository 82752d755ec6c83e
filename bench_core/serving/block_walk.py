"""Many rows at hand through a program: trees by the block walker of ``bench_trees``, the rest by
numpy. Needs numba; without a cap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.model import Acquired, CostModel
from bench_core.serving.gates import leave, with_columns
from bench_core.serving.program import Program, Step, segments
from bench_core.serving.row_state import Rows

if TYPE_CHECKING:
    from bench_trees.inference import Layout, Needs

_CELLS = 1 << 22  # of a matrix of rows x trees, for leaves that number vectors


class BlockWalk:
    """A program, its trees laid out, and what its features need."""

    def __init__(self, program: Program, costs: CostModel) -> None:
        from bench_trees.inference import lay_out

        self.program, self.number = fused(program)
        self.needs = needs_of(program, costs)
        self.layouts: list[Layout] = [
            lay_out(self.program.trees, self.needs, s.trees, s.weights, s.fresh)
            for s in self.program.steps
        ]
        pairs = zip(self.program.steps, self.layouts, strict=True)
        self.trees = [int((step.fresh & (own.levels > 0)).sum()) for step, own in pairs]
        self.columns = [_bits(self.needs, step.reads) for step in self.program.steps]

    def run(self, X: Float32Array, boundaries: IntArray | None) -> tuple[Rows, Acquired]:
        """All rows (n, d) to the ends of their ways; ``boundaries`` cut them into queries, else
        each is by itself."""
        X = np.ascontiguousarray(X)  # once, not for every step
        rows = Rows(self.program, len(X))
        bits = np.zeros((len(X), self.columns[0].shape[0]), dtype=np.uint64)
        for number, step in enumerate(self.program.steps):
            here = np.flatnonzero(rows.next == number)
            if len(here) == 0:
                continue
            self._add_trees(number, X, here, rows, bits)
            if step.reads:
                rows.own[here] = with_columns(step, rows.own[here], X[here])
                bits[here] |= self.columns[number]
            leave(self.program, number, here, rows, boundaries)
        rows.last = self.number[rows.last]
        return rows, Acquired(bits, self.needs.sensors)

    def sums(self, number: int, X: Float32Array) -> FloatArray:
        """The sums (n, K) of a step by itself, for all rows."""
        rows = Rows(self.program, len(X))
        bits = np.zeros((len(X), self.columns[0].shape[0]), dtype=np.uint64)
        self._add_trees(number, np.ascontiguousarray(X), np.arange(len(X)), rows, bits)
        return rows.own

    def _add_trees(
        self, number: int, X: Float32Array, here: IntArray, rows: Rows, bits: Any
    ) -> None:
        from bench_trees.inference import Steps, Walked, walk
        from bench_trees.kernels.leaf_vectors import add_leaves

        step, layout = self.program.steps[number], self.layouts[number]
        vectors, outputs, count = self.program.vectors, self.program.outputs, layout.trees
        if vectors is not None:  # what each tree says by itself: its leaf may number a vector
            layout = layout._replace(output=np.arange(count, dtype=np.int32))
            outputs = max(1, count)
        size = max(64, _CELLS // outputs)
        for some in np.split(here, range(size, len(here), size)):
            own = np.tile(step.bias, (len(some), 1))
            if step.carry:
                own += rows.own[some]
            start = own if vectors is None else np.zeros((len(some), outputs))
            before = Walked(start[None], bits[some][None], rows.splits[some][None])
            steps = Steps(np.array([count]), np.zeros((1, outputs)), np.ones(1, dtype=bool))
            done = walk(layout, steps, X, before, some)
            bits[some], rows.splits[some] = done.bits[0], done.splits[0]
            if vectors is None:
                own = done.scores[0]
            elif count:
                add_leaves(done.scores[0], self.layouts[number].output, vectors, own)
            rows.own[some] = own
        rows.trees[here] += self.trees[number]


def needs_of(program: Program, costs: CostModel) -> Needs:
    """What the features that a program may read need."""
    from bench_trees.inference import Needs

    sensors = [np.zeros(0, np.int32)] * len(program.multiplier)
    for feature in program.features.tolist():
        sensors[feature] = costs.sensors_of(feature)
    start = np.cumsum([0, *map(len, sensors)], dtype=np.int32)
    needed = np.concatenate([np.zeros(0, np.int32), *sensors]).astype(np.int32)
    return Needs(start, needed, program.multiplier, costs.sensors)


def _bits(needs: Needs, features: list[int]) -> Any:
    mask = np.zeros((1, needs.sensors), dtype=bool)
    for feature in features:
        mask[0, needs.needed[needs.start[feature] : needs.start[feature + 1]]] = True
    return Acquired.pack(mask).bits[0]


def fused(program: Program) -> tuple[Program, IntArray]:
    """The same with steps joined that add trees to the sums of the step before, whatever the row;
    and the last step of the program (p,) in each of its steps. There are no stops."""
    steps: list[Step] = []
    last: list[int] = []
    ends, place = segments(program), np.zeros(len(program.steps), dtype=np.int64)
    for number, step in enumerate(program.steps):
        if number and ends[number - 1] >= number and _adds(steps[-1], step):
            parts: dict[str, Any] = {
                name: np.concatenate([getattr(steps[-1], name), getattr(step, name)])
                for name in ("trees", "weights", "fresh")
            }
            steps[-1] = replace(step, **parts, bias=steps[-1].bias, carry=steps[-1].carry)
            last[-1] = number
        else:
            steps.append(step)
            last.append(number)
        place[number] = len(steps) - 1

    def moved(onward: int) -> int:
        return onward if onward < 0 else int(place[onward])

    steps = [replace(s, then=moved(s.then), otherwise=moved(s.otherwise)) for s in steps]
    return replace(program, steps=steps, stops=()), np.array([*last, -1])


def _adds(before: Step, step: Step) -> bool:
    """Whether a step adds nothing but trees to the sums of the one before."""
    plain = before.combine == step.combine == "last" and step.carry and not step.bias.any()
    return plain and not (before.reads or step.reads)
