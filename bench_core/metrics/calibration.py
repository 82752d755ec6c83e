"""Calibration of class scores on validation rows: one slope for all scores, and a shift of each.

For two classes this is Platt's sigmoid (1999), for more temperature scaling with a bias for each
class (Guo et al., ICML 2017): a line before the sigmoid or softmax, which a served model applies as
its last step. A small penalty on the distance to the uncalibrated scores keeps few rows from
deciding much. Whether calibration helps is decided by cross-fitting: each part of the rows is
calibrated by the others, and calibration is used if the log-probability of their classes rises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.data import Examples
from bench_core.metrics.rows import log_losses

PARTS = 5
PENALTY = 1.0
"""Weight of the squared distance to slope 1 and shifts 0, in rows."""

_LEAST_SLOPE = 0.02
_ENOUGH = 1e-7  # of the gradient, in rows
_CERTAIN = 1e9  # scores that are not probabilities of anything, infinite ones included


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
    usable = len(rows) >= 2 * PARTS and float(np.abs(scores).max()) < _CERTAIN
    if not usable or bool((scores == scores[:1]).all()):
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
    """Return the calibration of least penalised log-loss on rows of classes ``true`` (n,), by a
    search that begins at the calibration ``near``."""
    from scipy.optimize import minimize

    z = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
    z = z.T - z.max(axis=1)  # (K, n): sums over classes are sums of whole rows
    k, at = len(z), (true, np.arange(len(true)))
    start = line = np.append(1.0, np.zeros(k))
    if near is not None:
        shifts = near.slope * np.array(near.base)
        line = np.append(near.slope, shifts if scores.ndim == 2 else [0.0, *shifts])
    weighted_right = np.append((weights * z[at]).sum(), np.bincount(true, weights, k))

    @lru_cache(1)  # one point is asked for three times in turn
    def figures(point: bytes) -> tuple[float, FloatArray, FloatArray]:
        """Return the penalised log-loss, its gradient, and its second derivatives."""
        line = np.frombuffer(point)
        logits, away = line[0] * z + line[1:, None], line - start
        top = logits.max(axis=0)
        value = weights @ (top - logits[at]) + PENALTY * away @ away
        shares = np.exp(np.subtract(logits, top, out=logits), out=logits)
        whole = shares.sum(axis=0)
        value += weights @ np.log(whole)
        shares /= whole
        mean = np.einsum("kn,kn->n", shares, z)
        sums, slope = shares @ weights, weights @ mean
        second = np.diag(np.append(0.0, sums) + 2 * PENALTY)
        weighted = np.multiply(shares, weights)
        second[1:, 1:] -= weighted @ shares.T
        moved = np.multiply(weighted, z - mean, out=weighted)
        second[0, 0] += np.vdot(moved, z)
        second[0, 1:] = second[1:, 0] = moved.sum(axis=1)
        return float(value), np.append(slope, sums) - weighted_right + 2 * PENALTY * away, second

    def of(which: int) -> Callable[[FloatArray], Any]:
        return lambda line: figures(line.tobytes())[which]

    enough = {"gtol": _ENOUGH, "initial_trust_radius": 10.0, "max_trust_radius": 1e6}
    line = minimize(of(0), line, (), "trust-exact", of(1), of(2), options=enough).x
    line[0] = max(line[0], _LEAST_SLOPE)  # never turns the order of scores around
    shifts = line[1:] if scores.ndim == 2 else line[2:] - line[1]
    return Calibration(float(line[0]), tuple((shifts / line[0]).tolist()))
