"""Prices of served rows that differ by row: as a caller names them, or from a table."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.by_row import ByRow
from bench_core.errors import UsageError
from bench_core.serving.raw_rows import AcquireFor, listed


class AskedPrices:
    """Prices by row that a caller names when they are asked for, each once. They are written into
    the array of ``costs.of_rows``, which has the means until then and is read by walks after each
    purchase. ``names`` (c,) are the columns of prices, ``needs`` the sensors of features."""

    def __init__(
        self, costs: ByRow, names: Sequence[str], needs: Mapping[int, Sequence[int]]
    ) -> None:
        self.costs, self._needs = costs, needs
        sensors = costs.priced.tolist()
        self._column = {s: names[c] for s, c in zip(sensors, costs.column.tolist(), strict=True)}
        self._quoted = {s for s, quoted in zip(sensors, costs.quoted, strict=True) if quoted}
        self._asked: list[set[int]] = [set() for _ in costs.of_rows]  # sensors

    def ask_quoted(self, acquire: AcquireFor, sensors: set[int]) -> None:
        """Ask for the prices that are known before a purchase."""
        for row, requested in enumerate(self._asked):
            if new := sorted(sensors & self._quoted):
                names = [self._column[s] for s in new]
                self._keep(row, new, listed(acquire(row, [*names]), names))
                requested.update(new)

    def with_prices(self, acquire: AcquireFor, features: IntArray) -> AcquireFor:
        """Return a function that also asks for the prices of new sensors, and keeps them."""
        sensors = {s for f in features.tolist() for s in self._needs[f]}

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
                self.costs.of_rows[row, s] = cell


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
