"""Policies that buy the most expected information about the class per price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from bench_core import KNOWS, STOP, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_models.states import Stored

NOTHING = 1e-9
"""Rounding error in nats."""


def plogp(p: FloatArray) -> FloatArray:
    """p log p, shape as given; 0 where p is."""
    return np.asarray(p * np.log(np.where(p > 0, p, 1.0)))


def unsure(mass: FloatArray) -> FloatArray:
    """Entropy (..) of the classes with these masses (.., K) in nats, times their sum."""
    return np.asarray(plogp(mass.sum(axis=-1)) - plogp(mass).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class MostInformation(Stored):
    """Buys the purchase j of the largest ``unit`` x I(y; x_j | x_m) / c_j above the stop.

    ``beliefs`` have ``gain(cells, bought)``, the information (n, k) of each purchase in nats, and
    ``scores(cells, bought)``. Their ``told`` is True if they are the truth.
    """

    nested: ClassVar[bool] = True

    beliefs: Any
    prices: Prices
    stops: Mapping[str, Sequence[float]]
    unit: float = 1.0

    @property
    def marks(self) -> tuple[str, ...]:
        """``KNOWS`` if it was given the distribution."""
        return (KNOWS,) if self.beliefs.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The first of equal information per price; the cheapest if none gives any."""
        best, until = self.offer(cells, bought, left)
        return np.where(until >= stop, best, STOP)

    def offer(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """The best purchase (n,), and the largest stop (n,) at which it is still bought."""
        best, worth = self.purchases.most(self.worth(cells, bought), bought, left)
        return best, np.nextafter(worth, -np.inf)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The posterior, as scores."""
        return np.asarray(self.beliefs.scores(cells, bought))

    def worth(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Information per price (n, k); -inf for purchases made."""
        gain, price = self.beliefs.gain(cells, bought), self.purchases.marginal(bought)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (gain * self.unit / price).round(9)
        return np.where(bought, -np.inf, np.where(gain > NOTHING, found, -NOTHING * price))

    @cached_property
    def purchases(self) -> Purchases:
        """Purchases at these prices."""
        return Purchases.of(self.prices)
