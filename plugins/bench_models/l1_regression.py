"""Linear models with l1 penalties: squared, logistic and softmax loss.

    min  (1/N) sum_i m_i l(y_i, b0 + b.z_i) + sum_j penalty_j |b_j|

over standardised columns z; N counts copies. Penalties may be 0 or infinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bench_core import Examples
from bench_core.arrays import FloatArray, IntArray
from bench_models.links import sigmoid, softmax
from bench_models.scaling import Scaling

RIDGE = 1e-6
"""Weight of b_j^2 / 2 without penalty: separable or dependent columns would not converge."""

SWEEPS = 1000
_BLOCK = 8192

ALL = 1024
"""Maximum number of columns for which the working set starts with all of them."""


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
        if self.squared:
            p = scores - self.mean
        else:
            p = softmax(scores) if scores.shape[1] > 1 else sigmoid(scores)
        return np.asarray((p - self.wanted[rows]) * self.share[rows, None])


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
    from bench_models.l1_kernels import descend

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
