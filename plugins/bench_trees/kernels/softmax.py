"""Gradients of the softmax loss, in one pass over scores."""

import numpy as np

from bench_trees.arrays import Float64Array
from bench_trees.kernels import exponentials
from bench_trees.kernels.calling import calling
from bench_trees.kernels.exponentials import TILE, _exponentials


@calling(exponentials)
def slopes(
    scores: Float64Array,
    y: Float64Array,
    weights: Float64Array,
    start: int,
    stop: int,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """Of the rows ``start:stop``, ``weights`` times p - [y = k] and K / (K - 1) p (1 - p), all
    (K, n), p = e^f_k / sum_j e^f_j: a tile of rows at a time, in loops of few arrays."""
    K = len(scores)
    factor = K / (K - 1.0)
    bits, z = np.empty(TILE, np.int64), np.empty(TILE)
    top, total = np.empty(TILE), np.empty(TILE)
    for begin in range(start, stop, TILE):
        end = min(begin + TILE, stop)
        label, weight = y[begin:end], weights[begin:end]
        for r in range(TILE):
            top[r], total[r] = -np.inf, 0.0
        for k in range(K):
            f = scores[k][begin:end]
            for r in range(len(f)):
                top[r] = max(top[r], f[r])
        for k in range(K):
            f, power = scores[k][begin:end], gradient[k][begin:end]
            for r in range(len(f)):
                z[r] = f[r] - top[r]
            _exponentials(z[: len(f)], bits, power)
            for r in range(len(f)):
                total[r] += power[r]
        for r in range(len(label)):
            total[r] = 1.0 / total[r]
        for k in range(K):
            g, h = gradient[k][begin:end], hessian[k][begin:end]
            for r in range(len(g)):
                p = g[r] * total[r]
                h[r] = factor * weight[r] * (p * (1.0 - p))
                g[r] = weight[r] * (p - (1.0 if label[r] == k else 0.0))
