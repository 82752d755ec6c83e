"""Random blocks of units, for the bootstrap to draw where there are very many of these.

Means of exchangeable units have the same variance in blocks, and a board of many learners takes
seconds.
"""

from functools import lru_cache

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

BLOCKS = 512


def block_sums(
    values: FloatArray | Float32Array, weights: FloatArray | Float32Array
) -> Float32Array:
    """Weighted sums (p, at most ``BLOCKS``) of values (p, m) over random blocks of units, the same
    blocks for all values of so many units."""
    count = len(weights)
    if count <= BLOCKS:
        return np.asarray(values * weights, dtype=np.float32)
    order, whole = _shuffled(count), count - count % BLOCKS
    product = np.asarray(values.take(order, axis=1) * weights[order])
    sums = product[:, :whole].reshape(len(values), -1, BLOCKS).sum(axis=1)
    sums[:, : count - whole] += product[:, whole:]
    return np.asarray(sums, dtype=np.float32)


@lru_cache(4)
def _shuffled(count: int) -> IntArray:
    order = np.random.default_rng(count).permutation(count)
    order.setflags(write=False)
    return order
