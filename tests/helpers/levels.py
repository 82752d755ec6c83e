"""Levels of learners with one operating point each."""

import numpy as np

from bench_core.statistics.bootstrap import Candidates, Units, draw
from bench_core.statistics.repeats import of_units


def level_of(*values, resamples=2000, seed=0):
    """The level of learners with these values per unit."""
    ones = np.ones(len(values[0]))
    units = [Units(one[None], ones[None], ones, ones) for one in values]
    drawn = [draw(Candidates(one, one), resamples, seed).test_quality[:, 0] for one in units]
    return of_units(np.array(drawn, dtype=np.float64), len(ones))
