"""ADAPT-LIN's step: linear g and f1 for a given q (OPT2), in turn with q (Algorithm 1).

Then the sets of features that a pair may read: nested ones by sensors, and those of the L1 path.

Columns are centred and scaled by their weighted mean and deviation, a missing cell counting as 0.
With weights g, f (k,) and free intercepts, the step minimises

    sum_i s_i [ D(q_i, g_i) + (1 - q_i) log(1 + e^{-y_i f_i}) ]
        + sum over sensors k of price_k sqrt( sum_{a needs k} g_a^2 + f_a^2 ) + RIDGE / 2 |g, f|^2

by L-BFGS. The root is smoothed at ROUND. Exact zeros come from the choice of feature sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from bench_core import InputError, Prices
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_methods.adapt.q_step import F0Limit, GateDistance, TrainingRows, softplus_and_sigmoid

RIDGE = 1e-6  # keeps the weights finite where the classes can be separated
ROUND = 1e-6  # sqrt(v + ROUND^2) - ROUND stands for sqrt(v)
_TOLERANCE = 1e-6  # of the gradient
_STEPS = 500
_SETTLED = 1e-6  # relative change of the objective at which the alternation ends
_PATH = 40  # L1 weights tried
_DEPTH = 1e-4  # the smallest, as a share of that which leaves no feature


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Standardised columns ``Z`` (n, k) of the features ``which`` (k,), and how they were made."""

    which: IntArray
    Z: FloatArray
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: Float32Array, share: FloatArray) -> Self:
        """All columns that are not constant. Raises InputError for an infinite value."""
        Z = np.nan_to_num(X.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        if not bool(np.isfinite(Z).all()):
            column = int(np.flatnonzero(~np.isfinite(Z).all(axis=0))[0])
            raise InputError(
                f"feature {column} holds infinity, which no linear model can read; "
                "leave the value empty or use adapt-gbrt"
            )
        centre = share @ Z
        Z -= centre
        scale = np.sqrt(share @ Z**2)
        varied = np.flatnonzero(scale > 1e-9 * np.maximum(1.0, np.abs(centre)))
        Z = Z[:, varied] / scale[varied]
        return cls(varied.astype(np.int64), Z, centre[varied], scale[varied])

    def only(self, features: IntArray) -> Columns:
        """Those of them that are among ``features``."""
        kept = np.flatnonzero(np.isin(self.which, features))
        return Columns(self.which[kept], self.Z[:, kept], self.centre[kept], self.scale[kept])


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunction:
    """One linear function of the columns: ``weights`` (k,) and ``intercept``."""

    weights: FloatArray
    intercept: float

    def __call__(self, columns: Columns) -> FloatArray:
        """Its values on all rows (n,)."""
        return columns.Z @ self.weights + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class GroupPenalty:
    """price_k sqrt(sum over the features that need sensor k): ``needs`` (s, k), ``price`` (s,)."""

    needs: FloatArray
    price: FloatArray

    @classmethod
    def of(cls, prices: Prices, price: FloatArray, columns: Columns) -> GroupPenalty:
        """``price`` (s,) per sensor, in loss units. Free sensors are left out."""
        needs = prices.needs.toarray()[columns.which].T
        paid = np.flatnonzero((price > 0) & needs.any(axis=1))
        return cls(np.ascontiguousarray(needs[paid]), price[paid])

    @classmethod
    def none(cls, columns: Columns) -> GroupPenalty:
        """Everything is free."""
        return cls(np.zeros((0, len(columns.which))), np.zeros(0))

    def __call__(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """The price of weights whose squares g^2 + f^2 are given (k,), and its derivative by them
        times two, that is, the factor of g and f in the gradient."""
        root = np.sqrt(self.needs @ squares + ROUND**2)
        return float(self.price @ (root - ROUND)), self.needs.T @ (self.price / root)


class LinearPair(NamedTuple):
    """Gate and classifier."""

    g: LinearFunction
    f1: LinearFunction


@dataclass(frozen=True, slots=True, eq=False)
class PairObjective:
    """The problem in (g, f1) for a given q."""

    columns: Columns
    rows: TrainingRows
    q: FloatArray
    D: GateDistance
    price: GroupPenalty

    def __call__(self, packed: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient at [g, its intercept, f1, its intercept]."""
        Z, share = self.columns.Z, self.rows.share
        g, f1 = _unpack(packed)
        kept = share * (1 - self.q)
        gate, by_g = self.D.gate_loss(self.q, g(self.columns))
        loss, slope = softplus_and_sigmoid(-self.rows.sign * f1(self.columns))
        cost, factor = self.price(g.weights**2 + f1.weights**2)
        ridge = RIDGE / 2 * float(g.weights @ g.weights + f1.weights @ f1.weights)
        value = float(kept @ loss + share @ gate) + cost + ridge  # OPT2
        by_g, by_f1 = share * by_g, -kept * self.rows.sign * slope
        gradient = [
            part
            for by, weights in ((by_g, g.weights), (by_f1, f1.weights))
            for part in (Z.T @ by + (factor + RIDGE) * weights, [by.sum()])
        ]
        return value, np.concatenate(gradient)

    def solve(self, start: LinearPair) -> LinearPair:
        """The minimiser, from a start; never worse than it."""
        packed = np.concatenate([np.append(one.weights, one.intercept) for one in start])
        return _unpack(minimise(self, packed))


def _unpack(packed: FloatArray) -> LinearPair:
    halves = packed.reshape(2, -1)
    return LinearPair(*(LinearFunction(half[:-1], float(half[-1])) for half in halves))


def logistic(columns: Columns, rows: TrainingRows, price: GroupPenalty) -> LinearFunction:
    """Logistic regression of the labels of ``rows``, the weights priced like those of a pair."""
    Z = columns.Z

    def value(packed: FloatArray) -> tuple[float, FloatArray]:
        w = packed[:-1]
        loss, slope = softplus_and_sigmoid(-rows.sign * (Z @ w + packed[-1]))
        cost, factor = price(w**2)
        by = -rows.share * rows.sign * slope
        gradient = np.append(Z.T @ by + (factor + RIDGE) * w, by.sum())
        return rows.mean(loss) + cost + RIDGE / 2 * float(w @ w), gradient

    packed = minimise(value, np.zeros(Z.shape[1] + 1))
    return LinearFunction(packed[:-1], float(packed[-1]))


def minimise(
    value: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    least: FloatArray | None = None,
) -> FloatArray:
    """Minimiser of a smooth function with gradient, above ``least``; never worse than ``start``."""
    from scipy.optimize import Bounds, minimize

    result = minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if least is None else Bounds(least, np.inf),
        options={"maxiter": _STEPS, "gtol": _TOLERANCE, "ftol": 1e-14, "maxcor": 20},
    )
    better = result.x if result.fun <= value(start)[0] else start
    return np.asarray(better, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A fitted pair, its q, and ``objective`` after every half step, which never rises."""

    pair: LinearPair
    q: FloatArray
    objective: list[float]


def fit_linear_pair(
    columns: Columns,
    rows: TrainingRows,
    limit: F0Limit,
    D: GateDistance,
    price: GroupPenalty,
    iterations: int,
) -> LinearFit:
    """Algorithm 1: from g = 0 and the logistic f1, step over q and over (g, f1) in turn."""
    zero = LinearFunction(np.zeros(len(columns.which)), 0.0)
    pair = LinearPair(zero, logistic(columns, rows, price))
    objective: list[float] = []

    def recorded(q: FloatArray) -> float:
        g, f1 = pair
        loss = limit.objective(D, rows, f1(columns), g(columns), q)
        squares = g.weights**2 + f1.weights**2
        objective.append(loss + price(squares)[0] + RIDGE / 2 * float(squares.sum()))
        return objective[-1]

    q, last = np.zeros(len(rows.sign)), np.inf
    for _ in range(iterations if limit.p_full != 0 else 0):
        q = limit.q(D, rows, pair.f1(columns), pair.g(columns))  # OPT1
        recorded(q)
        pair = PairObjective(columns, rows, q, D, price).solve(pair)  # OPT2
        now = recorded(q)
        if last - now <= _SETTLED * abs(now):
            break
        last = now
    return LinearFit(pair, q, objective)


def nested(order: Sequence[int] | IntArray, columns: Columns, prices: Prices) -> list[IntArray]:
    """The first, the first two, ... of ``order``, each with all that comes free with it.

    A set holds every one of the ``columns`` whose sensors its features buy, so equal sets
    are listed once, and free features are in all of them.
    """
    bought, sets = np.zeros(prices.sensors, dtype=bool), []
    none = np.zeros(0, dtype=np.int32)
    for sensors in (none, *(prices.sensors_of(int(feature)) for feature in order)):
        bought[sensors] = True
        owed = prices.needs @ (~bought & (prices.sensor > 0)).astype(np.float64)  # counted
        sets.append(np.asarray(columns.which[owed[columns.which] == 0]))
    return distinct(sets)


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
