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

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from bench_core import Examples
from bench_core.arrays import FloatArray
from bench_methods.linear.model import Scaling

RIDGE = 1e-6
"""Weight of b_j^2 / 2 on columns without penalty: separable or dependent ones would not settle."""

SWEEPS = 1000
_BLOCK = 8192  # rows standardised at a time: bounds the memory


class LinearLoss(Protocol):
    """A loss of K linear scores; see the module."""

    lipschitz: float

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives by bias (K,) and weights (K, d)."""


class Fitted(NamedTuple):
    """Bias (K,) and weights (K, d)."""

    bias: FloatArray
    weights: FloatArray


def gram_of(train: Examples, scaling: Scaling, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """G = Z'WZ (d, d) and Z'W target (d,), block by block."""
    share = train.weights / train.weights.sum()
    d = train.X.shape[1]
    gram, cross = np.zeros((d, d)), np.zeros(d)
    for start in range(0, len(train), _BLOCK):
        rows = slice(start, start + _BLOCK)
        z = scaling.columns(train.X[rows])
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

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The columns have mean 0, so that bias and weights do not meet."""
        return bias - self.mean, weights @ self.gram - self.cross


class Classes:
    """Logistic (one output) or softmax loss."""

    def __init__(self, train: Examples, scaling: Scaling, outputs: int) -> None:
        self.lipschitz = 0.25 if outputs == 1 else 0.5
        self.z, self.share = scaling.columns(train.X), train.weights / train.weights.sum()
        wanted = np.eye(outputs)[train.y.astype(np.int64)] if outputs > 1 else train.y[:, None]
        self.wanted: FloatArray = wanted  # what the probabilities should be, (n, K)

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Z'W (p - wanted)."""
        scores = self.z @ weights.T + bias
        if len(bias) == 1:
            p = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
        else:
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        off = (p - self.wanted) * self.share[:, None]
        return off.sum(axis=0), off.T @ self.z


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
    step = _proximal_step(loss, gram, penalty, tolerance / 10)
    x, z, t = start, start, 1.0
    for _ in range(steps):
        new = step(z)
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


def _proximal_step(
    loss: LinearLoss, gram: FloatArray, penalty: FloatArray, tolerance: float
) -> Callable[[Fitted], Fitted]:
    """B of the module as a function of Z, over the columns of finite penalty."""
    from bench_methods.linear.kernels import descend

    inside = np.isfinite(penalty)
    ridge = np.where(penalty > 0, 0.0, RIDGE)[inside]
    curvature = loss.lipschitz * gram[np.ix_(inside, inside)] + np.diag(ridge)

    def step(z: Fitted) -> Fitted:
        by_bias, by_weights = loss.gradient(z.bias, z.weights)
        weights = z.weights.copy()
        for own, gradient in zip(weights, by_weights, strict=True):
            b = own[inside]
            slope = curvature @ b - gradient[inside] - ridge * b
            descend(curvature, slope, penalty[inside], b, SWEEPS, tolerance)
            own[inside] = b
        return Fitted(z.bias - by_bias / loss.lipschitz, weights)

    return step
