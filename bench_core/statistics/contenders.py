"""Which operating points of a learner a draw of the bootstrap may choose at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import frontier

_CERTAIN = 6  # standard errors


def contenders(
    quality: Float32Array,
    cost: Float32Array,
    weights: Float32Array,
    higher: bool | None,
    limits: Sequence[float] | None,
) -> IntArray:
    """The points by ascending cost, without those that one of the frontier beats in quality and in
    cost by so many standard errors that no draw chooses them.

    ``quality``, ``cost`` (p, blocks) and ``weights`` (2, blocks) are sums by block. Among given
    ``limits`` a point is as cheap as another one if no limit stands between them.
    """
    order = np.argsort(cost.sum(axis=1, dtype=np.float64), kind="stable")
    if higher is None:
        return order
    paid = _Means.of(cost[order], weights[1])
    good = _Means.of(quality[order] if higher else -quality[order], weights[0])
    front = frontier(paid.mean, good.mean)
    cheaper = _certainly_more(_Means(-paid.mean, -paid.noise), front)
    if limits is not None:
        cheaper |= _on_one_side(paid, limits, front)
    return order[~(_certainly_more(good, front) & cheaper).any(axis=0)]


class _Means(NamedTuple):
    """By point the mean (p,), and by block what it adds to the error of the mean (p, blocks)."""

    mean: FloatArray
    noise: Float32Array

    @classmethod
    def of(cls, sums: Float32Array, weights: Float32Array) -> _Means:
        """From sums by block, in place."""
        total = weights.sum(dtype=np.float64)
        mean = sums.sum(axis=1, dtype=np.float64) / total
        sums -= mean[:, None].astype(np.float32) * weights
        sums /= np.float32(total)
        return cls(mean, sums)

    @property
    def variance(self) -> Float32Array:
        """Of each mean."""
        found: Float32Array = np.einsum("ij,ij->i", self.noise, self.noise)
        return found


def _certainly_more(values: _Means, front: IntArray) -> BoolArray:
    """Which point of the ``front`` (row) is above which (column), by the standard error of the
    difference."""
    mean, own = values.mean, values.variance
    error = own[front][:, None] + own - 2 * (values.noise[front] @ values.noise.T)
    limit = _CERTAIN * np.sqrt(np.maximum(error, 0)) + 1e-6 * np.abs(mean)
    more: BoolArray = np.subtract.outer(mean[front], mean) > limit
    return more


def _on_one_side(cost: _Means, limits: Sequence[float], front: IntArray) -> BoolArray:
    """Which point of the ``front`` (row) is certainly within each limit that another (column) may
    be within."""
    reach = _CERTAIN * np.sqrt(cost.variance) + 1e-5 * np.abs(cost.mean)
    rising = np.sort(limits)
    most, least = (np.searchsorted(rising, cost.mean + sign * reach) for sign in (1, -1))
    within: BoolArray = most[front][:, None] <= least
    return within
