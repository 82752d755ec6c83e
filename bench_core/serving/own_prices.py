"""Bills of served rows whose prices differ by row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.by_row import ByRow
from bench_core.costs.model import Acquired, CostModel
from bench_core.errors import UsageError
from bench_core.serving.raw_rows import AcquireFor, listed


class OwnPrices:
    """Columns of prices by row of a model, () if it has none."""

    def __init__(self, costs: CostModel, columns: Sequence[str]) -> None:
        self.costs = costs
        self.columns = tuple(columns) if isinstance(costs, ByRow) else ()
        self.names: dict[int, str] = {}  # columns by sensor
        self.mean: dict[int, float] = {}
        if isinstance(costs, ByRow):
            for s, column in zip(costs.priced.tolist(), costs.column.tolist(), strict=True):
                self.names[s] = self.columns[column]
                self.mean[s] = float(costs.base.sensor[s])

    def in_table(self, X: Mapping[str, Any]) -> FloatArray | None:
        """Return the prices (n, c) in a table by columns; None if it has none of them."""
        if not any(name in X for name in self.columns):
            return None
        n = len(next(iter(X.values())))
        missing = np.full(n, np.nan)
        columns = [_amounts(X[name], name) if name in X else missing for name in self.columns]
        return np.column_stack(columns)

    def beyond_means(self, acquired: Acquired, prices: FloatArray) -> FloatArray:
        """Return what rows pay more (n,) at their own ``prices`` (n, c) than at the means."""
        if not isinstance(self.costs, ByRow):
            return np.zeros(len(prices))
        means = np.zeros(prices.shape[1])
        means[self.costs.column] = self.costs.base.sensor[self.costs.priced]
        more = np.where(np.isnan(prices), 0.0, prices - means)
        return self.costs.on(more).own_cost(acquired.rows(len(prices)))

    def asked(self, rows: int) -> "AskedPrices":
        """Return the prices that rows will be asked for."""
        return AskedPrices(self, rows)


class AskedPrices:
    """Prices that a caller returns together with the cells that a sensor yields."""

    def __init__(self, own: OwnPrices, rows: int) -> None:
        self._own = own
        self._paid: list[set[int]] = [set() for _ in range(rows)]  # sensors
        self.more = [0.0] * rows  # beyond the means

    def with_prices(self, acquire: AcquireFor, features: IntArray) -> AcquireFor:
        """Return a function that also asks for the prices of new sensors, and keeps them."""
        own = self._own
        if not own.names:
            return acquire
        sensors = {s for f in features.tolist() for s in own.costs.sensors_of(f).tolist()}

        def with_prices(row: int, names: list[str]) -> Sequence[Any]:
            new = sorted((sensors & {*own.names}) - self._paid[row])
            self._paid[row].update(new)
            both = [*names, *(own.names[s] for s in new)]
            cells = [*listed(acquire(row, both), both)]
            for s, price in zip(new, cells[len(names) :], strict=True):
                (amount,) = _amounts([price], own.names[s])
                self.more[row] += 0.0 if np.isnan(amount) else amount - own.mean[s]
            return cells[: len(names)]

        return with_prices


def _amounts(prices: Any, name: str) -> FloatArray:
    """Return prices (n,) as numbers, NaN for None. Raises UsageError for negative ones and text."""
    try:
        amounts = np.array([np.nan if x is None else float(x) for x in prices], dtype=np.float64)
    except (TypeError, ValueError):
        amounts = np.array([-1.0])
    if (amounts < 0).any() or np.isinf(amounts).any():
        raise UsageError(f"column {name!r} holds prices: numbers of at least 0, None if unknown")
    return amounts
