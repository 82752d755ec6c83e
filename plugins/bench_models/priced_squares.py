"""One classifier over the trees: least squares with an l1 norm and the relaxed penalty, eq. (7) of
Cronus and eq. (4) of CSTC.

    min  1/2 sum_i omega_i (y_i - h_i.b - constant)^2 + rho |b|_1 + lam c(before + (b d)^2)

This is convex. It is solved by re-weighted least squares: with the auxiliary variables of
``bench_models.problem`` at their optimum every penalty is a ridge.

Few of the trees get a weight, so the Gram matrix of all is never built. The problem is solved on a
working set. Then one pass over all trees finds those that would lower the loss (the optimality
conditions). They join the set, until there are none. The result is the optimum over all trees, for
any initial working set.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_models.least_squares import BLOCK, Growing, Normal, solve_positive
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost, ridge

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
class RelaxedPenalty:
    """``rho |b|_1 + lam c(before + (b arriving)^2)``, with c the relaxed cost of squared weights.

    ``arriving`` is the share of rows that reach the classifier, or 1 if ``lam`` counts it.
    ``before`` (T,) are the squares of the classifiers before it.
    """

    rho: float
    lam: float
    arriving: float
    before: FloatArray


def solve_screened(
    problem: Problem,
    growing: Growing,
    penalty: RelaxedPenalty,
    start: FloatArray,
    *,
    cut_off: float,
    iterations: int,
) -> FloatArray:
    """Minimise the loss over all trees; return weights (T,) with exact zeros.

    Re-weighting on a working set, which grows until no other tree could lower the loss. It starts
    with the trees that have a weight in ``start`` (T,) or in ``before``. A weight below
    ``cut_off`` becomes zero immediately, which shrinks the system. Such a tree is tried once more
    if it would lower the loss.
    """
    joining = np.flatnonzero((start != 0.0) | (penalty.before > 0.0))
    if penalty.rho == 0.0 and penalty.lam == 0.0:
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
        weights = _reweight(problem, growing.normal, penalty, weights, cut_off, iterations, gain)
        joining = _joining(problem, growing, penalty, weights)
        joining = joining[chances[joining] > 0]
        if len(joining) == 0 and gain == _FINE:
            return weights
        if growing.seen[joining].all():
            gain = _FINE


def _joining(
    problem: Problem, growing: Growing, penalty: RelaxedPenalty, weights: FloatArray
) -> IntArray:
    """Trees at zero that could lower the loss: the strongest, and all seen before."""
    pull = np.abs(gradient(problem, growing, weights))
    price = penalty.lam * penalty.arriving * problem.tree_cost * (penalty.before == 0.0)
    # gradient minus the tree's own price
    excess = pull - (1.0 + _SLACK) * (penalty.rho + price) - 0.01 * _SLACK * pull.max(initial=0.0)
    idle = np.flatnonzero((excess > 0.0) & (weights == 0.0))
    # sensors already paid by this or an earlier classifier
    bought = problem.needs @ (penalty.before + weights**2) > 0.0
    capacity = penalty.lam * penalty.arriving * problem.sensor_cost * ~bought
    fresh = np.flatnonzero(capacity)
    enters = idle[entering(excess[idle], problem.needs[np.ix_(fresh, idle)], capacity[fresh])]
    unseen = enters[~growing.seen[enters]]
    most = max(_FIRST, len(growing.normal.trees))
    strongest = unseen[np.argsort(-excess[unseen], kind="stable")[:most]]
    return np.concatenate([np.sort(strongest), enters[growing.seen[enters]]])


def gradient(problem: Problem, growing: Growing, weights: FloatArray) -> FloatArray:
    """Derivative (T,) of the squared loss, at its best constant, by every tree's weight.

    Columns and residuals are float32: about six digits.
    """
    f = problem.score(weights, 0.0)[growing.rows]
    if growing.centred:
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
    penalty: RelaxedPenalty,
    weights: FloatArray,
    cut_off: float,
    iterations: int,
    gain: float,
) -> FloatArray:
    current = weights.copy()
    if penalty.rho == 0.0 and penalty.lam == 0.0:  # plain least squares: one solve is enough
        iterations = 1
    before = priced_loss(problem, normal, penalty, current)
    trees, system, moment = normal.trees, normal.gram, normal.moment
    for _ in range(iterations):
        active = np.flatnonzero(current[trees])
        if len(active) == 0:
            break
        if len(active) < len(trees):
            trees, moment = trees[active], moment[active]
            system = system[np.ix_(active, active)]
        diagonal = priced_ridge(problem, penalty, current)[trees]
        solved = solve_positive(system, diagonal, moment)  # eq. 14 of Cronus
        kept = np.abs(solved) >= cut_off
        current[trees] = np.where(kept, solved, 0.0)
        after = priced_loss(problem, normal, penalty, current)
        if kept.all() and before - after <= gain * abs(after):
            break
        before = after
    return current


def priced_loss(
    problem: Problem, normal: Normal, penalty: RelaxedPenalty, weights: FloatArray
) -> float:
    """The loss above at weights (T,) of the trees of ``normal``, at its best constant."""
    squares = penalty.before + (weights * penalty.arriving) ** 2
    l1 = penalty.rho * float(np.abs(weights).sum())
    cost = penalty.lam * relaxed_cost(problem, squares)
    return normal.loss(weights[normal.trees]) + l1 + cost


def priced_ridge(problem: Problem, penalty: RelaxedPenalty, weights: FloatArray) -> FloatArray:
    """The diagonal Lambda (T,) of Cronus, eq. (13), at the auxiliary variables' optimum.

    Only entries of trees with a weight are valid; the others are zero.
    """
    squares = penalty.before + (weights * penalty.arriving) ** 2  # eq. 12 of Cronus
    price = quadratic_price(problem, *auxiliaries(problem, squares))
    return ridge(np.abs(weights), penalty.rho, penalty.lam * penalty.arriving**2, price)
