"""ADAPT-LIN's step: linear g and f1 for a given q (OPT2), in turn with q (Algorithm 1).

Then the sets of features that a pair may read: nested ones by sensors, and those of the L1 path.

Columns are centred and scaled by their weighted mean and deviation, a missing cell counting as 0.
With weights g, f (k,) and free intercepts, the step minimises

    sum_i s_i [ D(q_i, g_i) + (1 - q_i) log(1 + e^{-y_i f_i}) ]
        + sum over sensors k of price_k sqrt( sum_{a needs k} g_a^2 + f_a^2 ) + RIDGE / 2 |g, f|^2

by L-BFGS in coordinates in which the Hessian is near the identity (``Columns.scaling``). The root
is smoothed at ROUND. Exact zeros come from the choice of feature sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from bench_models.fixed_order import (
    both,
    cholesky,
    combine,
    dot,
    inverse_lower,
    lbfgs,
    project,
    softplus_and_sigmoid,
    solve_lower,
    times,
)

from bench_core import InputError, Prices
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.adapt.q_step import F0Limit, GateDistance, TrainingRows

RIDGE = 1e-6  # keeps the weights finite where the classes can be separated
ROUND = 1e-6  # sqrt(v + ROUND^2) - ROUND stands for sqrt(v)
_TOLERANCE = 1e-5  # of the gradient, in scaled coordinates
_FLAT = 1e-7  # relative change of the objective at which a step over (g, f1) ends
_ROUGH = 1e-6  # the same where a finish follows
_STEPS = 500
_SETTLED = 1e-6  # relative change of the objective at which the alternation ends
_PATH = 40  # L1 weights tried
_DEPTH = 1e-4  # the smallest, as a share of that which leaves no feature


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Standardised columns, ``values`` (k, n), of the features ``which`` (k,).

    They were centred by ``centre`` and divided by ``scale``; ``gram`` (k, k) is their correlation
    matrix. All sums are in a fixed order (``fixed_order``).
    """

    which: IntArray
    values: FloatArray
    centre: FloatArray
    scale: FloatArray
    gram: FloatArray

    @classmethod
    def of(cls, X: Float32Array, share: FloatArray) -> Self:
        """All columns that are not constant. Raises InputError for an infinite value."""
        wide = np.ascontiguousarray(X.T, dtype=np.float64)
        Z = np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf)
        if not bool(np.isfinite(Z).all()):
            column = int(np.flatnonzero(~np.isfinite(Z).all(axis=1))[0])
            raise InputError(
                f"feature {column} holds infinity, which no linear model can read; "
                "leave the value empty or use adapt-gbrt"
            )
        centre = project(Z, share[None])[0]
        Z -= centre[:, None]
        scale = np.sqrt(project(Z**2, share[None])[0])
        varied = np.flatnonzero(scale > 1e-9 * np.maximum(1.0, np.abs(centre)))
        Z = Z[varied] / scale[varied, None]
        gram = project(Z, share * Z)
        return cls(varied.astype(np.int64), Z, centre[varied], scale[varied], gram)

    @property
    def Z(self) -> FloatArray:  # noqa: N802 - as in the formulas
        """The columns as a matrix (n, k)."""
        return self.values.T

    def only(self, features: IntArray) -> Columns:
        """Those of them that are among ``features``."""
        kept = np.flatnonzero(np.isin(self.which, features))
        Z, gram = self.values[kept], self.gram[np.ix_(kept, kept)]
        return Columns(self.which[kept], Z, self.centre[kept], self.scale[kept], gram)

    def scaling(self, factor: FloatArray) -> FloatArray:
        """C (k + 1, k + 1), upper triangular, so that weights and intercept are C u.

        (C C')^-1 is the bound gram / 4 of the logistic loss's Hessian plus ``factor`` (k,), that
        of the penalty, and RIDGE; the columns are centred, so the intercept stands apart.
        """
        k = len(self.which)
        hessian = np.zeros((k + 1, k + 1))
        hessian[:k, :k] = self.gram / 4 + np.diag(factor + RIDGE)
        hessian[k, k] = 0.25
        return inverse_lower(cholesky(hessian)).T


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunction:
    """One linear function of the columns: ``weights`` (k,) and ``intercept``."""

    weights: FloatArray
    intercept: float

    def __call__(self, columns: Columns) -> FloatArray:
        """Its values on all rows (n,)."""
        return combine(columns.values, self.weights, self.intercept)

    def only(self, kept: BoolArray) -> LinearFunction:
        """Of the columns ``kept`` (k,) alone."""
        return LinearFunction(self.weights[kept], self.intercept)


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
        root = np.sqrt(times(self.needs, squares) + ROUND**2)
        return dot(self.price, root - ROUND), times(self.needs.T, self.price / root)


class LinearPair(NamedTuple):
    """Gate and classifier."""

    g: LinearFunction
    f1: LinearFunction


@dataclass(frozen=True, slots=True, eq=False)
class PairObjective:
    """The problem in (g, f1) for a given q, or, given the limit on q, for the best q of each pair.

    The derivative is the same: at the best q that by q is zero, or has no room.
    """

    columns: Columns
    rows: TrainingRows
    q: FloatArray | F0Limit
    D: GateDistance
    price: GroupPenalty

    def __call__(self, packed: FloatArray) -> tuple[float, FloatArray]:
        """Objective and gradient at [g, its intercept, f1, its intercept]."""
        Z, share = self.columns.values, self.rows.share
        weights, intercepts = _unpacked(packed, len(self.columns.which))
        g, f1 = both(Z, weights, intercepts)
        limit = self.q if isinstance(self.q, F0Limit) else None
        loss, slope = softplus_and_sigmoid(-self.rows.sign * f1)
        q = self.q if not isinstance(self.q, F0Limit) else self.q.best(self.D, self.rows, loss, g)
        kept = share * (1 - q)
        gate, by_g = self.D.gate_loss(q, g)
        squares = (weights**2).sum(axis=0)
        cost, factor = self.price(squares)
        value = cost + RIDGE / 2 * float(squares.sum())
        if limit:
            value += limit.total(self.D, self.rows, loss, gate, q)  # OPT
        else:
            value += float((kept * loss + share * gate).sum())  # OPT2
        by = np.stack([share * by_g, -kept * self.rows.sign * slope])
        by_weights = project(Z, by) + (factor + RIDGE) * weights
        return value, np.column_stack([by_weights, by.sum(axis=1)]).ravel()

    def solve(self, start: LinearPair, flat: float = _FLAT) -> LinearPair:
        """The minimiser, from a start; never worse than it."""
        packed = np.concatenate([np.append(one.weights, one.intercept) for one in start])
        _, factor = self.price(start.g.weights**2 + start.f1.weights**2)
        found = minimise(self, packed, self.columns.scaling(factor), flat=flat)
        weights, intercepts = _unpacked(found, len(self.columns.which))
        return LinearPair(*map(LinearFunction, weights, map(float, intercepts)))


def _unpacked(packed: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Weights (m, k) and intercepts (m,) of m linear functions."""
    each = packed.reshape(-1, k + 1)
    return each[:, :k], each[:, k]


def logistic(columns: Columns, rows: TrainingRows, price: GroupPenalty) -> LinearFunction:
    """Logistic regression of the labels of ``rows``, the weights priced like those of a pair."""
    Z = columns.values

    def value(packed: FloatArray) -> tuple[float, FloatArray]:
        w = packed[:-1]
        loss, slope = softplus_and_sigmoid(-rows.sign * combine(Z, w, float(packed[-1])))
        cost, factor = charge(w**2)
        by = -rows.share * rows.sign * slope
        gradient = np.append(project(Z, by[None])[0] + (factor + RIDGE) * w, by.sum())
        return rows.mean(loss) + cost + RIDGE / 2 * dot(w, w), gradient

    packed = np.zeros(len(Z) + 1)
    for charge in (GroupPenalty.none(columns), price)[: 1 + bool(len(price.price))]:
        factor = charge(packed[:-1] ** 2)[1]  # at 0 it would hold all weights where they are
        packed = minimise(value, packed, columns.scaling(factor))
    return LinearFunction(packed[:-1], float(packed[-1]))


def minimise(
    value: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    scaling: FloatArray,
    *,
    flat: float = 1e-12,
) -> FloatArray:
    """Minimiser of a smooth function with gradient; never worse than ``start``.

    ``start`` holds one or more vectors x = C u, C the ``scaling``; L-BFGS moves u until the
    objective changes by less than the share ``flat``.
    """
    lower = np.ascontiguousarray(scaling.T)
    vectors = start.reshape(-1, len(lower))
    nothing = np.zeros(len(vectors))

    def plain(u: FloatArray) -> FloatArray:
        return both(lower, u.reshape(-1, len(lower)), nothing).ravel()

    def scaled(u: FloatArray) -> tuple[float, FloatArray]:
        now, gradient = value(plain(u))
        return now, both(scaling, gradient.reshape(-1, len(lower)), nothing).ravel()

    begin = np.concatenate([solve_lower(lower, x, transposed=True) for x in vectors])
    return plain(lbfgs(scaled, begin, steps=_STEPS, flat=flat, slope=_TOLERANCE))


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
    *,
    finish: bool = False,
) -> LinearFit:
    """Algorithm 1: from g = 0 and the logistic f1, step over q and over (g, f1) in turn.

    To ``finish`` means to go on from there with q as a function of (g, f1), which reaches in
    tens of evaluations what more turns approach.
    """
    zero = LinearFunction(np.zeros(len(columns.which)), 0.0)
    pair = LinearPair(zero, logistic(columns, rows, price))
    objective: list[float] = []

    def recorded(q: FloatArray) -> float:
        g, f1 = pair
        loss = limit.objective(D, rows, f1(columns), g(columns), q)
        squares = g.weights**2 + f1.weights**2
        objective.append(loss + price(squares)[0] + RIDGE / 2 * float(squares.sum()))
        return objective[-1]

    q, last, flat = np.zeros(len(rows.sign)), np.inf, _ROUGH if finish else _FLAT
    for _ in range(iterations if limit.p_full != 0 else 0):
        q = limit.q(D, rows, pair.f1(columns), pair.g(columns))  # OPT1
        recorded(q)
        pair = PairObjective(columns, rows, q, D, price).solve(pair, flat)  # OPT2
        now = recorded(q)
        if last - now <= _SETTLED * abs(now):
            break
        last = now
    if finish and limit.p_full != 0:
        pair = PairObjective(columns, rows, limit, D, price).solve(pair)
        q = limit.q(D, rows, pair.f1(columns), pair.g(columns))
        recorded(q)
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

    from scipy.optimize import Bounds, minimize

    least = Bounds(np.append(np.zeros(2 * k), -np.inf), np.inf)
    options = {"maxiter": _STEPS, "gtol": 1e-6, "ftol": 1e-14, "maxcor": 20}
    at = np.zeros(2 * k + 1)
    slopes = np.abs(value(at)[1][:k]) if k else np.zeros(0)
    paid = price > 0
    highest = float((slopes[paid] / price[paid]).max(initial=0.0))
    sets = []
    for share in np.geomspace(1, _DEPTH, _PATH) if highest > 0 else ():
        level = share * highest
        at = minimize(value, at, jac=True, method="L-BFGS-B", bounds=least, options=options).x
        used = columns.which[(at[:k] != 0) | (at[k : 2 * k] != 0)]
        sets.append(used)
    return distinct(sets)
