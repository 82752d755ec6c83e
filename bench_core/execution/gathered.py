"""What the audit compares: a model's answers at each point of a block of gathered queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.model import CostModel
from bench_core.data import Features, Queries
from bench_core.execution.rounding import slack

Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Answer:
    """At one point of one block, one entry per row; ``bill`` as given."""

    point: Mapping[str, int | float]
    bill: Bill
    scores: FloatArray
    acquired: NDArray[np.uint64]
    splits: FloatArray
    trees: FloatArray

    @classmethod
    def of(cls, prediction: Prediction, n: int) -> Answer:
        """A prediction for n rows, copied."""
        given = prediction.bills["path"]
        bought = Acquired(np.array(given.acquired.bits), given.acquired.sensors)
        bill = Bill(bought, np.array(given.splits, float), np.array(given.trees, float))
        return cls(
            prediction.point,
            bill,
            np.array(prediction.scores, dtype=np.float64),
            bought.rows(n).bits,
            np.broadcast_to(bill.splits, (n,)),
            np.broadcast_to(bill.trees, (n,)),
        )

    def cost(self, costs: CostModel, queries: Queries | None, copies: FloatArray) -> FloatArray:
        """What the cost model charges each row, (n,)."""
        n, bill = len(self.scores), self.bill
        return bill.feature_cost(costs, n, queries, copies) + bill.evaluation_cost(costs, n)

    def differs(self, other: Answer, rows: NDArray[Any], rounding: bool = False) -> str:
        """The first thing that is not equal on these rows, scores but for ``rounding``, or
        nothing."""
        if dict(self.point) != dict(other.point):
            return "its points"
        for name in ("acquired", "splits", "trees"):
            if getattr(self, name)[rows].tobytes() != getattr(other, name)[rows].tobytes():
                return f"what it buys ({name})"
        a, b = self.scores[rows], other.scores[rows]
        if rounding:
            same = bool(np.all(np.abs(a - b) <= slack(self.scores)[rows]))
        else:
            same = a.tobytes() == b.tobytes()
        return "" if same else "its scores"


@dataclass(slots=True, eq=False)
class Gathered:
    """A block of the units ``chosen``: ``rows`` (n,) of the split, the place ``own`` (n,) of each
    row's unit in ``chosen``, what the model answered ``before`` anything was replaced, and the
    points tried again because of rounding."""

    features: Features
    rows: IntArray
    own: IntArray
    chosen: IntArray
    before: list[Answer] = field(default_factory=list)
    confirmed: set[int] = field(default_factory=set)

    def places(self) -> IntArray:
        """A point of each different purchase of each unit, -1 where it has no more, (k, units).

        The one of fewest sensors is the first: what it shows the next one has bought too, as a
        rule, so that it is of no use to remember it.
        """
        change, each = np.zeros(len(self.chosen), dtype=bool), np.arange(len(self.chosen))
        place, places, sizes = np.zeros(len(each), dtype=np.int64), [], []
        for p, answer in enumerate(self.before):
            if p:
                earlier = self.before[p - 1].acquired
                change = any_of_unit((earlier != answer.acquired).any(axis=1), self.own)
            place = place + change
            places.append(place)
            bits = np.unpackbits(answer.acquired.view(np.uint8), axis=1)
            sizes.append(np.bincount(self.own, bits.sum(axis=1)))
        first = np.full((int(places[-1].max()) + 1, len(each)), -1)
        size = np.full(first.shape, np.inf)
        for p in reversed(range(len(places))):
            first[places[p], each], size[places[p], each] = p, sizes[p]
        return np.take_along_axis(first, np.argsort(size, axis=0, kind="stable"), axis=0)


def any_of_unit(those: Mask, own: IntArray) -> Mask:
    """Of each unit whether any of its rows is among ``those`` (n,)."""
    return np.bincount(own, those) > 0
