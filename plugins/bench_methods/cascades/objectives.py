"""The two objectives over the stages' scores, and cyclic descent over stages.

Scores are ``f`` (K, n). ``share`` (n,) are row weights in means. A loss is a function of all stages
or of one stage, without the ridge. Each stage is minimised by L-BFGS in whitened coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_models.descent import cyclic_descent, minimise_whitened
from bench_models.links import log_sigmoid

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

OneStage = Callable[[FloatArray], tuple[float, FloatArray]]
"""A loss and its derivative (n,) by one stage's scores (n,)."""

_STEEP = 1e-4  # largest entry of the gradient, in whitened coordinates, at which a descent ends
_CERTAIN = -1e-12  # upper limit of log-probabilities, for a finite loss


@dataclass(frozen=True, slots=True, eq=False)
class Soft:
    """Log-loss of the product of the stages' probabilities, plus ``tau`` times expected cost.

    ``cost`` (K,) is the additional cost of each stage.
    """

    positive: BoolArray
    share: FloatArray
    cost: FloatArray
    tau: float
    curvature: float = 0.25
    restarts: ClassVar[bool] = False

    def value(self, scores: FloatArray) -> float:
        """Mean loss and expected cost."""
        # log-probability of passing the first k stages (K, n)
        passed = np.cumsum(log_sigmoid(scores), axis=0)
        loss = self._loss(passed[-1])
        spent = self.cost[0] + self.cost[1:] @ np.exp(passed[:-1])
        return float(self.share @ (loss + self.tau * spent))

    def _loss(self, logp: FloatArray) -> FloatArray:
        logp = np.minimum(logp, _CERTAIN)
        return np.where(self.positive, -logp, -np.log(-np.expm1(logp)))

    def stage(self, scores: FloatArray, k: int) -> OneStage:
        """Loss as a function of stage k, the other stages fixed."""
        logs = log_sigmoid(scores)
        logs[k] = 0.0
        others = logs.sum(axis=0)
        # reach of later stages if this gate is open
        reach_if_open = np.exp(np.cumsum(logs, axis=0)[k:-1])
        behind = self.tau * (self.cost[k + 1 :] @ reach_if_open)

        def evaluate(f: FloatArray) -> tuple[float, FloatArray]:
            own = log_sigmoid(f)
            passes, stops = np.exp(own), np.exp(own - f)  # sigma(f) and 1 - sigma(f)
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
    """``max(0, z)`` smoothed on [0, width], and its derivative. ``width`` 0: not smoothed."""
    if width == 0:
        return np.maximum(z, 0.0), (z > 0).astype(np.float64)
    slope = np.clip(z / width, 0.0, 1.0)
    return slope * (z - 0.5 * width * slope), slope


@dataclass(frozen=True, slots=True, eq=False)
class Hinges:
    """AND-OR: product of hinges for negatives, ``nu`` times the largest one for positives.

    ``stage`` and ``alone`` smooth the hinge over ``width``.
    """

    positive: BoolArray
    share: FloatArray
    nu: float
    width: float = 0.1
    curvature: float = 1.0
    restarts: ClassVar[bool] = True

    def value(self, scores: FloatArray) -> float:
        """The objective as printed."""
        errors = np.maximum(0.0, 1.0 - np.where(self.positive, scores, -scores))
        loss = np.where(self.positive, self.nu * errors.max(axis=0), errors.prod(axis=0))
        return float(self.share @ loss)

    def stage(self, scores: FloatArray, k: int) -> OneStage:
        """A weighted hinge; for positives it starts at the largest hinge of the other stages."""
        errors = np.maximum(0.0, 1.0 - np.where(self.positive, scores, -scores))
        errors = np.delete(errors, k, axis=0)
        weight = np.where(self.positive, self.nu, errors.prod(axis=0)) * self.share
        # for a positive the largest error counts
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
"""An objective without the ridge.

``curvature``: approximate curvature of a row's loss in a stage's score. ``value``: the objective.
``stage``: the objective as a function of one stage, up to a constant. ``alone``: the loss of a
cascade of one stage, for initialisation. ``restarts``: see ``descend``.
"""


@dataclass(frozen=True, slots=True, eq=False)
class StageDesign:
    """One stage's ``trees`` (c,) that vary, their ``columns`` (c, n) about the ``mean`` (c,), the
    common ``scale`` for mean variance 1, and ``root`` (c, c), the Cholesky factor of curvature x
    covariance + ridge."""

    trees: IntArray
    columns: FloatArray
    mean: FloatArray
    scale: float
    root: FloatArray


def stage_designs(
    columns: Float32Array,
    stages: Sequence[IntArray],
    share: FloatArray,
    curvature: float,
    ridge: float,
) -> list[StageDesign]:
    """Designs of stages that each have the trees of the one before, as views of one array.

    ``columns`` float32 (T, n); ``share`` (n,) sums to 1.
    """
    trees = np.concatenate([stages[0], *map(np.setdiff1d, stages[1:], stages)])
    data = columns[trees].astype(np.float64)
    mean = data @ share
    data -= mean[:, None]
    gram = (data * share) @ data.T
    # drop columns that are constant up to rounding
    varies = gram.diagonal() > (1e-6 * np.maximum(np.abs(mean), 1e-30)) ** 2
    counts = np.append(0, np.cumsum(varies))[[len(stage) for stage in stages]]
    if not varies.all():
        trees, data, mean, gram = trees[varies], data[varies], mean[varies], gram[varies][:, varies]
    designs = []
    for c in counts.tolist():
        scale = float(np.sqrt(gram.diagonal()[:c].mean())) if c else 1.0
        hessian = curvature / scale**2 * gram[:c, :c]  # approximate, of the stage's loss
        np.fill_diagonal(hessian, hessian.diagonal() + ridge)
        root = np.linalg.cholesky(hessian)
        designs.append(StageDesign(trees[:c], data[:c], mean[:c], scale, root))
    return designs


@dataclass(frozen=True, slots=True, eq=False)
class StageFunction:
    """One stage's weights (c,) on its scaled columns, and its constant."""

    weights: FloatArray
    bias: float

    def on_trees(self, design: StageDesign) -> tuple[FloatArray, float]:
        """Weights (c,) and constant for the trees' raw outputs."""
        plain = self.weights / design.scale
        return plain, self.bias - float(plain @ design.mean)

    def scores(self, design: StageDesign) -> FloatArray:
        """Scores (n,) of the training rows."""
        return np.asarray((self.weights / design.scale) @ design.columns + self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class FittedStages:
    """All stages, their scores (K, n) on the training rows, and the loss with its ridge."""

    stages: tuple[StageFunction, ...]
    scores: FloatArray
    loss: float


@dataclass(frozen=True, slots=True, eq=False)
class StageDescent:
    """Minimisation of ``loss`` of the stages' scores + ridge / 2 sum of squared weights."""

    designs: Sequence[StageDesign]
    loss: Loss
    ridge: float
    steps: int

    def alone(self, k: int) -> StageFunction:
        """Stage k fitted as if it were the only one."""
        design = self.designs[k]
        start = StageFunction(np.zeros(len(design.trees)), 0.0)
        return minimise(self.loss.alone(), design, start, self.ridge, self.steps)

    def evaluated(
        self, stages: Sequence[StageFunction], scores: FloatArray | None = None
    ) -> FittedStages:
        """The objective of these stages, with their ``scores`` (K, n) if known."""
        if scores is None:
            pairs = zip(stages, self.designs, strict=True)
            scores = np.stack([s.scores(d) for s, d in pairs])
        squares = sum(float(s.weights @ s.weights) for s in stages)
        loss = self.loss.value(scores) + 0.5 * self.ridge * squares
        return FittedStages(tuple(stages), scores, loss)

    def improved(self, at: FittedStages, k: int, start: StageFunction) -> FittedStages:
        """``at`` with a better stage k by a descent from ``start``, or ``at`` if that is worse."""
        design = self.designs[k]
        loss = self.loss.stage(at.scores, k)
        found = minimise(loss, design, start, self.ridge, self.steps)
        scores = at.scores.copy()
        scores[k] = found.scores(design)
        new = self.evaluated((*at.stages[:k], found, *at.stages[k + 1 :]), scores)
        return new if new.loss < at.loss else at


def descend(
    task: StageDescent,
    cycles: int,
    tolerance: float,
    progress: Callable[[int], None] = lambda done: None,
) -> FittedStages:
    """Fit each stage alone, then cycle over them; updates that raise the objective are dropped.

    A stage that passes all rows has no gradient. Where a descent fails, another one starts from the
    stage fitted alone, once for each stage; if the loss ``restarts``, in every cycle but the first.
    Ends when the relative gain of a cycle is below ``tolerance``.
    """
    count = len(task.designs)
    alone = [task.alone(k) for k in range(count)]
    at, unused = task.evaluated(alone), set(range(count))

    def improved(at: FittedStages, k: int) -> FittedStages:
        new = task.improved(at, k, at.stages[k])
        if at.stages[k] is alone[k] or not (task.loss.restarts or (new is at and k in unused)):
            return new
        unused.discard(k)
        return min(new, task.improved(at, k, alone[k]), key=lambda fitted: fitted.loss)

    progress(count)
    return cyclic_descent(
        at,
        count,
        improved,
        cycles=cycles if count > 1 else 0,
        tolerance=tolerance,
        progress=lambda done: progress(count + done),
    )


def minimise(
    loss: OneStage,
    design: StageDesign,
    start: StageFunction,
    ridge: float,
    steps: int,
) -> StageFunction:
    """L-BFGS on weights and constant from ``start``.

    Uses whitened coordinates: correlated boosted columns would otherwise take hundreds of steps.
    """

    def value(weights: FloatArray, biases: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        lost, by_score = loss((weights[0] / design.scale) @ design.columns + biases[0])
        total = lost + 0.5 * ridge * float(weights[0] @ weights[0])
        by_weights = design.columns @ by_score / design.scale + ridge * weights[0]
        return total, by_weights[None], np.array([by_score.sum()])

    # stop by the gradient: a stop by small gains would depend on rounding
    begin = start.weights[None], np.array([start.bias])
    (found,), (bias,), _ = minimise_whitened(
        value, design.root, *begin, steps=steps, ftol=0.0, gtol=_STEEP
    )
    return StageFunction(found, float(bias))
