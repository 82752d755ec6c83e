"""Scores as log-odds: logistic regression on one column, with softened targets.

J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods", 1999 [M]: the targets are (P + 1) / (P + 2) for the P positive rows and
1 / (N + 2) for the N others, so that the line is finite where the scores separate the two. Its
slope is kept above 0: calibration never changes the order of rows.
"""

from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_models.logistic import softplus_and_sigmoid

LEAST_SLOPE = 1e-3
"""Log-odds that one standard deviation of the scores is worth at least."""
_STEPS = 100


class Line(NamedTuple):
    """Log-odds ``slope`` * score + ``intercept``."""

    slope: float
    intercept: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The log-odds of scores of any shape."""
        return self.slope * scores + self.intercept


def platt(scores: FloatArray, positive: BoolArray, mass: FloatArray) -> Line:
    """The rising line of least logistic loss for ``scores`` (n,), rows counting ``mass`` (n,)
    times."""
    ones = float(mass[positive].sum())
    others = float(mass.sum()) - ones
    target = np.where(positive, (ones + 1) / (ones + 2), 1 / (others + 2))
    share = mass / mass.sum()
    centre = float((share * scores).sum())
    spread = float(np.sqrt((share * (scores - centre) ** 2).sum()))
    varied = bool(np.ptp(scores) > 0) and spread > 0
    z = (scores - centre) / spread if varied else np.zeros(len(scores))
    one = np.ones(len(scores))
    slope, intercept = _newton(np.stack([z, one]), 0 * z, target, share) if varied else (0, 0)
    if slope < LEAST_SLOPE:
        slope = LEAST_SLOPE
        intercept = _newton(one[None], LEAST_SLOPE * z, target, share)[0]
    slope /= spread if varied else 1.0
    return Line(float(slope), float(intercept - slope * centre))


def _newton(Z: FloatArray, offset: FloatArray, target: FloatArray, share: FloatArray) -> FloatArray:
    """Weights (k,) of least mean logistic loss of ``w Z + offset``, by Newton's method.

    ``Z`` is (k, n), k at most 2. Sums in a fixed order, no BLAS: everywhere the same bits.
    """
    w, (value, slope, curve) = np.zeros(len(Z)), _loss(np.zeros(len(Z)), Z, offset, target, share)
    for _ in range(_STEPS):
        step = _solved(curve + 1e-15 * np.eye(len(Z)), slope)
        new = _loss(w - step, Z, offset, target, share)
        while new[0] > value and np.abs(step).max() > 1e-15:
            step = step / 2
            new = _loss(w - step, Z, offset, target, share)
        if new[0] >= value:
            break
        w, (value, slope, curve) = w - step, new
    return w


def _loss(
    w: FloatArray, Z: FloatArray, offset: FloatArray, target: FloatArray, share: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """The mean logistic loss on soft targets, its gradient (k,) and its hessian (k, k)."""
    score = (w[:, None] * Z).sum(axis=0) + offset
    value, p = softplus_and_sigmoid(score)
    loss = float((share * (value - target * score)).sum())
    gradient = (share * (p - target) * Z).sum(axis=1)
    hessian = (share * p * (1 - p) * Z) @ Z.T
    return loss, gradient, hessian


def _solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """A^-1 b for one or two unknowns."""
    if len(b) == 1:
        one: FloatArray = b / A[0, 0]
        return one
    det = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    both: FloatArray = (
        np.array([A[1, 1] * b[0] - A[0, 1] * b[1], A[0, 0] * b[1] - A[1, 0] * b[0]]) / det
    )
    return both
