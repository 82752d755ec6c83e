"""Random blocks of units, for the bootstrap to draw where there are very many of these.

Means of exchangeable units have the same variance in blocks, and a board of many learners takes
seconds. What is lost is knowledge of that variance: of b blocks the ends of an interval vary by a
share of 1 / sqrt(2 b) of its half width, and of r draws by 1.36 / sqrt(r) for 95%.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

BLOCKS = 512

MANY = 250
"""Settings of all learners in one repeat, from which on time and memory matter more."""


class Effort(NamedTuple):
    """How many blocks are drawn at most, and how often."""

    blocks: int
    resamples: int


def effort(settings: int, resamples: int) -> Effort:
    """What the draws of a board take, with so many ``settings`` in one repeat."""
    return Effort(128, min(resamples, 1000)) if settings >= MANY else Effort(BLOCKS, resamples)


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


@lru_cache(4)
def _shuffled(count: int) -> IntArray:
    order = np.random.default_rng(count).permutation(count)
    order.setflags(write=False)
    return order
