"""Platt scaling: scores as log-odds by logistic regression on one column with softened targets.

J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods", 1999 [M]. The targets are (P + 1) / (P + 2) for the P positive rows and 1 / (N
+ 2) for the N others: the line stays finite where the scores separate the classes. Its slope is
kept above 0, so calibration never changes the order of rows.
"""

from typing import NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_models.descent import lbfgs
from bench_models.links import softplus_and_sigmoid

LEAST_SLOPE = 1e-3
"""Least log-odds per standard deviation of the scores."""


class Line(NamedTuple):
    """Log-odds ``slope`` * score + ``intercept``."""

    slope: float
    intercept: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """The log-odds of scores of any shape."""
        return self.slope * scores + self.intercept


def platt(scores: FloatArray, positive: BoolArray, mass: FloatArray) -> Line:
    """The rising line of least logistic loss for ``scores`` (n,) of rows with weights ``mass``
    (n,)."""
    ones = float(mass[positive].sum())
    others = float(mass.sum()) - ones
    target = np.where(positive, (ones + 1) / (ones + 2), 1 / (others + 2))
    share = mass / mass.sum()
    centre = float((share * scores).sum())
    spread = float(np.sqrt((share * (scores - centre) ** 2).sum()))
    varied = bool(np.ptp(scores) > 0) and spread > 0
    z = (scores - centre) / spread if varied else np.zeros(len(scores))

    def loss(line: FloatArray) -> tuple[float, FloatArray]:
        score = line[0] * z + line[1]
        value, p = softplus_and_sigmoid(score)
        off = share * (p - target)
        return float(share @ (value - target * score)), np.array([off @ z, off.sum()])

    least = np.array([LEAST_SLOPE, -np.inf])
    found, _ = lbfgs(loss, np.array([1.0, 0.0]), steps=15000, ftol=0.0, gtol=1e-12, least=least)
    slope, intercept = found if varied else (LEAST_SLOPE, found[1])
    slope /= spread if varied else 1.0
    return Line(float(slope), float(intercept - slope * centre))
