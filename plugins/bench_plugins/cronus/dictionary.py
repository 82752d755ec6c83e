"""The dictionary: what each tree of a boosted ensemble says, needs and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_plugins.cronus.objective import Float32Array, FloatArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

_CELLS = 8_000_000
"""Pairs of a tree and a row walked at a time (24 bytes each)."""


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
    from bench_trees.inference import Needs, Steps, Walked, lay_out, walk

    count = ensemble.trees
    # sensors are not metered here, so no feature needs any
    nothing = np.zeros(ensemble.features + 1, dtype=np.int32)
    layout = lay_out(ensemble, Needs(nothing, nothing[:0], prices.multiplier, 0))
    one_by_one = Steps(np.arange(1, count + 1), np.zeros((count, 1)), np.zeros(count, dtype=bool))
    columns = np.empty((count, len(X)), dtype=np.float32)
    splits = np.zeros(count)
    size = max(64, _CELLS // max(1, count))
    for i in range(0, len(X) if count else 0, size):
        block = X[i : i + size]
        done = walk(
            layout, one_by_one, block, Walked.begin(len(block), 1, layout.words), None, threads
        )
        columns[:, i : i + size] = done.scores[:, :, 0]
        splits += np.diff(done.splits @ share[i : i + size], prepend=0.0)
    return Dictionary(
        columns=columns,
        tree_cost=prices.tree + prices.split * splits,
        needs=needs_of(ensemble, prices),
    )


def needs_of(ensemble: Ensemble, prices: Prices) -> FloatArray:
    """``F`` over sensors, float64 (s, T)."""
    owner = np.repeat(np.arange(ensemble.trees), np.diff(ensemble.start))
    inner = ensemble.feature >= 0
    tested = np.zeros((ensemble.features, ensemble.trees), dtype=bool)
    tested[ensemble.feature[inner], owner[inner]] = True
    needs = np.zeros((prices.sensors, ensemble.trees))
    for feature in np.flatnonzero(tested.any(axis=1)):
        needs[np.ix_(prices.of(int(feature)), tested[feature])] = 1.0
    return needs
