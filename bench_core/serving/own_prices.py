"""Prices of served rows that differ by row: from a table, or as a caller names them."""

from collections.abc import Mapping, Sequence
from copy import copy
from math import inf
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.by_row import ByRow, PricedRows
from bench_core.errors import UsageError
from bench_core.serving.raw_rows import AcquireFor, listed


class OwnPrices:
    """Prices of the sensors of n rows. ``each`` (n, s) are means where a price is not known yet:
    walks read it after each purchase."""

    def __init__(self, costs: ByRow, names: Sequence[str], prices: FloatArray) -> None:
        """``names`` and ``prices`` (n, c) as ``Examples.price_columns``, NaN for the mean."""
        self.costs, self.each = costs, costs.on(prices).price()
        sensors = costs.priced.tolist()
        self._column = {s: names[c] for s, c in zip(sensors, costs.column.tolist(), strict=True)}
        self._quoted = {s for s, quoted in zip(sensors, costs.quoted, strict=True) if quoted}
        self._asked: list[set[int]] = [set() for _ in range(len(prices))]  # sensors

    def at_means(self, rows: int) -> "OwnPrices":
        """Return rows whose prices are not known, from prices of one row at the means."""
        prices = copy(self)
        prices.each = self.each.repeat(rows, axis=0)
        prices._asked = [set() for _ in range(rows)]
        return prices

    def part(self, start: int, stop: int) -> "OwnPrices":
        """Return the known prices of some rows."""
        rows = copy(self)
        rows.each = self.each[start:stop]
        return rows

    def quoted(self) -> FloatArray:
        """Return the prices (n, s) that are known before a purchase, with the means of others."""
        each = self.each.copy()
        each[:, self.costs.metered] = self.costs.base.sensor[self.costs.metered]
        return each

    def billed(self) -> PricedRows:
        """Return the cost model of these rows."""
        costs = self.costs
        of = costs.base, costs.priced, costs.column, costs.quoted
        return PricedRows(*of, self.each[:, costs.priced])

    def ask_quoted(self, acquire: AcquireFor, sensors: set[int]) -> None:
        """Ask for the prices that are known before a purchase."""
        for row, asked in enumerate(self._asked):
            if new := sorted(sensors & self._quoted):
                names = [self._column[s] for s in new]
                self._keep(row, new, listed(acquire(row, [*names]), names))
                asked.update(new)

    def with_prices(self, acquire: AcquireFor, features: IntArray) -> AcquireFor:
        """Return a function that also asks for the prices of new sensors, and keeps them."""
        sensors = {s for f in features.tolist() for s in self.costs.sensors_of(f).tolist()}

        def with_prices(row: int, names: list[str]) -> Sequence[Any]:
            new = sorted((sensors & {*self._column}) - self._asked[row])
            self._asked[row].update(new)
            both = [*names, *(self._column[s] for s in new)]
            cells = [*listed(acquire(row, both), both)]
            self._keep(row, new, cells[len(names) :])
            return cells[: len(names)]

        return with_prices

    def _keep(self, row: int, sensors: Sequence[int], cells: Sequence[Any]) -> None:
        for s, cell in zip(sensors, cells, strict=True):
            if type(cell) is not float or not 0.0 <= cell < inf:
                (cell,) = _amounts([cell], self._column[s])
            if cell == cell:  # not NaN
                self.each[row, s] = cell


def prices_in(X: Mapping[str, Any], names: Sequence[str]) -> FloatArray | None:
    """Return the prices (n, c) in a table by columns; None if it has none of them."""
    if not any(name in X for name in names):
        return None
    missing = np.full(len(next(iter(X.values()))), np.nan)
    return np.column_stack([_amounts(X[name], name) if name in X else missing for name in names])


def _amounts(prices: Any, name: str) -> FloatArray:
    """Return prices (n,) as numbers, NaN for None. Raises UsageError for negative ones and text."""
    try:
        amounts = np.array([np.nan if x is None else float(x) for x in prices], dtype=np.float64)
    except (TypeError, ValueError):
        amounts = np.array([-1.0])
    if (amounts < 0).any() or np.isinf(amounts).any():
        raise UsageError(f"column {name!r} holds prices: numbers of at least 0, None if unknown")
    return amounts
