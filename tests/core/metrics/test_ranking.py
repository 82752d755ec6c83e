"""Values by hand, empty and short queries, refused input."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.kit import refused

from bench_core import InputError, Queries
from bench_core.metrics import Labels, parse_metric
from bench_core.metrics.ranking import rank


def judge(name, grades, scores=None, sizes=None):
    """Documents in falling order of score unless scores say otherwise."""
    grades = np.array(grades, float)
    scores = -np.arange(len(grades), dtype=float) if scores is None else np.array(scores, float)
    return parse_metric(name).values(
        scores, grades, Queries.from_sizes(np.array(sizes or [len(grades)]))
    )


@pytest.mark.parametrize("grades", [[16, 3, 15], [64, 66, 63, 3], [0.25, 0.5]])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_each_query_has_its_own_best_order_at_any_size_of_grades(grades, gain):
    def gained(order):
        gains = order if gain == "linear" else [2.0**g - 1 for g in order]
        return sum(g / np.log2(i + 2) for i, g in enumerate(gains))

    best = sorted(grades, reverse=True)
    found = judge(f"ndcg(gain={gain})", [*best, *grades], sizes=[len(grades)] * 2)
    assert found.values.tolist() == pytest.approx([1, gained(grades) / gained(best)], abs=1e-12)


@pytest.mark.parametrize("family", ["ndcg@5", "precision@5", "ap", "mrr", "err"])
@pytest.mark.parametrize(("option", "mean"), [("0", 1 / 2), ("1", 1), ("skip", 1)])
def test_a_query_without_a_relevant_document_counts_as_its_option_says(family, option, mean):
    found = judge(f"{family}(empty={option})", [4, 0, 0], sizes=[1, 2])
    judged = judge(family, [4]).mean
    assert found.values[0] == pytest.approx(judged)
    by_hand = {"0": judged / 2, "1": (judged + 1) / 2, "skip": judged}[option]
    assert found.mean == pytest.approx(by_hand)


def test_the_mean_is_nan_where_every_query_is_skipped():
    found = judge("ndcg@5(empty=skip)", [0, 0])
    assert np.isnan(found.mean)


def test_the_relevance_threshold_decides_what_is_relevant_and_what_is_empty():
    found = judge("precision@2(relevant=3)", [2, 3, 2, 2], sizes=[2, 2])
    assert found.values.tolist() == [0.5, 0.0]


SIZES = [1, 2, 5, 31, 32, 33, 34, 63, 64, 65, 96, 129, 200, 2, 1]


@pytest.mark.parametrize("depth", [1, 2, 3, 31, 32, 33, 64, 200])
@pytest.mark.parametrize("levels", [1, 3, 40, 10**6])
def test_rows_stand_by_falling_score_in_row_order_as_deep_as_asked_and_their_ties(depth, levels):
    queries = Queries.from_sizes(np.array(SIZES))
    scores = np.random.default_rng(levels).integers(0, levels, queries.rows).astype(float)
    found = rank(scores, Labels(np.zeros(queries.rows), queries), depth)
    for start, end, stop in zip(
        queries.boundaries[:-1], queries.boundaries[1:], found.stop, strict=True
    ):
        best = sorted(range(start, end), key=lambda row: (-scores[row], row))
        last = scores[best[min(depth, len(best)) - 1]]
        wanted = [row for row in best if scores[row] >= last]
        assert found.order[start:stop].tolist()[: len(wanted)] == wanted
        assert stop - start in (len(wanted), len(best))
        ties = [False, *(scores[i] == scores[j] for i, j in itertools.pairwise(best))]
        assert found.tied[start:stop].tolist() == ties[: stop - start]


@pytest.mark.parametrize(
    ("name", "grades", "more", "line"),
    [
        ("ndcg@5", [1, 0, 1], {"scores": [1, 2, np.nan]}, "ndcg@5: the score of row 2 |is NaN"),
        ("precision@5", [1, -1], {}, "row 1 |not a grade"),
        ("precision@5", [1, np.inf], {}, "row 1 |not a grade"),
        ("precision@5", [np.inf, 1, -1], {"sizes": [1, 2]}, "row 0 |not a grade"),
        ("ndcg@5", [1, np.nan], {}, "label of row 1 "),
        ("err@5", [0, 5], {}, "grade 5 of row 1 |top=4"),
    ],
)
def test_scores_and_grades_that_are_none_are_refused_with_their_row(name, grades, more, line):
    refused(line, judge, name, grades, **more, error=InputError)


@pytest.mark.parametrize(
    ("name", "given", "line"),
    [
        ("ndcg@5", (np.zeros(2), np.zeros(2)), "needs queries"),
        ("mse", (np.zeros(2), np.zeros(2), None, np.array([1, 0])), "multiplicity of row 1 "),
        ("mse", (np.zeros(3), np.zeros(2)), "3 scores for 2 rows"),
    ],
)
def test_arrays_that_do_not_fit_a_metric_are_refused(name, given, line):
    refused(line, parse_metric(name).values, *given, error=(InputError, ValueError))


CODE = """
from bench_core.metrics import parse_metric
from bench_core.metrics.evaluation import warm_up
warm_up([parse_metric("mrr"), parse_metric("accuracy")], print)
"""

WORK = """
import numpy as np
from bench_core import Acquired, Queries
from bench_core.costs.meter import Meter
from bench_core.metrics import Labels, evaluate, parse_metric
bought = Acquired.pack(np.eye(90, dtype=bool))
for price in (np.arange(90.0), np.arange(90) / 7):
    Meter(price, np.ones(90)).cost(bought)
labels = Labels(np.arange(90.0) % 2, Queries.from_sizes(np.array([50, 40])))
evaluate([parse_metric("mrr")], np.arange(90.0) % 5, labels)
"""


def said(cache, code=CODE):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout


@pytest.mark.slow
def test_the_first_compilation_of_ranking_metrics_is_announced_and_the_second_is_not_there(
    tmp_path,
):
    assert said(tmp_path) == "compiling the ranking metrics, once per machine, a few seconds\n"
    assert said(tmp_path) == ""
    compiled = sorted(tmp_path.rglob("*"))
    said(tmp_path, WORK)
    assert sorted(tmp_path.rglob("*")) == compiled
