"""Random blocks of units: how many the draws of a board take, and how many draws there are.

Means of exchangeable units have the same variance in blocks, and a board of many learners takes
seconds. The blocks depend on the number of units alone.

What is lost by drawing blocks is knowledge of the variance: of b blocks the ends of an interval
vary by a share of 1 / sqrt(2 b) of its half width, and of r draws by 1.36 / sqrt(r) for 95%: of 128
blocks by 6.3%, of 399 draws by 6.8%, of 1000 by 4.3%.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

BLOCKS, FEW = 512, 128
"""Most blocks that are drawn, and the same with very many settings."""

MANY, FEW_DRAWS = 250, 399
"""Settings of all learners in one repeat, from which on time and memory matter more, and how many
draws there are then: the 10th and the 390th are the ends of a 95% interval."""


class Effort(NamedTuple):
    """Most blocks that are drawn, and the number of draws."""

    blocks: int
    resamples: int


def effort(settings: int, resamples: int) -> Effort:
    """Blocks and draws of a board with so many ``settings`` in one repeat."""
    few = Effort(FEW, min(resamples, FEW_DRAWS))
    return few if settings >= MANY else Effort(BLOCKS, resamples)


_LEAST = np.float32(1e-30)


def block_sums(
    values: FloatArray | Float32Array, weights: FloatArray | Float32Array, blocks: int = BLOCKS
) -> Float32Array:
    """Weighted sums (p, at most ``blocks``) of values (p, m) over random blocks of units, the same
    blocks for all values of so many units."""
    count = len(weights)
    if count <= blocks:
        return np.asarray(values * weights, dtype=np.float32)
    order, whole = _shuffled(count), count - count % blocks
    product = np.asarray(values.take(order, axis=1) * weights[order])
    sums = product[:, :whole].reshape(len(values), -1, blocks).sum(axis=1)
    sums[:, : count - whole] += product[:, whole:]
    return np.asarray(sums, dtype=np.float32)


def block_means(
    quality: FloatArray | Float32Array,
    cost: FloatArray | Float32Array,
    weights: FloatArray | Float32Array,
    rows: FloatArray | Float32Array,
    blocks: int,
) -> tuple[Float32Array, Float32Array, Float32Array, Float32Array]:
    """Means of ``quality`` (p, m) by ``weights`` (m,) and of ``cost`` (p, m) by ``rows`` (m,) over
    so many blocks, and the sums of weights and of rows."""
    both = np.array([weights, rows])
    total, count = block_sums(both, np.ones(both.shape[1], dtype=np.float32), blocks)
    quality, cost = block_sums(quality, weights, blocks), block_sums(cost, rows, blocks)
    quality /= np.maximum(total, _LEAST)
    cost /= np.maximum(count, _LEAST)
    return quality, cost, total, count


@lru_cache(4)
def _shuffled(count: int) -> IntArray:
    order = np.random.default_rng(count).permutation(count)
    order.setflags(write=False)
    return order
