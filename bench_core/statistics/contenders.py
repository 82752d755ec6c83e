"""Which operating points of a learner a draw of the bootstrap may choose at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

_CERTAIN = 6  # standard errors


def contenders(
    quality: Float32Array,
    cost: Float32Array,
    weights: Float32Array,
    higher: bool | None,
    limits: Sequence[float] | None,
) -> IntArray:
    """The points by ascending cost, without those that another one beats in quality and in cost by
    so many standard errors that no draw chooses them.

    ``quality``, ``cost`` (p, blocks) and ``weights`` (2, blocks) are sums by block. Among given
    ``limits`` a point is as cheap as another one if no limit stands between them.
    """
    order = np.argsort(cost.sum(axis=1, dtype=np.float64), kind="stable")
    if higher is None:
        return order
    cost = cost[order]
    gain = _certainly_more(quality[order] if higher else -quality[order], weights[0])
    cheaper = _certainly_more(-cost, weights[1])
    if limits is not None:
        cheaper |= _on_one_side(cost, weights[1], limits)
    return order[~(gain & cheaper).any(axis=0)]


def _certainly_more(sums: Float32Array, weights: Float32Array) -> BoolArray:
    """Which point's mean (row) is above which (column), by the standard error of the difference."""
    mean, noise = _mean_and_noise(sums, weights)
    product = noise @ noise.T
    own = np.diag(product)
    error = np.sqrt(np.maximum(own[:, None] + own - 2 * product, 0))
    more: BoolArray = np.subtract.outer(mean, mean) > _CERTAIN * error + 1e-6 * np.abs(mean)
    return more


def _on_one_side(sums: Float32Array, weights: Float32Array, limits: Sequence[float]) -> BoolArray:
    """Which point (row) is certainly within each limit that another (column) may be within."""
    mean, noise = _mean_and_noise(sums, weights)
    reach = _CERTAIN * np.sqrt((noise**2).sum(axis=1)) + 1e-5 * np.abs(mean)
    rising = np.sort(limits)
    most, least = (np.searchsorted(rising, mean + sign * reach) for sign in (1, -1))
    within: BoolArray = most[:, None] <= least
    return within


def _mean_and_noise(sums: Float32Array, weights: Float32Array) -> tuple[FloatArray, Float32Array]:
    """By point the mean, and by block what it adds to the error of the mean."""
    total = weights.sum(dtype=np.float64)
    mean = sums.sum(axis=1, dtype=np.float64) / total
    return mean, (sums - mean[:, None].astype(np.float32) * weights) / np.float32(total)
