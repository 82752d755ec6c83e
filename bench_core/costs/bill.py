"""What a model returns: scores at one operating point and the bills for them; what rows cost, on
average and at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.costs.model import Acquired, CostModel, Counts, SensorPrices, words
from bench_core.data import Queries
from bench_core.errors import UsageError

__all__ = ["Acquired", "Bill", "CostSummary", "Counts", "Prediction", "summarise_cost", "words"]

PERCENT = 95


@dataclass(frozen=True, slots=True, eq=False)
class Bill:
    """What one accounting charges each row.

    ``splits`` is the sum over evaluated splits of their multiplier (CEGB's eps_m, 1 for plain
    splits); ``trees`` the number of trees evaluated. Either is one number for all or (n,).
    ``order`` (n, s), or (1, s) for all rows alike, may say in which step each sensor was bought: 0
    for the first step, -1 where it was not bought. Sensors of one step are bought together, by what
    the steps before it have shown; the audit checks that.
    """

    acquired: Acquired
    splits: Counts = 0  # summed multipliers
    trees: Counts = 0
    order: IntArray | None = None  # (n, s) or (1, s)

    @classmethod
    def for_features(
        cls,
        prices: SensorPrices,
        features: BoolArray | IntArray,
        splits: Counts = 0,
        trees: Counts = 0,
    ) -> Bill:
        """The bill for reading features: a mask (d,) or (n, d), or the numbers (k,) of those that
        all rows read."""
        return cls(prices.acquired(features), splits, trees)

    def feature_cost(
        self,
        costs: CostModel,
        rows: int,
        queries: Queries | None = None,
        copies: FloatArray | None = None,
    ) -> FloatArray:
        """Price of the sensors each row bought, shape (rows,).

        Where rows stand for ``copies`` (rows,) and a query's rows are billed together, each row is
        billed as if the copies were there.
        """
        if (
            queries is None
            or copies is None
            or isinstance(costs, SensorPrices)
            or np.all(copies < 2)
        ):
            return _feature_cost(costs, self.acquired, queries, rows)
        counts = np.maximum(copies.astype(np.int64), 1)
        every = np.repeat(np.arange(rows), counts)  # the row of each physical copy
        physical = Acquired(self.acquired.rows(rows).bits[every], self.acquired.sensors)
        sizes = np.add.reduceat(counts, queries.boundaries[:-1])
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
    regression in label units, binary log-odds, each (n,); multi-class (n, K). ``bills`` always
    holds ``"path"``, which is audited; others (``"model"``), which have all that it bought, where a
    paper counts otherwise.
    ``stage`` (n,) is the last stage that each row saw, of a model that has a ``stage_tree``.
    The arrays belong to the prediction: a model must not write to them later.
    """

    point: Mapping[str, int | float]
    scores: FloatArray  # (n,) or (n, K)
    bills: Mapping[str, Bill]
    stage: IntArray | None = None  # (n,)


@dataclass(frozen=True, slots=True)
class CostSummary:
    """Cost per row, over all copies: the mean, the 95th percentile and the maximum.

    The percentile is the smallest observed cost that at least 95 percent of the copies do not
    exceed (numpy's ``inverted_cdf``), so it is a price somebody paid and multiplicities give
    exactly what physical copies give.
    """

    average: float
    p95: float
    maximum: float


def summarise_cost(cost: FloatArray, multiplicity: NDArray[np.int64] | None = None) -> CostSummary:
    """Summary of costs (n,) of rows that stand for ``multiplicity`` (n,) copies each; n >= 1."""
    cost = np.asarray(cost, dtype=np.float64)
    if len(cost) == 0:
        raise ValueError("there is no cost to summarise")
    copies = len(cost) if multiplicity is None else int(multiplicity.sum())
    place = -(-PERCENT * copies // 100) - 1  # among the sorted costs, in whole numbers
    if multiplicity is None:
        average, p95 = cost.mean(), np.partition(cost, place)[place]
    else:
        order = np.argsort(cost, kind="stable")
        p95 = cost[order[np.searchsorted(np.cumsum(multiplicity[order]), place, side="right")]]
        average = (cost * multiplicity).sum() / copies
    return CostSummary(float(average), float(p95), float(cost.max()))
