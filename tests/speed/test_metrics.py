"""How long metrics take on as many rows and queries as the Yahoo test set has.

Nothing here fails because it is slow.
"""

import numpy as np
import pytest
from paired import alternate, compare, report, setting

from bench_core import Queries
from bench_core.metrics import Labels, evaluate, parse_metric

pytestmark = pytest.mark.speed

ROWS, QUERIES, ROUNDS = setting("ROWS", 165_660), setting("QUERIES", 6_983), 15
SHAPE = f"{ROWS} rows, {QUERIES} queries"


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(0)
    sizes = 1 + rng.multinomial(ROWS - QUERIES, np.full(QUERIES, 1 / QUERIES))
    grades = rng.choice(5, ROWS, p=[0.26, 0.36, 0.28, 0.08, 0.02]).astype(float)
    return rng.normal(size=ROWS) + grades / 3, grades, Queries.from_sizes(sizes)


@pytest.mark.benchmark(group="metrics")
@pytest.mark.filterwarnings("ignore")
def test_ndcg_per_query_against_ranx(split, benchmark):
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

    sides = {
        "ours": ours,
        "ours, labels kept": lambda: evaluate([metric], scores, labels),
        "ranx": theirs,
    }
    samples = alternate(benchmark, sides, ROUNDS)
    np.testing.assert_allclose(found["ours"], found["ranx"], atol=1e-12)
    work, bars = f"ndcg@5 with a value per query, {SHAPE}", {("ours", "ranx"): 0.05}
    report(benchmark, samples, work=work, peers=["ranx"], bars=bars)


@pytest.mark.benchmark(group="metrics")
def test_six_ranking_metrics_at_one_operating_point(split, benchmark):
    scores, grades, queries = split
    names = ("ndcg@5", "precision@5", "ap@5", "leading_run_precision@5", "err@5", "mrr@10")
    metrics, labels = [parse_metric(name) for name in names], Labels(grades, queries)
    tied = np.round(scores)
    apart = "one metric after the other"
    sides = {
        "together": lambda: evaluate(metrics, scores, labels),
        "together, massive ties": lambda: evaluate(metrics, tied, labels),
        apart: lambda: [metric.values(scores, grades, queries) for metric in metrics],
    }
    compare(benchmark, sides, work=f"six ranking metrics, {SHAPE}", peers=[apart], rounds=ROUNDS)


@pytest.mark.benchmark(group="metrics")
def test_auc_against_scikit_learn(split, benchmark):
    from sklearn.metrics import roc_auc_score

    scores, grades, _ = split
    y, metric, found = (grades > 1).astype(float), parse_metric("auc"), {}

    def ours():
        found["ours"] = metric.values(scores, y).mean

    def theirs():
        found["peer"] = roc_auc_score(y, scores)

    sides, peer = {"ours": ours, "scikit-learn": theirs}, ["scikit-learn"]
    compare(benchmark, sides, work=f"auc, {ROWS} rows", peers=peer, rounds=ROUNDS)
    assert found["ours"] == pytest.approx(found["peer"], abs=1e-12)
