"""Shipped cost models: additive prices, and prices per query; any cost model as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.class_names import find_class, remember_class
from bench_core.costs.model import Acquired, CostModel, SensorPrices
from bench_core.data import Examples, Queries


@dataclass(frozen=True, slots=True, eq=False)
class PerQueryPrices(SensorPrices):
    """Cost model with sensors that are paid once per query, whichever rows buy them.

    ``per_query`` (s,) marks these sensors. ALL rows of the query share the price equally, so that
    the costs of rows sum to the query's bill. Each row pays the other sensors, and all sensors if
    there are no queries.
    """

    name: ClassVar[str] = "per-query"
    options: ClassVar[tuple[str, ...]] = ("per_query",)
    by_row: ClassVar[bool] = False

    per_query: BoolArray = field(kw_only=True)  # (s,)

    @classmethod
    def of(cls, prices: SensorPrices, per_query: BoolArray) -> Self:
        """Prices where these sensors (s,) are paid once per query."""
        return cls(**prices.state(), per_query=per_query)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""
        return cls.of(SensorPrices.from_state(state), np.asarray(state["per_query"]))

    @property
    def alone(self) -> SensorPrices:
        """Prices of a row without a query."""
        return SensorPrices.from_state(self.state())

    def feature_cost(self, acquired: Acquired, queries: Queries | None = None) -> FloatArray:
        """The row's own sensors plus its share of the query's sensors."""
        if queries is None:
            return acquired.cost(self.sensor)
        of_row = acquired.cost(np.where(self.per_query, 0.0, self.sensor))
        bits = acquired.rows(queries.rows).bits  # (n, w)
        union = np.bitwise_or.reduceat(bits, queries.boundaries[:-1], axis=0)
        bill = Acquired(union, self.sensors).cost(np.where(self.per_query, self.sensor, 0.0))
        return of_row + np.repeat(bill / queries.sizes, queries.sizes)

    def surrogate(self, train: Examples) -> SensorPrices:
        """Divide the price of a sensor per query by the mean number of rows per query, copies
        included. This is exact on average if all rows of each query buy it, else too low."""
        if train.queries is None:
            return self.alone
        share = len(train.queries) / train.weights.sum()
        sensor = np.where(self.per_query, self.sensor * share, self.sensor)
        return replace(self.alone, sensor=sensor)

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """``per_query``: names of features whose sensors are all paid per query."""
        names = options.get("per_query")
        if not isinstance(names, list) or not names:
            raise ValueError("per_query must be a list of features, in [ ]")
        columns = np.array([column(str(name)) for name in names], dtype=np.int64)
        return cls.of(prices, prices.bought_for(columns))


# By name; used when plugins are not loaded.
MODELS: dict[str, type[CostModel]] = {m.name: m for m in (SensorPrices, PerQueryPrices)}


def to_json(costs: CostModel) -> dict[str, Any]:
    """Return a cost model as a JSON document; numbers are exact."""
    state = {
        name: {"array": value.tolist(), "dtype": value.dtype.str}
        if isinstance(value, np.ndarray)
        else value
        for name, value in costs.state().items()
    }
    return {"class": remember_class(type(costs)), "state": state}


def from_json(document: Mapping[str, Any]) -> CostModel:
    """Invert ``to_json``."""
    state = {
        name: np.array(value["array"], dtype=value["dtype"])
        if isinstance(value, Mapping) and set(value) == {"array", "dtype"}
        else value
        for name, value in document["state"].items()
    }
    model: Any = find_class(document["class"])
    made: CostModel = model.from_state(state)
    return made
