"""Draws of several repeats or data sets joined to draws of their mean.

The mean over groups (seeds, folds, data sets) varies with the units and with the groups.

- Groups on the same units (seeds of one test split): the units' draws, which they share, and on
  top each group's deviation from the mean, times a normal number per draw (multiplier bootstrap:
  three groups resampled as they are would know ten outcomes only).
- Groups of units of their own: their spread holds the noise of their units already, and the
  deviations stand alone.

A number chi-square per draw makes the multipliers Student's with as many degrees of freedom as the
groups have: a few groups tell little about their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_core.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Draws of learners' values, with the covariances (learners, learners) of their mean."""

    draws: FloatArray  # (learners, 1 + resamples), the first is observed
    within: FloatArray  # from units
    shared: FloatArray  # the part of it that all groups share: the same units in each
    between: FloatArray  # from groups, with the rest of ``within``
    units: int  # or blocks behind it
    groups: int = 1

    @property
    def observed(self) -> FloatArray:
        """Each learner's value on the data as they are."""
        return self.draws[:, 0]

    def only(self, learners: Sequence[int]) -> Level:
        """The same of these learners."""
        square = np.ix_(list(learners), list(learners))
        within, shared, between = (
            part[square] for part in (self.within, self.shared, self.between)
        )
        draws = self.draws[list(learners)]
        return Level(draws, within, shared, between, self.units, self.groups)


def of_units(draws: FloatArray, units: int) -> Level:
    """The level of one repeat, from ``bootstrap.draw``."""
    within = np.cov(draws[:, 1:]) if draws.shape[1] > 2 else np.zeros((len(draws),) * 2)
    within = np.atleast_2d(within)
    return Level(draws, within, within, np.zeros_like(within), units)


def joined(groups: Sequence[Level], same_units: bool, seed: int = 0) -> Level:
    """The level of the mean over ``groups``, which have the same learners and resamples.

    ``same_units``: the groups' units are the same rows, drawn together (several seeds on one test
    split); else they are drawn apart.
    """
    n = len(groups)
    if n == 1:
        return groups[0]
    observed = np.stack([group.observed for group in groups])  # (n, learners)
    units = np.mean([group.draws for group in groups], axis=0)
    mean = np.mean([group.within for group in groups], axis=0)
    within, shared = mean / n, np.zeros_like(mean)
    if same_units:
        within = np.atleast_2d(np.cov(units[:, 1:]))
        # what units do in each group for itself, of the mean (analysis of variance, two ways)
        shared = within - (mean - within) / (n - 1)
    rng = np.random.default_rng(seed)
    times = rng.standard_normal((units.shape[1], n))
    times *= np.sqrt((n - 1) / rng.chisquare(n - 1, (len(times), 1)))
    times[0] = 0
    effects = (observed - observed.mean(axis=0)) / np.sqrt(n * (n - 1))
    moved = (units if same_units else units[:, :1]) + (times @ effects).T
    spread = np.atleast_2d(np.cov(observed.T)) / n
    return Level(moved, within, shared, spread, min(group.units for group in groups), n)
