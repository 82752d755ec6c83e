"""The prunings that are best at any tradeoff, found at once, with certified gaps.

As the tradeoff rises the best prunings shrink, each inside the one before. So every inner node u
has a critical tradeoff x_u, up to which it is kept, falling from parent to child, and

    min over x of  sum_u (gain_u / x_u + evaluation_u log x_u) + sum_cells price max_u log x_u,

the maximum over the nodes that need the cell's sensor first on its row, gives all of them: a
pruning {u: x_u > tradeoff} is a best one at this tradeoff. For in y = log x this is a convex
function of each y_u, its derivative -gain_u / x_u, plus the convex extension of a submodular
function, what a set of nodes costs (F. Bach, "Learning with submodular functions", 2013,
chapter 8 [M]). Its dual shares the price of a cell among these nodes. Where node u pays share_u in
all, x is the isotonic regression of gain / share, weighted by share.

A node of larger x takes a larger part of a cell:

    part_u <- part_u x_u,   share_u = sum over its cells of price part_u / (sum of the cell's parts)

which is mirror descent of that dual with entropies, for which step 1 is safe, as in proportional
response (B. Birnbaum, N. Devanur, L. Xiao, "Distributed algorithms via gradient descent for Fisher
markets", EC 2011 [M]). Nothing is stored per cell, but one number per node: a pass reads the rows'
leaves once. Any sharing bounds the objective at every tradeoff from below, by the best closure of
each tree alone. Of the prunings found, those on the lower convex hull of loss and cost are kept,
and its slopes are the tradeoffs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_methods.budget_forest.problem import PIECES, PruningProblem
from bench_methods.budget_forest.pruning_kernels import best_closures, split_cost, tree_isotonic

if TYPE_CHECKING:
    from bench_trees.threads import Workers

MOST = 1e6
"""Tradeoffs are kept within 1 / MOST and MOST: nodes that cost nothing have this one."""
LEAST_SHARE = 1e-9  # lost rows: what a node that costs nothing pays
CHECK_EVERY = 5  # passes between evaluations of prunings


Choice = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Of falling tradeoffs, what is lost and paid from there on (all (K,)), those to be certified."""


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What ``passes`` over the rows found.

    ``critical`` (D,): the tradeoff up to which each node is kept. ``tradeoffs`` (K,), falling, are
    those at which the ``objective`` (K,) exceeds the best one at most by the share ``gap``; the
    prunings there cost ``paid`` (K,).
    """

    critical: FloatArray
    tradeoffs: FloatArray
    objective: FloatArray
    paid: FloatArray
    gap: float
    passes: int


def search(
    problem: PruningProblem,
    crew: Workers,
    *,
    choice: Choice,
    tolerance: float,
    passes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """Pass until the gap at the ``choice`` is at most ``tolerance``, ``passes`` times at most."""
    logarithm = np.zeros(problem.nodes)
    for done in range(1, passes + 1):
        shares = cost_shares(problem, logarithm, crew)
        critical = critical_tradeoffs(problem, shares)
        logarithm += np.log2(np.maximum(critical, 1 / MOST))
        if done % CHECK_EVERY and done < passes:
            continue
        critical, corners, lost, paid = best_of_levels(problem, critical, crew)
        at = choice(corners, lost, paid)
        place = np.searchsorted(-corners[:-1], -at)  # as many corners are above each
        objective = lost[place] + at * paid[place]
        over = objective - bounds(problem, shares, at)
        gap = float((over / np.maximum(objective, LEAST_SHARE)).max(initial=0.0))
        progress(done)
        if gap <= tolerance:
            break
    return Search(critical, at, objective, paid[place], gap, done)


def best_of_levels(
    problem: PruningProblem, critical: FloatArray, crew: Workers
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Critical tradeoffs (D,) at which the level sets of ``critical`` (D,) are best among each
    other, these tradeoffs (K,), falling, and what is lost and paid (K,) there.

    They are the slopes of the lower convex hull of what level sets lose and cost; the last one
    is below all, so that everything that gains is kept.
    """
    levels, level = np.unique(-critical, return_inverse=True)
    lost, paid = problem.outcomes(critical, np.append(-levels[1:], -np.inf), crew)
    more = np.maximum(np.diff(paid, prepend=0.0), LEAST_SHARE)
    slope, chain = np.empty(len(levels)), np.arange(-1, len(levels) - 1, dtype=np.int32)
    tree_isotonic(chain, -np.diff(lost, prepend=problem.base) / more, more, slope)
    slope = np.minimum(slope, MOST)
    ends = np.flatnonzero((slope > 0) & (np.append(slope[1:], 0.0) < slope))
    corners = np.append(slope[ends], slope[ends[-1:]] / 2) if len(ends) else np.zeros(1)
    lost, paid = np.append(problem.base, lost[ends]), np.append(0.0, paid[ends])
    return slope[level], corners, lost, paid


def cost_shares(problem: PruningProblem, logarithm: FloatArray, crew: Workers) -> FloatArray:
    """What each node pays (D,) where the price of a cell is shared in proportion to
    2 ** ``logarithm`` (D,)."""
    p = problem
    power = np.floor(logarithm)
    part = np.exp2(logarithm - power)[p.node]
    entries, paid = (part, power.astype(np.int32)[p.node]), np.zeros((PIECES, p.nodes))

    def split(piece: int, start: int, stop: int) -> None:
        split_cost(p.purchases, entries, start, stop, paid[piece])

    p.in_pieces(split, crew)
    return np.asarray(paid.sum(axis=0))


def critical_tradeoffs(problem: PruningProblem, shares: FloatArray) -> FloatArray:
    """The tradeoff (D,) up to which each node is kept, where it pays ``shares`` (D,) of cells."""
    cost = np.maximum(shares + problem.evaluation, LEAST_SHARE)
    found = np.empty(problem.nodes)
    tree_isotonic(problem.parent, problem.gain / cost, cost, found)
    return np.minimum(found, MOST)


def bounds(problem: PruningProblem, shares: FloatArray, tradeoffs: FloatArray) -> FloatArray:
    """What no pruning can undercut at each tradeoff (K,), by any sharing of the cells."""
    cost, kept = shares + problem.evaluation, np.zeros(problem.nodes, dtype=bool)
    best = [best_closures(problem.parent, problem.gain - t * cost, kept) for t in tradeoffs]
    return problem.base - np.array(best, dtype=np.float64)
