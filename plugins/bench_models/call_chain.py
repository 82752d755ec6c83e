"""Chains of calls: a row buys sources in an order until it trusts an answer, which it returns.

At a point a row calls the sources ``order`` one after the other. It keeps the answer of source k at
position i if ``confidence_k(x) > threshold_i``, else it goes on; it keeps the last one in any case.
``confidence_k`` is a sum of trees over the cells that are free or that the call of k yields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import Bill, Features, Prediction, Prices
from bench_core.arrays import FloatArray, IntArray
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program
    from bench_core.serving.block_walk import BlockWalk

FAR = 64.0
"""Distance of the scores of other sources: confidences lie around 0 to 1."""


@dataclass(frozen=True, eq=False)
class CallChain(Stored):
    """Chains of P points over K sources; ``trees`` of output k are the confidence of source k."""

    independent_rows: ClassVar[bool] = True

    points: Sequence[Mapping[str, Any]]
    order: IntArray  # (P, L) sources, -1 after the last
    threshold: FloatArray  # (P, L), unused for the last source
    calls: IntArray  # (K,), a feature that the call of each source yields
    trees: Ensemble
    prices: Prices

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per point."""
        from bench_core.serving.gates import answers

        for point, walk in zip(self.points, self._walks, strict=True):
            rows, acquired = walk.run(features.X, None)
            bill = Bill(acquired, rows.splits, rows.trees)
            yield Prediction(dict(point), answers(walk.program, rows, None), {"path": bill})

    @cached_property
    def _walks(self) -> list[BlockWalk]:
        from bench_core.serving.block_walk import BlockWalk

        return [BlockWalk(self._at(p), self.prices) for p in range(len(self.points))]

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The chain of a point, for serving."""
        return self._at([dict(p) for p in self.points].index(dict(point)))

    def _at(self, p: int) -> Program:
        """One step for each call. Output 0 holds the doubt (minus the confidence) for the gate, and
        still orders the answers: others lie far above or below it."""
        from bench_core.serving import END, Program, Step, WeightedColumns

        sources, steps = self.order[p][self.order[p] >= 0].tolist(), list[Step]()
        outputs = len(self.calls) if len(self.calls) > 2 else 1
        zero, first = np.zeros(1), np.zeros(1, np.int64)
        for i, source in enumerate(sources):
            last = i == len(sources) - 1
            own = np.flatnonzero(self.trees.output == source)[: 0 if last else None]
            bias = np.full(outputs, -FAR)
            bias[source if outputs > 1 else 0] = FAR
            shift = 0.0 if outputs > 1 else (-FAR, FAR)[source]
            bias[0] = shift - self.trees.base[source]
            steps.append(
                Step(
                    trees=own,
                    weights=-np.ones(len(own)),
                    fresh=np.ones(len(own), dtype=bool),
                    bias=bias,
                    # a column of weight 0 is bought and adds nothing
                    columns=WeightedColumns(self.calls[[source]], first, zero, zero, zero),
                    gate="always" if last else "score",
                    value=0.0 if last else float(shift - self.threshold[p, i]),
                    then=END if last else i + 1,
                )
            )
        trees = replace(self.trees, output=np.zeros_like(self.trees.output), base=np.zeros(outputs))
        return Program(outputs, steps, trees, self.prices.multiplier)
