"""Routers: a row makes one call, of the source of the largest score - lambda * price.

``scores`` are trees over free cells. At each point (a value of lambda) a row reads the free cells
of the trees, then pays for one call and returns its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import Acquired, Bill, Features, Prediction, Prices
from bench_core.arrays import FloatArray, IntArray
from bench_models.call_chain import read
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program, Step, WeightedPrices
    from bench_core.serving.block_walk import BlockWalk


def price_of_calls(
    prices: Prices, by_row: FloatArray | None, rows: int, calls: IntArray
) -> FloatArray:
    """Return the price (n, K) of the call of each source alone, by row where it is quoted."""
    each = np.broadcast_to(prices.sensor, (rows, prices.sensors)) if by_row is None else by_row
    return np.column_stack([each[:, prices.sensors_of(j)].sum(axis=1) for j in calls.tolist()])


@dataclass(frozen=True, eq=False)
class CallRouter(Stored):
    """Points are values of lambda, in descending order."""

    independent_rows: ClassVar[bool] = True

    scores: Ensemble  # K outputs
    calls: IntArray  # (K,), a feature that the call of each source yields
    prices: Prices
    worth: FloatArray  # (P,), values of lambda

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per value of lambda."""
        from bench_core.serving.gates import with_prices

        rows, acquired = self._walk.run(features.X, None)
        free, every = acquired.unpack(), np.arange(len(features))
        called = np.zeros((len(self.calls), self.prices.sensors), dtype=bool)
        for k, call in enumerate(self.calls.tolist()):
            called[k, self.prices.sensors_of(call)] = True
        for worth in self.worth.tolist():
            scores = with_prices(self._first(worth), rows.score.copy(), features.prices, every)
            source = scores.argmax(axis=1) if len(self.calls) > 2 else 1 * (scores[:, 0] < 0)
            answers = self._answers[source]
            answers = answers if answers.shape[1] > 1 else answers[:, 0]
            bill = Bill(Acquired.pack(free | called[source]), rows.splits, rows.trees)
            yield Prediction({"lambda": worth}, answers, {"path": bill})

    @cached_property
    def _walk(self) -> BlockWalk:
        """Evaluation of the trees alone."""
        from bench_core.serving.block_walk import BlockWalk

        first = replace(self._first(0.0), prices=self._priced(0.0, 0), gate="always")
        return BlockWalk(self._program([first]), self.prices)

    @property
    def _answers(self) -> FloatArray:
        """Scores (K, outputs) that tell which source is returned."""
        return np.eye(len(self.calls)) if len(self.calls) > 2 else np.array([[-1.0], [1.0]])

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The trees, gates that find the best source, and its call. Of two sources a single score
        is the first's less the second's."""
        from bench_core.serving import Step

        answers, nothing = self._answers, np.zeros(0, np.int64)
        k, first = len(answers), self._first(float(point["lambda"]))
        again = Step(nothing, np.zeros(0), nothing > 0, np.zeros(answers.shape[1]), carry=True)
        gates = [first, *(replace(again, gate="largest", value=float(i)) for i in range(1, k - 1))]
        for i, step in enumerate(gates):
            otherwise = i + 1 if i + 1 < len(gates) else len(gates) + k - 1
            gates[i] = replace(step, then=len(gates) + i, otherwise=otherwise)
        ends = [
            replace(again, carry=False, bias=answer, columns=read(self.calls[[source]]))
            for source, answer in enumerate(answers)
        ]
        return self._program([*gates, *ends])

    def _program(self, steps: list[Step]) -> Program:
        from bench_core.serving import Program

        width = self._answers.shape[1]
        output = self.scores.output if width > 1 else np.zeros_like(self.scores.output)
        trees = replace(self.scores, output=output, base=np.zeros(width))
        return Program(width, steps, trees, self.prices.multiplier)

    def _first(self, worth: float) -> Step:
        """The step that scores the sources."""
        from bench_core.serving import Step

        count, base, free = self.scores.trees, self.scores.base, self.scores.feature
        several, sign = len(self.calls) > 2, np.array([1.0, -1.0])
        return Step(
            np.arange(count),
            np.ones(count) if several else sign[self.scores.output],
            np.ones(count, dtype=bool),
            base if several else base[:1] - base[1:],
            read(np.unique(free[free >= 0])),
            self._priced(worth, len(self.calls)),
            gate="largest" if several else "score",
        )

    def _priced(self, worth: float, calls: int) -> WeightedPrices:
        """The prices of the first ``calls`` sources, each taken from its score."""
        from bench_core.serving import WeightedPrices

        needs = [self.prices.sensors_of(call) for call in self.calls[:calls].tolist()]
        source = np.repeat(np.arange(calls), [len(sensors) for sensors in needs])
        sensor = np.concatenate([np.zeros(0, np.int64), *needs])
        weight = np.full(len(source), -worth)
        if len(self.calls) == 2:
            weight[source == 1] = worth
            source = np.zeros_like(source)
        return WeightedPrices(sensor, source, weight, self.prices.sensor[sensor])
