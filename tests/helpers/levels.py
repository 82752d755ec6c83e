"""Levels of learners with one operating point each."""

import numpy as np

from bench_core.statistics.bootstrap import Candidates, Units, draw
from bench_core.statistics.repeats import of_units


def of_units_alone(valid, test, other=None):
    """Candidates with these units, paired with the values ``other`` by unit."""
    keys = [("{}", f'{{"trees":{k}}}') for k in range(len(valid.quality))]
    return Candidates.of(valid, test, keys, other)


def level_of(*values, resamples=2000, seed=0):
    """The level of learners with these values per unit."""
    ones = np.ones(len(values[0]))
    units = [Units(one[None], ones[None], ones, ones) for one in values]
    drawn = [draw(of_units_alone(one, one), resamples, seed).test_quality[:, 0] for one in units]
    return of_units(np.array(drawn, dtype=np.float64), len(ones))
