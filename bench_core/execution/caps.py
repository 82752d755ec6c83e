"""Caps: maximum cost of each row, enforced row by row along the points of a path.

A row continues along the path while the total cost of its purchases and evaluations is at most the
cap. Its prediction is from the last such point, or the best constant before the first point.
Purchases are never undone, and unpaid values never influence a choice:

- If a point does not need all earlier purchases, the union is billed. If it buys other sensors or
  evaluates less than earlier points, its evaluations are added to theirs.
- The purchases of the next point are often known only while they are made. A stopped row is billed,
  up to the cap, for every sensor of that point that fits separately, and for its evaluations. No
  order of purchase can cost more before the first sensor that does not fit. Under a non-additive
  cost model, the bill is the full cap. If all rows buy the same, the next bill is known in advance
  and a stopped row pays nothing for it.
- A metered price is known only after the purchase, which is made while money is left. If a point
  adds other purchases or evaluations too, their order decides. A model's program knows it: it
  answers these ``unsure`` rows as it is served. Without a program, or if the rows of a query stop
  together, the row stops if some order would spend all before the last purchase.
- The rows of a query stop together, when the first would exceed the cap, unless the model has
  ``independent_rows`` and the cost model bills rows separately. Otherwise a row's purchases and
  scores would depend on rows that stopped earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.contracts import model_of
from bench_core.costs.bill import Acquired, Bill
from bench_core.costs.by_row import ByRow, priced_rows
from bench_core.costs.model import CostModel, SensorPrices, pays_by_row
from bench_core.data import Features, Queries
from bench_core.errors import UsageError
from bench_core.results.budgets import CAP
from bench_core.sequential import ROUNDING
from bench_core.serving import Exportable, Folder, Predictor, Program
from bench_core.serving.model_programs import capped_program


@dataclass(frozen=True, slots=True, eq=False)
class Caps:
    """Caps of a trial, if any, and its best constant."""

    limits: tuple[float, ...]
    constant: FloatArray  # () or (K,), score of a row without a point

    @property
    def points(self) -> tuple[dict[str, int | float], ...]:
        """Names of the predictions under each cap in results."""
        return tuple({CAP: limit} for limit in self.limits)

    def start(
        self, model: Any, costs: CostModel, queries: Queries | None, copies: FloatArray
    ) -> list[CappedRows]:
        """Create the rows of a block under each cap, before the first point; ``copies`` (n,) are
        their multiplicities."""
        alone = model_of(model).independent_rows
        each = pays_by_row(costs)
        together = None if alone and each else queries

        def price(bill: Bill) -> tuple[FloatArray, FloatArray]:
            feature = bill.feature_cost(costs, len(copies), queries, copies)
            return feature, bill.evaluation_cost(costs, len(copies))

        constant = np.broadcast_to(self.constant, (len(copies), *self.constant.shape))
        return [
            CappedRows(limit, np.array(constant), costs, price, together) for limit in self.limits
        ]


def served_under_caps(
    model: Any, costs: CostModel, caps: Caps | None, features: Features
) -> Predictor | None:
    """Return the program of a path's model that answers under caps, if some prices are metered."""
    alone = features.queries is None or model_of(model).independent_rows
    if caps is None or not caps.limits or not alone or not isinstance(model, Exportable):
        return None
    if not isinstance(costs, ByRow) or type(costs.base) is not SensorPrices or costs.quoted.all():
        return None
    width = features.X.shape[1]
    try:
        program = capped_program(model, "", width)
    except UsageError:
        return None
    assert isinstance(program, Program)
    program = replace(program, nothing=np.atleast_1d(caps.constant))
    return Predictor(Folder(program, costs, tuple(map(str, range(width))), {}))


class CappedRows:
    """Rows of a block under one cap; the rows of a query stop ``together``.

    After all points: ``scores`` (n,) or (n, K); ``feature``, ``evaluation`` and ``cost`` (n,) are
    billed to each row; ``bits`` (n, w) are the sensors bought up to the row's last point.
    """

    def __init__(
        self,
        limit: float,
        scores: FloatArray,
        costs: CostModel,
        price: Callable[[Bill], tuple[FloatArray, FloatArray]],
        together: Queries | None,
    ) -> None:
        n = len(scores)
        self.limit, self.scores, self._costs = limit, scores, costs
        self._price, self._together = price, together
        # a metered price is known only afterwards: the purchase made last may exceed the cap
        self._metered: FloatArray | None = None
        by_row = priced_rows(costs)
        if by_row is not None and not by_row.quoted.all():
            self._hidden = np.isin(np.arange(costs.sensors), by_row.metered)
            self._metered = np.where(self._hidden, by_row.of_rows, 0.0)
        self.bits = np.array(Acquired.nothing(costs.sensors).rows(n).bits)
        self.feature, self.evaluation, self._splits, self._trees = np.zeros((4, n))
        self._going, self.unsure = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)

    @property
    def cost(self) -> FloatArray:
        """Total cost; a sum that exceeds the cap only by rounding is set to the cap."""
        cost = self.feature + self.evaluation
        return np.where(cost <= self.limit * (1 + ROUNDING), np.minimum(cost, self.limit), cost)

    def put(
        self,
        scores: FloatArray,
        acquired: Acquired,
        feature: FloatArray,
        evaluation: FloatArray | float = 0.0,
        rows: IntArray | slice = slice(None),
    ) -> None:
        """Take answers of some rows that kept the cap, of a policy or a program, with their
        costs."""
        self.scores[rows], self.bits[rows], self.feature[rows] = scores, acquired.bits, feature
        self.evaluation[rows] = evaluation

    def take(
        self, scores: FloatArray, bill: Bill, feature: FloatArray, evaluation: FloatArray
    ) -> None:
        """Advance affordable rows to the next point, with its separate costs (n,).

        Does not raise: the bill has been checked.
        """
        if not self._going.any():
            return
        n = len(self.bits)
        bits = np.broadcast_to(bill.acquired.bits, self.bits.shape)
        splits, trees = (np.broadcast_to(c, (n,)) for c in (bill.splits, bill.trees))
        union = self.bits | bits
        # the cost of a point that does not contain the earlier purchases is added to theirs
        apart = (union != bits).any(axis=1) | (splits < self._splits) | (trees < self._trees)
        splits = np.where(apart, splits + self._splits, splits)
        trees = np.where(apart, trees + self._trees, trees)
        if (apart & self._going).any():
            both = Bill(Acquired(union, bill.acquired.sensors), splits, trees)
            feature, evaluation = self._price(both)
        over = self._going & (feature + evaluation > self.limit * (1 + ROUNDING))
        if self._metered is not None and over.any():
            over &= self._stopped_by_metered(union, feature + evaluation, evaluation)
        if self._together is not None and over.any():  # one row stops its whole query
            starts, sizes = self._together.boundaries[:-1], self._together.sizes
            over = self._going & np.repeat(np.logical_or.reduceat(over, starts), sizes)
        # the bill of rows that all buy and evaluate the same is known in advance
        alike = n > 1 and len(bill.acquired.bits) == 1
        alike = alike and np.ndim(bill.splits) == np.ndim(bill.trees) == 0
        alike = alike and self._metered is None
        if over.any() and not alike:
            self._stop(np.flatnonzero(over), union, evaluation)
        self._going &= ~over
        go = self._going
        self.scores[go], self.bits[go] = scores[go], union[go]
        self.feature[go], self.evaluation[go] = feature[go], evaluation[go]
        self._splits[go], self._trees[go] = splits[go], trees[go]

    def _new(self, union: NDArray[np.uint64]) -> BoolArray:
        """Sensors (n, s) that this point adds to each row."""
        return Acquired(union & ~self.bits, self._costs.sensors).unpack()

    def _stopped_by_metered(
        self, union: NDArray[np.uint64], cost: FloatArray, evaluation: FloatArray
    ) -> BoolArray:
        """True for rows (n,) that a point of this ``cost``, above the cap, stops. Rows for which
        the order of purchases decides become ``unsure``."""
        assert self._metered is not None
        before, more = self.feature + self.evaluation, evaluation > self.evaluation
        count, metered = self._new(union).sum(axis=1), self._added(union).any(axis=1)
        alone = metered & (count == 1) & ~more
        several = metered & ~alone & (before <= self.limit)
        self.unsure |= self._going & several
        goes_on = ((count == 0) & ~more) | (alone & (before < self.limit))
        goes_on |= several & (cost - self._last_price(union) < self.limit)
        return np.asarray(~goes_on)

    def _added(self, union: NDArray[np.uint64]) -> BoolArray:
        """Metered sensors (n, s) that this point adds to each row."""
        return self._new(union) & self._hidden

    def _last_price(self, union: NDArray[np.uint64]) -> FloatArray:
        """Lowest metered price (n,) that this point adds: that of the last purchase if the highest
        is paid first; 0 if it adds none."""
        assert self._metered is not None
        lowest = np.where(self._added(union), self._metered, np.inf).min(axis=1, initial=np.inf)
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def _stop(self, rows: IntArray, union: NDArray[np.uint64], evaluation: FloatArray) -> None:
        """Bill the maximum cost of these rows before the first sensor that did not fit."""
        room = np.maximum(self.limit - self.feature[rows] - self.evaluation[rows], 0.0)
        costs, buys, excess = self._costs, room, np.zeros(len(rows))
        price: Any = costs.sensor if type(costs) is SensorPrices else None
        by_row = priced_rows(costs)
        if by_row is not None and type(by_row.base) is SensorPrices:
            price = by_row.of_rows[rows]
        if price is not None:
            new = self._new(union)[rows]
            fits = new & (price <= room[:, None] + ROUNDING * self.limit)
            if self._metered is not None:
                # none is bought once the money is spent
                highest = np.where(new & (room > 0)[:, None], self._metered[rows], 0.0)
                excess = highest.max(axis=1, initial=0.0)
                fits |= highest > 0
            buys = np.where(fits, price, 0.0).sum(axis=1) - excess
        more = np.minimum(room, np.maximum(evaluation[rows] - self.evaluation[rows], 0.0))
        self.evaluation[rows] += more
        self.feature[rows] += np.minimum(room - more, buys) + excess
