"""Chains of calls: a row buys sources in an order until it trusts an answer, which it returns.

At a point a row calls the sources of ``order`` one after the other. It keeps the answer at place i
if the cell ``confidence`` of that source is above ``threshold`` (``sign`` 1) or not above it (-1),
and goes on if the cell is on the other side or missing. It keeps the last answer in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import Bill, Features, Prediction, Prices
from bench_core.arrays import Float32Array, IntArray
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program, WeightedColumns
    from bench_core.serving.block_walk import BlockWalk


class _Stump(NamedTuple):
    """A tree of one split."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    value: tuple[float, ...]
    missing_left: tuple[bool, ...]
    left: tuple[int, ...] = (1, -1, -1)
    right: tuple[int, ...] = (2, -1, -1)


def stump(feature: int, threshold: float, low: float, high: float, missing_low: bool) -> _Stump:
    """Return a tree for ``Ensemble.of_trees``: ``low`` up to the threshold, else ``high``."""
    missing = (missing_low, False, False)
    return _Stump((feature, -1, -1), (threshold, 0.0, 0.0), (0.0, low, high), missing)


def read(features: IntArray) -> WeightedColumns:
    """Return columns of weight 0: they are bought and add nothing."""
    from bench_core.serving import WeightedColumns

    zero = np.zeros(len(features))
    return WeightedColumns(features, np.zeros(len(features), np.int64), zero, zero, zero)


@dataclass(frozen=True, eq=False)
class CallChain(Stored):
    """Chains of P points, each of at most L calls, over K sources."""

    independent_rows: ClassVar[bool] = True

    points: Sequence[Mapping[str, Any]]
    order: IntArray  # (P, L) sources, -1 after the last
    threshold: Float32Array  # (P, L), unused at the last source
    calls: IntArray  # (K,), a feature that the call of each source yields
    confidence: IntArray  # (K,), feature
    sign: IntArray  # (K,), 1 or -1
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
        """One step for each call. A doubt of 1 is added to output 0, where the gate looks for it;
        scores of 4 and -4 tell which answer is returned."""
        from bench_core.serving import END, Program, Step

        sources = self.order[p][self.order[p] >= 0].tolist()
        outputs = len(self.calls) if len(self.calls) > 2 else 1
        trees, steps = list[_Stump](), list[Step]()
        for i, source in enumerate(sources):
            last = i == len(sources) - 1
            bias = np.full(outputs, -4.0)
            bias[source if outputs > 1 else 0] = 4.0 if outputs > 1 or source else -4.0
            if not last:
                doubts = (1.0, 0.0) if self.sign[source] > 0 else (0.0, 1.0)
                feature, at = int(self.confidence[source]), float(self.threshold[p, i])
                trees.append(stump(feature, at, *doubts, missing_low=doubts[0] > 0))
            steps.append(
                Step(
                    trees=np.arange(i, len(trees)),
                    weights=np.ones(len(trees) - i),
                    fresh=np.ones(len(trees) - i, dtype=bool),
                    bias=bias,
                    columns=read(self.calls[[source]]),
                    gate="always" if last else "score",
                    value=float(bias[0]) + 0.5,
                    then=END if last else i + 1,
                )
            )
        stumps = Ensemble.of_trees(trees, [0] * len(trees), np.zeros(outputs), self.prices.features)
        return Program(outputs, steps, stumps, self.prices.multiplier)
