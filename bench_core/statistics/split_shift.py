"""Learners whose quality falls from validation to test by more than chance.

The statistic is the fall at the point of best validation quality over its standard error, so that
splits of different size or noise are exchangeable (A. Janssen, "Studentized permutation tests for
non-i.i.d. hypotheses and the generalized Behrens-Fisher problem", 1997). Each permutation of
queries or rows chooses its point again, as the best of many points falls by chance.
"""

from collections.abc import Sequence

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.statistics.bootstrap import Candidates, one_thread
from bench_core.statistics.repeats import Repeat

LEVEL = 0.001
"""Probability of a false alarm for a learner without a shift."""

PLAIN = 3.0
"""Falls below so many standard errors need no permutations."""

_CELLS = 1_000_000  # of permuted rows at a time


def falling(repeats: Sequence[Repeat], higher: bool) -> set[str]:
    """Return the learners whose quality falls in some repeat; ``higher``: higher is better."""
    shuffles = int(np.ceil(len(repeats) / LEVEL))
    return {
        name
        for repeat in repeats
        for name, own in repeat.candidates.items()
        if falls(own, higher, shuffles)
    }


def falls(points: Candidates, higher: bool, shuffles: int) -> bool:
    """True if one learner's quality falls by more than in all of ``shuffles`` permutations; False
    without points."""
    if not len(points.valid.quality):
        return False
    weights = np.concatenate([points.valid.weights, points.test.weights])
    counted, first = weights > 0, np.arange(len(weights)) < len(points.valid.weights)
    sign = 1 if higher else -1
    values = sign * np.hstack([points.valid.quality, points.test.quality])[:, counted]
    values = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0.0))[1])  # for float32
    weights, first = weights[counted].astype(np.float64), first[counted]
    weighted = values * weights
    rounding = 1e-24 * np.square(values).max(initial=0.0)  # the noise of equal values

    def fall(valid: BoolArray) -> FloatArray:
        """Return the statistic of each division (m, n) into validation and test."""
        shares = valid / (valid @ weights)[:, None], ~valid / (~valid @ weights)[:, None]
        before = shares[0] @ weighted.T
        k = before.argmax(axis=1)
        means = before.max(axis=1), (shares[1] * weighted[k]).sum(axis=1)
        noise = sum(
            ((share * weights * (values[k] - mean[:, None])) ** 2).sum(axis=1)
            for share, mean in zip(shares, means, strict=True)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(noise > rounding, (means[0] - means[1]) / np.sqrt(noise), 0.0)

    with one_thread():
        if min(first.sum(), (~first).sum()) < 2 or (observed := fall(first[None])[0]) < PLAIN:
            return False
        rng, block = np.random.default_rng(0), max(1, min(50, _CELLS // len(first)))
        sizes = [len(part) for part in np.array_split(np.arange(shuffles), -(-shuffles // block))]
        return all(
            (fall(np.array([rng.permutation(first) for _ in range(size)])) < observed).all()
            for size in sizes
        )
