"""The pruning problem, and its best prunings at any tradeoff, found at once, with certified gaps.

A forest's inner nodes are numbered 0..D-1, parents first. A pruning keeps a set of them that
holds the parent of each member. Everything is counted in training rows lost, summed over trees;
for a forest of classifiers these are misclassified rows, and gains are whole numbers::

    objective(kept) = base - sum_{u kept} gain_u
            + tradeoff (sum_{u kept} evaluation_u + sum_{(i, s) bought} weight_i price_s)

(i, s) is bought iff row i meets, in some tree, a kept node that needs sensor s; that is so iff
the FIRST node on its path in that tree that needs s is kept, for a kept node has kept ancestors.

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

    from bench_methods.budget_forest.kernels import Purchases

PIECES = 16
"""Rows are streamed in this many pieces whatever the number of threads: sums keep their bits."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningProblem:
    """::

    parent      int32   (D,)    inner node that holds this one, -1 at roots
    gain        float64 (D,)    rows lost that the split saves
    evaluation  float64 (D,)    what evaluating it costs at tradeoff 1: splits, at roots trees
    base        float           rows lost at all roots
    unit        float           of all rows: mean loss and cost of one are objective / unit
    leaf        int32   (n, T)  the leaf that each row reaches
    first       int64   (L+1,)  leaf l has the entries first[l]:first[l + 1],
    sensor      int32   (E,)        a sensor needed on the way to it, and
    node        int32   (E,)        the topmost inner node that needs it
    weight      float64 (n,)    copies of the row
    price       float64 (s,)    of a sensor for one copy at tradeoff 1
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
    def purchases(self) -> Purchases:
        """What kernels read."""
        return self.leaf, self.weight, self.price, self.first, self.sensor, self.node

    def outcomes(
        self, critical: FloatArray, tradeoffs: FloatArray, crew: Workers
    ) -> tuple[FloatArray, FloatArray]:
        """Rows lost and cost (K,) of keeping the nodes whose ``critical`` (D,) is above each of the
        ``tradeoffs`` (K,), which fall; streams the rows once."""
        from bench_methods.budget_forest.kernels import first_bought

        # at which point each node is kept first
        rank, count = first_points(critical, tradeoffs), len(tradeoffs) + 1
        parts, purchases, entry = np.zeros((PIECES, count)), self.purchases, rank[self.node]

        def pay(piece: int, start: int, stop: int) -> None:
            first_bought(purchases, entry, start, stop, parts[piece])

        self.in_pieces(pay, crew)
        paid = parts.sum(axis=0) + np.bincount(rank, self.evaluation, count)
        saved: FloatArray = np.bincount(rank, self.gain, count).astype(np.float64)
        return self.base - np.cumsum(saved[:-1]), np.asarray(np.cumsum(paid[:-1]))

    def in_pieces(self, work: Callable[[int, int, int], None], crew: Workers) -> None:
        """Call ``work(k, start, stop)`` for each of ``PIECES`` pieces of the rows."""
        n = len(self.weight)

        def some(first: int, last: int) -> None:
            for k in range(first, last):
                work(k, k * n // PIECES, (k + 1) * n // PIECES)

        crew.run(some, PIECES, 1)


def first_points(critical: FloatArray, tradeoffs: FloatArray) -> Int32Array:
    """The first of the ``tradeoffs`` (K,), which fall, that keeps each node (D,); K if none."""
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
    """Gains from what nodes lose, costs of ``valid`` rows in ``loss_prices``, of tradeoff 1."""
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
    # of a split on each inner node, at roots of the tree too
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
"""Tradeoffs are kept within 1 / MOST and MOST: nodes that cost nothing have this one."""
LEAST_SHARE = 1e-9  # lost rows: what a node that costs nothing pays
CHECK_EVERY = 5  # passes between evaluations of prunings


Choice = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Of falling tradeoffs, what is lost and paid from there on (all (K,)), those to be certified."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningSearch:
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
) -> PruningSearch:
    """Pass until the gap at the ``choice`` is at most ``tolerance``, ``passes`` times at most."""
    logarithm = np.zeros(problem.nodes)
    for done in range(1, passes + 1):
        shares = cost_shares(problem, logarithm, crew)
        critical = critical_tradeoffs(problem, shares)
        logarithm += np.log2(np.maximum(critical, 1 / MOST))  # part_u <- part_u x_u
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
    return PruningSearch(critical, at, objective, paid[place], gap, done)


def best_of_levels(
    problem: PruningProblem, critical: FloatArray, crew: Workers
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Critical tradeoffs (D,) at which the level sets of ``critical`` (D,) are best among each
    other, these tradeoffs (K,), falling, and what is lost and paid (K,) there.

    They are the slopes of the lower convex hull of what level sets lose and cost; the last one
    is below all, so that everything that gains is kept.
    """
    from bench_methods.budget_forest.kernels import tree_isotonic

    levels, level = np.unique(-critical, return_inverse=True)
    lost, paid = problem.outcomes(critical, np.append(-levels[1:], -np.inf), crew)
    # slopes of an isotonic fit are those of the convex hull
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
    from bench_methods.budget_forest.kernels import split_cost

    p = problem
    # parts of one cell may differ by any power of two
    power = np.floor(logarithm)
    part = np.exp2(logarithm - power)[p.node]
    entries, paid = (part, power.astype(np.int32)[p.node]), np.zeros((PIECES, p.nodes))

    def split(piece: int, start: int, stop: int) -> None:
        split_cost(p.purchases, entries, start, stop, paid[piece])

    p.in_pieces(split, crew)
    return np.asarray(paid.sum(axis=0))


def critical_tradeoffs(problem: PruningProblem, shares: FloatArray) -> FloatArray:
    """The tradeoff (D,) up to which each node is kept, where it pays ``shares`` (D,) of cells."""
    from bench_methods.budget_forest.kernels import tree_isotonic

    cost = np.maximum(shares + problem.evaluation, LEAST_SHARE)
    found = np.empty(problem.nodes)
    tree_isotonic(problem.parent, problem.gain / cost, cost, found)
    return np.minimum(found, MOST)


def bounds(problem: PruningProblem, shares: FloatArray, tradeoffs: FloatArray) -> FloatArray:
    """What no pruning can undercut at each tradeoff (K,), by any sharing of the cells."""
    from bench_methods.budget_forest.kernels import best_closures

    cost, kept = shares + problem.evaluation, np.zeros(problem.nodes, dtype=bool)
    best = [best_closures(problem.parent, problem.gain - t * cost, kept) for t in tradeoffs]
    return problem.base - np.array(best, dtype=np.float64)
