"""The one trade-off of all learners: ``tradeoff``, the price of all features in units of loss.

A learner that minimises loss + price x cost has one field ``tradeoff``. With N the number of rows,
copies included,

    tau = tradeoff x (mean training loss of the best constant) / (price of all features)

is the price of one unit of cost in units of loss, per row. Each learner's docstring gives its
paper's lambda in terms of it. Only shares of prices enter: other units of cost change nothing.

Where all features are free, tau has no unit. Learners that charge splits then use the price of one
split on each feature (``LossPrices``). ``l1`` charges all features equally, all others charge
nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Examples, Prices
from bench_core.arrays import FloatArray

if TYPE_CHECKING:
    from bench_trees import Loss
    from bench_trees.losses import Labels


def price_of_cost(tradeoff: float, loss: float, everything: float) -> float:
    """tau, from the constant's mean ``loss`` and the price of ``everything``; 0 if that is 0."""
    return tradeoff * loss / everything if everything > 0 else 0.0


def constant_loss(name: str, loss: Loss, train: Examples) -> float:
    """Mean training loss of the best constant predictor per row, copies included.

    LambdaRank's is the loss of equal scores. There a pair of weight w costs w log 2 and adds w / 4
    to the second derivative at both of its rows.
    """
    mass = train.weights
    if name == "squared":
        mean = np.average(train.y, weights=mass)
        return float(np.average((train.y - mean) ** 2, weights=mass)) / 2
    if name == "lambdarank":
        return 2 * float(np.log(2)) * float(np.average(_curvature(loss, train), weights=mass))
    return entropy(np.bincount(train.y.astype(np.int64), mass) / mass.sum())


def entropy(shares: FloatArray) -> float:
    """The entropy of classes with these shares (K,), in nats: the best constant's log-loss."""
    some = map(float, shares[shares > 0])
    return abs(sum((share * math.log(share) for share in some), 0.0))


def labels_of(train: Examples) -> Labels:
    """The training rows as labels for the engine's losses."""
    from bench_trees.losses import Labels

    queries = None if train.queries is None else train.queries.boundaries
    return Labels(train.y, train.multiplicity, queries)


def _curvature(loss: Loss, train: Examples) -> FloatArray:
    """Second derivatives (n,) at equal scores."""
    from bench_trees.threads import workers

    labels = labels_of(train)
    base = loss.base(labels)  # raises for unfit labels and queries
    with workers(1) as pool:
        _, hessian = loss.gradients(np.tile(base[:, None], len(train)), labels, pool)
    assert hessian is not None
    return np.asarray(hessian[0], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LossPrices:
    """Prices of one row in loss units."""

    tau: float  # price of a unit of cost
    sensor: FloatArray  # (s,)
    split: FloatArray  # (d,) of one split on each feature

    @classmethod
    def of(cls, prices: Prices, tradeoff: float, loss: float) -> LossPrices:
        """Prices from the ``loss`` of the constant predictor.

        Where all features are free, ``tradeoff`` is the price of one split on each.
        """
        evaluation = prices.split * prices.multiplier
        unit = prices.everything if prices.everything > 0 else float(evaluation.sum())
        if unit == 0:
            return cls(0.0, np.zeros(prices.sensors), np.zeros(prices.features))
        budget = tradeoff * loss
        shares = (prices.sensor / unit, evaluation / unit)
        tau = price_of_cost(tradeoff, loss, unit)
        return cls(tau, budget * shares[0], budget * shares[1])
