"""Ranking data: documents are relevant or not, and f0's scores become log-odds of relevance.

f0 learns the grades, in a unit of its own. What a gate weighs, and what is ranked together with
f1's log-odds, must be log-odds of the same event, so a line is fitted to f0's scores after

J. Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
Likelihood Methods", 1999 [M]: logistic regression of one slope and one intercept on the targets
(P + 1) / (P + 2) of the P relevant rows and 1 / (N + 2) of the N others, so that it is finite
where the scores separate the two. The slope is kept above 0: f0's own order never changes. The
rows are those of validation: on rows that it was trained on f0 is far surer than on others, and a
line fitted there ranks what f0 answers apart from what f1 does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples

Floats = NDArray[np.float64]

LEAST = 1e-3  # log-odds that one standard deviation of f0's scores is worth at least
_STEPS = 100


def relevance_labels(train: Examples, relevant_grade: int) -> Examples:
    """The rows labelled 1 where their grade is relevant, else 0."""
    return replace(train, y=np.where(train.y >= relevant_grade, 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class Platt:
    """Log-odds ``slope`` * score + ``intercept``."""

    slope: float
    intercept: float

    def __call__(self, scores: Floats) -> Floats:
        """The log-odds of scores (n,)."""
        return self.slope * scores + self.intercept

    @classmethod
    def of(cls, scores: Floats, positive: NDArray[np.bool_], mass: Floats) -> Self:
        """The line of least logistic loss for ``scores`` (n,), rows counting ``mass`` times."""
        ones = float(mass[positive].sum())
        others = float(mass.sum()) - ones
        target = np.where(positive, (ones + 1) / (ones + 2), 1 / (others + 2))
        share = mass / mass.sum()
        centre = float((share * scores).sum())
        spread = float(np.sqrt((share * (scores - centre) ** 2).sum()))
        varied = bool(np.ptp(scores) > 0) and spread > 0
        z = (scores - centre) / spread if varied else np.zeros(len(scores))
        one = np.ones(len(scores))
        slope, intercept = _logistic(np.stack([z, one]), 0 * z, target, share) if varied else (0, 0)
        if slope < LEAST:
            slope, intercept = LEAST, _logistic(one[None], LEAST * z, target, share)[0]
        slope /= spread if varied else 1.0
        return cls(float(slope), float(intercept - slope * centre))


def _logistic(Z: Floats, offset: Floats, target: Floats, share: Floats) -> Floats:
    """Weights (k,) of least mean logistic loss of ``w Z + offset``, by Newton's method.

    ``Z`` is (k, n). Plain sums, no BLAS: as many threads as there are, the same bits.
    """
    w, (value, slope, curve) = np.zeros(len(Z)), _loss(np.zeros(len(Z)), Z, offset, target, share)
    for _ in range(_STEPS):
        step = np.linalg.solve(curve + 1e-15 * np.eye(len(Z)), slope)
        found = _loss(w - step, Z, offset, target, share)
        while found[0] > value and np.abs(step).max() > 1e-15:
            step = step / 2
            found = _loss(w - step, Z, offset, target, share)
        if found[0] >= value:
            break
        w, (value, slope, curve) = w - step, found
    return w


def _loss(
    w: Floats, Z: Floats, offset: Floats, target: Floats, share: Floats
) -> tuple[float, Floats, Floats]:
    """The mean logistic loss on soft targets, its gradient (k,) and its hessian (k, k)."""
    score = (w[:, None] * Z).sum(axis=0) + offset
    value = np.logaddexp(0.0, score)
    p = np.exp(score - value)
    loss = float((share * (value - target * score)).sum())
    slope = (share * (p - target) * Z).sum(axis=1)
    curve = np.einsum("in,jn->ij", share * p * (1 - p) * Z, Z)
    return loss, slope, curve
