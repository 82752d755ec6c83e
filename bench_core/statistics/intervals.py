"""An interval, apart from what computes it: boards hold intervals and need no numpy."""

from typing import NamedTuple


class Interval(NamedTuple):
    """A two-sided interval."""

    low: float
    high: float
