"""Algorithm 2: stages as if each were the last, and the critical rho.

With one stage this is the single-stage method, eq. (7).
"""

from collections.abc import Callable, Sequence

import numpy as np
from bench_models.least_squares import Growing
from bench_models.links import sigmoid
from bench_models.priced_squares import RelaxedPenalty, gradient, solve_screened
from bench_models.problem import Problem

from bench_core.arrays import FloatArray
from bench_methods.cronus.cascade import Cascade, CascadePenalty


def critical_rho(problem: Problem, threads: int = 1) -> float:
    """The smallest rho that leaves the first stage without a tree if all trees are free:
    ``max_t |h_t' Omega (y - mean)|``, in units of the loss times the trees' outputs."""
    growing = Growing(problem, problem.weight, threads)
    return float(np.abs(gradient(problem, growing, np.zeros(problem.trees))).max(initial=0.0))


def initialise(
    problem: Problem,
    penalties: Sequence[CascadePenalty],
    *,
    delta: float,
    drop: float,
    cut_off: float,
    iterations: int,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Cascade]:
    """Algorithm 2: stages k = 1..K in order, each with ``lam_k = lam delta^(K-k)``.

    The threshold of stage k passes the soft share ``1 - drop`` of the arriving rows. A stage
    without trees has equal scores for all rows and gets an accept-all threshold. The
    ``penalties`` differ only in the last stage, so the stages before it are solved once.
    """
    lam, rho = penalties[0].lam, penalties[0].rho
    stages = len(rho)
    weights = np.zeros((stages, problem.trees))
    bias = np.zeros(stages)
    threshold = np.full(stages, -np.inf)
    reach = np.ones(len(problem.y))
    before = np.zeros(problem.trees)
    growing: Growing | None = None

    def solve(k: int, rho: float, growing: Growing) -> None:
        own = lam * delta ** (stages - 1 - k)  # early stages are charged more
        stage = RelaxedPenalty(rho, own, float(problem.share @ reach), before)
        last = weights[k - 1]  # zeros for the first stage
        weights[k] = solve_screened(
            problem, growing, stage, last, cut_off=cut_off, iterations=iterations
        )
        bias[k] = growing.normal.bias(weights[k][growing.normal.trees])

    for k in range(stages - 1):
        if growing is None:  # otherwise no row has left since the last stage
            growing = Growing(problem, problem.weight * reach, threads)
        solve(k, float(rho[k]), growing)
        arriving = float(problem.share @ reach)
        before = before + (weights[k] * arriving) ** 2
        if weights[k].any():
            scores = problem.score(weights[k], bias[k])
            target = (1.0 - drop) * arriving
            threshold[k] = passing_threshold(scores, problem.share * reach, problem.slope, target)
            reach = reach * sigmoid(problem.slope * (scores - threshold[k]))
            growing = None
        progress(k + 1)
    growing, cascades = growing or Growing(problem, problem.weight * reach, threads), []
    for penalty in penalties:
        solve(stages - 1, float(penalty.rho[-1]), growing.copied())
        cascades.append(Cascade(weights.copy(), bias.copy(), threshold))
        progress(stages - 1 + len(cascades))
    return cascades


def passing_threshold(scores: FloatArray, mass: FloatArray, slope: float, target: float) -> float:
    """The theta at which the soft gate passes ``target`` of the mass (n,), by bisection."""
    margin = 40.0 / slope  # beyond it the gate is 0 or 1 in float64
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
