"""Gradients as integers, in the order of leaves, and the scores that they lead to."""

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array, UInt32Array


@njit(cache=True, nogil=True)
def to_integers(
    values: Float64Array, scale: float, shift: int, ones: int, copies: Int64Array, out: Int64Array
) -> None:
    """Values (m,) times ``scale``, rounded, ``shift`` bits up and with ``ones`` below; all times
    ``copies`` (m,), if there are any."""
    for i in range(len(values)):
        out[i] = (np.int64(np.rint(values[i] * scale)) << shift) + ones
    for i in range(len(copies)):
        out[i] *= copies[i]


@njit(cache=True, nogil=True)
def take(values: Float64Array, rows: UInt32Array, out: Float64Array) -> None:
    """Values of ``rows``, in their order."""
    for i in range(len(rows)):
        out[i] = values[rows[i]]


@njit(cache=True, nogil=True)
def add_values(
    scores: Float64Array, rows: UInt32Array, spans: Int64Array, values: Float64Array
) -> None:
    """Add values[i] to the scores of the rows at the positions spans[i, 0]:spans[i, 1]."""
    for i in range(len(spans)):
        value = values[i]
        for r in rows[spans[i, 0] : spans[i, 1]]:
            scores[r] += value
