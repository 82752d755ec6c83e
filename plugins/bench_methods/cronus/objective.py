"""The cascade's loss: rows, a dictionary of trees, prices, and eq. (8) over them.

Notation follows the paper: stage k has weights ``b^k`` over the trees, a score ``f^k = h.b^k`` plus
a constant, and a threshold ``theta^k``. The soft gate is ``I^k = sigmoid(slope (f^k - theta^k))``;
``p^k``, the product of the earlier gates, is the probability of reaching stage k, ``d_k`` its mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from bench_models.problem import Problem, relaxed_cost, sigmoid

from bench_core.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Penalty:
    """``lam``: the price of one cost unit in loss. ``rho`` (K,): the l1 weight of each stage."""

    lam: float
    rho: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Cascade:
    """Weights (K, T), biases (K,) and thresholds (K,) of K stages.

    A row leaves at stage k if its score is below ``threshold[k]``; minus infinity accepts all, and
    is always the last stage's.
    """

    weights: FloatArray
    bias: FloatArray
    threshold: FloatArray

    @property
    def stages(self) -> int:
        """Number of stages K."""
        return len(self.bias)

    def replaced(self, k: int, weights: FloatArray, bias: float, threshold: float) -> Cascade:
        """A copy with another stage ``k``."""
        w, b, t = self.weights.copy(), self.bias.copy(), self.threshold.copy()
        w[k], b[k], t[k] = weights, bias, threshold
        return Cascade(w, b, t)

    def vanished(self) -> list[int]:
        """Stages that are certain to do nothing: no tree, and their constant passes the gate."""
        empty = ~self.weights.any(axis=1) & (self.bias >= self.threshold)
        return [int(k) for k in np.flatnonzero(empty[:-1])]


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """How rows pass: scores and gates (K, n), ``reach`` p (K, n), ``arriving`` d (K,)."""

    scores: FloatArray
    gate: FloatArray
    reach: FloatArray
    arriving: FloatArray

    @property
    def exit(self) -> FloatArray:
        """``q`` (K, n): the probability of leaving at each stage; the last one takes the rest."""
        leaving = self.reach * (1.0 - self.gate)
        leaving[-1] = self.reach[-1]
        return leaving


def flow(problem: Problem, threshold: FloatArray, scores: FloatArray) -> Flow:
    """Gates, reach and arriving shares for the scores (K, n) of all stages."""
    gate = sigmoid(problem.slope * (scores - threshold[:, None]))  # I^k
    reach = np.ones_like(gate)
    np.cumprod(gate[:-1], axis=0, out=reach[1:])  # p^k
    return Flow(scores, gate, reach, reach @ problem.share)  # d_k


def true_loss(problem: Problem, penalty: Penalty, cascade: Cascade, rows: Flow) -> float:
    """Eq. (8): expected squared error at the exit, l1, and the mixed norms of both costs."""
    error = (problem.y - rows.scores) ** 2
    fit = 0.5 * float(np.einsum("i,ki,ki->", problem.weight, rows.exit, error))
    l1 = float(penalty.rho @ np.abs(cascade.weights).sum(axis=1))
    squares = squared_use(cascade.weights, rows.arriving)
    return fit + l1 + penalty.lam * relaxed_cost(problem, squares)  # eq. 8


def squared_use(weights: FloatArray, arriving: FloatArray) -> FloatArray:
    """``sum_k (b^k_t d_k)^2`` of every tree, shape (T,)."""
    squares: FloatArray = ((weights * arriving[:, None]) ** 2).sum(axis=0)
    return squares


@dataclass(frozen=True, slots=True, eq=False)
class StageObjective:
    """Eq. 8 as a function of one stage's (b, bias, theta): its loss is eq. 9, its costs eq. 11.

    Holds only the rows that reach the stage (m) and the trees that may get a weight (c).
    Terms that the stage cannot change are left out. ``columns`` is (c, m) float64; ``reach`` is p
    (m,); ``later`` (m,) the weighted loss of the stages behind the gate, were it open; ``onward``
    (J, m) a row's part in d_j of each of the J later stages, were it open, and ``cost_later``
    (J,) what lam d_j^2 / 2 multiplies there. ``ridge`` (c,) is the diagonal Lambda of eq. (13).
    """

    columns: FloatArray
    y: FloatArray
    weight: FloatArray
    reach: FloatArray
    later: FloatArray
    onward: FloatArray
    cost_later: FloatArray
    ridge: FloatArray
    lam: float
    slope: float
    gated: bool

    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), bias and threshold."""
        score = weights @ self.columns + bias
        miss = score - self.y
        ridge = 0.5 * float(self.ridge @ weights**2)
        half_square = 0.5 * self.weight * miss**2
        if not self.gated:
            by_score = self.weight * self.reach * miss
            value = float(self.reach @ half_square) + ridge
            gradient = self.columns @ by_score + self.ridge * weights
            return value, gradient, float(by_score.sum()), 0.0
        gate = sigmoid(self.slope * (score - threshold))
        leaving = self.reach * (1.0 - gate)  # q^k
        onward = self.onward @ gate  # d_j of the later stages
        value = (
            float(leaving @ half_square)  # eq. 9, second term
            + float(gate @ self.later)  # eq. 9, third term
            + 0.5 * self.lam * float(self.cost_later @ onward**2)
            + ridge
        )
        by_gate = self.later - self.reach * half_square
        by_gate += (self.lam * self.cost_later * onward) @ self.onward
        through_gate = by_gate * (self.slope * gate * (1.0 - gate))
        by_score = self.weight * leaving * miss + through_gate
        gradient = self.columns @ by_score + self.ridge * weights
        return value, gradient, float(by_score.sum()), -float(through_gate.sum())
