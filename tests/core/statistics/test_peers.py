"""Against libraries for the comparison of classifiers, where they are installed:
``pip install -e '.[checks]'``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.levels import level_of

from bench_core.leaderboard.ranks import least_difference
from bench_core.statistics.comparison import differences

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("shift", [0.0, 0.01, 0.02, 0.04])
def test_practical_equivalence_is_that_of_the_bayesian_t_test(shift: float) -> None:
    """Benavoli et al. (2017). The test allows for folds that share training rows by a correlation
    of 1 / n; units share none, so deviations are shrunk by what that adds."""
    baycomp = pytest.importorskip("baycomp", reason="baycomp is not installed")
    rng, n, interest = np.random.default_rng(0), 400, 0.02
    hard = rng.normal(0.5, 0.3, n)
    first, second = hard + shift + rng.normal(0, 0.15, n), hard + rng.normal(0, 0.15, n)
    (found,) = differences(level_of(first, second, resamples=10_000), [(0, 1)], interest)
    gain = first - second
    shrunk = gain.mean() + (gain - gain.mean()) / np.sqrt(1 + 1 / (1 - 1 / n))
    _, equal, _ = baycomp.CorrelatedTTest.probs(shrunk, np.zeros(n), rope=interest)
    assert found.equivalent == pytest.approx(equal, abs=0.02)


def test_the_least_difference_of_ranks_is_that_of_autorank() -> None:
    autorank = pytest.importorskip("autorank", reason="autorank is not installed")
    values = np.random.default_rng(1).exponential(np.arange(1, 7), (30, 6)) ** 3
    found = autorank.autorank(pd.DataFrame(values), alpha=0.05, verbose=False)
    assert found.posthoc == "nemenyi"
    assert found.cd == pytest.approx(least_difference(30, 6), rel=1e-3)
