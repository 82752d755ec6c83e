"""Cycling over the stages, each minimised by L-BFGS in coordinates in which columns are round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from bench_models.descent import cyclic_descent, minimise_whitened

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_methods.cascades.losses import Loss, OneStage


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """One stage's columns: ``trees`` (c,) that vary, their ``mean`` (c,), the common ``scale`` that
    makes their mean variance one, and ``root`` (c, c), the Cholesky factor of curvature x
    covariance + ridge."""

    trees: IntArray
    mean: FloatArray
    scale: float
    root: FloatArray

    @classmethod
    def of(
        cls,
        columns: Float32Array,
        trees: IntArray,
        share: FloatArray,
        curvature: float,
        ridge: float,
    ) -> Design:
        """``columns`` float32 (T, n); ``share`` (n,) sums to 1."""
        from scipy.linalg import cholesky

        own = columns[trees].astype(np.float64)
        mean = own @ share
        own -= mean[:, None]
        variance = own**2 @ share
        varies = variance > (1e-6 * np.maximum(np.abs(mean), 1e-30)) ** 2
        if not varies.any():
            return cls(trees[:0], mean[:0], 1.0, np.zeros((0, 0)))
        scale = float(np.sqrt(variance[varies].mean()))
        own = own[varies] / scale
        gram = curvature * ((own * share) @ own.T)
        np.fill_diagonal(gram, gram.diagonal() + ridge)
        return cls(trees[varies], mean[varies], scale, cholesky(gram, lower=True))

    def columns(self, columns: Float32Array) -> FloatArray:
        """Centred and scaled, (c, n)."""
        own = columns[self.trees].astype(np.float64)
        return np.asarray((own - self.mean[:, None]) / self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """One stage's weights (c,) on its scaled columns, and its constant."""

    weights: FloatArray
    bias: float

    def on_trees(self, design: Design) -> tuple[FloatArray, float]:
        """Weights (c,) and constant for the trees' plain outputs."""
        plain = self.weights / design.scale
        return plain, self.bias - float(plain @ design.mean)

    def scores(self, Z: FloatArray) -> FloatArray:
        """Of the rows whose scaled columns are ``Z`` (c, n)."""
        return np.asarray(self.weights @ Z + self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """All stages, their scores (K, n) on the training rows, and the loss with its ridge."""

    stages: tuple[Linear, ...]
    scores: FloatArray
    loss: float


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What is minimised: ``loss`` of the stages' scores + ridge / 2 sum of squared weights.

    ``columns`` float32 (T, n) are the trees' outputs on the training rows.
    """

    columns: Float32Array
    designs: Sequence[Design]
    loss: Loss
    ridge: float
    steps: int

    def alone(self, k: int) -> Linear:
        """Stage k fitted as if it were the only one."""
        design = self.designs[k]
        start = Linear(np.zeros(len(design.trees)), 0.0)
        Z = design.columns(self.columns)
        return minimise(self.loss.alone(), design, Z, start, self.ridge, self.steps)

    def evaluated(self, stages: Sequence[Linear], scores: FloatArray | None = None) -> Fitted:
        """The objective of these stages, whose ``scores`` (K, n) may be known."""
        if scores is None:
            pairs = zip(stages, self.designs, strict=True)
            scores = np.stack([s.scores(d.columns(self.columns)) for s, d in pairs])
        squares = sum(float(s.weights @ s.weights) for s in stages)
        loss = self.loss.value(scores) + 0.5 * self.ridge * squares
        return Fitted(tuple(stages), scores, loss)

    def improved(self, at: Fitted, k: int, alone: Linear) -> Fitted:
        """``at`` with a better stage k, or ``at``.

        Descends from the stage as it is and from it ``alone``: once a stage passes all rows,
        nothing pulls it back.
        """
        design, best = self.designs[k], at
        Z = design.columns(self.columns)
        loss = self.loss.stage(at.scores, k)
        for start in {id(s): s for s in (at.stages[k], alone)}.values():
            found = minimise(loss, design, Z, start, self.ridge, self.steps)
            stages = (*at.stages[:k], found, *at.stages[k + 1 :])
            scores = at.scores.copy()
            scores[k] = found.scores(Z)
            best = min(best, self.evaluated(stages, scores), key=lambda fitted: fitted.loss)
        return best


def descend(
    task: Descent,
    cycles: int,
    tolerance: float,
    progress: Callable[[int], None] = lambda done: None,
) -> Fitted:
    """Each stage by itself, then cycles over them; no update is kept that raises the objective.

    Ends when a cycle gains less than the share ``tolerance``.
    """
    count = len(task.designs)
    alone = [task.alone(k) for k in range(count)]
    at = task.evaluated(alone)
    progress(count)
    return cyclic_descent(
        at,
        count,
        lambda at, k: task.improved(at, k, alone[k]),
        cycles=cycles if count > 1 else 0,
        tolerance=tolerance,
        progress=lambda done: progress(count + done),
    )


def minimise(
    loss: OneStage, design: Design, Z: FloatArray, start: Linear, ridge: float, steps: int
) -> Linear:
    """L-BFGS on weights and constant from ``start``; ``Z`` (c, n) are the design's columns."""

    def with_ridge(weights: FloatArray, bias: float) -> tuple[float, FloatArray, float]:
        value, by_score = loss(weights @ Z + bias)
        total = value + 0.5 * ridge * float(weights @ weights)
        return total, Z @ by_score + ridge * weights, float(by_score.sum())

    # run to a flat gradient: a stop by small gains would let rounding decide where
    return Linear(
        *minimise_whitened(with_ridge, design.root, start.weights, start.bias, steps, ftol=0.0)
    )
