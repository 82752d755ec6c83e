"""Calibration of class scores on validation rows: one slope for all scores, and a shift of each.

For two classes this is Platt's sigmoid (1999), for more temperature scaling with a bias for each
class (Guo et al., ICML 2017): a line before the sigmoid or softmax, which a served model applies as
its last step. A small penalty on the distance to the uncalibrated scores keeps few rows from
deciding much. Whether calibration helps is decided by cross-fitting: each part of the rows is
calibrated by the others, and calibration is used if the log-probability of their classes rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.data import Examples
from bench_core.metrics.rows import log_losses

PARTS = 5
PENALTY = 1.0
"""Weight of the squared distance to slope 1 and shifts 0, in rows."""

_LEAST_SLOPE = 0.02
_MOST_STEPS, _ENOUGH = 50, 1e-14  # of Newton's method: steps, and relative gain of the last one


class Calibration(NamedTuple):
    """Scores ``slope * (base + score)``; ``base`` has an entry for each output."""

    slope: float
    base: tuple[float, ...]

    def of(self, scores: FloatArray) -> FloatArray:
        """Return calibrated scores (n,) or (n, K)."""
        base = np.array(self.base) if scores.ndim == 2 else self.base[0]
        return np.asarray(self.slope * (base + scores))


def calibrated(scores: FloatArray, rows: Examples) -> tuple[Calibration | None, FloatArray]:
    """Return the calibration of scores (n,) or (n, K), None if it does not help, and the scores
    with each row calibrated by other rows. Rows of a query or group stay together."""
    if len(rows) < 2 * PARTS or bool((scores == scores[:1]).all()):
        return None, scores
    unit = np.arange(len(rows)) if rows.units is None else rows.units.index()
    true, weights = rows.y.astype(np.int64), rows.weights
    held, whole = np.array(scores, dtype=np.float64), fit(scores, true, weights)
    for part in range(PARTS):
        inside = unit % PARTS == part
        if not inside.all() and inside.any():
            fitted = fit(scores[~inside], true[~inside], weights[~inside], whole)
            held[inside] = fitted.of(scores[inside])
    if log_losses(held, true) @ weights >= log_losses(scores, true) @ weights:
        return None, scores
    return whole, held


def fit(
    scores: FloatArray, true: IntArray, weights: FloatArray, near: Calibration | None = None
) -> Calibration:
    """Return the calibration of least penalised log-loss on rows of classes ``true`` (n,), by
    Newton's method, which begins at the calibration ``near``."""
    z = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
    k = z.shape[1]
    truth = np.eye(k)[true]
    start = np.append(1.0, np.zeros(k))

    def penalised(line: FloatArray) -> float:
        losses = log_losses(line[0] * z + line[1:], true)
        return float(losses @ weights + PENALTY * np.sum((line - start) ** 2))

    line = start
    if near is not None:
        shifts = near.slope * np.array(near.base)
        line = np.append(near.slope, shifts if scores.ndim == 2 else [0.0, *shifts])
    value = penalised(line)
    for _ in range(_MOST_STEPS):
        shares = _softmax(line[0] * z + line[1:])
        gap, weighted = weights[:, None] * (shares - truth), weights[:, None] * shares
        away = z - (shares * z).sum(axis=1, keepdims=True)
        slope = np.append((gap * z).sum(), gap.sum(axis=0)) + 2 * PENALTY * (line - start)
        curvature = 2 * PENALTY * np.eye(k + 1)
        curvature[0, 0] += (weighted * away * z).sum()
        curvature[0, 1:] += (weighted * away).sum(axis=0)
        curvature[1:, 0] = curvature[0, 1:]
        curvature[1:, 1:] += np.diag(weighted.sum(axis=0)) - weighted.T @ shares
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while (better := penalised(line - size * step)) > value and size > _ENOUGH:
            size /= 2
        if not better < value - _ENOUGH * abs(value):
            break
        line, value = line - size * step, better
    line[0] = max(line[0], _LEAST_SLOPE)  # never turns the order of scores around
    shifts = line[1:] if scores.ndim == 2 else line[2:] - line[1]
    return Calibration(float(line[0]), tuple((shifts / line[0]).tolist()))


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
