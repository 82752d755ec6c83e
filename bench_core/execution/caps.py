"""Caps: what no row may cost, enforced row by row while the points of a path pass by.

A row goes on along the path for as long as all that was bought and evaluated for it on the way,
together, costs at most the cap. Its answer is that of the last such point; before the first one,
the best constant's. Nothing is taken back, and nothing is chosen by what was not paid for:

- Where a point does not need all that the points before it bought, the union is billed; where it
  buys other sensors or evaluates less than they did, its evaluations are added to theirs.
- What the next point would buy is often known only while buying it. A row that is stopped is
  billed, up to the cap, for every sensor of that point which still fits by itself, and for its
  evaluations: no order of purchase can have spent more before the first sensor that did not fit.
  Under a cost model that does not add up its sensors, that is the whole cap. Where all rows buy the
  same, the next bill is known beforehand and the stopped row pays nothing for it.
- The rows of a query stop together, at the first that would exceed the cap, unless the model has
  ``independent_rows`` and the cost model bills each row by itself: elsewhere what a row buys and
  scores would depend on rows that did not get so far.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.contracts import model_of
from bench_core.costs.bill import Acquired, Bill
from bench_core.costs.model import CostModel, SensorPrices, pays_by_row
from bench_core.data import Examples, Queries, Task
from bench_core.results.budgets import CAP

ROUNDING = 1e-9
"""A sum of prices may exceed the cap by this share of it: 0.1 + 0.2 is within 0.3."""


@dataclass(frozen=True, slots=True, eq=False)
class Caps:
    """The caps of a trial."""

    limits: tuple[float, ...]
    constant: FloatArray  # () or (K,), what a row without a point scores

    @classmethod
    def over(cls, limits: tuple[float, ...], train: Examples, task: Task, classes: int) -> Caps:
        """The best constant is the mean target or grade, the log-odds, or the logarithms of the
        classes' shares."""
        y, copies = train.y, train.weights
        if task in (Task.REGRESSION, Task.RANKING):
            return cls(limits, np.asarray(np.average(y, weights=copies)))
        shares = np.bincount(y.astype(np.int64), copies, minlength=max(classes, 2)) / copies.sum()
        logs = np.log(np.maximum(shares, 0.5 / copies.sum()))  # a class may have no training row
        return cls(limits, logs if classes > 2 else np.asarray(logs[1] - logs[0]))

    @property
    def points(self) -> tuple[dict[str, int | float], ...]:
        """What names the answers under each cap in results."""
        return tuple({CAP: limit} for limit in self.limits)

    def start(
        self, model: Any, costs: CostModel, queries: Queries | None, copies: FloatArray
    ) -> list[CappedRows]:
        """The answers of a block under each cap, before the first point; ``copies`` (n,) is how
        many rows each row stands for."""
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


class CappedRows:
    """The answers of a block's rows under one cap; the rows of a query stop ``together``.

    After all points have passed: ``scores`` (n,) or (n, K); ``feature``, ``evaluation`` and
    ``cost`` (n,), what the row is billed; ``bits`` (n, w), the sensors that it bought up to the
    point that answers.
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
        self.bits = np.array(Acquired.nothing(costs.sensors).rows(n).bits)
        self.feature, self.evaluation, self._splits, self._trees = np.zeros((4, n))
        self._going = np.ones(n, dtype=bool)

    @property
    def cost(self) -> FloatArray:
        """Both together; a sum that is within the cap by rounding is the cap."""
        return np.minimum(self.feature + self.evaluation, self.limit)

    def take(
        self, scores: FloatArray, bill: Bill, feature: FloatArray, evaluation: FloatArray
    ) -> None:
        """Go on to the next point, where it can be afforded; the last two are its own costs (n,).

        Raises nothing: what the bill holds has been checked.
        """
        if not self._going.any():
            return
        n = len(self.bits)
        bits = np.broadcast_to(bill.acquired.bits, self.bits.shape)
        splits, trees = (np.broadcast_to(c, (n,)) for c in (bill.splits, bill.trees))
        union = self.bits | bits
        # a point that does not contain what came before it is paid on top of that
        apart = (union != bits).any(axis=1) | (splits < self._splits) | (trees < self._trees)
        splits = np.where(apart, splits + self._splits, splits)
        trees = np.where(apart, trees + self._trees, trees)
        if (apart & self._going).any():
            both = Bill(Acquired(union, bill.acquired.sensors), splits, trees)
            feature, evaluation = self._price(both)
        over = self._going & (feature + evaluation > self.limit * (1 + ROUNDING))
        if self._together is not None and over.any():  # one row stops its whole query
            starts, sizes = self._together.boundaries[:-1], self._together.sizes
            over = self._going & np.repeat(np.logical_or.reduceat(over, starts), sizes)
        if over.any() and not _alike(bill, n):
            self._stop(np.flatnonzero(over), union, evaluation)
        self._going &= ~over
        go = self._going
        self.scores[go], self.bits[go] = scores[go], union[go]
        self.feature[go], self.evaluation[go] = feature[go], evaluation[go]
        self._splits[go], self._trees[go] = splits[go], trees[go]

    def _stop(self, rows: IntArray, union: NDArray[np.uint64], evaluation: FloatArray) -> None:
        """Bill what these rows may have spent before the first sensor that did not fit."""
        room = np.maximum(self.limit - self.feature[rows] - self.evaluation[rows], 0.0)
        costs, buys = self._costs, room
        if type(costs) is SensorPrices:
            new: BoolArray = Acquired(union[rows] & ~self.bits[rows], costs.sensors).unpack()
            fits = new & (costs.sensor <= room[:, None] + ROUNDING * self.limit)
            buys = fits @ costs.sensor
        more = np.minimum(room, np.maximum(evaluation[rows] - self.evaluation[rows], 0.0))
        self.evaluation[rows] += more
        self.feature[rows] += np.minimum(room - more, buys)


def _alike(bill: Bill, n: int) -> bool:
    """Whether all rows buy and evaluate the same, so that the bill is known before it is paid."""
    same = len(bill.acquired.bits) == 1 and np.ndim(bill.splits) == np.ndim(bill.trees) == 0
    return same and n > 1  # a single row's own purchases look like that too
