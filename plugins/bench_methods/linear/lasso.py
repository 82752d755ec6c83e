"""Losses of linear scores under a price per column, minimised along a path.

    min  (1/N) sum_i m_i l(y_i, b0 + B z_i) + sum_jk penalty_j |B_kj|

A loss whose second derivative is bounded by kappa Z'WZ, W = m/N, is lowered by minimising

    <gradient, B - B'> + kappa/2 (B - B')' G (B - B') + penalties,      G = Z'WZ,

by coordinate descent, again and again (kappa = 1 for the squared loss, where once is enough; 1/4
for the logistic; 1/2 for the softmax: D. Boehning, 1992), with Nesterov's extrapolation, started
anew where it leads uphill (B. O'Donoghue and E. Candes, 2015). G is made once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from bench_models.scaling import Standard

from bench_core import Examples
from bench_core.arrays import FloatArray

RIDGE = 1e-6
"""Weight of b_j^2 / 2 on columns without penalty: separable or dependent ones would not settle."""

SWEEPS = 1000


class LinearLoss(Protocol):
    """A loss of K linear scores; see the module."""

    bound: float
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


def gram_of(
    train: Examples, standard: Standard, target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """G = Z'WZ (d, d) and Z'W target (d,), block by block."""
    share = train.weights / train.weights.sum()
    d = train.X.shape[1]
    gram, cross = np.zeros((d, d)), np.zeros(d)
    for rows, z in standard.blocks(train.X):
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
    bound: float = 1.0
    outputs: int = 1

    def gradient(self, bias: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The columns have mean 0, so that bias and weights do not meet."""
        return bias - self.mean, weights @ self.gram - self.cross


@dataclass(eq=False)
class Classes:
    """Logistic (one output) or softmax loss."""

    train: Examples
    standard: Standard
    outputs: int  # 1 or the number of classes
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        self.bound = 0.25 if self.outputs == 1 else 0.5

    @cached_property
    def _z(self) -> FloatArray:
        return self.standard.columns(self.train.X)

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
    from bench_methods.linear.kernels import descend

    inside = np.isfinite(penalty)
    kappa = loss.bound
    ridge = np.where(penalty > 0, 0.0, RIDGE)[inside]
    curved = kappa * gram[np.ix_(inside, inside)] + np.diag(ridge)
    now, ahead, momentum = start.copy(), start.copy(), 1.0
    for _ in range(steps):
        by_bias, by_weights = loss.gradient(ahead.bias, ahead.weights)
        new = ahead.copy()
        new.bias -= by_bias / kappa
        for k in range(loss.outputs):
            b = ahead.weights[k, inside]
            slope = curved @ b - by_weights[k, inside] - ridge * b
            descend(curved, slope, penalty[inside], b, SWEEPS, tolerance / 10)
            new.weights[k, inside] = b
        moved = max(
            float(np.abs(new.weights - ahead.weights).max(initial=0.0)),
            float(np.abs(new.bias - ahead.bias).max()),
        )
        size = max(1.0, float(np.abs(new.weights).max(initial=0.0)))
        uphill = float(((ahead.weights - new.weights) * (new.weights - now.weights)).sum()) > 0
        longer = 1.0 if uphill else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        pull = 0.0 if uphill else (momentum - 1) / longer
        ahead = Fitted(
            new.bias + pull * (new.bias - now.bias),
            new.weights + pull * (new.weights - now.weights),
        )
        now, momentum = new, longer
        if moved <= tolerance * size:
            break
    return now
