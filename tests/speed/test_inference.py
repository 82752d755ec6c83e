"""How long a metered path takes beside LightGBM's bare prediction of the same trees.

1000 trees over as many rows and features as the Yahoo test set has: ours gives the scores, packed
sensors and evaluated splits of 100 prefixes in blocks of 8000 rows, LightGBM the final scores.
``judged`` is all that a run does with a split: these, checked, priced and kept, and ndcg@5 and the
costs of every prefix.
Each ratio alternates the two and compares medians; the figures go to results/speed/inference.json,
and nothing here fails because it is slow.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_models.boosting import chain
from bench_trees.importers import from_lightgbm

from bench_core import Examples, Features, Queries, price_list
from bench_core.execution.predict import predict_split
from bench_core.execution.score import score_split
from bench_core.metrics import parse_metric

pytestmark = pytest.mark.speed

ROWS, FEATURES, TREES, BLOCK, ROUNDS = 165_660, 519, 1000, 8000, 3
OUT = Path(__file__).parents[2] / "results" / "speed" / "inference.json"


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, Any]]:
    found = {"rows": ROWS, "features": FEATURES, "trees": TREES, "cores": os.cpu_count()}
    found["python"] = platform.python_version()
    yield found
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=2) + "\n")


def rows(kind: str) -> np.ndarray:
    """``normal``: no split is foreseeable. ``tailed``: half zeros and a heavy tail."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES), dtype=np.float32)
    return X if kind == "normal" else np.exp(2 * np.maximum(X, 0)) - 1


def ranked(X: np.ndarray) -> Examples:
    """The rows with grades, in queries of 24 rows as the Yahoo set has them on average."""
    sizes = np.full(-(-len(X) // 24), 24)
    sizes[-1] = len(X) - sizes[:-1].sum()
    grades = np.random.default_rng(1).integers(0, 5, len(X)).astype(float)
    return Examples(X, grades, Queries.from_sizes(sizes))


def alternate(*functions: Callable[[], object]) -> list[float]:
    """Median seconds of each function, run in turns after one warm-up."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


@pytest.mark.parametrize("kind", ["normal", "tailed"])
def test_a_metered_path_against_bare_prediction(kind: str, figures: dict[str, Any]) -> None:
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
    assert len(model.points) == 100
    ndcg, test = parse_metric("ndcg@5"), ranked(X)
    last = []

    def ours(threads: int) -> None:
        serving = replace(model, threads=threads)
        last.clear()
        for start in range(0, ROWS, BLOCK):
            for prediction in serving.predict_path(Features(X[start : start + BLOCK])):
                final = prediction
            last.append(final.scores)

    def judged(threads: int) -> None:
        path = predict_split(model, test, prices, 2, threads=threads)
        score_split(path, test, prices, [ndcg], "test", threads)

    def theirs(threads: int) -> Any:
        return booster.predict(X, num_threads=threads)

    figures[kind] = {}
    for threads in (1, 2):
        mine, whole, peer = alternate(
            *(partial(function, threads) for function in (ours, judged, theirs))
        )
        figures[kind][f"threads {threads}"] = {
            "path_seconds": mine,
            "judged_seconds": whole,
            "lightgbm_seconds": peer,
            "ratio": mine / peer,
            "ratio_judged": whole / peer,
        }
    assert np.array_equal(np.concatenate(last), theirs(2))
    row = Features(X[:1])
    list(model.predict_path(row))
    alone, peer_alone = alternate(
        lambda: list(model.predict_path(row)), lambda: booster.predict(X[:1], num_threads=1)
    )
    figures[kind]["one row"] = {"path_seconds": alone, "lightgbm_seconds": peer_alone}
    print(json.dumps(figures[kind], indent=2))
