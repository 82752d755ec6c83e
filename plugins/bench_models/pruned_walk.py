"""The compiled walk of rows from one pruning of trees to the next."""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import kernel

from bench_core.arrays import BitArray, BoolArray, Float32Array, FloatArray, Int32Array

TreeArrays = tuple[Int32Array, Int32Array, Float32Array, BoolArray, Int32Array, Int32Array]
"""Start of each tree; feature, threshold, missing goes left, left and right child of each node."""


@kernel
def descend(
    X: Float32Array,
    shape: TreeArrays,
    rank: Int32Array,
    point: int,
    needs: tuple[Int32Array, Int32Array, FloatArray],
    rows: tuple[Int32Array, BitArray, FloatArray, FloatArray],
    vectors: FloatArray,
    total: FloatArray,
) -> None:
    """Move rows down to the nodes where nodes with a ``rank`` up to ``point`` are split.

    ``rows``: the node of each row in each tree (n, T), sensors bought (n, w), splits and trees
    evaluated (n,). ``needs``: feature f needs needs[1][needs[0][f]:needs[0][f + 1]]; a split on it
    counts needs[2][f]. ``total`` (n, K) are the sums of the ``vectors`` (nodes, K) reached.
    """
    _, feature, threshold, missing_left, left, right = shape
    at, bits, splits, trees = rows
    for i in range(len(X)):
        moved = False
        for t in range(at.shape[1]):
            node = at[i, t]
            if rank[node] > point:
                continue
            trees[i] += node == shape[0][t]
            while rank[node] <= point:
                f = feature[node]
                for k in range(needs[0][f], needs[0][f + 1]):
                    s = needs[1][k]
                    bits[i, s >> 6] |= np.uint64(1) << np.uint64(s & 63)
                splits[i] += needs[2][f]
                x = X[i, f]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            at[i, t] = node
            moved = True
        if moved:
            for k in range(total.shape[1]):
                total[i, k] = 0.0
                for t in range(at.shape[1]):
                    total[i, k] += vectors[at[i, t], k]
