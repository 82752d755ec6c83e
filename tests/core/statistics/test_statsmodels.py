"""Against statsmodels and libraries for the comparison of classifiers, where they are installed:
``pip install -e '.[checks]'``."""

import numpy as np
import pandas as pd
import pytest
from helpers.levels import level_of

from bench_core.leaderboard.conclusion import least_difference
from bench_core.statistics.comparison import differences, holm, interval

pytest.importorskip("statsmodels", reason="statsmodels is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that statsmodels imports


def paired(shift, n, interest=0.02):
    """The differences by unit of two learners, and what is said of them."""
    rng = np.random.default_rng(0)
    hard = rng.normal(0.5, 0.3, n)
    first, second = hard + shift + rng.normal(0, 0.15, n), hard + rng.normal(0, 0.15, n)
    (found,) = differences(level_of(first, second, resamples=20_000), [(0, 1)], [interest])
    return first - second, found


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03, 0.005], [0.5, 0.5, 0.9], [0.02], [0.0, 1.0]])
def test_p_values_are_adjusted_as_by_statsmodels(p):
    from statsmodels.stats.multitest import multipletests

    assert holm(np.array(p)) == pytest.approx(multipletests(p, method="holm")[1])


@pytest.mark.parametrize("n", [25, 400])
def test_the_interval_of_a_mean_is_that_of_students_distribution(n):
    """Percentiles of 20000 draws are sure to about 1% of the interval's width."""
    from statsmodels.stats.weightstats import DescrStatsW

    values = np.random.default_rng(2).normal(3, 1, n)
    low, high = interval(level_of(values, resamples=20_000), np.ones(1))
    wanted = DescrStatsW(values).tconfint_mean()
    assert (low, high) == pytest.approx(wanted, abs=0.03 * (wanted[1] - wanted[0]))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.85])
def test_the_interval_of_an_accuracy_is_that_of_a_proportion(share):
    from statsmodels.stats.proportion import proportion_confint

    n = 500
    values = (np.arange(n) < share * n).astype(float)
    low, high = interval(level_of(values, resamples=20_000), np.ones(1))
    wanted = proportion_confint(int(values.sum()), n, method="normal")
    assert (low, high) == pytest.approx(wanted, abs=0.04 * (wanted[1] - wanted[0]))


@pytest.mark.parametrize("shift", [0.0, 0.01, 0.02, 0.04])
def test_a_difference_its_p_and_its_equivalence_are_those_of_paired_t_tests(shift):
    """Two one-sided tests (Schuirmann 1987) ask for each bound how likely a difference beyond it
    is; what remains is the share of draws within both."""
    from statsmodels.stats.weightstats import DescrStatsW, ttost_paired

    gain, found = paired(shift, 400)
    of = DescrStatsW(gain)
    wanted = of.tconfint_mean()
    assert found.interval == pytest.approx(wanted, abs=0.03 * (wanted[1] - wanted[0]))
    assert found.p == pytest.approx(of.ttest_mean(0)[1], abs=0.015)
    _, (_, below, _), (_, above, _) = ttost_paired(gain, np.zeros(len(gain)), -0.02, 0.02)
    assert found.equivalent == pytest.approx(1 - below - above, abs=0.015)


def test_the_units_that_would_separate_two_are_those_of_a_power_analysis():
    from statsmodels.stats.power import NormalIndPower

    gain, found = paired(0.01, 400)
    effect = abs(gain.mean()) / gain.std()
    units = NormalIndPower().solve_power(effect, alpha=0.05, power=0.8, ratio=0)
    assert found.more_units == pytest.approx(units / 400, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.01, 0.02, 0.04])
def test_practical_equivalence_is_that_of_the_bayesian_t_test(shift):
    """Benavoli et al. (2017). The test allows for folds that share training rows by a correlation
    of 1 / n; units share none, so deviations are shrunk by what that adds."""
    baycomp = pytest.importorskip("baycomp", reason="baycomp is not installed")
    n = 400
    gain, found = paired(shift, n)
    shrunk = gain.mean() + (gain - gain.mean()) / np.sqrt(1 + 1 / (1 - 1 / n))
    _, equal, _ = baycomp.CorrelatedTTest.probs(shrunk, np.zeros(n), rope=0.02)
    assert found.equivalent == pytest.approx(equal, abs=0.02)


@pytest.mark.slow
def test_the_least_difference_of_ranks_is_that_of_autorank():
    autorank = pytest.importorskip("autorank", reason="autorank is not installed")
    values = np.random.default_rng(1).exponential(np.arange(1, 7), (30, 6)) ** 3
    found = autorank.autorank(pd.DataFrame(values), alpha=0.05, verbose=False)
    assert found.posthoc == "nemenyi"
    assert found.cd == pytest.approx(least_difference(30, 6), rel=1e-3)
