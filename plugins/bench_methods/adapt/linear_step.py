"""ADAPT-LIN's steps: linear g and f1 for a given q (OPT2), and the alternation with q.

Columns are centred and scaled by their weighted mean and deviation, a missing cell counting as 0.
With weights g, f (k,) and free intercepts, the step minimises

    sum_i s_i [ D(q_i, g_i) + (1 - q_i) log(1 + e^{-y_i f_i}) ]
        + sum over sensors k of price_k sqrt( sum_{a needs k} g_a^2 + f_a^2 ) + RIDGE / 2 |g, f|^2

by L-BFGS. The root is smoothed at ROUND. Exact zeros come from the choice of supports, not from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bench_core import InputError, Prices
from bench_methods.adapt.q_step import Budget, Floats, Metric, Rows, both

Ints = NDArray[np.int64]

RIDGE = 1e-6  # keeps the weights finite where the classes can be separated
ROUND = 1e-6  # sqrt(v + ROUND^2) - ROUND stands for sqrt(v)
_TOLERANCE = 1e-6  # of the gradient
_STEPS = 500
_SETTLED = 1e-6  # relative change of the objective at which the alternation ends


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Standardised columns ``Z`` (n, k) of the features ``which`` (k,), and how they were made."""

    which: Ints
    Z: Floats
    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, X: NDArray[np.float32], share: Floats) -> Self:
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

    def only(self, features: Ints) -> Columns:
        """Those of them that are among ``features``."""
        kept = np.flatnonzero(np.isin(self.which, features))
        return Columns(self.which[kept], self.Z[:, kept], self.centre[kept], self.scale[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """One linear function of the columns: ``weights`` (k,) and ``intercept``."""

    weights: Floats
    intercept: float

    @classmethod
    def zero(cls, columns: Columns) -> Linear:
        """The function 0."""
        return cls(np.zeros(len(columns.which)), 0.0)

    def __call__(self, columns: Columns) -> Floats:
        """Its values on all rows (n,)."""
        return columns.Z @ self.weights + self.intercept


@dataclass(frozen=True, slots=True, eq=False)
class GroupPrice:
    """price_k sqrt(sum over the features that need sensor k): ``needs`` (s, k), ``price`` (s,)."""

    needs: Floats
    price: Floats

    @classmethod
    def of(cls, prices: Prices, price: Floats, columns: Columns) -> GroupPrice:
        """``price`` (s,) per sensor, in loss units. Free sensors are left out."""
        needs = np.zeros((prices.sensors, len(columns.which)))
        for place, feature in enumerate(columns.which):
            needs[prices.of(int(feature)), place] = 1.0
        paid = np.flatnonzero((price > 0) & needs.any(axis=1))
        return cls(needs[paid], price[paid])

    @classmethod
    def none(cls, columns: Columns) -> GroupPrice:
        """Everything is free."""
        return cls(np.zeros((0, len(columns.which))), np.zeros(0))

    def __call__(self, squares: Floats) -> tuple[float, Floats]:
        """The price of weights whose squares g^2 + f^2 are given (k,), and its derivative by them
        times two, that is, the factor of g and f in the gradient."""
        root = np.sqrt(self.needs @ squares + ROUND**2)
        return float(self.price @ (root - ROUND)), self.needs.T @ (self.price / root)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Gate and classifier."""

    g: Linear
    f1: Linear


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The problem in (g, f1) for a given q."""

    columns: Columns
    rows: Rows
    q: Floats
    metric: Metric
    price: GroupPrice

    def __call__(self, packed: Floats) -> tuple[float, Floats]:
        """Objective and gradient at [g, its intercept, f1, its intercept]."""
        Z, share = self.columns.Z, self.rows.share
        g, f1 = _unpack(packed)
        kept = share * (1 - self.q)
        margin = self.rows.sign * f1(self.columns)
        gate, by_gate = self.metric.gate_loss(self.q, g(self.columns))
        cost, factor = self.price(g.weights**2 + f1.weights**2)
        ridge = RIDGE / 2 * float(g.weights @ g.weights + f1.weights @ f1.weights)
        loss, slope = both(-margin)
        value = float(kept @ loss + share @ gate) + cost + ridge
        pull_g, pull_f1 = share * by_gate, -kept * self.rows.sign * slope
        gradient = np.concatenate(
            [
                Z.T @ pull_g + (factor + RIDGE) * g.weights,
                [pull_g.sum()],
                Z.T @ pull_f1 + (factor + RIDGE) * f1.weights,
                [pull_f1.sum()],
            ]
        )
        return value, gradient

    def solve(self, start: Pair) -> Pair:
        """The minimiser, from a start; never worse than it."""
        return Pair(*_unpack(minimise(self, _pack(start))))


def _pack(pair: Pair) -> Floats:
    parts = [np.append(one.weights, one.intercept) for one in (pair.g, pair.f1)]
    return np.concatenate(parts)


def _unpack(packed: Floats) -> tuple[Linear, Linear]:
    half = len(packed) // 2
    g, f1 = packed[:half], packed[half:]
    return Linear(g[:-1], float(g[-1])), Linear(f1[:-1], float(f1[-1]))


def logistic(columns: Columns, rows: Rows, price: GroupPrice) -> Linear:
    """Logistic regression of the labels of ``rows``, the weights priced like those of a pair."""
    Z = columns.Z

    def value(packed: Floats) -> tuple[float, Floats]:
        w = packed[:-1]
        loss, slope = both(-rows.sign * (Z @ w + packed[-1]))
        cost, factor = price(w**2)
        pull = -rows.share * rows.sign * slope
        gradient = np.append(Z.T @ pull + (factor + RIDGE) * w, pull.sum())
        return rows.mean(loss) + cost + RIDGE / 2 * float(w @ w), gradient

    found = minimise(value, np.zeros(Z.shape[1] + 1))
    return Linear(found[:-1], float(found[-1]))


def minimise(
    value: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    least: Floats | None = None,
) -> Floats:
    """Minimiser of a smooth function with gradient, above ``least``; never worse than ``start``."""
    from scipy.optimize import Bounds, minimize

    found = minimize(
        value,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=None if least is None else Bounds(least, np.inf),
        options={"maxiter": _STEPS, "gtol": _TOLERANCE, "ftol": 1e-14, "maxcor": 20},
    )
    better = found.x if found.fun <= value(start)[0] else start
    return np.asarray(better, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What the alternation ends with; ``objective`` after every half step, which never rises."""

    pair: Pair
    q: Floats
    objective: list[float]


def alternate(
    columns: Columns,
    rows: Rows,
    budget: Budget,
    metric: Metric,
    price: GroupPrice,
    iterations: int,
) -> Settled:
    """From g = 0 and the logistic f1, step over q and over (g, f1) in turn."""
    pair = Pair(Linear.zero(columns), logistic(columns, rows, price))
    objective: list[float] = []

    def note(q: Floats) -> float:
        g, f1 = pair.g, pair.f1
        loss = budget.objective(metric, rows, f1(columns), g(columns), q)
        squares = g.weights**2 + f1.weights**2
        objective.append(loss + price(squares)[0] + RIDGE / 2 * float(squares.sum()))
        return objective[-1]

    q, last = np.zeros(len(rows.sign)), np.inf
    for _ in range(iterations if budget.p_full != 0 else 0):
        q = budget.q(metric, rows, pair.f1(columns), pair.g(columns))
        note(q)
        pair = Step(columns, rows, q, metric, price).solve(pair)
        now = note(q)
        if last - now <= _SETTLED * abs(now):
            break
        last = now
    return Settled(pair, q, objective)
