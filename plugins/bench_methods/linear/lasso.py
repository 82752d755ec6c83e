"""Losses of linear scores under a weighted l1 penalty, minimised by FISTA along a path.

    min  (1/N) sum_i m_i l(y_i, b0 + B z_i) + sum_jk penalty_j |B_kj|

The smooth part is majorised with the curvature L Z'WZ instead of the usual scalar Lipschitz
constant (W = m/N; L = 1 for the squared loss, where one step is enough, 1/4 for the logistic, 1/2
for the softmax: D. Boehning, 1992). The proximal step

    B = argmin  <gradient at Z, B - Z> + L/2 (B - Z)' G (B - Z) + penalties,      G = Z'WZ,

is solved by coordinate descent on G, which is made once. Steps are extrapolated (A. Beck and
M. Teboulle, "FISTA", 2009) and restarted where the gradient of the step turns (B. O'Donoghue and
E. Candes, 2015).

Where there are more than ALL columns, a point is solved on a working set of them, that of the
points before, which grows by columns whose gradient exceeds their penalty until there is none:
time and memory go with the columns that come into use. skglm solves such problems so, and with
a duality gap; it has no softmax.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench_core import Examples
from bench_core.arrays import FloatArray, IntArray
from bench_methods.linear.model import Scaling

RIDGE = 1e-6
"""Weight of b_j^2 / 2 on columns without penalty: separable or dependent ones would not settle."""

SWEEPS = 1000
_BLOCK = 8192

ALL = 1024
"""Most columns that are all in the working set from the start."""


class Fitted(NamedTuple):
    """Bias (K,) and weights (K, d)."""

    bias: FloatArray
    weights: FloatArray


class Problem:
    """The loss over all columns of ``train``, and over the working set, ``columns`` (k,).

    The squared loss of ``target`` (n,) + ``constant`` (1,), which is its mean; or that of the
    labels ``target``, the best constant (K,).
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
        gram, cross = np.zeros((len(columns), len(columns))), np.zeros(len(columns))
        for rows in blocks(len(self.train)):
            z = self._standardised(rows)
            weighted = z * self.share[rows, None]
            gram += weighted.T @ z
            cross += weighted.T @ self.wanted[rows, 0]
        self.gram, self.cross = (gram + gram.T) / 2, cross
        # of the squared loss the sums are enough
        self.z = None if self.squared else self._standardised(slice(None))

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by bias (K,) and by the working set's weights (K, k)."""
        if self.z is None:  # columns have mean 0, so that bias and weights do not meet
            return bias - self.mean, weights @ self.gram - self.cross
        off = self._off(self.z @ weights.T + bias, slice(None))
        return off.sum(axis=0), off.T @ self.z

    def slopes(self, fitted: Fitted) -> FloatArray:
        """The largest derivative by a weight of each column (d,), its sign dropped; no weight is
        outside the working set."""
        if len(self.columns) == self.train.X.shape[1]:
            inside = self.gradient(fitted.bias, fitted.weights)[1]
            return np.asarray(np.abs(inside).max(axis=0))
        found = np.zeros(fitted.weights.shape)
        for rows in blocks(len(self.train)):
            scores = self._standardised(rows) @ fitted.weights[:, self.columns].T + fitted.bias
            found += self._off(scores, rows).T @ self.scaling.columns(self.train.X[rows])
        return np.asarray(np.abs(found).max(axis=0))

    def _standardised(self, rows: slice) -> FloatArray:
        return self.scale.columns(np.take(self.train.X[rows], self.columns, axis=1))

    def _off(self, scores: FloatArray, rows: slice) -> FloatArray:
        """Derivatives by the scores (m, K) of some rows."""
        p = scores - self.mean if self.squared else probabilities(scores)
        return np.asarray((p - self.wanted[rows]) * self.share[rows, None])


def probabilities(scores: FloatArray) -> FloatArray:
    """Of the classes (n, K), or, K = 1, of the second of two."""
    if scores.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(scores, -500, 500))))
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def blocks(n: int) -> Iterator[slice]:
    """Rows standardised at a time: bounds the memory."""
    return (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK))


def minimise(
    problem: Problem, penalty: FloatArray, start: Fitted, steps: int, tolerance: float
) -> Fitted:
    """The minimum for the penalties (d,) (infinite: the weight stays 0), from ``start``.

    Ends when no weight moves by more than ``tolerance`` times the largest in a step.
    """
    while True:
        inside = problem.columns
        part = Fitted(start.bias, start.weights[:, inside])
        found = _fista(problem, penalty[inside], part, steps, tolerance)
        start = Fitted(found.bias, np.zeros_like(start.weights))
        start.weights[:, inside] = found.weights
        outside = np.isfinite(penalty)
        outside[inside] = False
        if not outside.any():
            return start
        size = max(1.0, float(np.abs(found.weights).max(initial=0.0)))
        excess = np.where(outside, problem.slopes(start) - penalty, 0.0)
        more = np.flatnonzero(excess > tolerance * size * problem.lipschitz)
        if not len(more):
            return start
        strongest = more[np.argsort(-excess[more], kind="stable")[: max(ALL // 4, len(inside))]]
        problem.work_on(np.union1d(inside, strongest))


def _fista(
    problem: Problem, penalty: FloatArray, start: Fitted, steps: int, tolerance: float
) -> Fitted:
    """The minimum over the working set."""
    from bench_methods.linear.kernels import descend

    inside = np.isfinite(penalty)
    ridge = np.where(penalty > 0, 0.0, RIDGE)[inside]
    curvature = problem.lipschitz * problem.gram[np.ix_(inside, inside)] + np.diag(ridge)

    def step(z: Fitted) -> Fitted:  # B of the module as a function of Z
        by_bias, by_weights = problem.gradient(z.bias, z.weights)
        weights = z.weights.copy()
        for own, gradient in zip(weights, by_weights, strict=True):
            b = own[inside]
            slope = curvature @ b - gradient[inside] - ridge * b
            descend(curvature, slope, penalty[inside], b, SWEEPS, tolerance / 10)
            own[inside] = b
        return Fitted(z.bias - by_bias / problem.lipschitz, weights)

    x, z, t = start, start, 1.0
    for _ in range(steps):
        new = step(z)
        moved = max(np.abs(own - old).max(initial=0.0) for own, old in zip(new, z, strict=True))
        size = max(1.0, float(np.abs(new.weights).max(initial=0.0)))
        restart = float(((z.weights - new.weights) * (new.weights - x.weights)).sum()) > 0
        t_new = 1.0 if restart else (1 + np.sqrt(1 + 4 * t**2)) / 2
        momentum = 0.0 if restart else (t - 1) / t_new
        z = Fitted(*(own + momentum * (own - old) for own, old in zip(new, x, strict=True)))
        x, t = new, t_new
        if moved <= tolerance * size:
            break
    return x
