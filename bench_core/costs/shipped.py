"""Shipped cost models besides additive prices: per query, and in parallel."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from bench_core.costs.model import Acquired, CostModel, Counts, SensorPrices
from bench_core.data import Examples, Queries


@dataclass(frozen=True, slots=True, eq=False)
class _OnSensors:
    """Base of models that bill sensors without adding up their ``prices``."""

    prices: SensorPrices

    @property
    def unit(self) -> str:
        return self.prices.unit

    @property
    def features(self) -> int:
        return self.prices.features

    @property
    def sensors(self) -> int:
        return self.prices.sensors

    def sensors_of(self, feature: int) -> Int32Array:
        return self.prices.sensors_of(feature)

    def evaluation_cost(self, splits: Counts, trees: Counts, rows: int) -> FloatArray:
        return self.prices.evaluation_cost(splits, trees, rows)

    @property
    def everything(self) -> float:
        return self.prices.everything

    def state(self) -> dict[str, Any]:
        return self.prices.state() | {f.name: getattr(self, f.name) for f in fields(self)[1:]}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        own = {f.name: np.asarray(state[f.name]) for f in fields(cls)[1:]}
        return cls(SensorPrices.from_state(state), **own)


@dataclass(frozen=True, slots=True, eq=False)
class PerQueryPrices(_OnSensors):
    """Cost model with sensors that are paid once per query, whichever rows buy them.

    ``per_query`` (s,) marks these sensors. ALL rows of the query share the price equally, so that
    the costs of rows sum to the query's bill. Each row pays the other sensors, and all sensors if
    there are no queries.
    """

    per_query: BoolArray  # (s,)

    name: ClassVar[str] = "per-query"
    options: ClassVar[tuple[str, ...]] = ("per_query",)

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
        names = _names(options.get("per_query"), "per_query")
        return cls(prices, prices.bought_for(np.array([column(n) for n in names], dtype=np.int64)))


@dataclass(frozen=True, slots=True, eq=False)
class ParallelPrices(_OnSensors):
    """Cost model for services: the sensors of a service are fetched in parallel.

    ``service`` (s,) is the service number of each sensor, -1 for a separate sensor. A service costs
    the largest price of the sensors bought from it; costs of services add up.
    """

    service: IntArray  # (s,), -1: separate

    name: ClassVar[str] = "parallel"
    options: ClassVar[tuple[str, ...]] = ("services",)
    by_row: ClassVar[bool] = True

    @property
    def everything(self) -> float:
        """Price of all sensors, summed over services."""
        every = Acquired.pack(np.ones((1, self.sensors), dtype=bool))
        return float(self.feature_cost(every, None)[0])

    def feature_cost(self, acquired: Acquired, queries: Queries | None) -> FloatArray:
        """Sum of separate sensors and of the largest price of each service."""
        together = self._together()
        cost = acquired.cost(np.where(together, 0.0, self.prices.sensor))
        if not together.any():
            return cost
        order = np.flatnonzero(together)
        order = order[np.argsort(self.service[order], kind="stable")]
        starts = np.flatnonzero(np.diff(self.service[order], prepend=-1))
        paid = acquired.unpack()[:, order] * self.prices.sensor[order]
        return np.asarray(cost + np.maximum.reduceat(paid, starts, axis=1).sum(axis=1))

    def _together(self) -> BoolArray:
        """True for sensors (s,) that share their service with another sensor."""
        counts = np.bincount(self.service[self.service >= 0], minlength=self.sensors + 1)
        return np.asarray((self.service >= 0) & (counts[self.service] > 1))

    def surrogate(self, train: Examples) -> SensorPrices:
        """Scale the sensors of a service so that their sum is the service's cost. This is exact if
        a row buys all or none of a service's sensors. Otherwise it is too low, or too high for a
        row that omits the most expensive one."""
        sensor = self.prices.sensor.copy()
        for number in np.unique(self.service[self._together()]):
            members = self.service == number
            total = float(sensor[members].sum())
            sensor[members] *= float(sensor[members].max()) / total if total > 0 else 1.0
        return replace(self.prices, sensor=sensor)

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """``services``: lists of features by service name."""
        services = options.get("services")
        if not isinstance(services, Mapping) or not services:
            raise ValueError('services must be a table of lists, {"NAME": ["feature", ...]}')
        service = np.full(prices.sensors, -1, dtype=np.int64)
        for number, (name, members) in enumerate(services.items()):
            for member in _names(members, f"services.{name}"):
                own = prices.sensors_of(column(member))
                if bool(np.any((service[own] >= 0) & (service[own] != number))):
                    raise ValueError(
                        f"feature {member!r} of service {name!r} needs a sensor of another "
                        "service; give each sensor one service"
                    )
                service[own] = number
        return cls(prices, service)


def _names(value: Any, key: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{key} must be a list of features, in [ ]")
    return [str(name) for name in value]


# By name; used when plugins are not loaded.
MODELS: dict[str, type[CostModel]] = {
    m.name: m for m in (SensorPrices, PerQueryPrices, ParallelPrices)
}
