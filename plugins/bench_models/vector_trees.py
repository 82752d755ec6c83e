"""Boosted regression trees whose leaves hold a vector: one tree for all outputs.

Each tree is grown on one output, drawn in proportion to its remaining variance. Its leaves get the
mean residuals of all outputs, as in the sketches of L. Iosipoi, A. Vakarchuk (SketchBoost, NeurIPS
2022; their random sampling with k = 1). A row may lack targets for some outputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_models.dictionary import layout_of, leaves
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_trees import Settings
    from bench_trees.inference import Layout

_BLOCK = 4096  # rows scored at a time


@dataclass(frozen=True, eq=False)
class VectorTrees(Stored):
    """Trees whose leaves number rows of ``vectors`` (m, K)."""

    trees: Any  # an Ensemble
    vectors: FloatArray
    base: FloatArray  # (K,)

    def scores(self, X: Float32Array) -> FloatArray:
        """``base`` and the vectors of all trees, for rows X (n, d): (n, K)."""
        from bench_trees.kernels.leaf_vectors import add_leaves

        output = np.full(self.trees.trees, -1, dtype=np.int32)
        total = np.repeat(self.base[None], len(X), axis=0)
        for start in range(0, len(X) if self.trees.trees else 0, _BLOCK):
            some = slice(start, start + _BLOCK)
            add_leaves(leaves(self._layout, X[some]), output, self.vectors, total[some])
        return total

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self.trees)


def boost_vectors(
    X: Float32Array,
    targets: FloatArray,
    mask: BoolArray,
    settings: Settings,
    rng: np.random.Generator,
    threads: int = 1,
) -> VectorTrees:
    """Regress the entries of ``targets`` (n, K) in ``mask`` (n, K) on rows X (n, d)."""
    from bench_trees import Ensemble, boost, find_bins
    from scipy.sparse import csr_array

    n, outputs = targets.shape
    bins = find_bins(X, threads=threads)
    words = bins.words(X, threads)
    weight = mask.astype(np.float64)
    base = np.where(mask, targets, 0.0).sum(axis=0) / np.maximum(weight.sum(axis=0), 1)
    left = np.where(mask, targets - base, 0.0)
    per_tree = replace(settings, trees=1, learning_rate=1.0)
    grown: list[Ensemble] = []
    vectors: list[FloatArray] = [np.zeros((0, outputs))]
    for _ in range(settings.trees):
        share = (left**2).sum(axis=0)
        if not share.any():
            break
        k = int(rng.choice(outputs, p=share / share.sum()))
        tree = boost(words, bins, left[:, k], settings=per_tree, threads=threads)
        if tree.trees == 0:
            continue
        leaf, before = tree.feature < 0, sum(len(values) for values in vectors)
        number = np.where(leaf, np.cumsum(leaf) - 1, 0)
        tree = replace(tree, value=number.astype(np.float64), base=np.zeros(1))
        at = leaves(layout_of(tree), X)[:, 0].astype(np.int64)
        inside = csr_array((np.ones(n), (at, np.arange(n))), shape=(int(leaf.sum()), n))
        value = inside @ left / np.maximum(inside @ weight + settings.l2, 1e-300)
        value *= settings.learning_rate
        left -= np.where(mask, value[at], 0.0)
        grown.append(replace(tree, value=np.where(leaf, number + before, 0).astype(np.float64)))
        vectors.append(value)
    none = Ensemble.of_trees([], [], np.zeros(1), X.shape[1])
    trees = Ensemble.concat(grown) if grown else none
    return VectorTrees(trees, np.concatenate(vectors), base)
