"""Evaluation of served policies by ``bench_core.sequential``, as in the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import ClassVar

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.by_row import priced_rows
from bench_core.costs.model import Acquired, CostModel
from bench_core.data import Queries
from bench_core.sequential import ROUNDING, Evaluated, PolicyRows, Sequential, StoredPolicy
from bench_core.serving.block_walk import BlockWalk
from bench_core.serving.explanation import Watch, plain
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.row_state import Answer, Answers, Rounds, bill, prices_of


class _TreePolicy:
    """A policy's program as a ``Policy`` with one stop."""

    stops: ClassVar[Mapping[str, Sequence[float]]] = {"stop": (0.0,)}

    def __init__(self, program: PolicyProgram) -> None:
        self.program = program
        self.each_act, self.each_answer = program.each_act, program.each_answer
        self.sums = BlockWalk(program.scores, program.unpriced).sums

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """As a ``Policy``."""
        cells = self._marked(cells, bought)
        values = [self.sums(k, cells) for k in range(self._last)]
        return self.program.chosen(values, bought, left)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """As a ``Policy``."""
        scores = self.sums(self._last, self._marked(cells, bought))[:, : self.program.outputs]
        return scores[:, 0] if self.program.outputs == 1 else scores

    @property
    def _last(self) -> int:
        """Number of the step that answers."""
        return len(self.program.scores.steps) - 1

    def _marked(self, cells: Float32Array, bought: BoolArray) -> Float32Array:
        marks = bought[:, self.program.marked].astype(np.float32)
        return np.hstack([cells, marks]) if marks.shape[1] else cells


class PolicyWalk:
    """A served policy, and the rows that walk through it."""

    def __init__(self, program: PolicyProgram | StoredPolicy, costs: CostModel) -> None:
        if not isinstance(program, StoredPolicy):
            program = StoredPolicy(_TreePolicy(program), program.prices, 0.0)
        self.costs, self.prices = costs, prices_of(costs)
        self._stored, self._model = program, Sequential(program.policy, program.prices)

    def at_hand(
        self,
        X: Float32Array,
        queries: Queries | None,
        cap: float | None,
        costs: CostModel | None = None,
    ) -> Answers:
        """Return the answers of rows whose cells are known."""
        costs = self.costs if costs is None else costs
        rows = self._begin(len(X), cap, costs)
        for row, column in self._asks(rows):
            rows.cells[row, column] = X[row, column]
        return self._answers(rows, queries, costs)

    def rounds(
        self,
        count: int,
        queries: Queries | None,
        cap: float | None,
        watch: Watch | None = None,
        costs: CostModel | None = None,
    ) -> Rounds:
        """Walk ``count`` rows; each makes one purchase per round. ``watch`` sees a single row after
        each."""
        costs = self.costs if costs is None else costs
        rows = self._begin(count, cap, costs)
        requests = [[np.zeros(0, np.int64)] for _ in range(count)]
        for row, column in self._asks(rows):
            first = np.flatnonzero(np.diff(row, prepend=-1))
            ends = [*first[1:].tolist(), len(row)]
            parts = ((int(row[a]), column[a:b]) for a, b in zip(first, ends, strict=False))
            asks = [(i, columns, np.empty(len(columns), np.float32)) for i, columns in parts]
            if asks:
                yield asks
            for i, columns, values in asks:
                rows.cells[i, columns] = values
                requests[i].append(columns)
            if watch is not None and (asks or not rows.steps.any()):
                now = self._answers(rows, queries, costs)
                score = plain(now.scores)
                watch(int(now.step[0]), score, float(now.spent[0]), np.atleast_1d(score), ())
        answers = self._answers(rows, queries, costs)
        scores = answers.scores.tolist() if answers.scores.ndim == 1 else [*answers.scores]
        how = np.where(answers.capped, "cap", "end").tolist()
        bought = map(np.concatenate, requests)
        return [*map(Answer, scores, answers.spent.tolist(), bought, answers.step.tolist(), how)]

    def _begin(self, count: int, cap: float | None, costs: CostModel) -> PolicyRows:
        by_row = priced_rows(costs)
        seen = by_row.known() if by_row is not None and self._stored.reads_prices else None
        if cap is None or self.prices is None:
            return self._model.begin(count, self._model.prices, row_prices=seen)
        left = cap * (1 + ROUNDING) - self._price_of("each_answer")
        prices = self.prices if by_row is None else by_row
        return self._model.begin(count, prices, left, seen)

    def _asks(self, rows: PolicyRows) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield rows and columns as ``Sequential.buy`` does; none if a cap forbids any answer."""
        if (rows.left < 0).any():
            rows.short[:] = True
            return iter(())
        return self._model.buy(rows, self._stored.stop, self._price_of("each_act"))

    def _answers(self, rows: PolicyRows, queries: Queries | None, costs: CostModel) -> Answers:
        answered = rows.begun or not len(rows.left)
        splits, trees = self._model.evaluated(rows)
        acquired = Acquired.pack(rows.sensors)
        scores, stored = (
            self._model.policy.predict(rows.cells.copy(), rows.bought.copy()),
            self._stored,
        )
        if stored.base:
            base = np.array(stored.base) if scores.ndim > 1 else stored.base[0]
            scores = stored.slope * (base + scores)
        spent = bill(costs, acquired, answered * splits, answered * trees, queries)
        step = rows.order.max(axis=1, initial=-1)
        return Answers(scores if answered else scores + nan, spent, acquired, step, rows.short)

    def _price_of(self, call: str) -> float:
        """Price of the evaluations of one ``each_act`` or ``each_answer``."""
        what: Evaluated = getattr(self._model.policy, call, Evaluated())
        prices = self.prices
        return 0.0 if prices is None else prices.split * what.splits + prices.tree * what.trees
