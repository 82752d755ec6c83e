"""Which leaf each row reaches, and where on its way each sensor is first needed; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from bench_core.arrays import BoolArray, Float32Array, Int32Array, IntArray


@njit(cache=True, nogil=True)
def route(
    X: Float32Array,
    shape: tuple[Int32Array, Int32Array, Float32Array, BoolArray, Int32Array, Int32Array],
    number: Int32Array,
    start: int,
    stop: int,
    out: Int32Array,
) -> None:
    """Write ``number`` of the leaf that rows start:stop reach in every tree: out (n, T).

    ``shape``: start of each tree, feature, threshold, missing goes left, left, right child.
    """
    root, feature, threshold, missing_left, left, right = shape
    for i in range(start, stop):
        row = X[i]
        for t in range(len(root) - 1):
            node = root[t]
            f = feature[node]
            while f >= 0:
                x = row[f]
                goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
                f = feature[node]
            out[i, t] = number[node]


@njit(cache=True, nogil=True)
def first_needs(
    leaves: Int32Array,
    parent: Int32Array,
    feature: Int32Array,
    needs: tuple[Int32Array, Int32Array],
    wanted: BoolArray,
) -> tuple[IntArray, Int32Array, Int32Array]:
    """For each leaf the sensors on its path and the topmost node that needs each.

    ``parent`` (nodes,) is -1 at roots; feature f needs ``needs[1][needs[0][f]:needs[0][f + 1]]``;
    sensors that are not ``wanted`` are left out. Returns start (leaves + 1,), sensor, node.
    """
    start = np.zeros(len(leaves) + 1, np.int64)
    first = np.full(len(wanted), -1, np.int32)
    met = np.empty(len(wanted), np.int32)
    sensor = np.empty(16, np.int32)
    node = np.empty(16, np.int32)
    used = 0
    for leaf in range(len(leaves)):
        count = 0
        u = parent[leaves[leaf]]
        while u >= 0:
            for at in range(needs[0][feature[u]], needs[0][feature[u] + 1]):
                s = needs[1][at]
                if wanted[s]:
                    if first[s] < 0:
                        met[count] = s
                        count += 1
                    first[s] = u
            u = parent[u]
        if used + count > len(sensor):
            more = max(len(sensor), count)
            sensor = np.concatenate((sensor, np.empty(more, np.int32)))
            node = np.concatenate((node, np.empty(more, np.int32)))
        for k in range(count):
            sensor[used], node[used] = met[k], first[met[k]]
            first[met[k]] = -1
            used += 1
        start[leaf + 1] = used
    return start, sensor[:used].copy(), node[:used].copy()
