"""How many blocks of units the draws of a board take, and how many draws there are.

What is lost by drawing blocks is knowledge of the variance: of b blocks the ends of an interval
vary by a share of 1 / sqrt(2 b) of its half width, and of r draws by 1.36 / sqrt(r) for 95%.
"""

from typing import NamedTuple

from bench_core.results.blocks import BLOCKS, FEW

MANY = 250
"""Settings of all learners in one repeat, from which on time and memory matter more."""


class Effort(NamedTuple):
    """How many blocks are drawn at most, and how often."""

    blocks: int
    resamples: int


def effort(settings: int, resamples: int) -> Effort:
    """What the draws of a board take, with so many ``settings`` in one repeat."""
    return Effort(FEW, min(resamples, 1000)) if settings >= MANY else Effort(BLOCKS, resamples)
