"""Learners whose quality falls from validation to test by more than chance.

The statistic is the fall at the point of best validation quality over its standard error, so that
splits of different size or noise can be exchanged (A. Janssen, "Studentized permutation tests for
non-i.i.d. hypotheses and the generalized Behrens-Fisher problem", 1997). Each shuffle of queries or
rows between the splits chooses its point again: the best of many points falls by chance alone.
"""

from collections.abc import Sequence

import numpy as np

from bench_core.arrays import BoolArray
from bench_core.statistics.bootstrap import Candidates
from bench_core.statistics.repeats import Repeat

LEVEL = 0.001
"""Chance that a learner is named whose units are drawn alike."""

PLAIN = 3.0
"""A fall of fewer standard errors needs no shuffles."""


def falling(repeats: Sequence[Repeat], higher: bool) -> set[str]:
    """The learners whose quality falls in some repeat; ``higher``: whether more of it is better."""
    shuffles = int(np.ceil(len(repeats) / LEVEL))
    return {
        name
        for repeat in repeats
        for name, own in repeat.candidates.items()
        if falls(own, higher, shuffles)
    }


def falls(own: Candidates, higher: bool, shuffles: int) -> bool:
    """Whether the quality of one learner falls by more than in any of so many ``shuffles``."""
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
