"""Algorithm 2 and the single stage: convex sub-problems solved in closed form.

Every stage is fitted as if it were the last: a reweighted least-squares iteration, eq. (13) and
(14), on a Gram matrix that is built once. With one stage this is the single-stage method, eq. (7).

Few of the trees get a weight in a stage, so the Gram matrix of all is never built. The problem is
solved on a working set. Then one pass over all trees finds those that would lower the
loss (the optimality conditions of eq. 7). They join the set, until there are none. The result is
the optimum over all trees, for any initial working set.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from bench_models.least_squares import BLOCK, Growing, Normal, solve_positive
from bench_models.links import sigmoid
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost, ridge

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.cronus.cascade import Cascade, CascadePenalty

_SLACK = 1e-3
"""Relative margin by which a tree's gradient must exceed its price to enter."""
_ROUGH, _FINE = 1e-4, 1e-9
"""Relative fall of the loss at which re-weighting ends; the rough one while trees still join."""
_FIRST = 256
"""Maximum trees that join a working set at once, or as many as it has, if more."""
_CHUNK = 128
"""Trees per product in a thread."""
_BALANCING = 20


@dataclass(frozen=True, slots=True, eq=False)
class StageCost:
    """Penalties of one stage treated as the last: rho, lam_k, d_k, and use by earlier stages.

    ``before`` (T,) is ``sum_{j<k} (b^j_t d_j)^2``.
    """

    rho: float
    lam: float
    arriving: float
    before: FloatArray


def solve_screened(
    problem: Problem,
    growing: Growing,
    cost: StageCost,
    start: FloatArray,
    *,
    cut_off: float,
    iterations: int,
) -> FloatArray:
    """Minimise the stage's convex loss over all trees; return weights (T,) with exact zeros.

    Re-weighting on a working set, which grows until no other tree could lower the loss. It starts
    with the trees that have a weight in ``start`` (T,) or in earlier stages. A weight below
    ``cut_off`` becomes zero immediately, which shrinks the system. Such a tree is tried once more
    if it would lower the loss.
    """
    joining = np.flatnonzero((start != 0.0) | (cost.before > 0.0))
    if cost.rho == 0.0 and cost.lam == 0.0:
        joining = np.arange(problem.trees)
    weights = start.copy()
    # a tree that was cut off may come back once
    chances = np.full(problem.trees, 2)
    gain = _ROUGH
    while True:
        growing.grow(joining)
        chances[joining] -= 1
        # re-weighting never moves a weight from zero
        idle = joining[weights[joining] == 0.0]
        weights[idle] = 1.0  # the boosted model itself, where every term is smooth
        weights[growing.constant] = 0.0
        weights = _reweight(problem, growing.normal, cost, weights, cut_off, iterations, gain)
        joining = _joining(problem, growing, cost, weights)
        joining = joining[chances[joining] > 0]
        if len(joining) == 0 and gain == _FINE:
            return weights
        if growing.seen[joining].all():
            gain = _FINE


def _joining(problem: Problem, growing: Growing, cost: StageCost, weights: FloatArray) -> IntArray:
    """Trees at zero that could lower the stage's loss: the strongest, and all seen before."""
    pull = np.abs(gradient(problem, growing, weights))
    price = cost.lam * cost.arriving * problem.tree_cost * (cost.before == 0.0)
    # gradient minus the tree's own price
    excess = pull - (1.0 + _SLACK) * (cost.rho + price) - 0.01 * _SLACK * pull.max(initial=0.0)
    idle = np.flatnonzero((excess > 0.0) & (weights == 0.0))
    # sensors already paid by this or an earlier stage
    bought = problem.needs @ (cost.before + weights**2) > 0.0
    capacity = cost.lam * cost.arriving * problem.sensor_cost * ~bought
    fresh = np.flatnonzero(capacity)
    enters = idle[entering(excess[idle], problem.needs[np.ix_(fresh, idle)], capacity[fresh])]
    unseen = enters[~growing.seen[enters]]
    most = max(_FIRST, len(growing.normal.trees))
    strongest = unseen[np.argsort(-excess[unseen], kind="stable")[:most]]
    return np.concatenate([np.sort(strongest), enters[growing.seen[enters]]])


def gradient(problem: Problem, growing: Growing, weights: FloatArray) -> FloatArray:
    """Derivative (T,) of a stage's squared loss, at its best constant, by every tree's weight.

    Columns and residuals are float32: about six digits.
    """
    f = problem.score(weights, 0.0)[growing.rows]
    f += float(growing.omega @ (growing.y - f)) / growing.total
    pull = np.zeros(len(problem.y), dtype=np.float32)
    pull[growing.rows] = growing.omega * (f - growing.y)
    return products(problem.columns, pull, growing.threads)


def products(columns: Float32Array, vector: Float32Array, threads: int) -> FloatArray:
    """``columns @ vector`` for columns (T, n), (T,): float32 within a block of rows, float64 over
    blocks, the same for any number of threads."""
    total = np.zeros(len(columns))

    def chunk(start: int) -> None:
        stop = start + _CHUNK
        for i in range(0, len(vector), BLOCK):
            total[start:stop] += columns[start:stop, i : i + BLOCK] @ vector[i : i + BLOCK]

    with ThreadPoolExecutor(max(1, threads)) as pool:
        list(pool.map(chunk, range(0, len(columns), _CHUNK)))
    return total


def entering(excess: FloatArray, needs: FloatArray, capacity: FloatArray) -> BoolArray:
    """Mask (c,) of the trees at weight zero that may lower the loss.

    ``excess`` (c,) >= 0 is a tree's gradient minus its own l1 price. ``needs`` (s, c) and
    ``capacity`` (s,), prices times d_k, are for sensors not yet bought. No tree can enter if every
    excess can be divided among the tree's sensors such that the Euclidean norm of the parts at each
    sensor is within its capacity. Parts are moved to sensors with free capacity; trees at sensors
    that still overflow enter. These may be too many, which costs time but keeps the optimum.
    """
    share = needs * capacity[:, None]
    for _ in range(_BALANCING):
        total = share.sum(axis=0)
        share *= np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        load = np.sqrt(((share * excess) ** 2).sum(axis=1))
        if not (load > capacity).any():
            break
        share *= np.sqrt(np.divide(capacity, load, out=np.ones_like(load), where=load > 0))[:, None]
    free = ~needs.any(axis=0)
    overflows: BoolArray = needs[load > capacity].any(axis=0)
    return (excess > 0) & (free | overflows)


def _reweight(
    problem: Problem,
    normal: Normal,
    cost: StageCost,
    weights: FloatArray,
    cut_off: float,
    iterations: int,
    gain: float,
) -> FloatArray:
    current = weights.copy()
    if cost.rho == 0.0 and cost.lam == 0.0:  # plain least squares: one solve is enough
        iterations = 1
    before = stage_loss(problem, normal, cost, current)
    trees, system, moment = normal.trees, normal.gram, normal.moment
    for _ in range(iterations):
        active = np.flatnonzero(current[trees])
        if len(active) == 0:
            break
        if len(active) < len(trees):
            trees, moment = trees[active], moment[active]
            system = system[np.ix_(active, active)]
        penalty = stage_ridge(problem, cost, current)[trees]
        # eq. 14
        solved = solve_positive(system, penalty, moment)
        kept = np.abs(solved) >= cut_off
        current[trees] = np.where(kept, solved, 0.0)
        after = stage_loss(problem, normal, cost, current)
        if kept.all() and before - after <= gain * abs(after):
            break
        before = after
    return current


def stage_loss(problem: Problem, normal: Normal, cost: StageCost, weights: FloatArray) -> float:
    """Loss of a stage treated as the last: eq. (7), or eq. (8) given the earlier stages."""
    squares = cost.before + (weights * cost.arriving) ** 2
    l1 = cost.rho * float(np.abs(weights).sum())
    # eq. 7
    return normal.loss(weights[normal.trees]) + l1 + cost.lam * relaxed_cost(problem, squares)


def stage_ridge(problem: Problem, cost: StageCost, weights: FloatArray) -> FloatArray:
    """The diagonal Lambda (T,) of eq. 13 at the auxiliary variables' optimum.

    Only entries of trees with a weight are valid; the others are zero.
    """
    squares = cost.before + (weights * cost.arriving) ** 2  # eq. 12
    price = quadratic_price(problem, *auxiliaries(problem, squares))
    sigma = np.abs(weights)
    return ridge(sigma, cost.rho, cost.lam * cost.arriving**2, price)


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
        cost = StageCost(rho, own, float(problem.share @ reach), before)
        last = weights[k - 1]  # zeros for the first stage
        weights[k] = solve_screened(
            problem, growing, cost, last, cut_off=cut_off, iterations=iterations
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
