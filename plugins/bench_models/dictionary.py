"""The dictionary: output, sensors and cost of each tree of a boosted ensemble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench_core import Prices
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.inference import Layout

_CELLS = 250_000  # pairs of a tree and a row walked at a time: 8 bytes each, to fit in caches
_TESTS = 4_000_000  # pairs of a tree and a feature examined at a time
_BLOCK = 4096  # rows summed at a time where leaves hold vectors
_ROWS = 1024  # fewer are not worth a call


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    """Trees as columns."""

    columns: Float32Array  # (T, n) their outputs, learning rate included
    tree_cost: FloatArray  # (T,) in the prices' unit
    needs: FloatArray  # (s, T) 1.0 where a tree tests a feature of the sensor


def dictionary(
    ensemble: Ensemble, X: Float32Array, share: FloatArray, prices: Prices, threads: int
) -> Dictionary:
    """The columns of all trees for the rows ``X`` (n, d), with weights ``share`` (n,) that sum to
    1.

    A tree costs ``prices.tree`` plus ``prices.split`` times the multipliers of the splits on a
    row's path. The mean over rows is used: 1 for a tree of depth 4 at 0.25 a split.
    """
    cost = np.full(ensemble.trees, float(prices.tree))
    if prices.split > 0:
        cost += prices.split * mean_splits(ensemble, X, share, prices, threads)
    return Dictionary(
        columns=tree_columns(ensemble, X, threads), tree_cost=cost, needs=needs_of(ensemble, prices)
    )


def tree_columns(ensemble: Ensemble, X: Float32Array, threads: int) -> Float32Array:
    """The outputs of all trees for the rows ``X`` (n, d), float32 (T, n)."""
    columns = np.empty((ensemble.trees, len(X)), dtype=np.float32)

    def keep(rows: slice, outputs: FloatArray) -> None:
        columns[:, rows] = outputs.T

    _walk(ensemble.layout, X, threads, keep)
    return columns


def mean_splits(
    ensemble: Ensemble, X: Float32Array, share: FloatArray, prices: Prices, threads: int
) -> FloatArray:
    """The sum of split multipliers on a row's path through each tree, as a mean over rows, (T,)."""
    if ensemble.trees == 0:
        return np.zeros(0)
    layout = layout_of(ensemble, prices.multiplier)
    least, most = layout.paths()
    uneven = np.flatnonzero(least < most)  # in all other trees every path costs the same
    layout = layout_of(ensemble, prices.multiplier, uneven)
    parts: dict[int, FloatArray] = {}

    def add(rows: slice, splits: FloatArray) -> None:
        parts[rows.start] = (share[rows, None] * splits).sum(axis=0)  # in order

    _walk(layout._replace(value=layout.splits), X, threads, add)
    found: FloatArray = most * share.sum()
    found[uneven] = sum(parts[start] for start in sorted(parts))
    return found


def layout_of(trees: Ensemble, multiplier: FloatArray, chosen: IntArray | None = None) -> Layout:
    """The ``chosen`` trees (default all) laid out without sensors; splits count ``multiplier``
    (d,)."""
    from bench_trees.inference import Needs, lay_out

    return lay_out(trees, Needs.nothing(trees.features, multiplier), chosen)


def sums(trees: Ensemble, X: Float32Array) -> FloatArray:
    """The constant plus all trees, for rows X (n, d): (n, K)."""
    from bench_trees.kernels.leaf_vectors import add_leaves

    layout = trees.layout
    if trees.vectors is None:
        return _summed(layout, trees.base, X)
    total = np.repeat(trees.base[None], len(X), axis=0)
    for start in range(0, len(X) if trees.trees else 0, _BLOCK):
        some = slice(start, start + _BLOCK)
        add_leaves(leaves(layout, X[some]), layout.output, trees.vectors, total[some])
    return total


def leaves(layout: Layout, X: Float32Array) -> FloatArray:
    """The values (n, T) of every tree separately."""
    apart = layout._replace(output=np.arange(layout.trees, dtype=np.int32))
    return _summed(apart, np.zeros(layout.trees), X)


def _summed(layout: Layout, base: FloatArray, X: Float32Array) -> FloatArray:
    from bench_trees.inference import Steps, Walked, walk

    before = Walked.begin(len(X), len(base), layout.words)
    return np.asarray(walk(layout, Steps.prefixes([layout.trees], base), X, before).scores[0])


def _walk(
    layout: Layout, X: Float32Array, threads: int, use: Callable[[slice, FloatArray], None]
) -> None:
    """Call ``use`` with slices of rows and the trees' outputs there (m, T), from any thread."""
    from bench_trees.threads import workers

    if layout.trees == 0:
        return
    size = max(_ROWS, _CELLS // layout.trees)

    def piece(start: int, stop: int) -> None:
        for i in range(start * size, min(stop * size, len(X)), size):
            rows = slice(i, min(i + size, len(X)))
            use(rows, leaves(layout, X[rows]))

    with workers(max(1, threads)) as pool:
        pool.run(piece, -(-len(X) // size), 1)


def needs_of(ensemble: Ensemble, prices: Prices) -> FloatArray:
    """``F`` over sensors, float64 (s, T)."""
    return prices.bought_for(tested_features(ensemble, slice(None))).T.astype(np.float64)


def sensor_bits(ensemble: Ensemble, prices: Prices) -> NDArray[np.uint64]:
    """The sensors that each tree needs, packed (T, w). Boolean masks of all trees at once would be
    large with many features."""
    size = max(1, _TESTS // ensemble.features)
    starts = range(0, max(1, ensemble.trees), size)
    tested = (tested_features(ensemble, slice(i, i + size)) for i in starts)
    return np.concatenate([prices.acquired(mask).bits for mask in tested])


def tested_features(ensemble: Ensemble, trees: slice) -> BoolArray:
    """Features tested by each of these trees, (T, d)."""
    first, stop, _ = trees.indices(ensemble.trees)
    start = ensemble.start[first : stop + 1]
    feature = ensemble.feature[start[0] : start[-1]]
    owner, inner = np.repeat(np.arange(stop - first), np.diff(start)), feature >= 0
    # feature by feature in memory: BLAS sums its products in memory order
    tested = np.zeros((ensemble.features, stop - first), dtype=bool).T
    tested[owner[inner], feature[inner]] = True
    return tested
