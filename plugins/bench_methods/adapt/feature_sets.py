"""Which features a pair of linear models may read: nested sets by sensors, and the L1 path."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench_core import Prices
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.adapt.linear_step import RIDGE, Columns, minimise
from bench_methods.adapt.q_step import TrainingRows, softplus_and_sigmoid

_PATH = 40  # L1 weights tried
_DEPTH = 1e-4  # the smallest, as a share of that which leaves no feature


def nested(order: Sequence[int] | IntArray, columns: Columns, prices: Prices) -> list[IntArray]:
    """The first, the first two, ... of ``order``, each with all that comes free with it.

    A set holds every one of the ``columns`` whose sensors its features buy, so equal sets
    are listed once, and free features are in all of them.
    """
    bought = np.zeros(prices.sensors, dtype=bool)
    sets = [free_with(bought, columns, prices)]
    for feature in order:
        bought[prices.sensors_of(int(feature))] = True
        sets.append(free_with(bought, columns, prices))
    return distinct(sets)


def free_with(bought: BoolArray, columns: Columns, prices: Prices) -> IntArray:
    """The columns' features that need no sensor of positive price beyond those ``bought`` (s,)."""
    owed = prices.needs @ (~bought & (prices.sensor > 0)).astype(np.float64)  # sensors, counted
    return np.asarray(columns.which[owed[columns.which] == 0])


def distinct(sets: Sequence[IntArray]) -> list[IntArray]:
    """Without empty sets, and without a second one of the same size; by rising size."""
    by_size = {len(one): one for one in reversed(sets) if len(one)}
    return [by_size[size] for size in sorted(by_size)]


def spread(sets: Sequence[IntArray], most: int) -> list[IntArray]:
    """At most ``most`` of them, denser among the small ones; the last is kept."""
    if len(sets) <= most:
        return list(sets)
    if most == 1:
        return [sets[-1]]
    places = np.round(np.geomspace(1, len(sets), most)).astype(np.int64)
    for k in range(most):  # small ones may round to the same place
        places[k] = max(places[k], places[k - 1] + 1 if k else 1)
    return [sets[p - 1] for p in np.minimum(places, len(sets))]


def l1_path(columns: Columns, rows: TrainingRows, prices: Prices) -> list[IntArray]:
    """The sets of features that L1-regularised logistic regression takes, cheaper ones first.

    A feature's weight is charged its price bought alone; all are charged alike where all are
    free. Weights are split into two parts >= 0, so that zeros are exact.
    """
    price = prices.feature_price()[columns.which]
    price = price / price.max() if price.any() else np.ones(len(price))
    Z, k = columns.Z, len(price)
    each = np.concatenate([price, price])
    level = 0.0

    def value(packed: FloatArray) -> tuple[float, FloatArray]:
        w = packed[:k] - packed[k : 2 * k]
        loss, slope = softplus_and_sigmoid(-rows.sign * (Z @ w + packed[-1]))
        by = -rows.share * rows.sign * slope
        by_w = Z.T @ by + RIDGE * w
        cost = level * float(each @ packed[:-1]) + RIDGE / 2 * float(w @ w)
        gradient = np.concatenate([by_w + level * price, -by_w + level * price, [by.sum()]])
        return rows.mean(loss) + cost, gradient

    least = np.append(np.zeros(2 * k), -np.inf)
    at = np.zeros(2 * k + 1)
    slopes = np.abs(value(at)[1][:k]) if k else np.zeros(0)
    paid = price > 0
    highest = float((slopes[paid] / price[paid]).max(initial=0.0))
    sets = []
    for share in np.geomspace(1, _DEPTH, _PATH) if highest > 0 else ():
        level = share * highest
        at = minimise(value, at, least)
        used = columns.which[(at[:k] != 0) | (at[k : 2 * k] != 0)]
        sets.append(used)
    return distinct(sets)
