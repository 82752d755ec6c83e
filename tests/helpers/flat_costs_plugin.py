"""A third-party cost model: a visit fee for rows that buy anything, and the price of the purchases.

Registered like any plugin; ``-p helpers.flat_costs_plugin``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bench_core import Acquired, CostModel, Examples, Queries, SensorPrices, hookimpl


@dataclass(frozen=True)
class VisitFee:
    """Each row that buys something pays a fee once."""

    name: ClassVar[str] = "visit-fee"
    options: ClassVar[tuple[str, ...]] = ("fee",)

    prices: SensorPrices
    fee: float

    @property
    def unit(self) -> str:
        return self.prices.unit

    @property
    def features(self) -> int:
        return self.prices.features

    @property
    def sensors(self) -> int:
        return self.prices.sensors

    @property
    def everything(self) -> float:
        return self.prices.everything + self.fee

    def sensors_of(self, feature: int) -> np.ndarray:
        return self.prices.sensors_of(feature)

    def feature_cost(self, acquired: Acquired, queries: Queries | None) -> np.ndarray:
        return acquired.cost(self.prices.sensor) + self.fee * acquired.unpack().any(axis=1)

    def evaluation_cost(self, splits: Any, trees: Any, rows: int) -> np.ndarray:
        return np.zeros(rows)

    def surrogate(self, train: Examples) -> SensorPrices:
        return self.prices

    def state(self) -> Mapping[str, Any]:
        return {**self.prices.state(), "fee": self.fee}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(SensorPrices.from_state(state), state["fee"])

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        fee = options.get("fee", 0.0)
        if not isinstance(fee, int | float):
            raise ValueError(f"fee is {fee!r}; give it as a number")
        return cls(prices, float(fee))


@hookimpl
def bench_cost_models() -> Sequence[type[CostModel]]:
    return [VisitFee]
