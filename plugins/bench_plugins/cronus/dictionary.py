"""The dictionary: what each tree of a boosted ensemble says, needs and costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_plugins.cronus.objective import Float32Array, FloatArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

_CELLS = 32_000_000
"""Tree outputs held in float64 at a time (256 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """``columns`` float32 (T, n): outputs of the trees, learning rate included. ``tree_cost``
    (T,) in the prices' unit; ``needs`` (s, T), 1.0 where a tree tests a feature of the sensor."""

    columns: Float32Array
    tree_cost: FloatArray
    needs: FloatArray


def dictionary(
    ensemble: Ensemble, X: Float32Array, share: FloatArray, prices: Prices, threads: int
) -> Dictionary:
    """Walk all trees over the rows ``X`` (n, d), whose weights ``share`` (n,) sum to 1.

    The price of evaluating a tree is ``prices.tree`` plus ``prices.split`` times the mean over
    rows of the multipliers of the splits on their path: 1 for a tree of depth 4 at 0.25 a split.
    """
    from bench_trees.inference import tree_outputs

    path = replace(ensemble, value=path_multipliers(ensemble, prices.multiplier))
    columns = np.empty((ensemble.trees, len(X)), dtype=np.float32)
    splits = np.zeros(ensemble.trees)
    step = max(64, _CELLS // max(1, ensemble.trees))
    for i in range(0, len(X) if ensemble.trees else 0, step):
        block = X[i : i + step]
        columns[:, i : i + step] = tree_outputs(ensemble, block, threads=threads).T
        if prices.split > 0:
            splits += share[i : i + step] @ tree_outputs(path, block, threads=threads)
    return Dictionary(
        columns=columns,
        tree_cost=prices.tree + prices.split * splits,
        needs=needs_of(ensemble, prices),
    )


def path_multipliers(ensemble: Ensemble, multiplier: FloatArray) -> FloatArray:
    """At every node the sum of the split multipliers on the way to it, shape (nodes,)."""
    total = np.zeros(ensemble.nodes)
    for node in range(ensemble.nodes):  # children stand after their parent
        if ensemble.feature[node] >= 0:
            here = total[node] + multiplier[ensemble.feature[node]]
            total[ensemble.left[node]] = total[ensemble.right[node]] = here
    return total


def needs_of(ensemble: Ensemble, prices: Prices) -> FloatArray:
    """``F`` over sensors, float64 (s, T)."""
    needs = np.zeros((prices.sensors, ensemble.trees))
    for t in range(ensemble.trees):
        for feature in ensemble.used_features(t):
            needs[prices.of(int(feature)), t] = 1.0
    return needs
