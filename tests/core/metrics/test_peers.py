"""Equality with ir-measures (trec_eval and gdeval), ranx and scikit-learn.

Peers break ties each in its own way, so ties are broken by our stable rule first and the peer
gets distinct scores in that order. Differing definitions:

- ap@k: all three divide by the number of ALL relevant documents, as ours does.
- nDCG of trec_eval and scikit-learn takes the gain as given: it gets 2^grade - 1.
- mrr@k: trec_eval's reciprocal rank has no cut-off; ranx has one.
- trec_eval leaves out queries without a relevant document; ours scores them 0 and counts them.
- gdeval prints 5 decimals: its printing format is widened before it runs.
- scikit-learn's log_loss takes probabilities and clips them; scores here stay moderate.
"""

import importlib.resources
import re
import shutil
import subprocess
import warnings
from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics

from bench_core import Queries
from bench_core.metrics import parse_metric

K = (1, 3, 5, 10)
BINARY = (("precision", "P"), ("ap", "AP"))


@pytest.fixture(scope="module")
def split():
    """300 queries with ties, among them one-document queries and some without a relevant one."""
    rng = np.random.default_rng(3)
    sizes = np.concatenate([np.ones(20, int), rng.integers(2, 40, 280)])
    queries = Queries.from_sizes(rng.permutation(sizes))
    grades = rng.choice(5, queries.rows, p=[0.6, 0.2, 0.1, 0.07, 0.03]).astype(float)
    grades[queries.index() % 10 == 0] = 0
    scores = np.round(rng.normal(size=queries.rows), 1)
    return scores, grades, queries


def distinct(scores, queries):
    """Scores n, n-1, ... of each query in our stable order: small whole numbers."""
    out = np.empty(len(scores))
    for a, b in zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True):
        order = np.argsort(-scores[a:b], kind="stable")
        out[a + order] = np.arange(b - a, 0, -1)
    return out


def as_dicts(values, queries, kind):
    return {
        f"q{j:05}": {f"d{i:05}": kind(values[i]) for i in range(a, b)}
        for j, (a, b) in enumerate(
            zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True)
        )
    }


def ours(name, split):
    scores, grades, queries = split
    found = parse_metric(f"{name}(ties=stable)").values(scores, grades, queries)
    return found.values


def ir_measures_values(spelling, split, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures
    scores, _, queries = split
    run = as_dicts(distinct(scores, queries), queries, float)
    qrels = as_dicts(labels, queries, int)
    out = np.zeros(len(queries))
    provider = ir_measures.providers.registry["pytrec_eval"]
    for row in provider.iter_calc([ir_measures.parse_measure(spelling)], qrels, run):
        out[int(row.query_id[1:])] = row.value
    return out


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        *((f"{family}@{k}", f"{peer}@{k}") for k in K for family, peer in BINARY),
        ("ap", "AP"),
        ("mrr", "RR"),
    ],
)
def test_binary_metrics_equal_ir_measures(name, peer, split):
    theirs = ir_measures_values(peer, split, split[1])
    np.testing.assert_allclose(ours(name, split), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", K)
def test_ndcg_and_err_equal_gdeval(k, split, tmp_path):
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("gdeval is a Perl script and there is no perl here")
    script = importlib.resources.files("ir_measures").joinpath("bin/gdeval.pl").read_text()
    (tmp_path / "gdeval.pl").write_text(script.replace("%.5f,%.5f", "%.17g,%.17g"))
    scores, grades, queries = split
    run, qrels = distinct(scores, queries), grades.astype(int)
    of = queries.index()
    lines = [f"{of[i]} Q0 d{i} 0 {run[i]:.0f} ours" for i in range(len(run))]
    (tmp_path / "run").write_text("\n".join(lines) + "\n")
    lines = [f"{of[i]} 0 d{i} {qrels[i]}" for i in range(len(run))]
    (tmp_path / "qrels").write_text("\n".join(lines) + "\n")
    command = [perl, "gdeval.pl", "qrels", "run", str(k)]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    theirs = np.zeros((len(queries), 2))
    for query, ndcg, err in re.findall(r"^ours,(\d+),([^,]+),(.+)$", printed.stdout, re.M):
        theirs[int(query)] = float(ndcg), float(err)
    assert (theirs > 0).any(axis=0).all()
    np.testing.assert_allclose(ours(f"ndcg@{k}", split), theirs[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours(f"err@{k}", split), theirs[:, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 5, 10, None])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_ndcg_with_ties_equals_scikit_learn(k, gain, split):
    """scikit-learn averages over ties as our default does, so nothing is broken here."""
    scores, grades, queries = split
    option = "" if gain == "exponential" else "(gain=linear)"
    name = f"ndcg@{k}{option}" if k else f"ndcg{option}"
    found = parse_metric(name).values(scores, grades, queries).values
    gains = 2**grades - 1 if gain == "exponential" else grades
    for j, (a, b) in enumerate(pairwise(queries.boundaries[:101])):
        if b - a > 1:  # scikit-learn refuses one-document queries
            theirs = sklearn.metrics.ndcg_score([gains[a:b]], [scores[a:b]], k=k)
            assert found[j] == pytest.approx(theirs, abs=1e-12)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    y = (rng.random(500) < 0.3).astype(float)
    return np.round(rng.normal(size=500) + y, 1), y, rng.integers(1, 6, 500)


@pytest.mark.parametrize(
    ("name", "peer", "given"),
    [
        ("accuracy", sklearn.metrics.accuracy_score, lambda scores: scores > 0),
        ("balanced_accuracy", sklearn.metrics.balanced_accuracy_score, lambda scores: scores > 0),
        ("log_loss", sklearn.metrics.log_loss, lambda scores: 1 / (1 + np.exp(-scores))),
        ("auc", sklearn.metrics.roc_auc_score, lambda scores: scores),  # with ties
    ],
)
def test_binary_metrics_equal_scikit_learns(name, peer, given, rows):
    scores, y, m = rows
    theirs = peer(y, given(scores), sample_weight=m)
    found = parse_metric(name).values(scores, y, None, m).mean
    assert found == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("mse", sklearn.metrics.mean_squared_error),
        ("mae", sklearn.metrics.mean_absolute_error),
        ("r2", sklearn.metrics.r2_score),
    ],
)
def test_regression_metrics_equal_scikit_learns(name, peer):
    rng = np.random.default_rng(1)
    y, scores, m = rng.normal(size=100), rng.normal(size=100), rng.integers(1, 5, 100)
    theirs = peer(y, scores, sample_weight=m)
    assert parse_metric(name).values(scores, y, None, m).mean == pytest.approx(theirs, abs=1e-12)


def test_multiclass_metrics_equal_scikit_learn():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 5, 400).astype(float)
    scores = rng.normal(size=(400, 5)) + 1.5 * np.eye(5)[y.astype(int)]
    m = rng.integers(1, 5, 400)
    probability = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    called = scores.argmax(axis=1)
    theirs = {
        "accuracy": sklearn.metrics.accuracy_score(y, called, sample_weight=m),
        "balanced_accuracy": sklearn.metrics.balanced_accuracy_score(y, called, sample_weight=m),
        "log_loss": sklearn.metrics.log_loss(y, probability, sample_weight=m),
        "auc": sklearn.metrics.roc_auc_score(y, probability, multi_class="ovr", sample_weight=m),
    }
    for name, value in theirs.items():
        found = parse_metric(name).values(scores, y, None, m).mean
        assert found == pytest.approx(value, abs=1e-12), name
