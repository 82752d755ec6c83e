"""Learners whose quality falls from validation to test by more than chance.

The statistic is the fall at the point of best validation quality over its standard error, so that
splits of different size or noise are exchangeable (A. Janssen, "Studentized permutation tests for
non-i.i.d. hypotheses and the generalized Behrens-Fisher problem", 1997). Each permutation of
queries or rows chooses its point again, as the best of many points falls by chance.
"""

from collections.abc import Sequence

import numpy as np

from bench_core.arrays import BoolArray
from bench_core.statistics.bootstrap import Candidates
from bench_core.statistics.repeats import Repeat

LEVEL = 0.001
"""Probability of a false alarm for a learner without a shift."""

PLAIN = 3.0
"""Falls below so many standard errors need no permutations."""


def falling(repeats: Sequence[Repeat], higher: bool) -> set[str]:
    """Return the learners whose quality falls in some repeat; ``higher``: higher is better."""
    shuffles = int(np.ceil(len(repeats) / LEVEL))
    return {
        name
        for repeat in repeats
        for name, own in repeat.candidates.items()
        if falls(own, higher, shuffles)
    }


def falls(own: Candidates, higher: bool, shuffles: int) -> bool:
    """True if one learner's quality falls by more than in all of ``shuffles`` permutations."""
    weights = np.concatenate([own.valid.weights, own.test.weights])
    known, first = weights > 0, np.arange(len(weights)) < len(own.valid.weights)
    values = np.hstack([own.valid.quality, own.test.quality])[:, known] * (1 if higher else -1)
    weights, first = weights[known].astype(np.float64), first[known]

    def fall(valid: BoolArray) -> float:
        before, after = ((values[:, part], weights[part]) for part in (valid, ~valid))
        means = [part @ own / own.sum() for part, own in (before, after)]
        k = int(np.argmax(means[0]))
        noise = sum(
            ((own * (part[k] - mean[k])) ** 2).sum() / own.sum() ** 2
            for (part, own), mean in zip((before, after), means, strict=True)
        )
        return float((means[0][k] - means[1][k]) / np.sqrt(noise)) if noise > 0 else 0.0

    if min(first.sum(), (~first).sum()) < 2 or (observed := fall(first)) < PLAIN:
        return False
    rng = np.random.default_rng(0)
    return all(fall(rng.permutation(first)) < observed for _ in range(shuffles))
