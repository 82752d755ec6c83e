"""Routers: a row makes one call, of the source of the largest score - lambda * price.

``scores`` are trees over free cells. At each point (a value of lambda) a row takes all that is
free, then pays for one call and returns its answer, or returns the answer of a free source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import (
    Acquired,
    Bill,
    Features,
    Prediction,
    Prices,
    Purchases,
    UsageError,
)
from bench_core.arrays import FloatArray, IntArray
from bench_models.call_chain import stump
from bench_models.dictionary import sums
from bench_models.masked_predictor import most_evaluated
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import PolicyProgram

NEVER = 1e6
"""Larger than any score."""


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
        free = self.prices.sensor == 0
        cells = np.where(self.prices.feature_price() == 0, features.X, np.float32(np.nan))
        scores = sums(self.scores, cells.astype(np.float32))
        price = price_of_calls(self.prices, features.prices, len(cells), self.calls)
        needs = np.zeros((len(self.calls), self.prices.sensors), dtype=bool)
        for k, call in enumerate(self.calls.tolist()):
            needs[k, self.prices.sensors_of(call)] = True
        # the program asks its trees before the call and after it
        calls = 1 + (needs & ~free).any(axis=1)
        each = most_evaluated(self.scores, self.prices.multiplier)
        for worth in self.worth.tolist():
            source = (scores - worth * price).argmax(axis=1)
            order = np.where(needs[source], int(free.any()), -1)
            order[:, free] = 0
            times = calls[source]
            acquired = Acquired.pack(order >= 0)
            bill = Bill(acquired, times * each.splits, times * each.trees, order)
            flags = (source[:, None] == np.arange(len(self.calls))).astype(np.float64)
            flags = flags if flags.shape[1] > 2 else flags[:, 1] - flags[:, 0]
            yield Prediction({"lambda": worth}, flags, {"path": bill})

    def program(self, point: Mapping[str, int | float]) -> PolicyProgram:
        """The trees, and stumps on the calls made: they stop the row and tell its answer."""
        from bench_core.serving import PolicyProgram

        d, sets, prices = self.prices.features, Purchases.of(self.prices).sets, self.prices
        if (prices.feature_price()[self.calls] == 0).any():
            raise UsageError("router: a source is free; give its call a price to export the model")
        needs = np.zeros((len(self.calls), prices.sensors), dtype=bool)
        for k, call in enumerate(self.calls.tolist()):
            needs[k, prices.sensors_of(call)] = True
        purchase = (needs[:, None] == sets[None]).all(axis=2).argmax(axis=1)
        two, count = len(purchase) == 2, len(sets)
        base = np.full(count + 1, -NEVER)
        base[purchase], base[-1] = self.scores.base, -NEVER / 2
        marks = [stump(d + k, 0.5, 0.0, 1.0, missing_low=True) for k in range(len(purchase))]
        ends = [each._replace(value=(0.0, 0.0, 2 * NEVER)) for each in marks]
        signs = np.array([-1.0, 1.0]) if two else np.ones(len(marks))
        flags = [
            each._replace(value=(0.0, 0.0, float(sign)))
            for each, sign in zip(marks, signs, strict=True)
        ]
        outputs = [0, 0] if two else [*range(len(marks))]
        width = d + len(marks)
        answer = Ensemble.of_trees(flags, outputs, np.zeros(max(outputs) + 1), width)
        stops = Ensemble.of_trees(ends, [count] * len(ends), base, width)
        moved = purchase[self.scores.output].astype(np.int32)
        trees = replace(self.scores, base=base, features=width, output=moved)
        values, worth = Ensemble.concat([trees, stops]), float(point["lambda"])
        each_act = most_evaluated(self.scores, prices.multiplier)
        return PolicyProgram.of(
            [values], answer, prices, purchase, "net", least=worth, each_act=each_act
        )
