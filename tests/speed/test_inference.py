"""How long a metered path takes beside LightGBM's bare prediction of the same trees.

1000 trees over as many rows and features as the Yahoo test set has: ours gives the scores, packed
sensors and evaluated splits of 100 prefixes in blocks of 8000 rows, LightGBM the final scores.
``judged`` is all that a run does with a split: these, checked, priced and kept, and ndcg@5 and the
costs of every prefix.
Nothing here fails because it is slow.
"""

from functools import partial

import numpy as np
import pytest
from bench_models.boosting import chain
from bench_trees.importers import from_lightgbm
from paired import compare, setting

from bench_core import Examples, Features, Queries, price_list
from bench_core.execution.predict import predict_split
from bench_core.execution.trial import score_split
from bench_core.metrics import parse_metric

pytestmark = pytest.mark.speed

ROWS, TREES = setting("ROWS", 165_660), setting("TREES", 1000, least=100)
FEATURES, BLOCK, ROUNDS = 519, 8000, 3
PEER = "LightGBM"


def rows(kind):
    """``normal``: no split is foreseeable. ``tailed``: half zeros and a heavy tail."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES), dtype=np.float32)
    return X if kind == "normal" else np.exp(2 * np.maximum(X, 0)) - 1


def ranked(X):
    """The rows with grades, in queries of 24 rows as the Yahoo set has them on average."""
    sizes = np.full(-(-len(X) // 24), 24)
    sizes[-1] = len(X) - sizes[:-1].sum()
    grades = np.random.default_rng(1).integers(0, 5, len(X)).astype(float)
    return Examples(X, grades, Queries.from_sizes(sizes))


@pytest.mark.benchmark(group="inference")
@pytest.mark.parametrize("kind", ["normal", "tailed"])
def test_a_metered_path_against_bare_prediction(kind, benchmark):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X = rows(kind)
    few = X[:10_000]
    y = np.log1p(np.abs(few[:, :100])) @ np.linspace(0.1, 1, 100) + few[:, 0]
    booster = lightgbm.train(
        {"num_leaves": 16, "max_depth": 4, "verbose": -1, "num_threads": 2},
        lightgbm.Dataset(few, y),
        TREES,
    )
    ensemble = from_lightgbm(booster.model_to_string()).ensemble
    prices = price_list(np.ones(FEATURES))
    model = chain(ensemble, prices, {})
    assert len(model.points) == 100 or TREES < 1000
    ndcg, test = parse_metric("ndcg@5"), ranked(X)
    last = []

    def ours(threads):
        last.clear()
        for start in range(0, ROWS, BLOCK):
            for prediction in model.predict_path(Features(X[start : start + BLOCK])):
                final = prediction
            last.append(final.scores)

    def judged(threads):
        path = predict_split(model, test, prices, 2, threads=threads)
        score_split(path, test, prices, [ndcg], "test", threads)

    def theirs(threads):
        return booster.predict(X, num_threads=threads)

    shape = f"{TREES} trees, {len(model.points)} prefixes, {ROWS} {kind} rows x {FEATURES}"
    for threads in (1, 2):
        actions = {"judged": judged, PEER: theirs} | ({"ours": ours} if threads == 1 else {})
        compare(
            benchmark,
            {side: partial(action, threads) for side, action in actions.items()},
            work=f"scores and bills, {shape}, threads {threads}",
            peers=[PEER],
            bars={("judged", PEER): 0.9},
            rounds=ROUNDS,
        )
    assert np.allclose(np.concatenate(last), theirs(2), rtol=1e-9)
    row = Features(X[:1])
    sides = {
        "ours": lambda: list(model.predict_path(row)),
        PEER: lambda: booster.predict(X[:1], num_threads=1),
    }
    alone = f"one {kind} row, {TREES} trees, {len(model.points)} prefixes"
    compare(benchmark, sides, work=alone, peers=[PEER], rounds=ROUNDS * 5)
