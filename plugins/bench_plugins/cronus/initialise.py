"""Algorithm 2 and the single stage: convex sub-problems solved in closed form.

Every stage is fitted as if it were the last: a reweighted least-squares iteration, eq. (13) and
(14), on a Gram matrix that is built once. With one stage this is the single-stage method, eq. (7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_plugins.cronus.normal import Normal, normal_equations, solve_positive
from bench_plugins.cronus.objective import Cascade, FloatArray, Penalty, Problem, sigmoid

_FORGET = 1e-3
"""A weight below this part of the cut-off leaves the iteration for good."""


@dataclass(frozen=True, slots=True, eq=False)
class StageCost:
    """The penalties of one stage treated as the last: rho, lam_k, d_k, and what earlier ones use.

    ``before`` (T,) is ``sum_{j<k} (b^j_t d_j)^2``.
    """

    rho: float
    lam: float
    arriving: float
    before: FloatArray


def solve_stage(
    problem: Problem,
    normal: Normal,
    cost: StageCost,
    *,
    cut_off: float,
    iterations: int,
) -> FloatArray:
    """The minimiser of the stage's convex loss, weights (T,), small ones EXACT zeros.

    Starts at the boosted model itself (all weights 1), where every term is smooth. A weight
    that falls below ``cut_off / 1000`` stays at zero, which shrinks the system to solve; at the
    end all below ``cut_off`` become zero and the others are fitted once more.
    """
    weights = np.zeros(problem.trees)
    weights[normal.trees] = 1.0
    weights = _reweight(problem, normal, cost, weights, cut_off, iterations)
    kept = np.where(np.abs(weights) >= cut_off, weights, 0.0)
    if kept.any() and not np.array_equal(kept, weights):
        kept = _reweight(problem, normal, cost, kept, cut_off, iterations)
        kept[np.abs(kept) < cut_off] = 0.0
    return kept


def _reweight(
    problem: Problem,
    normal: Normal,
    cost: StageCost,
    weights: FloatArray,
    cut_off: float,
    iterations: int,
) -> FloatArray:
    current = weights.copy()
    if cost.rho == 0.0 and cost.lam == 0.0:  # plain least squares: one solve, nothing to reweight
        iterations = 1
    for _ in range(iterations):
        active = np.flatnonzero(current[normal.trees])
        trees = normal.trees[active]
        if len(trees) == 0:
            break
        ridge = stage_ridge(problem, cost, current)[trees]
        system = normal.gram[np.ix_(active, active)]
        solved = solve_positive(system, ridge, normal.moment[active])
        before = current[trees]
        solved[np.abs(solved) < _FORGET * cut_off] = 0.0
        current[trees] = solved
        if np.all(np.abs(solved - before) <= 1e-3 * np.abs(solved) + 1e-3 * cut_off):
            break
    return current


def stage_ridge(problem: Problem, cost: StageCost, weights: FloatArray) -> FloatArray:
    """The diagonal Lambda of eq. (13) at the auxiliary variables' optimum, shape (T,).

    Only entries of trees with a weight mean anything; the others are zero.
    """
    return ridge_from(
        problem,
        rho=cost.rho,
        lam=cost.lam,
        arriving=cost.arriving,
        size=np.abs(weights),
        squares=cost.before + (weights * cost.arriving) ** 2,
    )


def ridge_from(
    problem: Problem,
    *,
    rho: float,
    lam: float,
    arriving: float,
    size: FloatArray,
    squares: FloatArray,
) -> FloatArray:
    """Lambda (T,) of eq. (13): ``size`` is |b^k_t|, ``squares`` the sum over stages (T,)."""
    by_tree = _divided(problem.tree_cost, np.sqrt(squares))
    by_sensor = _divided(problem.sensor_cost, np.sqrt(problem.needs @ squares))
    price = by_tree + by_sensor @ problem.needs
    return _divided(np.full(len(size), rho), size) + lam * arriving**2 * price


def _divided(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def initialise(
    problem: Problem,
    penalty: Penalty,
    *,
    delta: float,
    drop: float,
    cut_off: float,
    iterations: int,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Cascade:
    """Algorithm 2: stages k = 1..K in order, each with ``lam_k = lam delta^(K-k)``.

    The threshold of stage k lets through the soft share ``1 - drop`` of what arrives. A stage
    without trees cannot tell rows apart and gets an accept-all threshold.
    """
    stages = len(penalty.rho)
    weights = np.zeros((stages, problem.trees))
    bias = np.zeros(stages)
    threshold = np.full(stages, -np.inf)
    reach = np.ones(len(problem.y))
    before = np.zeros(problem.trees)
    normal: Normal | None = None
    for k in range(stages):
        arriving = float(problem.share @ reach)
        lam = penalty.lam * delta ** (stages - 1 - k)
        if normal is None:  # nobody has left since the last one was built
            normal = normal_equations(problem, problem.weight * reach, threads)
        cost = StageCost(float(penalty.rho[k]), lam, arriving, before)
        weights[k] = solve_stage(problem, normal, cost, cut_off=cut_off, iterations=iterations)
        bias[k] = normal.bias(weights[k][normal.trees])
        before = before + (weights[k] * arriving) ** 2
        if k < stages - 1 and weights[k].any():
            scores = problem.score(weights[k], bias[k])
            target = (1.0 - drop) * arriving
            threshold[k] = passing_threshold(scores, problem.share * reach, problem.slope, target)
            reach = reach * sigmoid(problem.slope * (scores - threshold[k]))
            normal = None
        progress(k + 1)
    return Cascade(weights, bias, threshold)


def passing_threshold(scores: FloatArray, mass: FloatArray, slope: float, target: float) -> float:
    """The theta at which the soft gate passes ``target`` of the mass (n,), by bisection."""
    margin = 40.0 / slope  # beyond it the gate is 0 or 1 to the last bit
    low, high = float(scores.min()) - margin, float(scores.max()) + margin
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if float(mass @ sigmoid(slope * (scores - middle))) > target:
            low = middle
        else:
            high = middle
    return low
