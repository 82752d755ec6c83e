"""Optimal quality and cost if the distribution of discrete rows is known.

A state s records which purchases were made, and their values. With p(s, y) the probability that
a row agrees with s and has class y, the optimal value from s on is

    V(s) = max( max_y p(y | s),  max_a  -price c_a(s) + sum_v p(v | s) V(s + (a = v)) )

``price`` is the accuracy that one unit of cost is worth, and c_a(s) the marginal cost of purchase
a. One backward pass computes all V, from the states with all purchases to the empty state.

- Mean costs: the best policy for each price has a mean cost and a quality. These are the corners
  of the best mixtures. All corners are found by solving, between two of them, at the price at
  which both have the same value.
- Caps: the remainder of a cap c in state s is c less the cost of s. One pass per cap suffices:
  purchases that exceed the remainder are excluded, and ``price`` is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from bench_core.arrays import Array, FloatArray, IntArray
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.sequential import ROUNDING, Purchases

SOLVES = 500  # maximum passes for the corners of one problem
EXACT = 1e-9
"""Tolerance by which a policy may exceed the mixture of two adjacent corners."""


class Corner(NamedTuple):
    """Mean cost and quality of an optimal policy, and a price at which it is optimal."""

    cost: float
    quality: float
    price: float


class Solution(NamedTuple):
    """Optimal action in each state; mean cost and quality from the first state on."""

    action: IntArray  # (states,) int8, the digit to buy, -1 to stop
    cost: float
    quality: float


@dataclass(frozen=True, eq=False)
class States:
    """All states of a problem. State 0 has no purchases. Digit t of a state's number, most
    significant first, is 0 or 1 more than the value of purchase t."""

    mass: FloatArray  # (states, K), p(s, y)
    radix: IntArray  # (t,), one more than the values of each digit
    price: FloatArray  # (2**t, t), marginal price of each purchase by mask
    spent: FloatArray  # (2**t,), cost of the mask's purchases

    @classmethod
    def of(cls, table: FloatArray, each: IntArray, prices: SensorPrices) -> Self:
        """States of a table (v1, .., vt, K), whose axes are the values of ``each`` purchase (t,);
        -1 marks values known from the start."""
        digits, bought, purchases = table.ndim - 1, each >= 0, Purchases.of(prices)
        masks = (np.arange(2**digits)[:, None] >> np.arange(digits)) & 1 > 0
        subsets = np.zeros((len(masks), len(purchases)), dtype=bool)
        subsets[:, each[bought]] = masks[:, bought]
        price = np.zeros(masks.shape)
        price[:, bought] = purchases.marginal(subsets)[:, each[bought]]
        mass = table
        for axis in range(digits):
            mass = np.concatenate([mass.sum(axis=axis, keepdims=True), mass], axis=axis)
        radix = np.array(mass.shape[:-1], dtype=np.int64)
        spent = purchases.sensors(subsets) @ purchases.sensor
        return cls(mass.reshape(-1, mass.shape[-1]), radix, price, spent)

    @property
    def strides(self) -> IntArray:
        """Place value of each digit in a state's number, (t,)."""
        return np.asarray(np.cumprod(np.append(self.radix, 1)[::-1])[::-1][1:])

    def solve(self, price: float = 0.0, cap: float = np.inf) -> Solution:
        """Return the best policy for a ``price`` of cost, with at most ``cap`` per row. Among
        equally good policies it is the cheapest, then the first."""
        from bench_core.optimum.kernels import solve

        masses, room = (self.mass.sum(axis=1), self.mass.max(axis=1)), cap * (1 + ROUNDING)
        problem = masses, self.radix, self.strides, self.price, self.spent
        action, value, cost = solve(*problem, price, room)
        return Solution(action, cost, value + price * cost if cost else value)

    def corners(self) -> list[Corner]:
        """Return the corners of mean cost and accuracy, by ascending cost."""
        ends = self.solve(np.inf)[1:], self.solve(0.0)[1:]
        quality_at, gaps, new = dict(ends), list[tuple[float, ...]](), [*ends]
        for _ in range(SOLVES - 2):
            for (cost, quality), (more, better) in pairwise(new):
                room = (more - cost) * (better - quality)
                if room != 0:  # else quality is constant between them
                    heappush(gaps, (-room, cost, quality, more, better))
            if not gaps:
                break
            _, cost, quality, more, better = heappop(gaps)
            slope = (better - quality) / (more - cost)
            between = self.solve(slope)[1:]
            above = between[1] - quality - slope * (between[0] - cost)
            new = [(cost, quality), between, (more, better)] if above > EXACT else []
            quality_at.update(new)
        costs = sorted(quality_at)
        qualities = [quality_at[cost] for cost in costs]
        slopes = [*(np.diff(qualities) / np.diff(costs)), 0.0]
        # prices between the slopes on both sides of a corner
        prices = np.mean([[2 * slopes[0], *slopes[:-1]], slopes], axis=0)
        return [Corner(*one) for one in zip(costs, qualities, prices.tolist(), strict=True)]


def shown_by(prices: SensorPrices) -> IntArray:
    """Purchase that reveals each feature (d,): -1 if it is free, -2 if it needs several."""
    shown = prices.needs @ (~Purchases.of(prices).sets).T.astype(np.float64) == 0  # (d, k)
    one = np.where(shown.sum(axis=1) == 1, shown.argmax(axis=1), -2)
    return np.where(np.diff(prices.needs.indptr) > 0, one, -1)


def by_purchase(
    table: FloatArray, prices: SensorPrices
) -> tuple[FloatArray, IntArray, IntArray] | None:
    """Return a table (v1, .., vd, K) with one axis for features revealed together, the purchase of
    each axis, and the purchase of each feature; None if a feature needs several."""
    shown = shown_by(prices)
    if (shown == -2).any():
        return None
    each, sizes = np.unique(shown), np.array(table.shape[:-1])
    shape = [int(sizes[shown == purchase].prod()) for purchase in each]
    order = np.argsort(shown, kind="stable")
    return table.transpose([*order, -1]).reshape(*shape, -1), each, shown


def optimum_of(
    truth: Mapping[str, Array], costs: CostModel, caps: Sequence[float]
) -> dict[str, FloatArray]:
    """Optimal accuracy as corners (m, 2) of mean cost and quality, and under these caps as
    (caps, 2); empty if it cannot be computed."""
    if "table" not in truth or type(costs) is not SensorPrices:
        return {}
    parts = by_purchase(truth["table"], costs)
    if parts is None:
        return {}
    states = States.of(*parts[:2], costs)
    corners = [corner[:2] for corner in states.corners()]
    capped = [(cap, states.solve(cap=cap).quality) for cap in caps]
    return {"accuracy": np.array(corners), "accuracy cap": np.array(capped).reshape(-1, 2)}
