"""The sets of features that a linear pair may read: nested ones by sensors, and those of L1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from bench_models.logistic import softplus_and_sigmoid

from bench_core import Prices
from bench_core.arrays import FloatArray, IntArray
from bench_methods.adapt.linear_step import RIDGE, Columns
from bench_methods.adapt.q_step import TrainingRows

T = TypeVar("T")

_PATH = 40  # L1 weights tried
_DEPTH = 1e-4  # the smallest, as a share of that which leaves no feature
_STEPS = 500
_STEEP = 1e-6  # of the gradient where a step of the path ends


def nested(order: IntArray, columns: Columns, prices: Prices, most: int) -> list[IntArray]:
    """``most`` of: the first, the first two, ... of ``order``, with all that comes free with each.

    A set holds every one of the ``columns`` whose sensors its features buy, so equal sets
    are listed once, and free features are in all of them.
    """
    first = np.full(prices.sensors, len(order))  # the place of the feature that buys a sensor
    for place, feature in reversed(list(enumerate(order.tolist()))):
        first[prices.sensors_of(feature)] = place
    first[prices.sensor == 0] = -1
    entered = np.array([first[prices.sensors_of(int(j))].max(initial=-1) for j in columns.which])
    return [columns.which[entered <= place] for place in spread(np.unique(entered).tolist(), most)]


def distinct(sets: Sequence[IntArray]) -> list[IntArray]:
    """Without empty sets, and without a second one of the same size; by rising size."""
    by_size = {len(one): one for one in reversed(sets) if len(one)}
    return [by_size[size] for size in sorted(by_size)]


def spread(sets: Sequence[T], most: int) -> list[T]:
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
    free.
    """
    price = prices.feature_price()[columns.which]
    price = price / price.max() if price.any() else np.ones(len(price))
    at, paid = np.zeros(2 * len(price) + 1), price > 0
    slopes = np.abs(columns.values @ (rows.share * rows.sign)) / 2  # of the loss where all are 0
    highest = float((slopes[paid] / price[paid]).max(initial=0.0))
    sets = []
    for level in np.geomspace(1, _DEPTH, _PATH) * highest if highest > 0 else ():
        at = _lasso(columns.values, rows, level * price, at)
        sets.append(columns.which[at[: len(price)] != at[len(price) : -1]])
    return distinct(sets)


def _lasso(
    values: FloatArray, rows: TrainingRows, penalty: FloatArray, start: FloatArray
) -> FloatArray:
    """Logistic regression on columns (k, n) with a price (k,) of each weight, from a start.

    Weights are split into two parts >= 0, so that zeros are exact: the first parts, the second
    ones, the intercept (2 k + 1,).
    """
    from scipy.optimize import Bounds, minimize

    k = len(penalty)

    def value(packed: FloatArray) -> tuple[float, FloatArray]:
        w = packed[:k] - packed[k:-1]
        loss, slope = softplus_and_sigmoid(-rows.sign * (w @ values + packed[-1]))
        by = -rows.share * rows.sign * slope
        by_w = values @ by + RIDGE * w
        cost = float(penalty @ (packed[:k] + packed[k:-1])) + RIDGE / 2 * float(w @ w)
        gradient = np.concatenate([by_w + penalty, -by_w + penalty, [by.sum()]])
        return rows.mean(loss) + cost, gradient

    least = Bounds(np.append(np.zeros(2 * k), -np.inf), np.inf)
    options = {"maxiter": _STEPS, "gtol": _STEEP, "ftol": 1e-14, "maxcor": 20}
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=least, options=options)
    return np.asarray(found.x)
