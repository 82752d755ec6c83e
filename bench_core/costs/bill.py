"""Predictions with their bills at one operating point, and the mean cost of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.by_row import priced_rows
from bench_core.costs.model import Acquired, CostModel, Counts, pays_by_row, words
from bench_core.data import Queries
from bench_core.errors import UsageError

__all__ = ["Acquired", "Bill", "Counts", "Prediction", "mean_cost", "words"]


@dataclass(frozen=True, slots=True, eq=False)
class Bill:
    """Charges of one accounting for each row.

    ``splits`` is the sum of the multipliers of evaluated splits (CEGB's eps_m, 1 for plain splits);
    ``trees`` the number of trees evaluated. Both are one number for all rows or (n,). ``order`` (n,
    s), or (1, s) for all rows, may give the step in which each sensor was bought: 0 for the first
    step, -1 if not bought. Sensors of one step are bought together, based on the values from
    earlier steps; the audit checks this.
    """

    acquired: Acquired
    splits: Counts = 0  # summed multipliers
    trees: Counts = 0
    order: IntArray | None = None  # (n, s) or (1, s)

    def feature_cost(
        self,
        costs: CostModel,
        rows: int,
        queries: Queries | None = None,
        copies: FloatArray | None = None,
    ) -> FloatArray:
        """Price of the sensors that each row bought, shape (rows,).

        If a query's rows are billed together, each row is billed as if its ``copies`` (rows,) were
        physical rows.
        """
        if queries is None or copies is None or pays_by_row(costs) or np.all(copies < 2):
            return _feature_cost(costs, self.acquired, queries, rows)
        counts = np.maximum(copies.astype(np.int64), 1)
        every = np.repeat(np.arange(rows), counts)  # the row of each physical copy
        physical = Acquired(self.acquired.rows(rows).bits[every], self.acquired.sensors)
        sizes = np.add.reduceat(counts, queries.boundaries[:-1])
        if (by_row := priced_rows(costs)) is not None:
            costs = by_row.rows(every)
        cost = _feature_cost(costs, physical, Queries.from_sizes(sizes), len(every))
        return np.asarray(cost[np.cumsum(counts) - counts])

    def evaluation_cost(self, costs: CostModel, rows: int) -> FloatArray:
        """Price of the splits and trees evaluated for each row, shape (rows,)."""
        return _spread(costs.evaluation_cost(self.splits, self.trees, rows), rows)


def _feature_cost(
    costs: CostModel, acquired: Acquired, queries: Queries | None, rows: int
) -> FloatArray:
    cost = costs.feature_cost(acquired, queries)
    if np.shape(cost) not in ((rows,), (len(acquired.bits),)):
        fault = f"feature_cost has shape {np.shape(cost)}, not {(len(acquired.bits),)}"
        raise UsageError(f"cost model {costs.name}: {fault}: return one cost for each row")
    return _spread(cost, rows)


def _spread(values: FloatArray, rows: int) -> FloatArray:
    return np.array(np.broadcast_to(values, (rows,)), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Scores of one block of rows at one operating point.

    ``point`` names it (``{"trees": 120}``). ``scores``: ranking in any order-preserving unit,
    regression in label units, binary log-odds, each (n,); multi-class (n, K). ``bills`` always has
    ``"path"``, which is audited. Other accountings (``"model"``) contain the same purchases and
    serve papers that count differently. The prediction owns its arrays: a model must not modify
    them later.
    """

    point: Mapping[str, int | float]
    scores: FloatArray  # (n,) or (n, K)
    bills: Mapping[str, Bill]


def mean_cost(cost: FloatArray, multiplicity: IntArray | None = None) -> float:
    """Mean over all copies of costs (n,) of rows with multiplicities (n,); n >= 1."""
    if len(cost) == 0:
        raise ValueError("there is no cost to average")
    if multiplicity is None:
        return float(cost.mean())
    return float((cost * multiplicity).sum() / int(multiplicity.sum()))
