"""The pruning problem: what keeping a split gains, and which rows then buy which sensor.

A forest's inner nodes are numbered 0..D-1, parents first. A pruning keeps a set of them that
holds the parent of each member. Everything is counted in training rows lost, summed over trees;
for a forest of classifiers these are misclassified rows, and gains are whole numbers::

    objective(kept) = base - sum_{u kept} gain_u
            + tradeoff (sum_{u kept} evaluation_u + sum_{(i, s) bought} weight_i price_s)

(i, s) is bought iff row i meets, in some tree, a kept node that needs sensor s; that is so iff
the FIRST node on its path in that tree that needs s is kept, for a kept node has kept ancestors.
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

    from bench_methods.budget_forest.pruning_kernels import Purchases

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
        from bench_methods.budget_forest.pruning_kernels import first_bought

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
    crew: Workers,
) -> PruningProblem:
    """Gains from what nodes lose, costs of ``valid`` rows in ``loss_prices``, of tradeoff 1."""
    from bench_methods.budget_forest.tree_kernels import first_needs

    inner, above = inner_nodes(trees)
    parent, feature = above[inner], trees.feature[inner]
    leaf = leaves_reached(trees, valid.X, crew)
    # copies, which may be written: what kernels are compiled for, whatever was loaded
    needs = (np.array(prices.start), np.array(prices.needed))
    first, sensor, node = first_needs(
        above[trees.feature < 0], parent, feature, needs, loss_prices.sensor > 0
    )
    lost, weight = loss.node, valid.weights
    per_copy = loss.rows / float(weight.sum())
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
