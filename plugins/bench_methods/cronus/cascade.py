"""The cascade, its loss, eq. (8), and Algorithm 1: descent one stage at a time.

Notation follows the paper: stage k has weights ``b^k`` over the trees, a score ``f^k = h.b^k`` plus
a constant, and a threshold ``theta^k``. The soft gate is ``I^k = sigmoid(slope (f^k - theta^k))``;
``p^k``, the product of the earlier gates, is the probability of reaching stage k, ``d_k`` its mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from bench_models.descent import (
    Classifiers,
    DescentSettings,
    GatedObjective,
    Position,
    improve_in_turns,
)
from bench_models.links import sigmoid
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost, ridge

from bench_core.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class CascadePenalty:
    """``lam``: price of one cost unit in loss. ``rho`` (K,): l1 weight of each stage."""

    lam: float
    rho: FloatArray


class Cascade(Classifiers):
    """K stages over T trees.

    A row leaves at stage k if its score is below ``threshold[k]``. Minus infinity accepts all; the
    last stage always has it.
    """

    @property
    def stages(self) -> int:
        """Number of stages K."""
        return len(self.bias)

    def vanished(self) -> list[int]:
        """Stages without effect: without trees, and with a constant that passes the gate."""
        empty = ~self.weights.any(axis=1) & (self.bias >= self.threshold)
        return [int(k) for k in np.flatnonzero(empty[:-1])]


@dataclass(frozen=True, slots=True, eq=False)
class CascadeFlow:
    """Soft routing of rows: scores and gates (K, n), ``reach`` p (K, n), ``arriving`` d (K,)."""

    scores: FloatArray
    gate: FloatArray
    reach: FloatArray
    arriving: FloatArray

    @property
    def exit(self) -> FloatArray:
        """``q`` (K, n): probability of leaving at each stage; all others leave at the last one."""
        leaving = self.reach * (1.0 - self.gate)
        leaving[-1] = self.reach[-1]
        return leaving


def flow(problem: Problem, threshold: FloatArray, scores: FloatArray) -> CascadeFlow:
    """Gates, reach and arriving shares for the scores (K, n) of all stages."""
    gate = sigmoid(problem.slope * (scores - threshold[:, None]))  # I^k
    reach = np.ones_like(gate)
    np.cumprod(gate[:-1], axis=0, out=reach[1:])  # p^k
    return CascadeFlow(scores, gate, reach, reach @ problem.share)  # d_k


def true_loss(
    problem: Problem, penalty: CascadePenalty, cascade: Cascade, rows: CascadeFlow
) -> float:
    """Eq. (8): expected squared error at the exit, l1, and the mixed norms of both costs."""
    error = (problem.y - rows.scores) ** 2
    fit = 0.5 * float(np.einsum("i,ki,ki->", problem.weight, rows.exit, error))
    l1 = float(penalty.rho @ np.abs(cascade.weights).sum(axis=1))
    squares = squared_use(cascade.weights, rows.arriving)
    return fit + l1 + penalty.lam * relaxed_cost(problem, squares)  # eq. 8


def squared_use(weights: FloatArray, arriving: FloatArray) -> FloatArray:
    """``sum_k (b^k_t d_k)^2`` of each tree, shape (T,)."""
    squares: FloatArray = ((weights * arriving[:, None]) ** 2).sum(axis=0)
    return squares


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StageObjective(GatedObjective):
    """Eq. 8 as a function of one stage's (b, bias, theta): its loss is eq. 9, its costs eq. 11.

    Terms that do not depend on the stage are left out. With the gate open, ``later`` (m,) is the
    weighted loss of the J later stages and ``onward`` (J, m) a row's share of their d_j.
    ``cost_later`` (J,) is the factor of lam d_j^2 / 2. ``ridge`` is the diagonal Lambda of
    eq. (13).
    """

    later: FloatArray
    onward: FloatArray
    cost_later: FloatArray

    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), bias and threshold."""
        score = weights @ self.columns + bias
        miss = score - self.y
        quadratic = 0.5 * float(self.ridge @ weights**2)
        half_square = 0.5 * self.weight * miss**2
        gate = sigmoid(self.slope * (score - threshold)) if self.gated else np.zeros_like(score)
        leaving = self.reach * (1.0 - gate)  # q^k
        onward = self.onward @ gate  # d_j of the later stages
        value = (
            float(leaving @ half_square)  # eq. 9, second term
            + float(gate @ self.later)  # eq. 9, third term
            + 0.5 * self.lam * float(self.cost_later @ onward**2)
            + quadratic
        )
        by_gate = self.later - self.reach * half_square
        by_gate += (self.lam * self.cost_later * onward) @ self.onward
        through_gate = by_gate * (self.slope * gate * (1.0 - gate))
        by_score = self.weight * leaving * miss + through_gate
        gradient = self.columns @ by_score + self.ridge * weights
        return value, gradient, float(by_score.sum()), -float(through_gate.sum())


Fitted = Position[Cascade, CascadeFlow]


def optimise(
    problem: Problem,
    penalty: CascadePenalty,
    start: Cascade,
    settings: DescentSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Fitted:
    """Algorithm 1 from ``start``; ``progress`` gets the number of stage updates."""

    def evaluated(cascade: Cascade, scores: FloatArray) -> Fitted:
        rows = flow(problem, cascade.threshold, scores)
        return Position(cascade, rows, true_loss(problem, penalty, cascade, rows))

    stages = zip(start.weights, start.bias, strict=True)
    begin = evaluated(start, np.stack([problem.score(w, float(b)) for w, b in stages]))
    objective = partial(stage_objective, problem, penalty)
    return improve_in_turns(problem, begin, settings, objective, evaluated, progress)


def stage_objective(
    problem: Problem,
    penalty: CascadePenalty,
    at: Fitted,
    k: int,
    rows: IntArray,
    trees: IntArray,
    columns: FloatArray,
) -> StageObjective | None:
    """Lines 4-8 of Algorithm 1: eq. (8) around ``at`` as a function of stage ``k``, auxiliary
    variables at their optimum.

    ``rows`` (m,) reach the stage; ``trees`` (c,) have a weight in it, and outputs ``columns`` (c,
    m). None for an accept-all stage, which has no loss and no gradient.
    """
    cascade, state = at.model, at.rows
    if k < cascade.stages - 1 and not np.isfinite(cascade.threshold[k]):
        return None
    kappa, eta = auxiliaries(problem, squared_use(cascade.weights, state.arriving))  # eq. 11
    price = quadratic_price(problem, kappa, eta)  # eq. 11: price of (b^k_t d_k)^2 / 2
    sigma = np.abs(cascade.weights[k])  # eq. 11
    lam = penalty.lam * float(state.arriving[k]) ** 2  # a weight is paid by the rows that arrive
    gated = k < cascade.stages - 1
    later = np.zeros(len(rows))
    onward = np.zeros((0, len(rows)))
    if gated:
        # gates of the stages after this one (J - 1, m)
        between = state.gate[k + 1 : -1, rows]
        onward = np.cumprod([state.reach[k, rows], *between], axis=0)  # p^j with the gate open
        # q^j of each later stage with the gate open
        leave = onward.copy()
        leave[:-1] *= 1.0 - between
        errors = (problem.y[rows] - state.scores[k + 1 :, rows]) ** 2
        later = 0.5 * problem.weight[rows] * (leave * errors).sum(axis=0)
        onward *= problem.share[rows]
    return StageObjective(
        columns=columns,
        y=problem.y[rows],
        weight=problem.weight[rows],
        reach=state.reach[k, rows],
        later=later,
        onward=onward,
        cost_later=(cascade.weights[k + 1 :] ** 2) @ price,
        ridge=ridge(sigma, float(penalty.rho[k]), lam, price)[trees],
        lam=penalty.lam,
        slope=problem.slope,
        gated=gated,
    )
