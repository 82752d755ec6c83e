"""Shipped cost models: additive prices, and prices per query."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, Int32Array
from bench_core.costs.model import Acquired, CostModel, Counts, SensorPrices
from bench_core.data import Examples, Queries


@dataclass(frozen=True, slots=True, eq=False)
class PerQueryPrices:
    """Cost model with sensors that are paid once per query, whichever rows buy them.

    ``per_query`` (s,) marks these sensors. ALL rows of the query share the price equally, so that
    the costs of rows sum to the query's bill. Each row pays the other sensors, and all sensors if
    there are no queries.
    """

    prices: SensorPrices
    per_query: BoolArray  # (s,)

    name: ClassVar[str] = "per-query"
    options: ClassVar[tuple[str, ...]] = ("per_query",)

    @property
    def unit(self) -> str:
        """The unit of its prices."""
        return self.prices.unit

    @property
    def features(self) -> int:
        """Number of features d."""
        return self.prices.features

    @property
    def sensors(self) -> int:
        """Number of sensors s."""
        return self.prices.sensors

    def sensors_of(self, feature: int) -> Int32Array:
        """Sensors that a feature needs."""
        return self.prices.sensors_of(feature)

    def evaluation_cost(self, splits: Counts, trees: Counts, rows: int) -> FloatArray:
        """Price of splits and trees."""
        return self.prices.evaluation_cost(splits, trees, rows)

    @property
    def everything(self) -> float:
        """Price of all features for one row."""
        return self.prices.everything

    def state(self) -> dict[str, Any]:
        """All fields by name, those of the prices among them."""
        return {**self.prices.state(), "per_query": self.per_query}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""
        return cls(SensorPrices.from_state(state), np.asarray(state["per_query"]))

    def feature_cost(self, acquired: Acquired, queries: Queries | None) -> FloatArray:
        """The row's own sensors plus its share of the query's sensors."""
        sensor = self.prices.sensor
        if queries is None:
            return acquired.cost(sensor)
        own = acquired.cost(np.where(self.per_query, 0.0, sensor))
        bits = acquired.rows(queries.rows).bits  # (n, w)
        union = np.bitwise_or.reduceat(bits, queries.boundaries[:-1], axis=0)
        bill = Acquired(union, self.sensors).cost(np.where(self.per_query, sensor, 0.0))
        return own + np.repeat(bill / queries.sizes, queries.sizes)

    def surrogate(self, train: Examples) -> SensorPrices:
        """Divide the price of a sensor per query by the mean number of rows per query, copies
        included. This is exact on average if all rows of each query buy it, else too low."""
        if train.queries is None:
            return self.prices
        share = len(train.queries) / train.weights.sum()
        sensor = self.prices.sensor
        return replace(self.prices, sensor=np.where(self.per_query, sensor * share, sensor))

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """``per_query``: names of features whose sensors are all paid per query."""
        names = options.get("per_query")
        if not isinstance(names, list) or not names:
            raise ValueError("per_query must be a list of features, in [ ]")
        columns = np.array([column(str(name)) for name in names], dtype=np.int64)
        return cls(prices, prices.bought_for(columns))


# By name; used when plugins are not loaded.
MODELS: dict[str, type[CostModel]] = {m.name: m for m in (SensorPrices, PerQueryPrices)}
