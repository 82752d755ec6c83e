"""ADAPT-LIN's step: linear g and f1 for a given q (OPT2), or jointly with the optimal q.

With weights g, f (k,) and free intercepts, the step minimises

    sum_i s_i [ D(q_i, g_i) + (1 - q_i) log(1 + e^{-y_i f_i}) ]
        + sum over sensors k of price_k sqrt( sum_{a needs k} g_a^2 + f_a^2 ) + RIDGE / 2 |g, f|^2

by L-BFGS in whitened coordinates. The root is smoothed at ROUND. Exact zeros come from the choice
of feature sets. Columns are standardised.

With the optimal q for each pair, and b the price of sending, (OPT) depends only on the pair,

    F(g, f1) = max_{b >= 0} min_q  mean[ (1 - q) l1 + q l0 + D(q, g) + b q ] - b P_full

(or only that mean at given prices b). Its derivatives are the partial derivatives at this q. So
L-BFGS needs no alternation (``LinearProblem.best_q``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from bench_models.descent import minimise_whitened
from bench_models.l1_regression import LinearScores, PenalisedLoss, minimise
from bench_models.links import softplus_and_sigmoid
from bench_models.scaling import Scaling

from bench_core import Prices
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_methods.adapt.q_step import F0Limit, GateDistance, TrainingRows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RIDGE = 1e-6  # keeps weights finite if classes are separable
FEW = 256  # up to this many columns are always fitted together
ROUND = 1e-6  # sqrt(v + ROUND^2) - ROUND approximates sqrt(v): L-BFGS needs a gradient at 0
ZERO = 1e-4  # smaller weights of a penalised fit are 0 but for ROUND and rounding
STEP = 1e-8  # relative change at which a step ends, well below that of the alternation
SETTLED = 1e-6  # the same of the alternation and before a joint descent; gradient that ends a step
FLAT, STEEP = 1e-13, 1e-8  # both at the end of a fit that is served: looser ones vary by rounding
CLEAR = 1e-5  # one of two ends must be lower by this share: rounding must not choose
CLOSE = 1e-10  # tolerance of the mean of q in a descent; the value's error is its square
STEPS, MEMORY = (
    500,
    20,
)  # at most, and of L-BFGS; with a shorter memory rounding grows on flat objectives
TURNS = 2  # steps over q before the joint descent, which alone may stall at a saddle near g = 0
LEVELS, DEPTH = 40, 1e-4  # L1 weights tried, the last a share of the one that leaves no feature
L1_TOLERANCE = 3e-5  # at 1e-4 a feature without use enters sets of spambase's path
JITTER = 1e-12  # share of the mean diagonal: linearly dependent rows have no Cholesky factor

T = TypeVar("T")

Loss = Callable[[FloatArray], tuple[float, FloatArray]]
"""From the values (m, n) of m functions on the rows to the loss and its derivatives (m, n)."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Standardised columns, ``values`` (k, n), of the features ``which`` (k,), for rows of weights
    ``share`` (n,)."""

    which: IntArray
    values: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, X: Float32Array, scaling: Scaling, share: FloatArray) -> Self:
        """All columns that are not constant."""
        varied = np.flatnonzero(scaling.scale)
        # one column after the other in memory: sums over rows are contiguous
        values = np.ascontiguousarray(scaling.only(varied).columns(X[:, varied]).T)
        return cls(varied, values, share)

    @cached_property
    def gram(self) -> FloatArray:
        """Mean products (k + 1, k + 1) of the columns and a constant."""
        every = np.append(self.values, np.ones((1, len(self.share))), axis=0)
        return (every * self.share) @ every.T

    def only(self, features: IntArray) -> Columns:
        """The columns of these ``features``."""
        kept = np.flatnonzero(np.isin(self.which, features))
        return Columns(self.which[kept], self.values[kept], self.share)

    def nothing(self, functions: int) -> Linear:
        """This many zero functions."""
        return Linear(np.zeros((functions, len(self.which))), np.zeros(functions))


class Linear(NamedTuple):
    """m linear functions of k columns: ``weights`` (m, k), ``intercepts`` (m,).

    Two of them are a pair: the gate g, then f1.
    """

    weights: FloatArray
    intercepts: FloatArray

    def __call__(self, columns: Columns) -> FloatArray:
        """Values on all rows (m, n)."""
        return self.weights @ columns.values + self.intercepts[:, None]

    @property
    def squares(self) -> FloatArray:
        """Sum of squared weights of each column (k,)."""
        total: FloatArray = (self.weights**2).sum(axis=0)
        return total

    def beside(self, others: Linear) -> Linear:
        """These functions followed by the others."""
        return Linear(*(np.concatenate(both) for both in zip(self, others, strict=True)))

    def among(self, own: Columns, columns: Columns) -> Linear:
        """The functions on ``columns``, with the weights of features shared with ``own``."""
        weights = np.zeros((len(self.weights), len(columns.which)))
        _, here, there = np.intersect1d(own.which, columns.which, return_indices=True)
        weights[:, there] = self.weights[:, here]
        return Linear(weights, self.intercepts)


def in_row_space(columns: Columns, fitted: Callable[[Columns], Linear]) -> Linear:
    """Result of ``fitted`` on columns whose only penalty is the ridge.

    With more columns than rows the weights are combinations of rows, w = Z v. With K = Z'Z = L L'
    and u = L'v the values are L u and |w| = |u|: the same problem in n columns, the rows of L.
    """
    from scipy.linalg import solve_triangular

    k, n = columns.values.shape
    if k <= n:
        return fitted(columns)
    K = columns.values.T @ columns.values
    K += JITTER * np.trace(K) / n * np.eye(n)
    L = np.linalg.cholesky(K)
    rows = Columns(np.arange(n), np.ascontiguousarray(L.T), columns.share)
    weights, intercepts = fitted(rows)
    v = solve_triangular(L, weights.T, lower=True, trans="T")
    return Linear((columns.values @ v).T, intercepts)


@dataclass(frozen=True, slots=True, eq=False)
class GroupPenalty:
    """price_k sqrt(sum over the features that need sensor k), ``price`` (s,), of k features.

    ``needs`` (s, k), sparse, is 1 where a sensor is needed.
    """

    price: FloatArray
    needs: csr_array

    @classmethod
    def of(cls, prices: Prices, price: FloatArray, columns: Columns) -> Self:
        """Penalty of ``price`` (s,) per sensor, in loss units. Free sensors are left out."""
        paid = np.flatnonzero(price > 0)
        return cls(price[paid], prices.needs[columns.which].T.tocsr()[paid])

    @classmethod
    def none(cls, columns: Columns) -> Self:
        """No penalty."""
        from scipy.sparse import csr_array

        return cls(np.zeros(0), csr_array((0, len(columns.which))))

    def __call__(self, squares: FloatArray) -> tuple[float, FloatArray]:
        """Penalty of weights with these ``squares`` g^2 + f^2 (k,), and twice its derivative by
        them, the factor of g and f in the gradient."""
        if not len(self.price):
            return 0.0, np.zeros_like(squares)
        root = np.sqrt(self.needs @ squares + ROUND**2)  # sensor by sensor (s,), smooth at 0
        return float(self.price @ (root - ROUND)), np.asarray(self.needs.T @ (self.price / root))


def objective(
    columns: Columns, loss: Loss, price: GroupPenalty, at: Linear
) -> tuple[float, Linear]:
    """Sum of the ``loss`` of linear functions ``at``, the penalty and the ridge; and its
    derivatives."""
    value, by = loss(at(columns))
    squares = at.squares
    cost, factor = price(squares)
    by_weights = by @ columns.values.T + (factor + RIDGE) * at.weights
    value += cost + RIDGE / 2 * float(squares.sum())
    return value, Linear(by_weights, by.sum(axis=1))


def descend(
    columns: Columns, loss: Loss, price: GroupPenalty, start: Linear, flat: float, steep: float
) -> tuple[Linear, float]:
    """Minimiser of the ``objective`` from ``start``, and its value, never above the start's.

    It ends when the relative change is below ``flat``, or no entry of the gradient exceeds
    ``steep``. The curvature is a bound of the logistic loss's, and the penalty's at the start.
    """

    def value_and_gradient(
        packed: FloatArray, none: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        now, by = objective(columns, loss, price, Linear(packed[:, :-1], packed[:, -1]))
        return now, np.column_stack(by), none

    # sigma' is at most 1/4
    penalty = np.diag(np.append(price(start.squares)[1] + RIDGE, 0.0))
    packed, _, value = minimise_whitened(
        value_and_gradient,
        np.asarray(np.linalg.cholesky(columns.gram / 4 + penalty)),
        np.column_stack(start),
        np.zeros(0),
        steps=STEPS,
        ftol=flat,
        gtol=steep,
        memory=MEMORY,
    )
    return Linear(packed[:, :-1], packed[:, -1]), value


def logistic(columns: Columns, rows: TrainingRows, price: GroupPenalty) -> Linear:
    """Logistic regression of the labels of ``rows`` under the penalty ``price``."""

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        loss, slope = softplus_and_sigmoid(-rows.sign * values[0])
        return rows.mean(loss), (-rows.share * rows.sign * slope)[None]

    linear = columns.nothing(1)
    for charge in (GroupPenalty.none(columns), price)[: 1 + bool(len(price.price))]:
        # the penalty is steep at 0: start from the unpenalised fit
        linear, _ = descend(columns, loss, charge, linear, FLAT, STEEP)
    return linear


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A fitted pair, its q, and the ``objective`` after every half step or descent."""

    pair: Linear
    q: FloatArray
    objective: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class LinearProblem:
    """(OPT) for linear pairs, with distance ``D`` of gate and q and penalty ``price``."""

    columns: Columns
    rows: TrainingRows
    limit: F0Limit
    D: GateDistance
    price: GroupPenalty

    def given(self, q: FloatArray) -> Loss:
        """The loss of (OPT2) for a given q."""
        rows, kept = self.rows, self.rows.share * (1 - q)

        def loss(values: FloatArray) -> tuple[float, FloatArray]:
            g, f1 = values
            loss, slope = softplus_and_sigmoid(-rows.sign * f1)
            gate, by_g = self.D.gate_loss(q, g)
            by = np.stack([rows.share * by_g, -kept * rows.sign * slope])
            return float((kept * loss + rows.share * gate).sum()), by  # OPT2

        return loss

    def best_q(self, values: FloatArray) -> tuple[float, FloatArray]:
        """F of the module docstring, and its derivatives, taken at the optimal q."""
        (g, f1), rows, limit = values, self.rows, self.limit
        loss, slope = softplus_and_sigmoid(-rows.sign * f1)
        excess = loss - rows.loss0
        q = limit.best(self.D, excess, g, rows.share, CLOSE)
        gate, by_gate = self.D.gate_loss(q, g)
        charge: Any = limit.bias if limit.price is None else limit.price
        value = rows.mean(loss + gate + self.D.rest(q) + q * (charge - excess))
        value -= 0.0 if limit.p_full is None else limit.bias * limit.p_full
        by = np.stack([by_gate, -(1 - q) * rows.sign * slope])
        return value, rows.share * by

    def q(self, pair: Linear) -> FloatArray:
        """The step over q."""
        g, f1 = pair(self.columns)
        return self.limit.q(self.D, self.rows, f1, g)  # OPT1

    def value(self, pair: Linear, q: FloatArray) -> float:
        """Value of (OPT)."""
        g, f1 = pair(self.columns)
        loss = self.limit.objective(self.D, self.rows, f1, g, q)
        squares = pair.squares
        return loss + self.price(squares)[0] + RIDGE / 2 * float(squares.sum())

    def step(self, pair: Linear, q: FloatArray, flat: float = STEP) -> Linear:
        """The step over (g, f1)."""
        return descend(self.columns, self.given(q), self.price, pair, flat, SETTLED)[0]

    @property
    def begin(self) -> Linear:
        """g = 0 and the logistic f1."""
        f1 = logistic(self.columns, self.rows, self.price)
        return self.columns.nothing(1).beside(f1)


def fit_in_turns(problem: LinearProblem, iterations: int) -> LinearFit:
    """Algorithm 1: from g = 0 and the logistic f1, alternate steps over q and (g, f1).

    The objective never rises.
    """
    pair, q, last = problem.begin, np.zeros(len(problem.rows.sign)), np.inf
    values: list[float] = []
    for _ in range(iterations if problem.limit.p_full != 0 else 0):
        q = problem.q(pair)
        values.append(problem.value(pair, q))
        pair = problem.step(pair, q)
        values.append(problem.value(pair, q))
        if last - values[-1] <= SETTLED * abs(values[-1]):
            break
        last = values[-1]
    return LinearFit(pair, q, values)


def fit_jointly(problem: LinearProblem) -> tuple[Linear, float]:
    """Minimise (OPT) with q as a function of (g, f1), after two turns of algorithm 1."""
    pair = problem.begin
    if problem.limit.p_full == 0:
        return pair, 0.0
    for _ in range(TURNS):
        pair = problem.step(pair, problem.q(pair), SETTLED)
    return _descend_jointly(problem, pair)


def lower_end(
    problem: LinearProblem, pair: Linear, value: float, starts: Sequence[Linear]
) -> Linear:
    """The ``pair`` with this ``value`` of (OPT), or the end of a descent from the best of
    ``starts``."""
    if not starts or problem.limit.p_full == 0:
        return pair
    whole = problem.columns, problem.best_q, problem.price
    best = min(starts, key=lambda at: objective(*whole, at)[0])
    other, lower = _descend_jointly(problem, best)
    return other if value - lower > CLEAR * abs(value) else pair


def _descend_jointly(problem: LinearProblem, start: Linear) -> tuple[Linear, float]:
    whole = problem.columns, problem.best_q, problem.price
    return descend(*whole, start, FLAT, STEEP)


def fit_priced(
    problem: LinearProblem, prices: Prices, charge: FloatArray, iterations: int
) -> tuple[LinearFit, IntArray]:
    """Alternating fit under the price ``charge`` (s,) of each sensor, and the features by falling
    weight; those without weight by the loss's slope above their charge.

    With more columns than rows, and than 256, only as many are fitted, those first by that slope at
    the start. Others have weight 0.
    """
    columns, rows = problem.columns, problem.rows

    def excess(fit: LinearFit) -> FloatArray:
        by = problem.given(fit.q)(fit.pair(columns))[1]
        slopes = np.sqrt(((by @ columns.values.T) ** 2).sum(axis=0))
        return np.asarray(slopes - (prices.needs @ charge)[columns.which])

    wide = LinearFit(columns.nothing(2), np.zeros(len(rows.sign)), [])
    inside = np.sort(np.argsort(-excess(wide), kind="stable")[: max(len(rows.sign), FEW)])
    some = columns.only(columns.which[inside])
    own = replace(problem, columns=some, price=GroupPenalty.of(prices, charge, some))
    fit = fit_in_turns(own, iterations)
    wide = replace(fit, pair=fit.pair.among(some, columns))
    squares = np.where(wide.pair.squares > ZERO**2, wide.pair.squares, 0.0)
    return wide, columns.which[np.lexsort((-excess(wide), -squares))]


def nested(order: IntArray, columns: Columns, prices: Prices, most: int) -> list[IntArray]:
    """At most ``most`` sets: the first, the first two, ... of ``order``.

    A set includes all ``columns`` that become free with its features. Equal sets are listed once,
    and free features are in every set.
    """
    first = np.full(prices.sensors, len(order))  # position of the feature that buys a sensor
    for place, feature in reversed(list(enumerate(order.tolist()))):
        first[prices.sensors_of(feature)] = place
    # free sensors are there from the start
    first[prices.sensor == 0] = -1
    entered = np.array([first[prices.sensors_of(int(j))].max(initial=-1) for j in columns.which])
    return [columns.which[entered <= place] for place in spread(np.unique(entered).tolist(), most)]


def distinct(sets: Sequence[IntArray]) -> list[IntArray]:
    """The non-empty sets, the first of each size, by rising size."""
    by_size = {len(one): one for one in reversed(sets) if len(one)}
    return [by_size[size] for size in sorted(by_size)]


def spread(sets: Sequence[T], most: int) -> list[T]:
    """At most ``most`` of the sets, denser among small ones, including the last."""
    if len(sets) <= most:
        return list(sets)
    if most == 1:
        return [sets[-1]]
    places = np.round(np.geomspace(1, len(sets), most)).astype(np.int64)
    for k in range(most):  # small positions may round to the same number
        places[k] = max(places[k], places[k - 1] + 1 if k else 1)
    return [sets[p - 1] for p in np.minimum(places, len(sets))]


def l1_path(problem: PenalisedLoss, prices: Prices) -> list[IntArray]:
    """Sets of features chosen by L1-regularised logistic regression, by rising size.

    A feature's penalty is its price when bought alone. If all are free, penalties are equal.
    """
    varied, price = problem.scaling.scale > 0, prices.feature_price()
    if not price[varied].any():
        price = np.ones(len(price))
    now = LinearScores(np.zeros(1), np.zeros((1, len(price))))
    paid = varied & (price > 0)
    highest = float((problem.slopes(now)[paid] / price[paid]).max(initial=0.0))
    levels, sets = np.geomspace(1, DEPTH, LEVELS), []
    levels[0] = 0.999  # where the first feature alone has a weight
    for level in levels * highest if highest > 0 else ():
        penalty = np.where(varied, level * price, np.inf)
        now = minimise(problem, penalty, now, STEPS, L1_TOLERANCE)
        sets.append(np.flatnonzero(now.weights[0]))
    return distinct(sets)
