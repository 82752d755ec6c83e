"""Prices by row: a call is billed by its tokens, a feature by the seconds that it took.

``ByRow`` says which sensors have the prices of which columns (``Examples.price_columns``); with the
prices ``of_rows`` it bills these rows. A *quoted* price is known before the purchase: models see
it. A *metered* one is known afterwards, and hidden from models. Learners train on the mean prices
of the training rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from bench_core.costs.model import Acquired, CostModel, Counts, SensorPrices, pays_by_row
from bench_core.costs.shipped import from_json, to_json
from bench_core.data import Examples, Queries


@dataclass(frozen=True, slots=True, eq=False)
class ByRow:
    """Cost model in which some sensors have a price for each row.

    ``base`` prices the other sensors, and has the training mean of those ``priced`` (k,),
    ascending. ``column`` (k,) are their columns of ``Examples.price_columns``, ``quoted`` (k,) is
    True if a price is known before the purchase. ``of_rows`` (n, s) are the prices of all sensors
    for the rows that it bills; None: it bills all rows at the mean prices.
    """

    name: ClassVar[str] = "by-row"
    options: ClassVar[tuple[str, ...]] = ()

    base: SensorPrices
    priced: IntArray  # (k,)
    column: IntArray  # (k,)
    quoted: BoolArray  # (k,)
    of_rows: Any = None  # float64 (n, s)

    @property
    def by_row(self) -> bool:
        """True if a row's bill does not depend on other rows of its query."""
        return pays_by_row(self.base)

    @property
    def unit(self) -> str:
        """Unit of prices."""
        return self.base.unit

    @property
    def features(self) -> int:
        """Number of features d."""
        return self.base.features

    @property
    def sensors(self) -> int:
        """Number of sensors s."""
        return self.base.sensors

    @property
    def everything(self) -> float:
        """Mean price of all features for one row."""
        return self.base.everything

    @property
    def metered(self) -> IntArray:
        """Sensors whose price is known only after the purchase."""
        return self.priced[~self.quoted]

    def sensors_of(self, feature: int) -> Int32Array:
        """Sensors that a feature needs."""
        return self.base.sensors_of(feature)

    def yields(self, sensor: int) -> IntArray:
        """Features that a sensor yields: not those of sensors that require it."""
        needs = self.base.needs.tocsc()
        users = needs.indices[needs.indptr[sensor] : needs.indptr[sensor + 1]].astype(np.int64)
        count = np.diff(self.base.start)[users]
        return np.asarray(users[count == min(count, default=0)])

    def feature_cost(self, acquired: Acquired, queries: Queries | None = None) -> FloatArray:
        """Price (n,) of the purchases of the rows."""
        if self.of_rows is None:
            return self.base.feature_cost(acquired, queries)
        others = self.fixed().feature_cost(acquired, queries)
        return np.asarray(others + self.paid_by(acquired).sum(axis=1))

    def fixed(self) -> SensorPrices:
        """The base with price 0 for the priced sensors."""
        sensor = self.base.sensor.copy()
        sensor[self.priced] = 0.0
        return replace(self.base, sensor=sensor)

    def paid_by(self, acquired: Acquired) -> FloatArray:
        """Prices (n, k) that rows pay for the ``priced`` sensors, 0 if not bought."""
        bought = np.column_stack([acquired.has(sensor) for sensor in self.priced.tolist()])
        return np.asarray(np.where(bought, self.of_rows[:, self.priced], 0.0))

    def evaluation_cost(self, splits: Counts, trees: Counts, rows: int) -> FloatArray:
        """Price (rows,), or (1,) if equal, of the evaluated splits and trees."""
        return self.base.evaluation_cost(splits, trees, rows)

    def surrogate(self, train: Examples) -> SensorPrices:
        """The mean prices of the training rows."""
        return self.base.surrogate(train)

    def on_average(self, train: Examples) -> Self:
        """Return the same model with the mean prices of these rows, copies counted."""
        assert train.price_columns is not None
        sensor, paid = self.base.sensor.copy(), train.price_columns[:, self.column]
        sensor[self.priced] = np.average(paid, axis=0, weights=train.weights)
        return replace(self, base=replace(self.base, sensor=sensor))

    def on(self, price_columns: FloatArray) -> Self:
        """Return the model for rows with these ``Examples.price_columns`` (n, c), NaN for the mean
        price of the training rows."""
        paid = np.asarray(price_columns[:, self.column], dtype=np.float64)
        of_rows = np.tile(self.base.sensor, (len(paid), 1))
        of_rows[:, self.priced] = np.where(np.isnan(paid), of_rows[:, self.priced], paid)
        return replace(self, of_rows=of_rows)

    def rows(self, rows: IntArray | slice) -> Self:
        """Return the model for some of its rows."""
        return replace(self, of_rows=self.of_rows[rows])

    def known(self) -> FloatArray:
        """Prices (n, s) that are known before a purchase, the means of others."""
        hidden = np.isin(np.arange(self.sensors), self.metered)
        return np.where(hidden, self.base.sensor, self.of_rows)

    def of_columns(self, columns: Sequence[Sequence[int]]) -> Self:
        """Prices of features made of columns, as ``SensorPrices.of_columns``."""
        return replace(self, base=self.base.of_columns(columns))

    def state(self) -> dict[str, Any]:
        """Base prices and the priced sensors."""
        arrays = {name: getattr(self, name) for name in ("priced", "column", "quoted")}
        return {"base": to_json(self.base), **arrays}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""
        base: Any = from_json(state["base"])
        priced, column = (np.asarray(state[name], np.int64) for name in ("priced", "column"))
        return cls(base, priced, column, np.asarray(state["quoted"], dtype=bool))

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """Refuse: objects among the costs of a file give prices by row."""
        raise ValueError("prices by row are objects among the costs; leave the key out")


def priced_rows(costs: CostModel) -> ByRow | None:
    """Return the cost model if its rows have prices of their own, else None."""
    return costs if isinstance(costs, ByRow) and costs.of_rows is not None else None


def on_rows(costs: CostModel, examples: Examples, rows: IntArray | slice) -> CostModel:
    """Return the cost model for these rows of a split."""
    if not isinstance(costs, ByRow):
        return costs
    assert examples.price_columns is not None
    return costs.on(examples.price_columns[rows])


def with_known_prices(examples: Examples, costs: CostModel) -> Examples:
    """Return the rows with the prices that models may see before a purchase."""
    if not isinstance(costs, ByRow) or not costs.quoted.any() or not len(examples):
        return examples
    assert examples.price_columns is not None
    return replace(examples, prices=costs.on(examples.price_columns).known())
