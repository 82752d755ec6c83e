"""Rounding of scores: how far it may move them, and what it leaves of their order.

A matrix product may round otherwise in another block, so the audit lets scores differ by ``slack``.
What differs by less must then decide nothing, or a model could order equal scores by the place of a
row in the trial's block: of a stranger's models scores are judged ``levelled``.
"""

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


def levelled(scores: FloatArray) -> FloatArray:
    """Scores (n,), or those (n, K) of each row, of which neighbours within ``slack`` are equal, and
    those (n,) within it of 0 are 0; all others keep their bits."""
    near = np.broadcast_to(slack(scores), scores.shape)
    if scores.ndim == 1:
        scores = np.where(np.abs(scores) <= near, 0.0, scores)
    order = np.argsort(scores, axis=-1, kind="stable")
    ranked, near = (np.take_along_axis(each, order, axis=-1) for each in (scores, near))
    apart = np.diff(ranked, axis=-1) > np.maximum(near[..., 1:], near[..., :-1])
    first = np.zeros(scores.shape, dtype=np.int64)
    first[..., 1:] = np.where(apart, np.arange(1, scores.shape[-1]), 0)
    level = np.take_along_axis(ranked, np.maximum.accumulate(first, axis=-1), axis=-1)
    result = np.empty_like(scores)
    np.put_along_axis(result, order, level, axis=-1)
    return result
