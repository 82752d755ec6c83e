"""ADAPT-LIN's step: linear g and f1 for a given q (OPT2), in turn with q or for the best q of each.

With weights g, f (k,) and free intercepts, the step minimises

    sum_i s_i [ D(q_i, g_i) + (1 - q_i) log(1 + e^{-y_i f_i}) ]
        + sum over sensors k of price_k sqrt( sum_{a needs k} g_a^2 + f_a^2 ) + RIDGE / 2 |g, f|^2

by L-BFGS in coordinates in which the Hessian is near the identity (``scaling``). The root
is smoothed at ROUND. Exact zeros come from the choice of feature sets.

For D = KL the least of (OPT) over q is known: with a = g + l1 - l0 and b the price of sending,

    F(g, f1) = max_{b >= 0}  mean[ l1 + log(1 + e^g) - log(1 + e^{a - b}) ] - b P_full

(or that mean alone at given prices b), at q = sigma(a - b). So L-BFGS needs no turns (``BestQ``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from bench_models.descent import lbfgs
from bench_models.logistic import softplus_and_sigmoid

from bench_core import Prices
from bench_core.arrays import FloatArray, IntArray
from bench_methods.adapt.columns import FEW, RIDGE, Columns, LinearFunction, LinearPair
from bench_methods.adapt.q_step import F0Limit, GateDistance, TrainingRows, sending_price

ROUND = 1e-6  # sqrt(v + ROUND^2) - ROUND stands for sqrt(v)
_TOLERANCE = 1e-5  # of the gradient, in scaled coordinates
_FLAT = 1e-7  # relative change of the objective at which a descent ends
_TURNS, _ROUGH = 2, 1e-6  # over q before it follows (g, f1), and the change at which these end
_STEPS = 500
_INTERCEPT = 2.0  # of a scaled one: its second derivative is at most 1/4
_SETTLED = 1e-6  # relative change of the objective at which the alternation ends
_CLEAR = 1e-5  # by which share one of two ends must be lower
_EXCESS = 0.01  # a column is missed that is steeper than its price by this share

Loss = Callable[[FloatArray], tuple[float, FloatArray]]
"""Of the values (m, n) of m functions on the rows, with its derivatives by them (m, n)."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupPenalty:
    """price_k sqrt(sum over the features that need sensor k), ``price`` (s,), of k features.

    ``sensor`` and ``feature`` (e,): the pairs of which the second needs the first.
    """

    price: FloatArray
    sensor: IntArray
    feature: IntArray
    features: int

    @classmethod
    def of(cls, prices: Prices, price: FloatArray, columns: Columns) -> GroupPenalty:
        """``price`` (s,) per sensor, in loss units. Free sensors are left out."""
        feature, sensor = prices.needs[columns.which].nonzero()
        owed = price[sensor] > 0
        paid, place = np.unique(sensor[owed], return_inverse=True)
        return cls(price[paid], place, feature[owed].astype(np.int64), len(columns.which))

    @classmethod
    def none(cls, columns: Columns) -> GroupPenalty:
        """Everything is free."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(0), nothing, nothing, len(columns.which))

    def __call__(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """The price of weights whose squares g^2 + f^2 are given (k,), and its derivative by them
        times two, that is, the factor of g and f in the gradient."""
        total = np.bincount(self.sensor, squares[self.feature], len(self.price))
        root = np.sqrt(total + ROUND**2)
        factor = np.bincount(self.feature, (self.price / root)[self.sensor], self.features)
        return float(self.price @ (root - ROUND)), factor.astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """``loss`` of m linear functions of the columns, the price of their weights, and the ridge."""

    columns: Columns
    loss: Loss
    price: GroupPenalty

    def __call__(self, packed: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient at m times weights and intercept."""
        weights, intercepts = _unpacked(packed, len(self.columns.which))
        value, by = self.loss(weights @ self.columns.values + intercepts[:, None])
        squares = (weights**2).sum(axis=0)
        cost, factor = self.price(squares)
        by_weights = by @ self.columns.values.T + (factor + RIDGE) * weights
        value += cost + RIDGE / 2 * float(squares.sum())
        return value, _joined(by_weights, by.sum(axis=1))

    def descend(
        self, start: Sequence[LinearFunction], flat: float = _FLAT
    ) -> tuple[list[LinearFunction], float]:
        """The minimiser, from a start, and the value; never worse than there.

        L-BFGS moves u, weights and intercepts being C u, until the objective changes by less than
        the share ``flat``.
        """
        k, m = len(self.columns.which), len(start)
        factor = self.price(sum((one.weights**2 for one in start), np.zeros(k)))[1]
        scaling = self.columns.scaling(factor)

        def plain(u: FloatArray) -> FloatArray:
            weights, intercepts = _unpacked(u, k)
            return _joined(scaling.forth(weights), _INTERCEPT * intercepts)

        def scaled(u: FloatArray) -> tuple[float, FloatArray]:
            now, gradient = self(plain(u))
            by, intercepts = _unpacked(gradient, k)
            return now, _joined(scaling.transposed(by), _INTERCEPT * intercepts)

        weights, intercepts = _unpacked(_packed(start), k)
        begin = _joined(scaling.back(weights), intercepts / _INTERCEPT)
        u, value = lbfgs(scaled, begin, steps=_STEPS, ftol=flat, gtol=_TOLERANCE)
        weights, intercepts = _unpacked(plain(u), k)
        return [LinearFunction(weights[i], float(intercepts[i])) for i in range(m)], value


def _unpacked(packed: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Weights (m, k) and intercepts (m,) of m linear functions."""
    each = packed.reshape(-1, k + 1)
    return each[:, :k], each[:, k]


def _joined(weights: FloatArray, intercepts: FloatArray) -> FloatArray:
    return np.column_stack([weights, intercepts]).ravel()


def logistic(columns: Columns, rows: TrainingRows, price: GroupPenalty) -> LinearFunction:
    """Logistic regression of the labels of ``rows``, the weights priced like those of a pair."""

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        loss, slope = softplus_and_sigmoid(-rows.sign * values[0])
        return rows.mean(loss), (-rows.share * rows.sign * slope)[None]

    found = [LinearFunction(np.zeros(len(columns.which)), 0.0)]
    for charge in (GroupPenalty.none(columns), price)[: 1 + bool(len(price.price))]:
        # at 0 a price would hold all weights where they are
        found, _ = Objective(columns, loss, charge).descend(found, flat=1e-12)
    return found[0]


@dataclass(frozen=True, slots=True, eq=False)
class GivenQ:
    """The loss of (OPT2)."""

    rows: TrainingRows
    q: FloatArray
    D: GateDistance

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Of g and f1."""
        (g, f1), rows = values, self.rows
        loss, slope = softplus_and_sigmoid(-rows.sign * f1)
        gate, by_g = self.D.gate_loss(self.q, g)
        kept = rows.share * (1 - self.q)
        by = np.stack([rows.share * by_g, -kept * rows.sign * slope])
        return float((kept * loss + rows.share * gate).sum()), by  # OPT2


@dataclass(slots=True, eq=False)
class BestQ:
    """F of the module. Its derivatives are those at the best q; ``bias`` is the last price."""

    rows: TrainingRows
    limit: F0Limit
    bias: float = 0.0

    def __call__(self, values: FloatArray) -> tuple[float, FloatArray]:
        """Of g and f1."""
        (g, f1), rows, limit = values, self.rows, self.limit
        loss, slope = softplus_and_sigmoid(-rows.sign * f1)
        gate, by_gate = softplus_and_sigmoid(g)
        ahead, fixed = g + loss - rows.loss0, 0.0
        if limit.p_full is not None:
            self.bias = sending_price(ahead, rows.share, limit.p_full, self.bias)
            fixed = self.bias * limit.p_full
        gain, q = softplus_and_sigmoid(ahead - (self.bias if limit.price is None else limit.price))
        by = np.stack([by_gate - q, -(1 - q) * rows.sign * slope])
        return rows.mean(loss + gate - gain) - fixed, rows.share * by


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A fitted pair, its q, and ``objective`` after every half step or descent."""

    pair: LinearPair
    q: FloatArray
    objective: list[float]


def fit_in_turns(
    columns: Columns,
    rows: TrainingRows,
    limit: F0Limit,
    D: GateDistance,
    price: GroupPenalty,
    iterations: int,
) -> LinearFit:
    """Algorithm 1: from g = 0 and the logistic f1, step over q and over (g, f1) in turn.

    The objective never rises.
    """
    pair, objective = _begin(columns, rows, price), []

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
        pair = LinearPair(*Objective(columns, GivenQ(rows, q, D), price).descend(pair)[0])  # OPT2
        now = recorded(q)
        if last - now <= _SETTLED * abs(now):
            break
        last = now
    return LinearFit(pair, q, objective)


def fit_jointly(
    columns: Columns,
    rows: TrainingRows,
    limit: F0Limit,
    D: GateDistance,
    price: GroupPenalty,
    starts: Sequence[LinearPair] = (),
) -> LinearFit:
    """(OPT) for D = KL with q as a function of (g, f1), after two turns of algorithm 1 and from the
    best of ``starts``: the lower end."""
    begin = _begin(columns, rows, price)
    if limit.p_full == 0:
        return LinearFit(begin, np.zeros(len(rows.sign)), [])
    whole = Objective(columns, BestQ(rows, limit), price)
    for _ in range(_TURNS):  # straight at the best q a descent may linger at a saddle near g = 0
        q = limit.q(D, rows, begin.f1(columns), begin.g(columns))
        begin = LinearPair(*Objective(columns, GivenQ(rows, q, D), price).descend(begin, _ROUGH)[0])
    pair, now = whole.descend(begin)
    if starts:
        other, lower = whole.descend(min(starts, key=lambda pair: whole(_packed(pair))[0]))
        if now - lower > _CLEAR * abs(now):  # else rounding would choose between equal ends
            pair, now = other, lower
    g, f1 = found = LinearPair(*pair)
    return LinearFit(found, limit.q(D, rows, f1(columns), g(columns)), [now])


def _begin(columns: Columns, rows: TrainingRows, price: GroupPenalty) -> LinearPair:
    zero = LinearFunction(np.zeros(len(columns.which)), 0.0)
    return LinearPair(zero, logistic(columns, rows, price))


def _packed(pair: Sequence[LinearFunction]) -> FloatArray:
    return np.concatenate([np.append(one.weights, one.intercept) for one in pair])


def fit_priced(
    columns: Columns,
    rows: TrainingRows,
    D: GateDistance,
    prices: Prices,
    charge: FloatArray,
    fit: Callable[[Columns, GroupPenalty], LinearFit],
) -> tuple[LinearFit, IntArray]:
    """A fit under the price ``charge`` (s,) of each sensor, and the features by falling weight.

    Of more columns than rows, and than 256, only some take part: those whose loss is steepest at
    the start, then all that are steeper than their price. Others have the weight 0.
    """
    zero = LinearFunction(np.zeros(len(columns.which)), 0.0)
    found = LinearFit(LinearPair(zero, zero), np.zeros(len(rows.sign)), [])
    inside, fitted = np.full(len(columns.which), not columns.wide), False
    while True:
        steep = _steepness(columns, rows, D, found)
        bought = prices.bought_for(columns.which[inside])
        owed = (prices.needs @ np.where(bought, 0.0, charge))[columns.which]
        excess = np.where(inside, 0.0, steep - (1 + _EXCESS) * owed - _TOLERANCE)
        most = max(FEW, np.count_nonzero(inside))
        more = np.argsort(-excess, kind="stable")[: min(most, np.count_nonzero(excess > 0))]
        if fitted and not len(more):
            break
        inside[more] = True
        some = columns.only(columns.which[inside])
        own = fit(some, GroupPenalty.of(prices, charge, some))
        found, fitted = LinearFit(own.pair.among(some, columns), own.q, own.objective), True
    strength = found.pair.g.weights**2 + found.pair.f1.weights**2
    return found, columns.which[np.lexsort((-steep, -strength))]


def _steepness(
    columns: Columns, rows: TrainingRows, D: GateDistance, found: LinearFit
) -> FloatArray:
    """Of the loss at a pair and its q, by the weights of each column: |d/dg, d/df1| (k,)."""
    g, f1 = found.pair
    by = GivenQ(rows, found.q, D)(np.stack([g(columns), f1(columns)]))[1]
    steep: FloatArray = np.sqrt(((by @ columns.values.T) ** 2).sum(axis=0))
    return steep
