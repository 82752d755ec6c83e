"""The two objectives over the stages' scores, whole and as a function of one stage.

Scores are ``f`` (K, n). ``share`` (n,) is a row's part in every mean. The ridge is not in here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench_core.arrays import BoolArray, FloatArray

OneStage = Callable[[FloatArray], tuple[float, FloatArray]]
"""A loss and its derivative (n,) by one stage's scores (n,)."""

_CERTAIN = -1e-12  # log-probabilities above it count as this: the loss stays finite


def log_sigmoid(z: FloatArray) -> FloatArray:
    """``log sigma(z)``."""
    return -np.logaddexp(0.0, -z)


@dataclass(frozen=True, slots=True, eq=False)
class Soft:
    """Log-loss of the product of the stages' probabilities, plus ``tau`` times expected cost.

    ``cost`` (K,) is what each stage adds.
    """

    positive: BoolArray
    share: FloatArray
    cost: FloatArray
    tau: float
    curvature: float = 0.25

    def value(self, scores: FloatArray) -> float:
        """Mean loss and expected cost."""
        passed = np.cumsum(log_sigmoid(scores), axis=0)
        loss = self._loss(passed[-1])
        spent = self.cost[0] + self.cost[1:] @ np.exp(passed[:-1])
        return float(self.share @ (loss + self.tau * spent))

    def _loss(self, logp: FloatArray) -> FloatArray:
        logp = np.minimum(logp, _CERTAIN)
        return np.where(self.positive, -logp, -np.log(-np.expm1(logp)))

    def stage(self, scores: FloatArray, k: int) -> OneStage:
        """The other stages are constants: their log-probability, and the cost behind the gate."""
        logs = log_sigmoid(scores)
        logs[k] = 0.0
        others = logs.sum(axis=0)
        reach_if_open = np.exp(np.cumsum(logs, axis=0)[k:-1])
        behind = self.tau * (self.cost[k + 1 :] @ reach_if_open)

        def evaluate(f: FloatArray) -> tuple[float, FloatArray]:
            own = log_sigmoid(f)
            passes, stops = np.exp(own), np.exp(own - f)
            logp = np.minimum(own + others, _CERTAIN)
            pull = np.where(self.positive, -1.0, np.exp(logp) / -np.expm1(logp))
            value = self.share @ (self._loss(logp) + behind * passes)
            return float(value), self.share * stops * (pull + behind * passes)

        return evaluate

    def alone(self) -> OneStage:
        """Logistic regression."""
        zeros = np.zeros((1, len(self.share)))
        return Soft(self.positive, self.share, self.cost[:1], 0.0).stage(zeros, 0)


def hinge(z: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """``max(0, z)`` rounded off on [0, width], and its derivative. ``width`` 0: itself."""
    if width == 0:
        return np.maximum(z, 0.0), (z > 0).astype(np.float64)
    slope = np.clip(z / width, 0.0, 1.0)
    return slope * (z - 0.5 * width * slope), slope


@dataclass(frozen=True, slots=True, eq=False)
class Hinges:
    """AND-OR: product of hinges for negatives, ``nu`` times the largest one for positives.

    ``stage`` and ``alone`` round the hinge off over ``width``.
    """

    positive: BoolArray
    share: FloatArray
    nu: float
    width: float = 0.1
    curvature: float = 1.0

    def value(self, scores: FloatArray) -> float:
        """The objective as printed."""
        errors = np.maximum(0.0, 1.0 - np.where(self.positive, scores, -scores))
        loss = np.where(self.positive, self.nu * errors.max(axis=0), errors.prod(axis=0))
        return float(self.share @ loss)

    def stage(self, scores: FloatArray, k: int) -> OneStage:
        """A weighted hinge for negatives, one that begins at the others' largest for positives."""
        errors = np.maximum(0.0, 1.0 - np.where(self.positive, scores, -scores))
        errors = np.delete(errors, k, axis=0)
        weight = np.where(self.positive, self.nu, errors.prod(axis=0)) * self.share
        floor = np.where(self.positive, errors.max(axis=0, initial=0.0), 0.0)
        side = np.where(self.positive, 1.0, -1.0)

        def evaluate(f: FloatArray) -> tuple[float, FloatArray]:
            value, slope = hinge(1.0 - side * f - floor, self.width)
            return float(weight @ value), -side * weight * slope

        return evaluate

    def alone(self) -> OneStage:
        """A weighted hinge."""
        return self.stage(np.zeros((1, len(self.share))), 0)


Loss = Soft | Hinges
"""What is minimised, but for the ridge.

``curvature``: about that of a row's loss in a stage's score. ``value``: the objective itself.
``stage``: as a function of one stage alone, up to a constant. ``alone``: the loss of a cascade of
one stage, to start from.
"""
