"""Draws of several repeats or data sets joined to draws of their mean.

The mean over groups (seeds, folds, data sets) varies with the units and with the groups.

- Groups on the same units (seeds of one test split): the units' draws, which they share, and on
  top each group's deviation from the mean, times a standard normal number per draw (multiplier
  bootstrap: three groups resampled as they are would know ten outcomes only).
- Groups of units of their own: their spread holds the noise of their units already, and the
  deviations stand alone. Fewer than ``FEW`` groups tell little about their spread; where it is
  below what the units alone explain, the units' draws are taken instead.

Intervals are widened from the normal to Student's distribution by ``Level.units`` and
``Level.groups``, with the degrees of freedom of Satterthwaite (1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_core.arrays import FloatArray

FEW = 5


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Draws of learners' values, with the covariances (learners, learners) of their mean."""

    draws: FloatArray  # (learners, 1 + resamples), the first is observed
    within: FloatArray  # from units
    between: FloatArray  # from groups
    units: int  # or blocks behind it
    groups: int = 1

    @property
    def observed(self) -> FloatArray:
        """Each learner's value on the data as they are."""
        return self.draws[:, 0]

    def only(self, learners: Sequence[int]) -> Level:
        """The same of these learners."""
        square = np.ix_(list(learners), list(learners))
        within, between = self.within[square], self.between[square]
        return Level(self.draws[list(learners)], within, between, self.units, self.groups)


def of_units(draws: FloatArray, units: int) -> Level:
    """The level of one repeat, from ``bootstrap.draw``."""
    within = np.cov(draws[:, 1:]) if draws.shape[1] > 2 else np.zeros((len(draws),) * 2)
    within = np.atleast_2d(within)
    return Level(draws, within, np.zeros_like(within), units)


def joined(groups: Sequence[Level], same_units: bool, seed: int = 0) -> Level:
    """The level of the mean over ``groups``, which have the same learners and resamples.

    ``same_units``: the groups' units are the same rows, drawn together (several seeds on one test
    split); else they are drawn apart.
    """
    n = len(groups)
    if n == 1:
        return groups[0]
    units = np.mean([group.draws for group in groups], axis=0)
    within = np.atleast_2d(np.cov(units[:, 1:]))
    observed = np.stack([group.observed for group in groups])  # (n, learners)
    spread = np.atleast_2d(np.cov(observed.T)) / n
    fewest = min(group.units for group in groups)
    if not same_units and n < FEW and _size(spread) < _size(within):
        return Level(units, within, np.zeros_like(within), fewest * n)
    effects = (observed - observed.mean(axis=0)) / np.sqrt(n * (n - 1))
    times = np.random.default_rng(seed).standard_normal((units.shape[1], n))
    times[0] = 0
    moved = (units if same_units else units[:, :1]) + (times @ effects).T
    return Level(moved, within * same_units, spread, fewest, n)


def _size(covariance: FloatArray) -> float:
    """The variance of the learners' differences, in all (of the value, for one learner)."""
    n = len(covariance)
    return float(np.trace(covariance) - (covariance.sum() / n if n > 1 else 0))
