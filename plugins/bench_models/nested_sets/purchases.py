"""The purchases possible next, and the features that can be read after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bench_core import Prices
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_models.nested_sets.held_out import Fits

TRIED = 8
"""Purchases tried with trees in a round."""

Keys = Callable[[FloatArray], FloatArray]
"""From marginal prices of features (d,) to their keys (d,): the lowest key comes next."""


def readable(prices: Prices, features: BoolArray) -> BoolArray:
    """Features (d,) without further cost once these are bought."""
    # counted, not summed: a rounded sum of prices need not be zero
    missing = ~prices.bought_for(features) & (prices.sensor > 0)
    return np.asarray(features | (prices.needs @ missing.astype(np.float64) == 0))


@dataclass(frozen=True)
class Purchases:
    """Purchases possible next: k sets of sensors that some feature still lacks."""

    brings: Sequence[Sequence[int]]  # the features that lack just these sensors
    price: FloatArray  # (k,)
    explained: FloatArray  # (k,) of the residuals, by the best single feature

    @classmethod
    def of(cls, fits: Fits, bought: BoolArray) -> Self:
        """Purchases left once the features ``bought`` (d,) can be read."""
        prices = fits[0].subsets.prices
        found = purchases(prices, bought)
        brings = list(found.values())
        each, size = prices.sensor, [len(features) for features in brings]
        price = np.array([each[s[0]] if len(s) == 1 else each[list(s)].sum() for s in found])
        alone = np.sum([fit.subsets.explained(fit.scores) for fit in fits], axis=0)
        start = np.cumsum([0, *size])[:-1]
        explained = np.maximum.reduceat(alone[[j for own in brings for j in own]], start)
        return cls(brings, price, explained)


def purchases(prices: Prices, bought: BoolArray) -> dict[tuple[int, ...], list[int]]:
    """The sets of unpaid sensors that features need, each with the features that need exactly
    these."""
    unpaid = ~prices.bought_for(bought) & (prices.sensor > 0)
    left = np.flatnonzero(~bought)
    place, sensor = prices.needs[left].nonzero()
    lacks: list[list[int]] = [[] for _ in left]
    for k, own in zip(place[unpaid[sensor]].tolist(), sensor[unpaid[sensor]].tolist(), strict=True):
        lacks[k].append(own)
    found: dict[tuple[int, ...], list[int]] = {}
    for j, sensors in zip(left.tolist(), lacks, strict=True):
        found.setdefault(tuple(sensors), []).append(j)
    return found


def bought_too(prices: Prices, bought: BoolArray, features: Sequence[int]) -> BoolArray:
    """Features readable (d,) once these are bought too."""
    more = bought.copy()
    more[list(features)] = True
    return readable(prices, more)


def gaining(tried: IntArray, gain: FloatArray) -> IntArray:
    """Entries of ``tried`` (k,) with a positive gain (k,), in falling order."""
    return np.asarray(tried[np.argsort(-gain, kind="stable")][: int((gain > 0).sum())])


def extended(bought: BoolArray, size: int, prices: Prices, keys: Keys) -> BoolArray:
    """Buy features by the lowest key until ``size`` can be read, including features that become
    free. ``bought`` is (d,)."""
    bought = bought.copy()
    while int(bought.sum()) < size:
        key = keys(prices.marginal(prices.bought_for(bought)))
        bought[np.argmin(np.where(bought, np.inf, key))] = True
        bought = readable(prices, bought)
    return bought
