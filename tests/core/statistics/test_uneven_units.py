"""How often statements on equal learners are right where few units carry the variance: rows of few
patients, and metrics that weigh a rare class as much as the other. Simulated.

    pytest -m slow -s tests/core/statistics/test_uneven_units.py
"""

from typing import NamedTuple

import numpy as np
import pytest
from helpers.levels import of_units_alone
from scipy import stats
from threadpoolctl import threadpool_limits

from bench_core.data import Queries
from bench_core.execution.trial import by_group
from bench_core.leaderboard.certainty import quality_interval
from bench_core.metrics import Labels, parse_metric
from bench_core.statistics.bootstrap import Units, draw
from bench_core.statistics.comparison import better_than, differences, interval
from bench_core.statistics.repeats import Repeat, over_repeats

VISITS, EDGE, BOARDS = 16, 0.8, 1000
LEAST = 0.94 - 2 * (0.94 * 0.06 / BOARDS) ** 0.5  # less two standard errors
MOST = 0.06 + 2 * (0.06 * 0.94 / BOARDS) ** 0.5


class Shares(NamedTuple):
    """Of boards of equal learners: with several tiers, with intervals of the first learner's value
    and of a difference that hold the truth, and with a p of at most .005."""

    tiers: float
    value: float
    difference: float
    small: float


def answers_of_patients(rng, learners, patients, uneven, edge=EDGE):
    """Right or wrong (learners, m) by patient, weights and numbers of rows. Patients differ, and
    learners err on whole patients. The true accuracy of all is Phi(``edge``)."""
    sizes = rng.integers(4, 29, patients) if uneven else np.full(patients, VISITS)
    groups = Queries.from_sizes(sizes)
    of_patient = 0.6 * rng.normal(0, 1, patients) + 0.6 * rng.normal(0, 1, (learners, patients))
    visits = rng.normal(0, np.sqrt(1 - 0.72), (learners, groups.rows))
    right = (edge + of_patient[:, groups.index()] + visits > 0).astype(float)
    of_all = [by_group(one, np.ones(groups.rows), groups) for one in right]
    sizes = of_all[0][1]
    return np.array([means for means, _ in of_all]), sizes, sizes, float(stats.norm.cdf(edge))


def answers_of_a_rare_class(rng, learners, rows, positives, metric):
    """Values (learners, rows) of a metric that weighs classes alike, their weights and
    numbers of rows, and the truth."""
    y = rng.permutation(np.arange(rows) < positives).astype(float)
    noise = 0.7 * rng.normal(0, 1, rows) + 0.7 * rng.normal(0, 1, (learners, rows))
    spread, gap, labels = np.sqrt(0.98), 1.2, Labels(y)
    judged = [parse_metric(metric).judge(gap * (y - 0.5) + own, labels) for own in noise]
    z = gap / spread / (np.sqrt(2) if metric == "auc" else 2)
    values, weights = np.array([one.values for one in judged]), judged[0].weights
    return values, weights, np.ones(rows), float(stats.norm.cdf(z))


def shares(made, boards, learners=8, draws=1000):
    """The shares over boards of ``made(rng, learners)``, printed too."""
    rng, found = np.random.default_rng(boards), []
    gap = np.eye(learners)[0] - np.eye(learners)[1]
    with threadpool_limits(1, "blas"):
        for _ in range(boards):
            values, weights, rows, truth = made(rng, learners)
            units = Units(values, np.ones_like(values), weights, rows)
            all_of_them = of_units_alone(units, units)
            drawn = draw(all_of_them, draws, int(rng.integers(1 << 30))).test_quality.T
            level = over_repeats([Repeat(0, 0, "rows", {"all": all_of_them})], [drawn])
            own = quality_interval("accuracy", level, np.eye(learners)[0])  # all are in [0, 1]
            apart = interval(level, gap)
            found.append(
                (
                    better_than(level, True).any(),
                    own.low <= truth <= own.high,
                    apart.low <= 0 <= apart.high,
                    differences(level, [(0, 1)], [0.0])[0].p <= 0.005,
                )
            )
    mean = Shares(*np.mean(found, axis=0).tolist())
    print(mean, flush=True)
    return mean


def test_rows_of_one_patient_do_not_make_an_interval_narrow():
    found = shares(lambda rng, k: answers_of_patients(rng, k, 100, False), 100, 2, 300)
    assert found.value >= 0.88  # rows drawn by themselves hold it on about 60% of boards
    assert found.difference >= 0.88


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("patients", [20, 100])
def test_statements_on_visits_of_patients(patients, uneven):
    found = shares(lambda rng, k: answers_of_patients(rng, k, patients, uneven), BOARDS)
    assert min(found.value, found.difference) >= LEAST
    assert found.tiers <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("units", [31, 100, 300, 1000])
def test_intervals_of_shares_near_one(units, accuracy):
    """Of rows, and of patients."""

    def rows(rng, learners):
        right = (rng.random((learners, units)) < accuracy).astype(float)
        return right, np.ones(units), np.ones(units), accuracy

    edge = stats.norm.ppf(accuracy)
    assert shares(rows, BOARDS, 2, 400).value >= LEAST
    of_patients = shares(
        lambda rng, k: answers_of_patients(rng, k, units, True, edge), BOARDS, 2, 400
    )
    # nearly all visits of a patient are right or wrong: some boards lack the few bad patients
    assert of_patients.value >= 0.84


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["auc", "balanced_accuracy"])
@pytest.mark.parametrize("rows", [(200, 10), (1000, 20), (1000, 50), (5000, 50), (200, 100)])
def test_statements_on_a_rare_class(rows, metric):
    found = shares(lambda rng, k: answers_of_a_rare_class(rng, k, *rows, metric), BOARDS)
    assert min(found.value, found.difference) >= LEAST
    assert found.tiers <= MOST
    assert found.small <= 0.014
