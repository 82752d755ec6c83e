"""Losses of linear scores under a weighted l1 penalty, minimised by FISTA along a path.

    min  (1/N) sum_i m_i l(y_i, b0 + B z_i) + sum_jk penalty_j |B_kj|

The smooth part is majorised with the curvature L Z'WZ instead of the usual scalar Lipschitz
constant (W = m/N; L = 1 for the squared loss, where one step is enough, 1/4 for the logistic, 1/2
for the softmax: D. Boehning, 1992). The proximal step

    B = argmin  <gradient at Z, B - Z> + L/2 (B - Z)' G (B - Z) + penalties,      G = Z'WZ,

is solved by coordinate descent on G, which is made once. Steps are extrapolated (A. Beck and
M. Teboulle, "FISTA", 2009) and restarted where the gradient of the step turns (B. O'Donoghue and
E. Candes, 2015). skglm solves such problems with working sets and a duality gap; it has no softmax.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from bench_models.scaling import Scaling

from bench_core import Examples
from bench_core.arrays import BoolArray, FloatArray

RIDGE = 1e-6
"""Weight of b_j^2 / 2 on columns without penalty: separable or dependent ones would not settle."""

SWEEPS = 1000


class LinearLoss(Protocol):
    """A loss of K linear scores; see the module."""

    lipschitz: float
    outputs: int

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by bias (K,) and weights (K, d)."""


@dataclass(slots=True)
class Fitted:
    """Bias (K,) and weights (K, d)."""

    bias: FloatArray
    weights: FloatArray

    def copy(self) -> Fitted:
        """With own arrays."""
        return Fitted(self.bias.copy(), self.weights.copy())


def gram_of(train: Examples, scaling: Scaling, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """G = Z'WZ (d, d) and Z'W target (d,), block by block."""
    share = train.weights / train.weights.sum()
    d = train.X.shape[1]
    gram, cross = np.zeros((d, d)), np.zeros(d)
    for rows, z in scaling.blocks(train.X):
        weighted = z * share[rows, None]
        gram += weighted.T @ z
        cross += weighted.T @ target[rows]
    return (gram + gram.T) / 2, cross


@dataclass(eq=False)
class Squared:
    """(y - f)^2 / 2 through G alone."""

    gram: FloatArray
    cross: FloatArray  # Z'W (y - mean)
    mean: float
    lipschitz: float = 1.0
    outputs: int = 1

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The columns have mean 0, so that bias and weights do not meet."""
        return bias - self.mean, weights @ self.gram - self.cross


@dataclass(eq=False)
class Classes:
    """Logistic (one output) or softmax loss."""

    train: Examples
    scaling: Scaling
    outputs: int  # 1 or the number of classes
    lipschitz: float = field(init=False)

    def __post_init__(self) -> None:
        self.lipschitz = 0.25 if self.outputs == 1 else 0.5

    @cached_property
    def _z(self) -> FloatArray:
        return self.scaling.columns(self.train.X)

    @cached_property
    def _share(self) -> FloatArray:
        mass = self.train.weights
        return np.asarray(mass / mass.sum(), dtype=np.float64)

    @cached_property
    def _wanted(self) -> FloatArray:
        """What the probabilities should be, (n, K)."""
        y = self.train.y.astype(np.int64)
        return np.eye(max(2, self.outputs))[y] if self.outputs > 1 else self.train.y[:, None]

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Z'W (p - wanted)."""
        scores = self._z @ weights.T + bias
        if self.outputs == 1:
            p = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        else:
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        off = (p - self._wanted) * self._share[:, None]
        return off.sum(axis=0), off.T @ self._z


def minimise(
    loss: LinearLoss,
    gram: FloatArray,
    penalty: FloatArray,
    start: Fitted,
    steps: int,
    tolerance: float,
) -> Fitted:
    """The minimum for the penalties (d,) (infinite: the weight stays 0), from ``start``.

    Ends when no weight moves by more than ``tolerance`` times the largest in a step.
    """
    prox = _Prox.of(loss, gram, penalty, tolerance / 10)
    x, z, t = start.copy(), start.copy(), 1.0
    for _ in range(steps):
        new = prox.step(z)
        moved = max(
            float(np.abs(new.weights - z.weights).max(initial=0.0)),
            float(np.abs(new.bias - z.bias).max()),
        )
        size = max(1.0, float(np.abs(new.weights).max(initial=0.0)))
        restart = float(((z.weights - new.weights) * (new.weights - x.weights)).sum()) > 0
        t_new = 1.0 if restart else (1 + np.sqrt(1 + 4 * t**2)) / 2
        momentum = 0.0 if restart else (t - 1) / t_new
        z = Fitted(
            new.bias + momentum * (new.bias - x.bias),
            new.weights + momentum * (new.weights - x.weights),
        )
        x, t = new, t_new
        if moved <= tolerance * size:
            break
    return x


@dataclass(frozen=True, slots=True, eq=False)
class _Prox:
    """The proximal step: ``curvature`` (c, c) is L G plus the ridge of the c columns ``inside``."""

    loss: LinearLoss
    inside: BoolArray
    penalty: FloatArray
    ridge: FloatArray
    curvature: FloatArray
    tolerance: float

    @classmethod
    def of(cls, loss: LinearLoss, gram: FloatArray, penalty: FloatArray, tolerance: float) -> _Prox:
        inside = np.isfinite(penalty)
        ridge = np.where(penalty > 0, 0.0, RIDGE)[inside]
        curvature = loss.lipschitz * gram[np.ix_(inside, inside)] + np.diag(ridge)
        return cls(loss, inside, penalty[inside], ridge, curvature, tolerance)

    def step(self, z: Fitted) -> Fitted:
        from bench_methods.linear.kernels import descend

        by_bias, by_weights = self.loss.gradient(z.bias, z.weights)
        new = z.copy()
        new.bias -= by_bias / self.loss.lipschitz
        for k in range(self.loss.outputs):
            b = z.weights[k, self.inside]
            slope = self.curvature @ b - by_weights[k, self.inside] - self.ridge * b
            descend(self.curvature, slope, self.penalty, b, SWEEPS, self.tolerance)
            new.weights[k, self.inside] = b
        return new
