"""The pruning problem: what keeping a split gains, and which rows then buy which sensor.

A forest's inner nodes are numbered 0..D-1, parents first. A pruning keeps a set of them that
holds the parent of each member. Everything is counted in training rows lost, summed over trees;
for a forest of classifiers these are misclassified rows, and gains are whole numbers::

    objective(kept) = base - sum_{u kept} (gain_u - evaluation_u)
                      + sum_{(i, s) bought} weight_i price_s

(i, s) is bought iff row i meets, in some tree, a kept node that needs sensor s; that is so iff
the FIRST node on its path in that tree that needs s is kept, for a kept node has kept ancestors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.tradeoff import LossPrices

from bench_core import Examples, Prices
from bench_core.arrays import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.forest import CountedForest, summed

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.threads import Workers


PIECES = 16
"""Rows are streamed in this many pieces whatever the number of threads: sums keep their bits."""

_BLOCK = 65536
"""Rows whose leaves are held at a time where they are only counted."""


@dataclass(frozen=True, slots=True, eq=False)
class PruningProblem:
    """::

    parent      int32   (D,)    inner node that holds this one, -1 at roots
    gain        float64 (D,)    rows lost that the split saves
    evaluation  float64 (D,)    what evaluating it costs: splits and, at roots, trees
    base        float           rows lost at all roots
    unit        float           mean loss and cost of one row are objective / unit
    leaf        int32   (n, T)  the leaf that each row reaches
    first       int64   (L+1,)  leaf l has the entries first[l]:first[l + 1],
    sensor      int32   (E,)        a sensor needed on the way to it, and
    node        int32   (E,)        the topmost inner node that needs it
    weight      float64 (n,)    copies of the row
    price       float64 (s,)    of a sensor for one copy
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
    def worth(self) -> FloatArray:
        """What keeping each node is worth before any sensor is paid (D,)."""
        return self.gain - self.evaluation

    @property
    def nodes(self) -> int:
        """Number of inner nodes D."""
        return len(self.parent)

    @property
    def pins(self) -> int:
        """Number of (row, tree, sensor) that a row meets; not more than pins of ``cells``."""
        return int(np.bincount(self.leaf.ravel(), minlength=len(self.first) - 1) @ self.sizes)

    @property
    def sizes(self) -> IntArray:
        """Entries per leaf (L,)."""
        return np.diff(self.first)

    def objective(self, kept: BoolArray, crew: Workers) -> float:
        """Of a pruning; streams the rows once."""
        from bench_methods.budget_forest.smoothed_dual_kernels import spent

        mask = np.zeros((len(self.first) - 1, max(1, -(-len(self.price) // 64))), np.uint64)
        some = kept[self.node]
        owner = np.repeat(np.arange(len(mask)), self.sizes)[some]
        sensor = self.sensor[some].astype(np.uint64)
        bit = np.uint64(1) << (sensor & np.uint64(63))
        np.bitwise_or.at(mask, (owner, sensor >> np.uint64(6)), bit)
        parts = np.zeros(PIECES)

        def piece(start: int, stop: int) -> None:
            for k in range(start, stop):
                rows = self.rows(k)
                parts[k] = spent(self.leaf, self.weight, self.price, mask, rows[0], rows[1])

        crew.run(piece, PIECES, 1)
        return self.base - float(self.worth[kept].sum()) + float(parts.sum())

    def rows(self, piece: int) -> tuple[int, int]:
        """The rows of one of ``PIECES`` pieces."""
        n = len(self.weight)
        return piece * n // PIECES, (piece + 1) * n // PIECES


@dataclass(frozen=True, slots=True, eq=False)
class NodeLoss:
    """Training rows that each node would lose as a leaf, ``node`` (nodes,), of ``rows`` in all."""

    node: FloatArray
    rows: float

    def constant(self, trees: Ensemble) -> float:
        """The share that is lost where all trees are pruned to their roots."""
        return float(self.node[trees.start[:-1]].sum() / self.rows)


def errors(forest: CountedForest) -> NodeLoss:
    """Rows that each node of a forest would misclassify; rows are those of all bags."""
    wrong = forest.counts.sum(axis=1) - forest.counts.max(axis=1)
    return NodeLoss(wrong, float(forest.counts[forest.trees.start[:-1]].sum()))


def inner_nodes(trees: Ensemble) -> tuple[IntArray, Int32Array]:
    """The inner nodes of trees, and each one's parent among them (-1 at roots)."""
    inner = np.flatnonzero(trees.feature >= 0)
    place = np.full(len(trees.feature), -1, np.int32)
    place[inner] = np.arange(len(inner), dtype=np.int32)
    above = np.full(len(trees.feature), -1, np.int32)
    above[trees.left[inner]] = place[inner]
    above[trees.right[inner]] = place[inner]
    return inner, above[inner]


def build(
    trees: Ensemble,
    loss: NodeLoss,
    valid: Examples,
    prices: Prices,
    loss_prices: LossPrices,
    crew: Workers,
) -> PruningProblem:
    """Gains from what nodes lose, costs of ``valid`` rows in ``loss_prices``."""
    inner, parent = inner_nodes(trees)
    leaf = leaves_reached(trees, valid.X, crew)
    first, sensor, node = _needs(trees, prices, loss_prices.sensor > 0)
    lost, weight = loss.node, valid.weights
    per_copy = loss.rows / float(weight.sum())
    price = loss_prices.split[trees.feature[inner]]
    price = per_copy * np.where(parent < 0, price + loss_prices.tau * prices.tree, price)
    return PruningProblem(
        parent=parent,
        gain=lost[inner] - lost[trees.left[inner]] - lost[trees.right[inner]],
        evaluation=price * _visitors(trees, leaf, weight)[inner] if price.any() else price,
        base=float(lost[trees.start[:-1]].sum()),
        unit=loss.rows,
        leaf=leaf,
        first=first,
        sensor=sensor,
        node=np.searchsorted(inner, node).astype(np.int32),
        weight=weight,
        price=per_copy * loss_prices.sensor,
    )


def pruned_shape(trees: Ensemble, kept: BoolArray) -> tuple[BoolArray, dict[str, Any]]:
    """Which nodes stay (nodes,) where only the ``kept`` (D,) inner nodes split, and their shape."""
    inner, _ = inner_nodes(trees)
    stays = np.zeros(len(trees.feature), dtype=bool)
    stays[trees.start[:-1]] = True
    splits = inner[kept]
    stays[trees.left[splits]] = stays[trees.right[splits]] = True
    place = np.cumsum(stays) - 1
    split = np.zeros(len(stays), dtype=bool)
    split[splits] = True

    def child(side: Any) -> Any:
        return np.where(split, place[side], -1)[stays].astype(np.int32)

    return stays, {
        "start": np.concatenate([[0], np.cumsum(stays)])[trees.start].astype(np.int32),
        "feature": np.where(split, trees.feature, -1)[stays].astype(np.int32),
        "threshold": np.where(split, trees.threshold, 0)[stays].astype(np.float32),
        "left": child(trees.left),
        "right": child(trees.right),
        "missing_left": (trees.missing_left & split)[stays],
    }


def leaves_reached(trees: Ensemble, rows: Float32Array, crew: Workers) -> Int32Array:
    """The leaf that each row reaches in each tree (n, T), leaves numbered in node order."""
    from bench_methods.budget_forest.routing import route

    f = trees
    number = (np.cumsum(f.feature < 0) - 1).astype(np.int32)
    X = np.ascontiguousarray(rows, dtype=np.float32).view(np.ndarray)
    X.flags.writeable = False
    arrays = (f.start, f.feature, f.threshold, f.missing_left, f.left, f.right)
    shape: Any = tuple(_own(array) for array in arrays)
    out = np.empty((len(X), f.trees), np.int32)
    crew.run(lambda a, b: route(X, shape, number, a, b, out), len(X), 4096)
    return out


def copies_reached(leaf: Int32Array, weight: FloatArray, leaves: int) -> FloatArray:
    """Copies of rows in each leaf (L,), from the leaves (n, T) that rows of ``weight`` reach."""
    count = np.zeros(leaves)
    for tree in leaf.T:
        count += np.bincount(tree, weight, minlength=leaves)
    return count


def leaf_mass(trees: Ensemble, rows: Examples, crew: Workers) -> FloatArray:
    """Copies of rows in each leaf (L,); one where there are none, so that no leaf is forgotten."""
    weight, leaves = rows.weights, int((trees.feature < 0).sum())
    count = np.zeros(leaves)
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, start + _BLOCK)
        count += copies_reached(leaves_reached(trees, rows.X[here], crew), weight[here], leaves)
    return np.maximum(count, 1.0)


def _needs(
    trees: Ensemble, prices: Prices, wanted: BoolArray
) -> tuple[IntArray, Int32Array, Int32Array]:
    """Per leaf the ``wanted`` sensors (s,) on its path and the first node that needs each."""
    from bench_methods.budget_forest.routing import first_needs

    leaves = np.flatnonzero(trees.feature < 0).astype(np.int32)
    inner = np.flatnonzero(trees.feature >= 0).astype(np.int32)
    above = np.full(len(trees.feature), -1, np.int32)
    above[trees.left[inner]] = above[trees.right[inner]] = inner
    needs = (_own(prices.start), _own(prices.needed))
    start, sensor, node = first_needs(leaves, above, _own(trees.feature), needs, wanted)
    return start, sensor, node


def _visitors(trees: Ensemble, leaf: Int32Array, weight: FloatArray) -> FloatArray:
    """Copies of rows that come through each node (nodes,)."""
    return summed(trees, copies_reached(leaf, weight, int((trees.feature < 0).sum())))


def _own(array: Any) -> Any:
    """A copy that may be written: what kernels are compiled for, whatever was loaded."""
    return np.array(array)
