"""Members that sequential policies share, and parameters of policies that are planned backward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bench_core import STOP, Prices, Purchases, param
from bench_core.arrays import FloatArray, IntArray
from bench_models.states import Stored

PARTS = "parts of the training rows, each predicted by a fit to the others"


class PricedPolicy(Stored):
    """A policy that compares ``prices``, and buys what its ``offer`` says."""

    prices: Prices
    offer: Any

    @cached_property
    def purchases(self) -> Purchases:
        """Purchases at these prices."""
        return Purchases.of(self.prices)

    def act(self, cells: Any, bought: Any, left: FloatArray, stop: float) -> IntArray:
        """The offer (n,), or ``STOP`` above its highest stop."""
        best, until = self.offer(cells, bought, left)
        return np.where(until >= stop, best, STOP)


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Parameters of learners of a ``PlannedPolicy``."""

    points: int = param(64, "operating points: prices of cost, the last one 0", least=2, most=100)

    def falling(self, highest: float, gained: float, prices: Prices) -> FloatArray:
        """Return prices of cost (points,): ``highest`` down to its inverse, then 0, in units of
        what is ``gained`` by everything per price of everything."""
        unit = max(1e-9, gained) / max(prices.everything, 1e-9)
        t = np.append(np.geomspace(highest, 1 / highest, self.points - 1), 0.0)
        return t * float(f"{unit:.9g}")  # the same points for copies of rows


class PlannedPolicy(PricedPolicy):
    """A policy whose stops are prices of cost."""

    price: Sequence[float]  # falling

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Prices of cost, in probability of a correct prediction per unit of cost."""
        return {"price": self.price}
