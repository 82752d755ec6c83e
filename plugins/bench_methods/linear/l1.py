"""The l1 path: a linear model with each weight penalised by its feature's price.

R. Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 58 (1996), with the
penalty of each weight in proportion to its feature's price:

    min  (1/N) sum_i m_i l(y_i, b0 + b.z_i) + tau sum_j c_j |b_j|,

squared loss for ranking (on grades) and regression, logistic and softmax loss for classes; z are
standardised columns, N counts copies. It is the baseline "L1" of Z. Xu et al. (ICML 2012) and of
F. Nan and V. Saligrama (NIPS 2017). They do not state the scale of the penalty [M].

tau = tradeoff x (mean loss of the best constant) / (price of all features), as everywhere. One
fit decreases ``tradeoff`` from the value at which every weight is 0. Its values are the operating
points, the last the least penalised. (With columns scaled by 1/c this is a lasso of alpha = tau,
or a logistic regression of C = 1/(N tau).) Targets and grades are divided by their standard
deviation, so weights and their prices are dimensionless.

Equations
    the path      bench_methods.linear.l1.L1._path
    a point       bench_methods.linear.l1.minimise
    c_j           bench_methods.linear.l1.MarginalPrices.charges

Departures
- ``refit``: at each point the weights of the chosen features are refitted without penalty, to undo
  shrinkage. Points with the same features are merged.
- c_j is the price of feature j bought alone. It becomes 0 once features bought earlier on the path
  have paid for all of its sensors (shared ones, the parents of a derived feature). The points then
  do not minimise one convex function. Partial discounts are ignored: a small price, proportional
  to |b|, would admit features early whose gain is only of order b^2.
- The charge is proportional to the weight, although the actual price does not depend on it.
- Free features and refits have only a ridge penalty of 1e-6. If everything is free, all features
  are charged equally.
- Missing cells count as the training mean. With K classes a feature has K weights, charged each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from bench_models.boosting import loss_of
from bench_models.least_squares import one_blas_thread
from bench_models.scaling import Scaling
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import constant_loss, labels_of

from bench_core import Examples, FitContext, Prices, Task, among, param
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.linear.model import LinearPath

RIDGE = 1e-6
"""Weight of b_j^2 / 2 without penalty: separable or dependent columns would not converge."""

SWEEPS = 1000
_BLOCK = 8192

ALL = 1024
"""Maximum number of columns for which the working set starts with all of them."""

NOBODY = -1


@dataclass(frozen=True)
class L1:
    """A linear model with l1 penalties by price; one fit gives a path of trade-offs."""

    name: ClassVar[str] = "l1"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)
    adds_up: ClassVar[bool] = False

    points: int = param(60, "values of the trade-off on the path", least=1, most=MOST_POINTS - 1)
    least: float = param(
        1e-4, "smallest trade-off, as a share of the largest with a purchase", above=0, below=1
    )
    refit: bool = param(
        True,
        "refit the weights of the chosen features without penalty",
        search=among(True, False),
    )
    steps: int = param(300, "most gradient steps per point", least=1)
    tolerance: float = param(
        1e-4, "stop after a step that moves no weight by more than this share", above=0, below=1
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LinearPath:
        """Follow the path on ``train``; ``valid`` is not used."""
        name, objective = loss_of(context.task, "auto", context.classes)
        constant = constant_loss(name, objective, train)
        with one_blas_thread():
            scaling = Scaling.of(train.X, train.weights)
            # the constant's loss is then about 1, so one tolerance fits all labels
            spread = float(np.sqrt(2 * constant)) if name == "squared" and constant > 0 else 1.0
            base = np.asarray(objective.base(labels_of(train)), dtype=np.float64)
            start = LinearScores(base / spread, np.zeros((len(base), train.X.shape[1])))
            # classes have no unit
            squared = name == "squared"
            target = (train.y - base[0]) / spread if squared else train.y
            problem = PenalisedLoss(train, scaling, target, start.bias, squared)
            # no feature is usable if all labels are equal
            usable = (scaling.scale > 0) & (constant > 1e-12)
            marginal, worth = MarginalPrices(prices), constant / spread**2
            path = self._path(problem, start, marginal, worth, usable, context)
        points = [
            {"tradeoff": float(f"{t:.6g}"), "features": sum(chosen(scores))} for t, scores in path
        ]
        return LinearPath(
            weights=spread * np.array([scores.weights for _, scores in path]),
            bias=spread * np.array([scores.bias for _, scores in path]),
            points=points,
            scaling=scaling,
            prices=prices,
            facts={"loss": name},
        )

    def _path(
        self,
        problem: PenalisedLoss,
        start: LinearScores,
        marginal: MarginalPrices,
        worth: float,
        usable: BoolArray,
        context: FitContext,
    ) -> list[tuple[float, LinearScores]]:
        """The points, from the largest trade-off down. ``worth`` is the penalty of all features at
        a trade-off of 1."""
        # penalty of a weight of 1 at a trade-off of 1
        unit = marginal.charges() * worth
        out = np.where(usable, 0.0, np.inf)
        free = np.where(unit > 0, np.inf, out)
        now = minimise(problem, free, start, self.steps, self.tolerance)
        paid = usable & (unit > 0)
        largest = float((problem.slopes(now)[paid] / unit[paid]).max(initial=0.0))
        if largest <= 0:
            return [(0.0, now)]
        path = [(largest, now)]
        grid = np.geomspace(largest, largest * self.least, self.points + 1)[1:]
        for k, t in enumerate(grid.tolist()):
            cheaper = True
            while cheaper:
                penalty = t * marginal.charges() * worth + out
                now = minimise(problem, penalty, now, self.steps, self.tolerance)
                cheaper = marginal.buy(now.weights)  # a purchase may make other features free
            if not self.refit:
                path.append((t, now))
            elif chosen(now) == chosen(path[-1][1]):
                path[-1] = (t, path[-1][1])
            else:
                only = np.where(now.weights.any(axis=0), 0.0, np.inf)
                path.append((t, minimise(problem, only, now, self.steps, self.tolerance)))
            context.progress(k + 1, self.points)
        return path


def chosen(fitted: LinearScores) -> list[bool]:
    """Flag of each feature: True if it has a weight."""
    return [bool(column.any()) for column in fitted.weights.T]


class MarginalPrices:
    """Pairs of a feature and a priced sensor that it needs, and the payer (s,) of each sensor, the
    feature that bought it first. All features together have price 1.

    Nothing is bought at first. If everything is free, features are charged equally.
    """

    def __init__(self, prices: Prices) -> None:
        if prices.everything == 0:
            prices = Prices.additive(np.ones(prices.features))
        priced = prices.sensor[prices.needed] > 0
        self.alone = prices.feature_price() / max(prices.everything, 1e-300)  # (d,) bought alone
        self.feature = np.repeat(np.arange(prices.features), np.diff(prices.start))[priced]
        self.sensor = prices.needed[priced]  # (pairs,) as feature
        self.payer = np.full(prices.sensors, NOBODY)

    def charges(self) -> FloatArray:
        """Charge for a weight of 1 on each feature (d,): 0 if others pay for all of its sensors,
        else its price alone."""
        payer = self.payer[self.sensor]
        owes = (payer == NOBODY) | (payer == self.feature)
        some = np.bincount(self.feature, owes, len(self.alone)) > 0
        return np.where(some, self.alone, 0.0)

    def buy(self, weights: FloatArray) -> bool:
        """Record purchases by features with weights (K, d), the largest weight first. Return True
        if this makes a feature free."""
        before = self.charges()
        strength = np.abs(weights).max(axis=0)[self.feature]
        for i in np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]:
            if self.payer[self.sensor[i]] == NOBODY:
                self.payer[self.sensor[i]] = self.feature[i]
        return bool(np.any(self.charges() < before))


class LinearScores(NamedTuple):
    """Bias (K,) and weights (K, d)."""

    bias: FloatArray
    weights: FloatArray


class PenalisedLoss:
    """The loss over all columns of ``train``, and over the working set, ``columns`` (k,).

    Squared loss: ``target`` (n,) has mean 0, the mean label ``constant`` (1,) taken off. Other
    losses: ``target`` are the labels, ``constant`` (K,) the best constant.
    """

    def __init__(
        self,
        train: Examples,
        scaling: Scaling,
        target: FloatArray,
        constant: FloatArray,
        squared: bool,
    ) -> None:
        self.train, self.scaling, self.squared, K = train, scaling, squared, len(constant)
        self.share = train.weights / train.weights.sum()
        wanted = np.eye(K)[target.astype(np.int64)] if K > 1 else target[:, None]
        self.wanted: FloatArray = wanted  # (n, K)
        self.mean = float(constant[0])
        self.lipschitz = 1.0 if squared else 0.25 if K == 1 else 0.5
        d = train.X.shape[1]
        self.work_on(np.arange(d if d <= ALL else 0))

    def work_on(self, columns: IntArray) -> None:
        """Make these the working set."""
        self.columns, self.scale = columns, self.scaling.only(columns)
        # Z'WZ and Z'W (y - mean), summed block by block
        gram, cross = np.zeros((len(columns), len(columns))), np.zeros(len(columns))
        for rows in blocks(len(self.train)):
            z = self._standardised(rows)
            weighted = z * self.share[rows, None]
            gram += weighted.T @ z
            cross += weighted.T @ self.wanted[rows, 0]
        self.gram, self.cross = (gram + gram.T) / 2, cross
        # the squared loss needs only the sums
        self.z = None if self.squared else self._standardised(slice(None))

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by bias (K,) and by the working set's weights (K, k)."""
        if self.z is None:  # columns have mean 0: bias and weights are separate
            return bias - self.mean, weights @ self.gram - self.cross
        off = self._off(self.z @ weights.T + bias, slice(None))
        return off.sum(axis=0), off.T @ self.z

    def slopes(self, fitted: LinearScores) -> FloatArray:
        """Largest absolute derivative by a weight of each column (d,). Weights outside the working
        set are 0."""
        if len(self.columns) == self.train.X.shape[1]:
            inside = self.gradient(fitted.bias, fitted.weights)[1]
            return np.asarray(np.abs(inside).max(axis=0))
        gradient = np.zeros(fitted.weights.shape)
        for rows in blocks(len(self.train)):
            scores = self._standardised(rows) @ fitted.weights[:, self.columns].T + fitted.bias
            gradient += self._off(scores, rows).T @ self.scaling.columns(self.train.X[rows])
        return np.asarray(np.abs(gradient).max(axis=0))

    def _standardised(self, rows: slice) -> FloatArray:
        return self.scale.columns(np.take(self.train.X[rows], self.columns, axis=1))

    def _off(self, scores: FloatArray, rows: slice) -> FloatArray:
        """Derivatives by the scores (m, K) of some rows."""
        p = scores - self.mean if self.squared else probabilities(scores)
        return np.asarray((p - self.wanted[rows]) * self.share[rows, None])


def probabilities(scores: FloatArray) -> FloatArray:
    """Class probabilities (n, K), or for K = 1 the probability of the second class (n, 1)."""
    if scores.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -500, 500))))
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def blocks(n: int) -> Iterator[slice]:
    """Slices of rows that are standardised together, to bound memory."""
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def minimise(
    problem: PenalisedLoss, penalty: FloatArray, start: LinearScores, steps: int, tolerance: float
) -> LinearScores:
    """Minimise under the penalties (d,) (infinite: the weight stays 0), from ``start``.

    Ends when no weight moves by more than ``tolerance`` times the largest in a step. With more than
    ALL columns, a point is solved on a working set, starting from the previous point's. It grows by
    columns whose gradient exceeds their penalty until there are none. Time and memory then depend
    on the columns in use. skglm does the same with a duality gap, but has no softmax.
    """
    while True:
        inside = problem.columns
        part = LinearScores(start.bias, start.weights[:, inside])
        solution = _fista(problem, penalty[inside], part, steps, tolerance)
        start = LinearScores(solution.bias, np.zeros_like(start.weights))
        start.weights[:, inside] = solution.weights
        outside = np.isfinite(penalty)
        outside[inside] = False
        if not outside.any():
            return start
        # tolerances are relative to the largest weight
        size = max(1.0, float(np.abs(solution.weights).max(initial=0.0)))
        excess = np.where(outside, problem.slopes(start) - penalty, 0.0)
        more = np.flatnonzero(excess > tolerance * size * problem.lipschitz)
        if not len(more):
            return start
        strongest = more[np.argsort(-excess[more], kind="stable")[: max(ALL // 4, len(inside))]]
        problem.work_on(np.union1d(inside, strongest))


def _fista(
    problem: PenalisedLoss, penalty: FloatArray, start: LinearScores, steps: int, tolerance: float
) -> LinearScores:
    """The minimum over the working set, by FISTA along the path.

    The smooth part is majorised with the curvature L Z'WZ instead of the usual scalar Lipschitz
    constant (W = m/N; L = 1 for the squared loss, where one step is enough, 1/4 for the logistic,
    1/2 for the softmax: D. Boehning, 1992). The proximal step

        B = argmin  <gradient at Z, B - Z> + L/2 (B - Z)' G (B - Z) + penalties,      G = Z'WZ,

    is solved by coordinate descent on G, which is computed once. Steps are extrapolated (A. Beck
    and M. Teboulle, "FISTA", 2009), with adaptive restart by the gradient (B. O'Donoghue and
    E. Candes, 2015).
    """
    from bench_methods.linear.kernels import descend

    inside = np.isfinite(penalty)
    ridge = np.where(penalty > 0, 0.0, RIDGE)[inside]
    curvature = problem.lipschitz * problem.gram[np.ix_(inside, inside)] + np.diag(ridge)

    def step(z: LinearScores) -> LinearScores:  # B as a function of Z
        by_bias, by_weights = problem.gradient(z.bias, z.weights)
        weights = z.weights.copy()
        for w, gradient in zip(weights, by_weights, strict=True):
            b = w[inside]
            left = -gradient[inside] - ridge * b
            descend(curvature, left, penalty[inside], b, SWEEPS, tolerance / 10)
            w[inside] = b
        return LinearScores(z.bias - by_bias / problem.lipschitz, weights)

    x, z, t = start, start, 1.0
    for _ in range(steps):
        new = step(z)
        moved = max(np.abs(now - old).max(initial=0.0) for now, old in zip(new, z, strict=True))
        size = max(1.0, float(np.abs(new.weights).max(initial=0.0)))
        restart = float(((z.weights - new.weights) * (new.weights - x.weights)).sum()) > 0
        t_new = 1.0 if restart else (1 + np.sqrt(1 + 4 * t**2)) / 2
        momentum = 0.0 if restart else (t - 1) / t_new  # FISTA's extrapolation
        z = LinearScores(*(now + momentum * (now - old) for now, old in zip(new, x, strict=True)))
        x, t = new, t_new
        if moved <= tolerance * size:
            break
    return x
