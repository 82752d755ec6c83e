"""How long metrics take on as many rows and queries as the Yahoo test set has.

Each ratio alternates ours and the peer's and compares medians. The figures go to
results/speed/metrics.json; nothing here fails because it is slow.
"""

import json
import os
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from bench_core import Queries
from bench_core.metrics import Labels, evaluate, parse_metric

pytestmark = pytest.mark.speed

ROWS, QUERIES, ROUNDS = 165_660, 6_983, 15
OUT = Path(__file__).parents[2] / "results" / "speed" / "metrics.json"


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    sizes = 1 + rng.multinomial(ROWS - QUERIES, np.full(QUERIES, 1 / QUERIES))
    grades = rng.choice(5, ROWS, p=[0.26, 0.36, 0.28, 0.08, 0.02]).astype(float)
    return rng.normal(size=ROWS) + grades / 3, grades, Queries.from_sizes(sizes)


@pytest.fixture(scope="module")
def figures():
    found = {"rows": ROWS, "queries": QUERIES, "cores": os.cpu_count()}
    found["python"] = platform.python_version()
    yield found
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2) + "\n")


def alternate(*functions):
    """Median seconds of each function, run in turns after one warm-up."""
    for function in functions:
        function()
    times = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


@pytest.mark.filterwarnings("ignore")
def test_ndcg_per_query_against_ranx(split, figures):
    """ranx is given its own run and judgement objects ready-made; ours starts from arrays."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    scores, grades, queries = split
    bounds = queries.boundaries

    def tables(values, kind):  # ranx sorts queries by their names
        return {
            f"q{j:05}": {f"d{i:06}": kind(values[i]) for i in range(bounds[j], bounds[j + 1])}
            for j in range(len(queries))
        }

    qrels, run = ranx.Qrels(tables(grades, int)), ranx.Run(tables(scores, float))
    metric, labels = parse_metric("ndcg@5"), Labels(grades, queries)
    found = {}

    def ours():
        found["ours"] = metric.values(scores, grades, queries).values

    def theirs():
        found["ranx"] = ranx.evaluate(qrels, run, "ndcg_burges@5", return_mean=False)

    alone, peer, shared = alternate(ours, theirs, lambda: evaluate([metric], scores, labels))
    np.testing.assert_allclose(found["ours"], found["ranx"], atol=1e-12)
    figures["ndcg@5"] = {
        "ours_seconds": alone,
        "ours_with_labels_kept_seconds": shared,
        "ranx_seconds": peer,
        "ratio": alone / peer,
        "ratio_with_labels_kept": shared / peer,
    }


def test_six_ranking_metrics_at_one_operating_point(split, figures):
    scores, grades, queries = split
    names = ("ndcg@5", "precision@5", "ap@5", "leading_run_precision@5", "err@5", "mrr@10")
    metrics, labels = [parse_metric(name) for name in names], Labels(grades, queries)
    tied = np.round(scores)
    plain, ties, apart = alternate(
        lambda: evaluate(metrics, scores, labels),
        lambda: evaluate(metrics, tied, labels),
        lambda: [metric.values(scores, grades, queries) for metric in metrics],
    )
    figures["six_metrics"] = {
        "together_seconds": plain,
        "together_with_massive_ties_seconds": ties,
        "one_by_one_seconds": apart,
    }


def test_auc_against_scikit_learn(split, figures):
    from sklearn.metrics import roc_auc_score

    scores, grades, _ = split
    y, metric, found = (grades > 1).astype(float), parse_metric("auc"), {}

    def ours():
        found["ours"] = metric.values(scores, y).mean

    def theirs():
        found["peer"] = roc_auc_score(y, scores)

    alone, peer = alternate(ours, theirs)
    assert found["ours"] == pytest.approx(found["peer"], abs=1e-12)
    figures["auc"] = {"ours_seconds": alone, "sklearn_seconds": peer, "ratio": alone / peer}
