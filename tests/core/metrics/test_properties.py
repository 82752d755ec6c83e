"""Invariants that hold for all metrics, and for judging many at once."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_core import InputError, MetricValues, Queries, Task, UsageError
from bench_core.metrics import Labels, evaluate, parse_metric
from bench_core.metrics.rows import Accuracy
from bench_core.planning.shipped import bench_metrics

RANKING = [m.name for m in bench_metrics() if Task.RANKING in m.tasks]


@st.composite
def splits(draw):
    sizes = draw(st.lists(st.integers(1, 45), min_size=1, max_size=6))
    n = sum(sizes)
    levels = draw(st.integers(1, 60))
    scores = draw(arrays(float, n, elements=st.integers(0, levels).map(float)))
    grades = draw(arrays(float, n, elements=st.integers(0, 4).map(float)))
    copies = draw(arrays(np.int64, n, elements=st.integers(1, 4)))
    return scores, grades, Queries.from_sizes(np.array(sizes)), copies


@settings(max_examples=30, deadline=None)
@given(split=splits(), option=st.sampled_from(["ties=expected", "ties=stable"]))
def test_many_metrics_at_once_give_what_each_gives_alone(split, option):
    scores, grades, queries, copies = split
    metrics = [parse_metric(f"{name}({option})") for name in RANKING]
    labels = Labels(grades, queries, copies)
    for _ in range(2):  # a second time from what the labels remember
        together = evaluate(metrics, scores, labels)
        for metric in metrics:
            alone = metric.values(scores, grades, queries, copies)
            np.testing.assert_array_equal(together[metric.name].values, alone.values)
            np.testing.assert_array_equal(together[metric.name].weights, alone.weights)


def test_row_metrics_at_once_give_what_each_gives_alone():
    rng = np.random.default_rng(6)
    y, m = rng.integers(0, 3, 50).astype(float), rng.integers(1, 4, 50)
    metrics = [parse_metric(n) for n in ("accuracy", "balanced_accuracy", "log_loss", "auc")]
    labels = Labels(y, None, m)
    for scores in (rng.normal(size=(50, 3)), rng.normal(size=(50, 3))):
        for name, found in evaluate(metrics, scores, labels).items():
            alone = parse_metric(name).values(scores, y, None, m)
            assert found.mean == alone.mean


@dataclass(frozen=True)
class RowsInPlay:
    """A third party's metric: it knows nothing of Labels."""

    name: str = "rows_in_play"
    higher_is_better: bool = True
    tasks: frozenset = frozenset({Task.RANKING})

    def values(self, scores, y, queries=None, multiplicity=None):
        return MetricValues(scores + y, multiplicity.astype(float))


def test_a_metric_of_a_third_party_is_judged_beside_ours():
    labels = Labels(np.array([1.0, 0]), Queries.from_sizes(np.array([2])), np.array([1, 3]))
    found = evaluate([RowsInPlay(), parse_metric("mrr")], np.array([5.0, 1.0]), labels)
    assert found["rows_in_play"].mean == pytest.approx((6 + 3 * 1) / 4)
    assert found["mrr"].mean == 1


def test_a_metric_with_fewer_weights_than_values_is_the_one_at_fault():
    class Short(RowsInPlay):
        def values(self, scores, y, queries=None, multiplicity=None):
            return MetricValues(scores + y, np.ones(1))

    labels = Labels(np.array([1.0, 0]), Queries.from_sizes(np.array([2])))
    with pytest.raises(UsageError, match=r"metric .*: values of shape \(2,\) and weights of"):
        evaluate([Short()], np.array([5.0, 1.0]), labels)


def test_a_metric_built_on_ours_is_judged_by_its_own_values():
    class Half(Accuracy):
        family = "half"

        def values(self, scores, y, queries=None, multiplicity=None):
            return MetricValues(np.full(len(y), 0.5), np.ones(len(y)))

    labels = Labels(np.array([1.0, 0]), Queries.from_sizes(np.array([2])))
    found = evaluate([Half(), Accuracy()], np.array([1.0, 1.0]), labels)
    assert found["half"].values.tolist() == [0.5, 0.5]
    assert found["accuracy"].values.tolist() == [1, 0]


def test_a_nan_score_is_refused_in_the_name_of_the_first_ranking_metric():
    labels = Labels(np.ones(2), Queries.from_sizes(np.array([2])))
    metrics = [parse_metric(name) for name in ("accuracy", "ndcg@5", "mrr")]
    with pytest.raises(InputError, match=r"^ndcg@5: the score of row 1 "):
        evaluate(metrics, np.array([1.0, np.nan]), labels)
