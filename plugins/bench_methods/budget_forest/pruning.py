"""The pruning problem and its optimal prunings at all tradeoffs, with certified gaps.

A forest's inner nodes are numbered 0..D-1, parents first. A pruning keeps a set of them that
contains the parent of each member. Losses are in training rows, summed over trees. For a forest of
classifiers these are misclassified rows, and gains are integers::

    objective(kept) = base - sum_{u kept} gain_u
            + tradeoff (sum_{u kept} evaluation_u + sum_{(i, s) bought} weight_i price_s)

(i, s) is bought iff row i meets, in some tree, a kept node that needs sensor s. Kept nodes have
kept ancestors, so this holds iff the FIRST node on its path in that tree that needs s is kept.

As the tradeoff rises the optimal prunings shrink, each nested in the one before. So every inner
node u is kept up to a critical tradeoff x_u, which falls from parent to child. The minimum

    min over x of  sum_u (gain_u / x_u + evaluation_u log x_u) + sum_cells price max_u log x_u,

with the maximum over the nodes that need the cell's sensor first on its row, gives all prunings:
{u: x_u > tradeoff} is optimal at this tradeoff. In y = log x this is a convex function of each
y_u, with derivative -gain_u / x_u, plus the convex extension of a submodular function, the cost of
a set of nodes (F. Bach, "Learning with submodular functions", 2013, chapter 8 [M]). Its dual
divides the price of a cell among these nodes. If node u pays share_u in total, x is the isotonic
regression of gain / share, weighted by share.

A node of larger x takes a larger part of a cell:

    part_u <- part_u x_u,   share_u = sum over its cells of price part_u / (sum of the cell's parts)

which is entropic mirror descent on that dual. Step 1 is safe, as in proportional response
(B. Birnbaum, N. Devanur, L. Xiao, "Distributed algorithms via gradient descent for Fisher
markets", EC 2011 [M]). Only one number per node is stored: a pass reads the rows' leaves once. Any
division bounds the objective at every tradeoff from below, by the best closure of each tree alone.
Prunings on the lower convex hull of loss and cost are kept; its slopes are the tradeoffs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from bench_models.tradeoff import LossPrices

from bench_core import Examples, Prices
from bench_core.arrays import FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.forest import (
    NodeLoss,
    copies_reached,
    inner_nodes,
    leaves_reached,
    summed,
)

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.threads import Workers

    from bench_methods.budget_forest.kernels import PruningArrays

PIECES = 16
"""Pieces of the rows, independent of the number of threads: sums are bit-identical."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningProblem:
    """::

    parent      int32   (D,)    inner node that holds this one, -1 at roots
    gain        float64 (D,)    rows lost that the split saves
    evaluation  float64 (D,)    cost of evaluating the split, at roots the tree too, at tradeoff 1
    base        float           rows lost by all roots
    unit        float           number of rows: objective / unit is a mean per row
    leaf        int32   (n, T)  the leaf that each row reaches
    first       int64   (L+1,)  leaf l has the entries first[l]:first[l + 1],
    sensor      int32   (E,)        a sensor needed on the way to it, and
    node        int32   (E,)        the topmost inner node that needs it
    weight      float64 (n,)    copies of the row
    price       float64 (s,)    price of a sensor for one copy at tradeoff 1
    """

    parent: Int32Array
    gain: FloatArray
    evaluation: FloatArray
    base: float
    unit: float
    leaf: Int32Array
    first: IntArray
    sensor: Int32Array
    node: Int32Array
    weight: FloatArray
    price: FloatArray

    @property
    def nodes(self) -> int:
        """Number of inner nodes D."""
        return len(self.parent)

    @property
    def purchases(self) -> PruningArrays:
        """Arguments of the kernels."""
        return self.leaf, self.weight, self.price, self.first, self.sensor, self.node

    def outcomes(
        self, critical: FloatArray, tradeoffs: FloatArray, pool: Workers
    ) -> tuple[FloatArray, FloatArray]:
        """Rows lost and cost (K,) if nodes with ``critical`` (D,) above each of the falling
        ``tradeoffs`` (K,) are kept; reads the rows once."""
        from bench_methods.budget_forest.kernels import first_bought

        # first point that keeps each node
        rank, count = first_points(critical, tradeoffs), len(tradeoffs) + 1
        parts, purchases, entry = np.zeros((PIECES, count)), self.purchases, rank[self.node]

        def pay(piece: int, start: int, stop: int) -> None:
            first_bought(purchases, entry, start, stop, parts[piece])

        self.in_pieces(pay, pool)
        paid = parts.sum(axis=0) + np.bincount(rank, self.evaluation, count)
        saved: FloatArray = np.bincount(rank, self.gain, count).astype(np.float64)
        return self.base - np.cumsum(saved[:-1]), np.asarray(np.cumsum(paid[:-1]))

    def in_pieces(self, work: Callable[[int, int, int], None], pool: Workers) -> None:
        """Call ``work(k, start, stop)`` for each of ``PIECES`` pieces of the rows."""
        n = len(self.weight)

        def some(first: int, last: int) -> None:
            for k in range(first, last):
                work(k, k * n // PIECES, (k + 1) * n // PIECES)

        pool.run(some, PIECES, 1)


def first_points(critical: FloatArray, tradeoffs: FloatArray) -> Int32Array:
    """First of the falling ``tradeoffs`` (K,) that keeps each node (D,); K if none does."""
    below = np.searchsorted(-tradeoffs, -critical, side="right")
    return below.astype(np.int32)


def build(
    trees: Ensemble,
    loss: NodeLoss,
    valid: Examples,
    prices: Prices,
    loss_prices: LossPrices,
    threads: int,
) -> PruningProblem:
    """Gains from the nodes' losses, costs of ``valid`` rows in ``loss_prices`` at tradeoff 1."""
    from bench_methods.budget_forest.kernels import first_needs

    inner, above = inner_nodes(trees)
    parent, feature = above[inner], trees.feature[inner]
    leaf = leaves_reached(trees, valid.X, threads)
    needs = (np.asarray(prices.start), np.asarray(prices.needed))
    first, sensor, node = first_needs(
        above[trees.feature < 0], parent, feature, needs, loss_prices.sensor > 0
    )
    lost, weight = loss.node, valid.weights
    per_copy = loss.rows / float(weight.sum())
    # the price of each split, at roots with the tree's price
    price = loss_prices.split[feature]
    price = per_copy * np.where(parent < 0, price + loss_prices.tau * prices.tree, price)
    if price.any():
        visitors = summed(trees, copies_reached(leaf, weight, len(first) - 1))
        price = price * visitors[inner]
    return PruningProblem(
        parent=parent,
        gain=lost[inner] - lost[trees.left[inner]] - lost[trees.right[inner]],
        evaluation=price,
        base=float(lost[trees.start[:-1]].sum()),
        unit=loss.rows,
        leaf=leaf,
        first=first,
        sensor=sensor,
        node=node,
        weight=weight,
        price=per_copy * loss_prices.sensor,
    )


MOST = 1e6
"""Tradeoffs are clipped to 1 / MOST and MOST; free nodes have MOST."""
LEAST_SHARE = 1e-9  # smallest cost of a node, in lost rows
CHECK_EVERY = 5  # passes between evaluations of prunings


Choice = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""From falling tradeoffs and their losses and costs (all (K,)) to the tradeoffs to certify."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningSearch:
    """Result of ``passes`` over the rows.

    ``critical`` (D,): the tradeoff up to which each node is kept. At each of the falling
    ``tradeoffs`` (K,) the ``objective`` (K,) exceeds the optimum by the share ``gap`` at most. The
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
    pool: Workers,
    *,
    choice: Choice,
    tolerance: float,
    passes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> PruningSearch:
    """Repeat until the gap at the ``choice`` is at most ``tolerance``, ``passes`` times at most."""
    logarithm = np.zeros(problem.nodes)
    for done in range(1, passes + 1):
        shares = cost_shares(problem, logarithm, pool)
        critical = critical_tradeoffs(problem, shares)
        logarithm += np.log2(np.maximum(critical, 1 / MOST))  # part_u <- part_u x_u
        if done % CHECK_EVERY and done < passes:
            continue
        critical, corners, lost, paid = best_of_levels(problem, critical, pool)
        at = choice(corners, lost, paid)
        place = np.searchsorted(-corners[:-1], -at)  # as many corners are above each
        objective = lost[place] + at * paid[place]
        over = objective - bounds(problem, shares, at)
        gap = float((over / np.maximum(objective, LEAST_SHARE)).max(initial=0.0))
        progress(done)
        if gap <= tolerance:
            break
    return PruningSearch(critical, at, objective, paid[place], gap, done)


def best_of_levels(
    problem: PruningProblem, critical: FloatArray, pool: Workers
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Critical tradeoffs (D,) for the level sets of ``critical`` (D,); the distinct ones (K,),
    falling; and loss and cost (K,) there.

    They are the slopes of the lower convex hull of loss and cost over level sets. The last one is
    below all, so that every node with a gain is kept.
    """
    from bench_methods.budget_forest.kernels import tree_isotonic

    levels, level = np.unique(-critical, return_inverse=True)
    lost, paid = problem.outcomes(critical, np.append(-levels[1:], -np.inf), pool)
    # an isotonic fit gives the slopes of the convex hull
    more = np.maximum(np.diff(paid, prepend=0.0), LEAST_SHARE)
    slope, chain = np.empty(len(levels)), np.arange(-1, len(levels) - 1, dtype=np.int32)
    tree_isotonic(chain, -np.diff(lost, prepend=problem.base) / more, more, slope)
    slope = np.minimum(slope, MOST)
    ends = np.flatnonzero((slope > 0) & (np.append(slope[1:], 0.0) < slope))
    corners = np.append(slope[ends], slope[ends[-1:]] / 2) if len(ends) else np.zeros(1)
    lost, paid = np.append(problem.base, lost[ends]), np.append(0.0, paid[ends])
    return slope[level], corners, lost, paid


def cost_shares(problem: PruningProblem, logarithm: FloatArray, pool: Workers) -> FloatArray:
    """Cost of each node (D,) if the price of a cell is divided in proportion to
    2 ** ``logarithm`` (D,)."""
    from bench_methods.budget_forest.kernels import split_cost

    p = problem
    # parts of one cell may differ by any power of two
    power = np.floor(logarithm)
    part = np.exp2(logarithm - power)[p.node]
    entries, paid = (part, power.astype(np.int32)[p.node]), np.zeros((PIECES, p.nodes))

    def split(piece: int, start: int, stop: int) -> None:
        split_cost(p.purchases, entries, start, stop, paid[piece])

    p.in_pieces(split, pool)
    return np.asarray(paid.sum(axis=0))


def critical_tradeoffs(problem: PruningProblem, shares: FloatArray) -> FloatArray:
    """Tradeoff (D,) up to which each node is kept if it pays ``shares`` (D,) of cells."""
    from bench_methods.budget_forest.kernels import tree_isotonic

    cost = np.maximum(shares + problem.evaluation, LEAST_SHARE)
    found = np.empty(problem.nodes)
    tree_isotonic(problem.parent, problem.gain / cost, cost, found)
    return np.minimum(found, MOST)


def bounds(problem: PruningProblem, shares: FloatArray, tradeoffs: FloatArray) -> FloatArray:
    """Lower bounds of the objective at each tradeoff (K,), valid for any ``shares``."""
    from bench_methods.budget_forest.kernels import best_closures

    cost, kept = shares + problem.evaluation, np.zeros(problem.nodes, dtype=bool)
    best = [best_closures(problem.parent, problem.gain - t * cost, kept) for t in tradeoffs]
    return problem.base - np.array(best, dtype=np.float64)
