"""Boosted regression trees whose leaves hold a vector: one tree for all outputs.

Each tree is grown on one output, drawn in proportion to its remaining variance. Its leaves get the
mean residuals of all outputs, as in the sketches of L. Iosipoi, A. Vakarchuk (SketchBoost, NeurIPS
2022; their random sampling with k = 1). A row may lack targets for some outputs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_models.dictionary import leaves

if TYPE_CHECKING:
    from bench_trees import Settings


def boost_vectors(
    X: Float32Array,
    targets: FloatArray,
    mask: BoolArray,
    settings: Settings,
    rng: np.random.Generator,
    threads: int = 1,
) -> Ensemble:
    """Regress the entries of ``targets`` (n, K) in ``mask`` (n, K) on rows X (n, d)."""
    from bench_trees import boost, find_bins
    from scipy.sparse import csr_array

    n, outputs = targets.shape
    bins = find_bins(X, threads=threads)
    words = bins.words(X, threads)
    weight = mask.astype(np.float64)
    base = np.where(mask, targets, 0.0).sum(axis=0) / np.maximum(weight.sum(axis=0), 1)
    left = np.where(mask, targets - base, 0.0)
    per_tree = replace(settings, trees=1, learning_rate=1.0)
    grown = [Ensemble.of_trees([], [], base, X.shape[1])]
    for _ in range(settings.trees):
        share = (left**2).sum(axis=0)
        if not share.any():
            break
        k = int(rng.choice(outputs, p=share / share.sum()))
        tree = boost(words, bins, left[:, k], settings=per_tree, threads=threads)
        if tree.trees == 0:
            continue
        leaf = tree.feature < 0
        number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
        tree = replace(tree, value=number, base=np.zeros(1))
        at = leaves(tree.layout, X)[:, 0].astype(np.int64)
        inside = csr_array((np.ones(n), (at, np.arange(n))), shape=(int(leaf.sum()), n))
        value = inside @ left / np.maximum(inside @ weight + settings.l2, 1e-300)
        value *= settings.learning_rate
        left -= np.where(mask, value[at], 0.0)
        grown.append(replace(tree, base=base).with_vectors(value))
    return Ensemble.concat(grown)
