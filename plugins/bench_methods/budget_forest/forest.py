"""What can be pruned: forests with class counts, and trees whose values are added or averaged.

A node of a forest of classifiers loses, as a leaf, the training rows that it would misclassify. For
the other trees, a row of m copies whose leaf adds v (one number, or a vector of K) loses
m |v - v_h|^2 / 2 where node h answers in its place. That is least if v_h is the mean of v over the
training rows in h, and then a node loses what its children l and r lose and

    m_l m_r / (m_l + m_r) |v_l - v_r|^2 / 2

so losses add up over a tree as misclassified rows do. They are counted in units in which all
trees, pruned to their roots, lose as much as there are rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.boosting import chain
from bench_models.staged import StagedModel
from bench_models.tree_average import TreeAverage

from bench_core import BudgetedLearner, Examples, FitContext, Prices, UsageError
from bench_core.arrays import BoolArray, Float32Array, FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.threads import Workers

    from bench_methods.budget_forest.tree_kernels import Shape

Model = TreeAverage | StagedModel

_BLOCK = 65536
"""Rows whose leaves are held at a time where they are only counted."""


@dataclass(frozen=True, slots=True, eq=False)
class CountedForest:
    """T classification trees, and ``counts`` (nodes, K): how many training rows of each class a
    node holds, copies counted, and at least one."""

    trees: Ensemble
    counts: FloatArray

    @classmethod
    def joined(cls, forests: Sequence[CountedForest]) -> CountedForest:
        """Several forests as one."""
        from bench_trees import Ensemble

        trees = Ensemble.concat([forest.trees for forest in forests])
        return cls(trees, np.concatenate([forest.counts for forest in forests]))

    def served(self, prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        """The mean shares of the leaves reached, as log-odds or, for K > 2, logarithms.

        ``vectors`` holds the shares of all nodes.
        """
        shares, leaf = self.counts / self.counts.sum(axis=1, keepdims=True), self.trees.feature < 0
        shares = shares[:, 1:] if shares.shape[1] == 2 else shares
        numbers = np.where(leaf, np.arange(len(leaf)), 0).astype(np.float64)
        return TreeAverage.of(
            replace(self.trees, value=numbers, base=np.zeros(shares.shape[1])),
            prices,
            vectors=shares,
            average=True,
            link="probability",
            facts=facts,
            counts=self.counts,
        )


def upwards(trees: Ensemble) -> list[IntArray]:
    """The inner nodes in levels, the deepest first: children before their parents."""
    levels, level = [], trees.start[:-1].astype(np.int64)
    while len(level):
        inner = level[trees.feature[level] >= 0]
        levels.append(inner)
        level = np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64)
    return levels[::-1]


def summed(trees: Ensemble, leaves: FloatArray) -> FloatArray:
    """For every node the sum of what the leaves (L, ...) below it have (nodes, ...)."""
    total = np.zeros((trees.nodes, *leaves.shape[1:]))
    total[trees.feature < 0] = leaves
    for u in upwards(trees):
        total[u] = total[trees.left[u]] + total[trees.right[u]]
    return total


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
    """The inner nodes of trees, and each node's parent among them, (nodes,), -1 at roots."""
    inner = np.flatnonzero(trees.feature >= 0)
    above = np.full(trees.nodes, -1, np.int32)
    above[trees.left[inner]] = above[trees.right[inner]] = np.arange(len(inner))
    return inner, above


def with_means(
    trees: Ensemble, leaves: FloatArray, rows: Examples, crew: Workers
) -> tuple[FloatArray, NodeLoss]:
    """What every node adds as a leaf (nodes, K) and what it loses, from ``leaves`` (L, K)."""
    leaf = trees.feature < 0
    mass, loss = np.zeros(trees.nodes), np.zeros(trees.nodes)
    value = np.zeros((trees.nodes, leaves.shape[1]))
    mass[leaf], value[leaf] = leaf_mass(trees, rows, crew), leaves
    for u in upwards(trees):
        a, b = trees.left[u], trees.right[u]
        mass[u] = mass[a] + mass[b]
        part, apart = mass[b] / mass[u], value[b] - value[a]
        value[u] = value[a] + part[:, None] * apart
        loss[u] = loss[a] + loss[b] + 0.5 * mass[a] * part * (apart**2).sum(axis=1)
    everything, count = float(loss[trees.start[:-1]].sum()), float(rows.weights.sum())
    return value, NodeLoss(loss * (count / everything if everything > 0 else 0.0), count)


def pruned_shape(trees: Ensemble, kept: BoolArray) -> tuple[BoolArray, dict[str, Any]]:
    """Which nodes stay (nodes,) where only the ``kept`` (D,) inner nodes split, and their shape."""
    split, stays = trees.feature >= 0, np.zeros(trees.nodes, dtype=bool)
    split[np.flatnonzero(split)] = kept
    stays[trees.start[:-1]] = True
    stays[trees.left[split]] = stays[trees.right[split]] = True
    place = np.cumsum(stays) - 1

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
    from bench_methods.budget_forest.tree_kernels import route

    number = (np.cumsum(trees.feature < 0) - 1).astype(np.int32)
    X, shape = cells_and_shape(rows, trees)
    out = np.empty((len(X), trees.trees), np.int32)
    crew.run(lambda a, b: route(X, shape, number, a, b, out), len(X), 4096)
    return out


def cells_and_shape(rows: Float32Array, trees: Ensemble) -> tuple[Float32Array, Shape]:
    """Rows and trees as kernels take them, whatever was loaded."""
    X = np.ascontiguousarray(rows, dtype=np.float32).view(np.ndarray)
    X.flags.writeable = False
    names = ("start", "feature", "threshold", "missing_left", "left", "right")
    shape: Any = tuple(np.array(getattr(trees, name)) for name in names)
    return X, shape


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


@dataclass(frozen=True)
class Prunable:
    """Trees and what their nodes lose; ``serve``: the model that keeps some of the splits;
    ``whole``: the model that keeps all, with a line of ``vectors`` for every node."""

    trees: Ensemble
    loss: NodeLoss
    serve: Callable[[BoolArray, Prices, Mapping[str, Any]], Model]
    whole: Callable[[Prices, Mapping[str, Any]], TreeAverage]


def prunable(
    base: BudgetedLearner, context: FitContext, train: Examples, crew: Workers
) -> Prunable:
    """What is to be pruned of ``base``: class counts, class shares, or what leaves add.

    Raises UsageError where it has no such trees.
    """
    model = context.fitted(base)
    if isinstance(model, TreeAverage) and model.link == "probability":
        forest = _of_shares(model, train, crew)

        def serve(kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> Model:
            return pruned(forest, kept).served(prices, facts)

        return Prunable(forest.trees, errors(forest), serve, forest.served)
    if isinstance(model, TreeAverage) or (isinstance(model, StagedModel) and model.adds_up):
        return _additive(model, train, crew)
    raise UsageError(
        f"budget-prune: base {base.name!r} has no trees whose leaves are added or averaged; choose "
        "budget-rf, random-forest, gbrt, lightgbm or imported"
    )


def pruned(forest: CountedForest, kept: BoolArray) -> CountedForest:
    """The forest whose splits are the ``kept`` (D,) of its inner nodes only."""
    stays, shape = pruned_shape(forest.trees, kept)
    trees = replace(forest.trees, value=np.zeros(int(stays.sum())), **shape)
    return CountedForest(trees, forest.counts[stays])


def _of_shares(model: TreeAverage, train: Examples, crew: Workers) -> CountedForest:
    """Its own counts, or leaves keep their shares and all of ``train`` weighs the nodes above."""
    trees, shares = model.numbers.ensemble, np.asarray(model.vectors, dtype=np.float64)
    assert trees is not None
    if model.counts is not None:
        return CountedForest(trees, model.counts)
    if shares.shape[1] == 1:
        shares = np.hstack([1.0 - shares, shares])
    own = shares[trees.value[trees.feature < 0].astype(np.int64)]
    return CountedForest(trees, summed(trees, leaf_mass(trees, train, crew)[:, None] * own))


def _additive(model: Model, train: Examples, crew: Workers) -> Prunable:
    average = model if isinstance(model, TreeAverage) else None
    trees = average.numbers.ensemble if average else model.ensemble
    assert trees is not None
    own = trees.value[trees.feature < 0]
    leaves = average.vectors[own.astype(np.int64)] if average else own[:, None]
    value, loss = with_means(trees, leaves, train, crew)

    def serve(kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> Model:
        stays, shape = pruned_shape(trees, kept)
        leaf, facts = shape["feature"] < 0, {**model.facts, **facts}
        if average is None:
            values = np.where(leaf, value[stays, 0], 0.0)
            return chain(replace(trees, value=values, **shape), prices, facts)
        number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
        return average.of_leaves(replace(trees, value=number, **shape), value[stays][leaf], facts)

    def whole(prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        facts = {**model.facts, **facts}
        numbers = replace(trees, value=np.arange(trees.nodes, dtype=np.float64))
        if average is not None:
            return average.of_leaves(numbers, value, facts)
        vectors = np.zeros((trees.nodes, len(trees.base)))
        output = np.repeat(trees.output, np.diff(trees.start))
        vectors[np.arange(trees.nodes), output] = value[:, 0]
        made = TreeAverage.of(
            numbers, prices, vectors=vectors, average=False, link="identity", facts=facts
        )
        return replace(made, per_round=len(trees.base))

    return Prunable(trees, loss, serve, whole)
