"""Prunable models: forests with class counts, and trees whose values are added or averaged.

In a forest of classifiers a node's loss as a leaf is its number of misclassified training rows. In
other trees let a row of m copies reach a leaf that adds v, a number or a vector (K,). Replacing the
leaf by node h loses m |v - v_h|^2 / 2. This is least if v_h is the mean of v over the training rows
in h. A node with children l and r then loses the sum of their losses and

    m_l m_r / (m_l + m_r) |v_l - v_r|^2 / 2

so losses add up over a tree as misclassified rows do. They are scaled so that all trees, pruned to
their roots, lose as much as there are rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from bench_models.boosting import chain
from bench_models.dictionary import tree_columns
from bench_models.staged import StagedModel
from bench_models.tree_average import TreeAverage

from bench_core import BudgetedLearner, Examples, FitContext, Prices, UsageError
from bench_core.arrays import BoolArray, Float32Array, FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

Model = TreeAverage | StagedModel

_BLOCK = 65536
"""Rows per block when leaves are counted."""


def shares(counts: FloatArray) -> FloatArray:
    """Class shares (nodes, K) in nodes with these ``counts``; for two classes the share of the
    second (nodes, 1)."""
    found: FloatArray = counts / counts.sum(axis=1, keepdims=True)
    return found[:, 1:] if found.shape[1] == 2 else found


def classifying(
    trees: Ensemble, counts: FloatArray, prices: Prices, facts: Mapping[str, Any]
) -> TreeAverage:
    """Mean class shares of the leaves reached, as log-odds or, for K > 2, logarithms.

    ``counts`` (nodes, K): training rows of each class in a node, copies counted; at least one row.
    """
    vectors, leaf = shares(counts), trees.feature < 0
    numbers = np.where(leaf, np.arange(len(leaf)), 0).astype(np.float64)
    return TreeAverage.of(
        replace(trees, value=numbers, base=np.zeros(vectors.shape[1])).with_vectors(vectors),
        prices,
        average=True,
        link="probability",
        facts=facts,
        counts=counts,
    )


def upwards(trees: Ensemble) -> list[IntArray]:
    """Inner nodes by level, the deepest first: children before their parents."""
    # roots, their children, their grandchildren, ...
    levels, level = [], trees.start[:-1].astype(np.int64)
    while len(level):
        inner = level[trees.feature[level] >= 0]
        levels.append(inner)
        level = np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64)
    return levels[::-1]


def summed(trees: Ensemble, leaves: FloatArray) -> FloatArray:
    """Sum of the values of ``leaves`` (L, ...) below each node, (nodes, ...)."""
    total = np.zeros((trees.nodes, *leaves.shape[1:]))
    total[trees.feature < 0] = leaves
    for u in upwards(trees):
        total[u] = total[trees.left[u]] + total[trees.right[u]]
    return total


class NodeLoss(NamedTuple):
    """Loss of each node as a leaf, ``node`` (nodes,), in training rows, out of ``rows``."""

    node: FloatArray
    rows: float

    def constant(self, trees: Ensemble) -> float:
        """Share of rows lost if all trees are pruned to their roots."""
        return float(self.node[trees.start[:-1]].sum() / self.rows)


def errors(trees: Ensemble, counts: FloatArray) -> NodeLoss:
    """Rows of all bags that each node of a forest would misclassify."""
    wrong = counts.sum(axis=1) - counts.max(axis=1)
    return NodeLoss(wrong, float(counts[trees.start[:-1]].sum()))


def inner_nodes(trees: Ensemble) -> tuple[IntArray, Int32Array]:
    """Inner nodes, and the position of each node's parent among them, (nodes,), -1 at roots."""
    inner = np.flatnonzero(trees.feature >= 0)
    above = np.full(trees.nodes, -1, np.int32)
    above[trees.left[inner]] = above[trees.right[inner]] = np.arange(len(inner))
    return inner, above


def with_means(
    trees: Ensemble, leaves: FloatArray, rows: Examples, threads: int
) -> tuple[FloatArray, NodeLoss]:
    """Value (nodes, K) and loss of every node as a leaf, from the values ``leaves`` (L, K)."""
    leaf = trees.feature < 0
    mass, loss = np.zeros(trees.nodes), np.zeros(trees.nodes)
    value = np.zeros((trees.nodes, leaves.shape[1]))
    mass[leaf], value[leaf] = leaf_mass(trees, rows, threads), leaves
    for u in upwards(trees):
        a, b = trees.left[u], trees.right[u]
        mass[u] = mass[a] + mass[b]
        part, apart = mass[b] / mass[u], value[b] - value[a]  # m_r / m and v_r - v_l
        value[u] = value[a] + part[:, None] * apart
        loss[u] = loss[a] + loss[b] + 0.5 * mass[a] * part * (apart**2).sum(axis=1)
    everything, count = float(loss[trees.start[:-1]].sum()), float(rows.weights.sum())
    return value, NodeLoss(loss * (count / everything if everything > 0 else 0.0), count)


def leaves_reached(trees: Ensemble, X: Float32Array, threads: int) -> Int32Array:
    """Leaf reached by each row in each tree (n, T), leaves numbered in node order."""
    leaf = trees.feature < 0
    before: IntArray = np.cumsum(leaf) - leaf  # leaves before each node
    first: IntArray = before[trees.start[:-1]]
    # numbers within a tree are exact as float32
    own = np.where(leaf, before - np.repeat(first, np.diff(trees.start)), 0)
    reached = tree_columns(replace(trees, value=own.astype(np.float64)), X, threads)
    return np.ascontiguousarray((reached + first[:, None]).T, dtype=np.int32)


def copies_reached(leaf: Int32Array, weight: FloatArray, leaves: int) -> FloatArray:
    """Copies of rows in each leaf (L,), from the leaves (n, T) reached by rows of ``weight``."""
    count = np.zeros(leaves)
    for tree in leaf.T:
        count += np.bincount(tree, weight, minlength=leaves)
    return count


def leaf_mass(trees: Ensemble, rows: Examples, threads: int) -> FloatArray:
    """Copies of rows in each leaf (L,), at least 1."""
    weight, leaves = rows.weights, int((trees.feature < 0).sum())
    count = np.zeros(leaves)
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, start + _BLOCK)
        count += copies_reached(leaves_reached(trees, rows.X[here], threads), weight[here], leaves)
    return np.maximum(count, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Prunable:
    """A model and its trees, with the ``value`` (nodes, K) and ``loss`` of each node as a leaf.

    ``counts`` (nodes, K) are the rows of each class in a node of a forest of classifiers.
    """

    model: Model
    trees: Ensemble
    value: FloatArray
    loss: NodeLoss
    counts: FloatArray | None = None

    def pruned(self, kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> Model:
        """The model with only the ``kept`` (D,) splits."""
        split = self.trees.feature >= 0
        split[split] = kept
        trees, stays = self.trees.pruned(split)
        leaf, facts = trees.feature < 0, {**self.model.facts, **facts, "marks": ()}
        if not isinstance(self.model, TreeAverage):
            values = np.where(leaf, self.value[stays, 0], 0.0)
            return chain(replace(trees, value=values), prices, facts)
        number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
        trees = replace(trees, value=number, vectors=self.value[stays][leaf])
        counts = None if self.counts is None else self.counts[stays]
        return replace(self.model, trees=trees, facts=facts, counts=counts)

    def whole(self, prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        """The unpruned model, with a vector for every node."""
        facts = {**self.model.facts, **facts}
        numbers = replace(self.trees, value=np.arange(self.trees.nodes, dtype=np.float64))
        if isinstance(self.model, TreeAverage):
            trees = numbers.with_vectors(self.value)
            return replace(self.model, trees=trees, facts=facts, counts=self.counts)
        vectors = np.zeros((self.trees.nodes, len(self.trees.base)))
        output = np.repeat(self.trees.output, np.diff(self.trees.start))
        vectors[np.arange(self.trees.nodes), output] = self.value[:, 0]
        trees, rounds = numbers.with_vectors(vectors), len(self.trees.base)
        return TreeAverage(trees, prices, False, "identity", rounds, facts)


def prunable(base: BudgetedLearner, context: FitContext, train: Examples) -> Prunable:
    """The trees of ``base`` with class counts, class shares or leaf values.

    Raises UsageError if it has no such trees.
    """
    model = context.fitted(base)
    average = model if isinstance(model, TreeAverage) else None
    if average is None and not (isinstance(model, StagedModel) and model.adds_up):
        raise UsageError(
            f"budget-prune: base {base.name!r} has no trees whose leaves are added or averaged; "
            "choose budget-rf, random-forest, gbrt, lightgbm or imported"
        )
    trees = average.trees if average else model.ensemble
    assert trees is not None
    leaf, threads = trees.feature < 0, context.threads
    # values of leaves (L, K)
    leaves = trees.value[leaf][:, None]
    leaves = leaves if trees.vectors is None else trees.vectors[leaves[:, 0].astype(np.int64)]
    if average is None or average.link != "probability":
        return Prunable(model, trees, *with_means(trees, leaves, train, threads))
    counts = average.counts
    if counts is None:  # leaves keep their shares; ``train`` weights the nodes above
        leaves = np.hstack([1.0 - leaves, leaves]) if leaves.shape[1] == 1 else leaves
        counts = summed(trees, leaf_mass(trees, train, threads)[:, None] * leaves)
    return Prunable(average, trees, shares(counts), errors(trees, counts), counts)
