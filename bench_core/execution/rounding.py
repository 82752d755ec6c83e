"""Rounding of scores: a matrix product may round otherwise in another block, so the audit lets
scores differ by ``slack``."""

from __future__ import annotations

import numpy as np

from bench_core.arrays import FloatArray

TOLERANCE = 1e-9


def slack(scores: FloatArray) -> FloatArray:
    """How far rounding may move scores (n,) or (n, K), (n, 1) for the latter: a row's by 1e-9 of
    its own largest, where terms cancel by 1e-9 of what 99% of the rows that are not 0 exceed.

    No row's huge score widens that of another, whatever their number below 99%.
    """
    size: FloatArray = np.abs(scores)
    own: FloatArray = size if size.ndim == 1 else size.max(axis=1, keepdims=True)
    there = own[own > 0]
    if len(there) == 0:
        return own
    small = np.partition(there, len(there) // 100)[len(there) // 100]
    near: FloatArray = TOLERANCE * np.maximum(own, small)
    return near
