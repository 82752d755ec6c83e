"""Rows with a multiplicity give what physical copies give, for every metric."""

import numpy as np
import pytest

from bench_core import Queries, Task
from bench_core.metrics import parse_metric
from bench_core.metrics.plugin import bench_metrics

RANKING = [m.name for m in bench_metrics() if Task.RANKING in m.tasks]
STABLE = [f"{name}(ties=stable)" for name in RANKING]
ROWS = [m.name for m in bench_metrics() if Task.RANKING not in m.tasks]


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(11)
    queries = Queries.from_sizes(rng.integers(1, 60, 80))
    n = queries.rows
    grades = rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    scores = np.round(rng.normal(size=n) + grades / 3, 1)
    multiplicity = np.where(grades == 0, 10, rng.integers(1, 4, n))
    physical = np.repeat(np.arange(n), multiplicity)
    sizes = np.add.reduceat(multiplicity, queries.boundaries[:-1])
    return scores, grades, queries, multiplicity, physical, Queries.from_sizes(sizes)


@pytest.mark.parametrize("name", RANKING + STABLE)
def test_ranking_values_equal_those_of_physical_copies(name, split):
    scores, grades, queries, multiplicity, physical, copied = split
    metric = parse_metric(name)
    counted = metric.values(scores, grades, queries, multiplicity)
    repeated = metric.values(scores[physical], grades[physical], copied)
    np.testing.assert_allclose(counted.values, repeated.values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(counted.weights, repeated.weights)


@pytest.mark.parametrize("name", RANKING)
def test_multiplicity_is_not_ignored(name, split):
    scores, grades, queries, multiplicity, _, _ = split
    metric = parse_metric(name)
    plain = metric.values(scores, grades, queries).mean
    assert plain != pytest.approx(metric.values(scores, grades, queries, multiplicity).mean)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", ROWS)
def test_row_metrics_equal_those_of_physical_copies(name, classes):
    rng = np.random.default_rng(classes)
    n = 200
    y = rng.integers(0, classes, n).astype(float)
    scores = np.round(rng.normal(size=n if classes == 2 or name == "mse" else (n, classes)), 1)
    multiplicity = rng.integers(1, 9, n)
    physical = np.repeat(np.arange(n), multiplicity)
    metric = parse_metric(name)
    counted = metric.values(scores, y, None, multiplicity)
    repeated = metric.values(scores[physical], y[physical])
    assert counted.mean == pytest.approx(repeated.mean, abs=1e-12)
    assert counted.mean != pytest.approx(metric.values(scores, y).mean, abs=1e-6)
    np.testing.assert_allclose(counted.values[physical], repeated.values, rtol=0, atol=1e-12)


def test_copies_are_never_made():
    """A thousand million copies of a row take no memory where a cut-off bounds the places."""
    queries = Queries.from_sizes(np.array([3]))
    huge = np.array([10**9, 1, 10**9])
    found = parse_metric("ndcg@5").values(np.zeros(3), np.array([0.0, 1, 0]), queries, huge)
    by_hand = sum(1 / np.log2(i + 2) for i in range(5)) / (2 * 10**9 + 1)  # ideal gain is 1
    assert found.mean == pytest.approx(by_hand, rel=1e-12)
