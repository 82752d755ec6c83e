"""Algorithm 1: cyclic optimisation of one stage at a time, never raising the true loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bench_models.descent import Settings, cyclic_descent, minimise_gated
from bench_models.least_squares import NEGLIGIBLE
from bench_models.problem import Problem, auxiliaries, quadratic_price, ridge

from bench_core.arrays import FloatArray, IntArray
from bench_methods.cronus.objective import (
    Cascade,
    Flow,
    Penalty,
    StageObjective,
    flow,
    squared_use,
    true_loss,
)


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """A cascade with its rows' flow and its true loss (8)."""

    cascade: Cascade
    rows: Flow
    loss: float


def position(problem: Problem, penalty: Penalty, cascade: Cascade) -> Position:
    """Evaluate a cascade from scratch."""
    scores = np.stack(
        [problem.score(w, float(b)) for w, b in zip(cascade.weights, cascade.bias, strict=True)]
    )
    rows = flow(problem, cascade.threshold, scores)
    return Position(cascade, rows, true_loss(problem, penalty, cascade, rows))


def optimise(
    problem: Problem,
    penalty: Penalty,
    start: Cascade,
    settings: Settings,
    progress: Callable[[int], None] = lambda done: None,
) -> Position:
    """Cycle over the stages until the true loss stops improving.

    Every accepted update lowers eq. (8) as it stands, with small weights already at exact zero.
    ``progress`` is called with the number of stage updates done.
    """
    return cyclic_descent(
        position(problem, penalty, start),
        start.stages,
        lambda at, k: improve_stage(problem, penalty, at, k, settings),
        cycles=settings.cycles,
        tolerance=settings.tolerance,
        progress=progress,
    )


def improve_stage(
    problem: Problem, penalty: Penalty, at: Position, k: int, settings: Settings
) -> Position:
    """Lines 4-8 of Algorithm 1 for stage ``k``, then the offer to let it vanish."""
    for _ in range(settings.reweightings):
        before = at.loss
        at = _best(at, _descend(problem, penalty, at, k, settings))
        if before - at.loss <= settings.tolerance * abs(before):
            break
    if k < at.cascade.stages - 1 and at.cascade.weights[k].any():
        at = _best(at, _vanish(problem, penalty, at, k))
    return at


def _best(old: Position, new: Position | None) -> Position:
    return new if new is not None and new.loss < old.loss else old


def _moved(
    problem: Problem,
    penalty: Penalty,
    at: Position,
    k: int,
    weights: FloatArray,
    bias: float,
    threshold: float,
) -> Position:
    cascade = at.cascade.replaced(k, weights, bias, threshold)
    scores = at.rows.scores.copy()
    scores[k] = problem.score(weights, bias)
    rows = flow(problem, cascade.threshold, scores)
    return Position(cascade, rows, true_loss(problem, penalty, cascade, rows))


def _vanish(problem: Problem, penalty: Penalty, at: Position, k: int) -> Position:
    """The same cascade with stage ``k`` empty and open."""
    empty = np.zeros(problem.trees)
    return _moved(problem, penalty, at, k, empty, float(at.cascade.bias[k]), -np.inf)


def _descend(
    problem: Problem, penalty: Penalty, at: Position, k: int, settings: Settings
) -> Position | None:
    """Fix the auxiliary variables, minimise over (b^k, bias^k, theta^k), cut small weights."""
    rows = np.flatnonzero(at.rows.reach[k] > NEGLIGIBLE)
    trees = np.flatnonzero(at.cascade.weights.any(axis=0)).astype(np.int64)
    open_gate = k < at.cascade.stages - 1 and not np.isfinite(at.cascade.threshold[k])
    if len(rows) == 0 or open_gate:  # an accept-all stage has neither loss nor slope
        return None
    objective = stage_objective(
        problem, penalty, at, k, rows.astype(np.int64), trees, settings.cut_off
    )
    found, bias, threshold = minimise_gated(
        objective,
        at.cascade.weights[k][trees],
        float(at.cascade.bias[k]),
        float(at.cascade.threshold[k]),
        settings.steps,
        settings.threads,
    )
    weights = np.zeros(problem.trees)
    weights[trees] = np.where(np.abs(found) >= settings.cut_off, found, 0.0)
    return _moved(problem, penalty, at, k, weights, bias, threshold)


def stage_objective(
    problem: Problem,
    penalty: Penalty,
    at: Position,
    k: int,
    rows: IntArray,
    trees: IntArray,
    floor: float,
) -> StageObjective:
    """Eq. (8) around ``at`` as a function of stage ``k``, auxiliary variables at their optimum.

    A tree that other stages use but this one does not has |b^k_t| taken as ``floor``, so that it
    can come in if the loss falls faster than its l1 price.
    """
    cascade, state = at.cascade, at.rows
    kappa, eta = auxiliaries(problem, squared_use(cascade.weights, state.arriving))  # eq. 11
    price = quadratic_price(problem, kappa, eta)  # eq. 11: what (b^k_t d_k)^2 / 2 costs
    sigma = np.maximum(np.abs(cascade.weights[k]), floor)
    lam = penalty.lam * float(state.arriving[k]) ** 2
    gated = k < cascade.stages - 1
    later = np.zeros(len(rows))
    onward = np.zeros((0, len(rows)))
    if gated:
        onward = _reach_if_open(state, k, rows)
        leave = onward.copy()
        leave[:-1] *= 1.0 - state.gate[k + 1 : -1, rows]
        errors = (problem.y[rows] - state.scores[k + 1 :, rows]) ** 2
        later = 0.5 * problem.weight[rows] * (leave * errors).sum(axis=0)
        onward *= problem.share[rows]
    return StageObjective(
        columns=problem.columns[np.ix_(trees, rows)].astype(np.float64),
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


def _reach_if_open(state: Flow, k: int, rows: IntArray) -> FloatArray:
    """``p^j`` for j = k+1..K with the gate of stage ``k`` taken as 1, shape (K-k-1, m)."""
    reach = np.empty((len(state.gate) - k - 1, len(rows)))
    reach[0] = state.reach[k, rows]
    for j in range(1, len(reach)):
        reach[j] = reach[j - 1] * state.gate[k + j, rows]
    return reach
