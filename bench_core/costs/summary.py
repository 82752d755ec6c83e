"""Average, 95th percentile and maximum of what rows cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray

PERCENT = 95


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
    if multiplicity is None:
        place = _place(len(cost))
        return CostSummary(
            float(cost.mean()), float(np.partition(cost, place)[place]), float(cost.max())
        )
    order = np.argsort(cost, kind="stable")
    below = np.cumsum(multiplicity[order])
    total = int(below[-1])
    row = order[np.searchsorted(below, _place(total), side="right")]
    average = float((cost * multiplicity).sum() / total)
    return CostSummary(average, float(cost[row]), float(cost[order[-1]]))


def _place(copies: int) -> int:
    """Where the percentile stands among so many sorted costs; whole numbers, so no rounding."""
    return -(-PERCENT * copies // 100) - 1
