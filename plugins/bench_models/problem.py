"""The training problem that cascades and trees of classifiers share: rows, a dictionary, prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core.arrays import Float32Array, FloatArray

_CHUNK = 4_000_000
"""Float64 copies of the float32 columns hold about this many values at a time (32 MB)."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What a cascade is fitted to: n rows, T trees, s sensors.

    ``columns`` (T, n) are the trees' outputs; ``y`` (n,) is +1 or -1; ``weight`` (n,) is m w / N,
    what a row's loss counts; ``share`` (n,) is m / N, its part in every mean; ``tree_cost`` (T,)
    and ``sensor_cost`` (s,) are prices; ``needs`` (s, T) is 1.0 where a tree needs a sensor.
    """

    columns: Float32Array
    y: FloatArray
    weight: FloatArray
    share: FloatArray
    tree_cost: FloatArray
    sensor_cost: FloatArray
    needs: FloatArray
    slope: float = 50.0

    @property
    def trees(self) -> int:
        """Number of columns T."""
        return len(self.columns)

    @property
    def constant_loss(self) -> float:
        """Half the weighted squared error of the best constant."""
        mean = float(self.weight @ self.y) / float(self.weight.sum())
        return 0.5 * float(self.weight @ (self.y - mean) ** 2)

    def score(self, weights: FloatArray, bias: float) -> FloatArray:
        """``f = h.b + bias`` of every row, shape (n,); only trees with a weight are touched."""
        return bias + weighted_sum(self.columns, weights)


def weighted_sum(columns: Float32Array, weights: FloatArray) -> FloatArray:
    """``weights @ columns`` in float64 for float32 columns (T, n), piece by piece: (n,)."""
    used = np.flatnonzero(weights)
    step = max(1, _CHUNK // max(1, columns.shape[1]))
    total = np.zeros(columns.shape[1])
    for i in range(0, len(used), step):
        piece = used[i : i + step]
        total += weights[piece] @ columns[piece].astype(np.float64)
    return total


def sigmoid(z: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-z))`` without overflow."""
    tail = np.exp(-np.abs(z))
    result: FloatArray = np.where(z >= 0, 1.0, tail) / (1.0 + tail)
    return result
