"""The tree before joint optimisation: every classifier fitted as if it were a leaf, top down."""

from collections.abc import Callable

import numpy as np
from bench_models.least_squares import NEGLIGIBLE, Normal, normal_equations, solve_positive
from bench_models.logistic import sigmoid
from bench_models.problem import Problem, auxiliaries, quadratic_price, ridge

from bench_core.arrays import FloatArray
from bench_methods.cstc.tree import Shape, Tree, TreePenalty, pass_on

_FORGET = 1e-3
"""A weight below this part of the cut-off leaves the iteration for good."""
_CLOSE = 1e-3
"""Re-weighting ends when no weight changes by more than this share of itself or the cut-off."""
_SAME = 1e-9
"""Scores closer than this part of their range are one score."""


def initialise(
    problem: Problem,
    penalty: TreePenalty,
    shape: Shape,
    *,
    upward: float,
    constant: bool,
    cut_off: float,
    iterations: int,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Tree:
    """Fit the nodes in order; each threshold sends about the share ``upward`` to the upper child.

    As a leaf a node's sub-problem is convex. A node that tells no rows apart becomes a leaf.
    """
    count = shape.nodes
    weights = np.zeros((count, problem.trees))
    bias, threshold = np.zeros(count), np.zeros(count)
    reach = np.zeros((count, len(problem.y)))
    reach[0] = 1.0
    gone: set[int] = set()
    for k in range(count):
        if k not in gone:
            before = (weights[shape.path(k)[:-1]] ** 2).sum(axis=0)
            omega = problem.weight * reach[k]
            normal = normal_equations(problem, omega, threads, centred=constant)
            charged = TreePenalty(penalty.lam * float(problem.share @ reach[k]), penalty.rho)
            weights[k] = solve_leaf(
                problem, normal, charged, before, cut_off=cut_off, iterations=iterations
            )
            bias[k] = normal.bias(weights[k][normal.trees])
            scores = problem.score(weights[k], float(bias[k]))
            found = splitting_threshold(scores, problem.share * reach[k], 1.0 - upward)
            if found is None:
                gone |= shape.below(k) - {k}
            else:
                threshold[k] = found
                pass_on(shape, k, reach, sigmoid(problem.slope * (scores - found)))
        progress(k + 1)
    return Tree(weights, bias, threshold, shape).without(gone)


def solve_leaf(
    problem: Problem,
    normal: Normal,
    penalty: TreePenalty,
    before: FloatArray,
    *,
    cut_off: float,
    iterations: int,
) -> FloatArray:
    """The weights (T,) that minimise a leaf's convex loss, those below ``cut_off`` EXACT zeros.

    ``penalty.lam`` is the price of cost for the rows that arrive; ``before`` (T,) are the squared
    weights of the path. Starts at all weights 1, where every term is smooth; once small ones are
    zero the others are fitted again.
    """
    weights = np.zeros(problem.trees)
    weights[normal.trees] = 1.0
    if penalty.rho == 0.0 and penalty.lam == 0.0:  # plain least squares: nothing to re-weight
        iterations = 1
    for _ in range(2):
        for _ in range(iterations):
            active = np.flatnonzero(weights[normal.trees])
            if len(active) == 0:
                break
            columns = normal.trees[active]
            old, size = weights[columns], np.abs(weights)
            price = quadratic_price(problem, *auxiliaries(problem, before + size**2))
            charge = ridge(size, penalty.rho, penalty.lam, price)[columns]
            system = normal.gram[np.ix_(active, active)]
            new = solve_positive(system, charge, normal.moment[active])
            weights[columns] = np.where(np.abs(new) < _FORGET * cut_off, 0.0, new)
            if bool(np.all(np.abs(new - old) <= _CLOSE * (np.abs(new) + cut_off))):
                break
        weights = np.where(np.abs(weights) >= cut_off, weights, 0.0)
    return weights


def splitting_threshold(scores: FloatArray, mass: FloatArray, share: float) -> float | None:
    """The middle between the two neighbouring scores (n,) that leave most nearly the ``share`` of
    the ``mass`` (n,) below; None where all scores are the same."""
    rows = np.flatnonzero(mass > NEGLIGIBLE * mass.max())
    order = rows[np.argsort(scores[rows])]  # equal scores in any order: only gaps are cut
    z, below = scores[order], np.cumsum(mass[order])
    gaps = np.flatnonzero(np.diff(z) > _SAME * max(abs(z[0]), abs(z[-1])))
    if len(gaps) == 0:
        return None
    off = np.abs(below[gaps] - share * below[-1])
    # equally good cuts differ by rounding: take the first of them
    best = gaps[np.flatnonzero(off <= off.min() + _SAME * below[-1])[0]]
    return 0.5 * float(z[best] + z[best + 1])
