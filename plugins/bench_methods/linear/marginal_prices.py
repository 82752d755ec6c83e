"""What a weight on each feature is charged, given which sensors other features have bought."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core import Prices
from bench_core.arrays import FloatArray, Int32Array, IntArray

NOBODY = -1


@dataclass(slots=True, eq=False)
class MarginalPrices:
    """Pairs of a feature and a priced sensor that it needs; the payer (s,) of each sensor, which
    is the feature that bought it first. The price of everything is 1."""

    alone: FloatArray  # (d,) the price of each feature bought alone
    feature: IntArray  # (pairs,)
    sensor: Int32Array  # (pairs,)
    payer: IntArray

    @classmethod
    def of(cls, prices: Prices) -> MarginalPrices:
        """With nothing bought. Where everything is free, features are charged alike."""
        if prices.everything == 0:
            prices = Prices.additive(np.ones(prices.features))
        feature = np.repeat(np.arange(prices.features), np.diff(prices.start))
        priced = prices.sensor[prices.needed] > 0
        alone = prices.feature_price() / max(prices.everything, 1e-300)
        nobody = np.full(prices.sensors, NOBODY)
        return cls(alone, feature[priced], prices.needed[priced], nobody)

    def charges(self) -> FloatArray:
        """What a weight of 1 on each feature is charged (d,): nothing if others pay for all of
        its sensors, else what it costs alone."""
        payer = self.payer[self.sensor]
        owes = (payer == NOBODY) | (payer == self.feature)
        some = np.bincount(self.feature, owes, len(self.alone)) > 0
        return np.where(some, self.alone, 0.0)

    def buy(self, weights: FloatArray) -> bool:
        """Note what features with weights (K, d) buy, the largest weight first; whether that
        makes any feature free."""
        before = self.charges()
        strength = np.abs(weights).max(axis=0)[self.feature]
        for i in np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]:
            if self.payer[self.sensor[i]] == NOBODY:
                self.payer[self.sensor[i]] = self.feature[i]
        return bool(np.any(self.charges() < before))
