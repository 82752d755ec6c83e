"""Rows through the program of a policy: one by one as they ask, or all that are at hand.

Rows at hand go through ``bench_core.sequential``, as in the benchmark. Rows that ask keep the same
accounts. Numpy alone is needed; where it can be, trees are walked by ``bench_trees``, or compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from bench_trees.ensemble import VECTOR

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.bill import Prediction
from bench_core.costs.model import CostModel
from bench_core.data import Features, Queries
from bench_core.sequential import ROUNDING, STOP, Evaluated, Sequential
from bench_core.serving.naive_walk import Lists
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.program import Program
from bench_core.serving.row_state import (
    CAPPED,
    ENDED,
    HOW,
    Answer,
    FeatureNeeds,
    Purchases,
    Rounds,
    bill,
    side_by_side,
)


class Row(Protocol):
    """The cells of a row that asks, and what its trees say."""

    def put(self, numbers: IntArray, values: Float32Array) -> None:
        """Take the values of features."""

    def act(self, made: BoolArray, sensors: BoolArray, left: float) -> int:
        """The next purchase, or STOP, after those ``made`` (k,) of the ``sensors`` (s,)."""

    def answer(self, made: BoolArray) -> FloatArray:
        """Scores (K,)."""


class _End(NamedTuple):
    """How a row ended, and how often it was asked; None where it is not answered either."""

    score: FloatArray
    bought: Purchases
    step: int
    how: int
    asked: int | None


class PolicyWalk:
    """A policy's program, which is itself a ``Policy`` of one stop.

    ``sums`` gives the sums (n, w) of a step for cells (n, d + g); by default in plain Python.
    """

    stops: ClassVar[Mapping[str, Sequence[float]]] = {"stop": (0.0,)}

    def __init__(
        self,
        program: PolicyProgram,
        costs: CostModel,
        sums: Callable[[int, Float32Array], FloatArray] | None = None,
    ) -> None:
        self.program, self.purchases = program, program.purchases
        self.needs = FeatureNeeds(program.features, costs)
        self.each_act, self.each_answer = program.each_act, program.each_answer
        self.row: Callable[[], Row] = lambda: _PlainRow(self)
        self._sums = sums or partial(plain_sums, program.scores, Lists(program.scores))
        self._model = Sequential(self, program.prices)
        # of each purchase its sensors, and a feature that needs just these
        by_need = {self.needs.bits[f]: f for f in reversed(self.needs.features)}
        self._sets = [np.flatnonzero(own).tolist() for own in self.purchases.sets]
        self._feature = [by_need[sum(1 << s for s in own)] for own in self._sets]
        self._free = np.flatnonzero(self.purchases.price == 0).tolist()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """As a ``Policy``."""
        cells = self._marked(cells, bought)
        values = [self._sums(k, cells) for k in range(self._last)]
        return self.program.chosen(values, bought, left)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """As a ``Policy``."""
        scores = self._sums(self._last, self._marked(cells, bought))[:, : self.program.outputs]
        return scores[:, 0] if self.program.outputs == 1 else scores

    def at_hand(self, X: Float32Array, cap: float | None) -> tuple[Prediction, BoolArray]:
        """Rows whose cells are at hand, and which of them (n,) the cap ended."""
        if cap is None:
            (found,) = self._model.predict_path(Features(X))
            return found, np.zeros(len(X), dtype=bool)
        prices: Any = self.needs.prices
        return self._model.capped(Features(X), cap, prices)

    def rounds(self, count: int, grouped: bool, cap: float | None) -> Rounds:
        """``count`` rows, those of one query if ``grouped``; each asks for a purchase a round."""
        ends: list[_End] = yield from side_by_side([self._way(cap) for _ in range(count)])
        costs, outputs = self.needs.costs, self.program.outputs
        splits, trees = (
            np.array([0.0 if end.asked is None else end.asked * act + answer for end in ends])
            for act, answer in zip(self.each_act, self.each_answer, strict=True)
        )
        acquired = self.needs.acquired(end.bought.bits for end in ends)
        queries = Queries.from_sizes(np.array([count])) if grouped and count else None
        spent = bill(costs, acquired, splits, trees, queries)
        return [
            Answer(
                end.score if outputs > 1 else float(end.score[0]),
                paid,
                np.array([*end.bought.features], dtype=np.int64),
                end.step,
                HOW[end.how],
            )
            for end, paid in zip(ends, spent.tolist(), strict=True)
        ]

    def _way(self, cap: float | None) -> Generator[tuple[IntArray, Float32Array], None, _End]:
        """One row: yields the numbers of features and the array for their values."""
        row, bought, left = self.row(), Purchases(self.needs), inf
        sensors, made = np.zeros(self.needs.costs.sensors, bool), np.zeros(0, bool)
        if cap is not None:
            left = cap * (1 + ROUNDING) - self._price_of(self.each_answer)
            if not left >= 0:
                return _End(np.full(self.program.outputs, nan), bought, -1, CAPPED, None)
        new = bought.buy(
            [f for f in self.needs.features if not self.needs.bits[f]]
            + [self._feature[purchase] for purchase in self._free]
        )
        for purchase in self._free:
            sensors[self._sets[purchase]] = True
        how, asked, step = ENDED, 0, len(self._free[:1]) - 1
        while True:
            if new:
                values = np.empty(len(new), np.float32)
                yield (numbers := np.array(new, dtype=np.int64)), values
                row.put(numbers, values)
            made = self.purchases.made(sensors[None])[0]
            if made.all():
                break
            if (due := self._price_of(self.each_act)) > left:
                how = CAPPED
                break
            left, asked = left - due, asked + 1
            chosen = row.act(made, sensors, left)
            if chosen == STOP:
                break
            own = self._sets[chosen]
            due = sum(self.needs.price_of[s] for s in own if not sensors[s])
            if due > left:
                how = CAPPED
                break
            left, step = left - due, step + 1
            new = bought.buy([self._feature[chosen]])
            sensors[own] = True
        return _End(row.answer(made), bought, step, how, asked)

    @property
    def _last(self) -> int:
        """The number of the step that answers."""
        return len(self.program.scores.steps) - 1

    def _price_of(self, what: Evaluated) -> float:
        prices = self.needs.prices
        return 0.0 if prices is None else prices.split * what.splits + prices.tree * what.trees

    def _marked(self, cells: Float32Array, bought: BoolArray) -> Float32Array:
        marks = bought[:, self.program.marked].astype(np.float32)
        return np.hstack([cells, marks]) if marks.shape[1] else cells


class _PlainRow:
    """A row through numpy and plain Python."""

    def __init__(self, walk: PolicyWalk) -> None:
        self.walk, self.cells = walk, np.full((1, walk.program.prices.features), nan, np.float32)

    def put(self, numbers: IntArray, values: Float32Array) -> None:
        self.cells[0, numbers] = values

    def act(self, made: BoolArray, sensors: BoolArray, left: float) -> int:
        return int(self.walk.act(self.cells, made[None], np.array([left]), 0.0)[0])

    def answer(self, made: BoolArray) -> FloatArray:
        return np.atleast_1d(self.walk.predict(self.cells, made[None])[0])


def plain_sums(program: Program, tree: Lists, number: int, X: Float32Array) -> FloatArray:
    """The sums (n, w) of a step, for rows X (n, d + g)."""
    found = np.tile(program.steps[number].bias, (len(X), 1))
    for own, cells in zip(found, X.tolist(), strict=True):
        for t, _, _ in tree.uses[number]:
            node = tree.root[t]
            while (f := tree.feature[node]) >= 0:
                node = tree.child(node, cells[f])
            if tree.output[t] == VECTOR:
                own += tree.vectors[int(tree.value[node])]
            else:
                own[tree.output[t]] += tree.value[node]
    return found
