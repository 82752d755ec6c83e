"""Forests of classification trees with class counts in every node, served as their average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.tree_average import TreeAverage

from bench_core import Prices
from bench_core.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble


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

    @property
    def shares(self) -> FloatArray:
        """Class shares of every node (nodes, K); for two classes that of class 1, (nodes, 1)."""
        shares: FloatArray = self.counts / self.counts.sum(axis=1, keepdims=True)
        return shares[:, 1:] if shares.shape[1] == 2 else shares

    def served(self, prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        """The mean shares of the leaves reached, as log-odds or, for K > 2, logarithms."""
        shares, leaf = self.shares, self.trees.feature < 0
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
