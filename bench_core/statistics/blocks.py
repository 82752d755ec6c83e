"""How many blocks of units the draws of a board take, and how many draws there are.

What is lost by drawing blocks is knowledge of the variance: of b blocks the ends of an interval
vary by a share of 1 / sqrt(2 b) of its half width, and of r draws by 1.36 / sqrt(r) for 95%: of 128
blocks by 6.3%, of 399 draws by 6.8%, of 1000 by 4.3%.
"""

from typing import NamedTuple

from bench_core.results.blocks import BLOCKS, FEW

MANY, FEW_DRAWS = 250, 399
"""Settings of all learners in one repeat, from which on time and memory matter more, and how many
draws there are then: the 10th and the 390th are the ends of a 95% interval."""


class Effort(NamedTuple):
    """How many blocks are drawn at most, and how often."""

    blocks: int
    resamples: int


def effort(settings: int, resamples: int) -> Effort:
    """What the draws of a board take, with so many ``settings`` in one repeat."""
    few = Effort(FEW, min(resamples, FEW_DRAWS))
    return few if settings >= MANY else Effort(BLOCKS, resamples)
