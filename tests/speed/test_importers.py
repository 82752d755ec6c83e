"""Reading an existing model and metering it, beside LightGBM's bare prediction of the same trees.

300 trees over 20000 rows of 519 features: ours reads the text, and gives scores, packed sensors and
evaluated splits of 100 prefixes in blocks of 8000 rows; LightGBM gives the final scores. Only the
agreement can fail.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from bench_models.libraries.serving import serve
from bench_trees.importers import read_model
from paired import compare, setting

from bench_core import Features, price_list

pytestmark = pytest.mark.speed

ROWS, TREES = setting("ROWS", 20_000), setting("TREES", 300, least=100)
FEATURES, BLOCK, ROUNDS = 519, 8000, 3
PEER = "LightGBM"
SHAPE = f"{TREES} trees, {ROWS} x {FEATURES}"


@pytest.mark.benchmark(group="importers")
def test_an_imported_model_against_bare_prediction(benchmark: Any) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES), dtype=np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    few = X[:5000]
    y = np.nan_to_num(few[:, :100]) @ np.linspace(0.1, 1, 100)
    how = {"num_leaves": 31, "verbose": -1, "num_threads": 2}
    booster = lightgbm.train(how, lightgbm.Dataset(few, y), TREES)
    data = booster.model_to_string().encode()
    model = serve(read_model(data), price_list(np.ones(FEATURES)), {})
    scores: list[Any] = []

    def metered(threads: int) -> None:
        serving = replace(model, threads=threads)
        scores.clear()
        for start in range(0, ROWS, BLOCK):
            *_, last = serving.predict_path(Features(X[start : start + BLOCK]))
            scores.append(last.scores)

    def bare(threads: int) -> Any:
        return booster.predict(X, num_threads=threads)

    for threads in (1, 2):
        sides = {"ours": partial(metered, threads), PEER: partial(bare, threads)}
        work = f"imported model, {SHAPE}, threads {threads}"
        compare(benchmark, sides, work=work, peers=[PEER], rounds=ROUNDS)
    far = np.abs(np.concatenate(scores) - booster.predict(X, num_threads=2)).max()
    read = {"ours": lambda: read_model(data)}
    work = f"reading a LightGBM model of {TREES} trees"
    facts = {"largest difference of a score": float(far)}
    compare(benchmark, read, work=work, rounds=ROUNDS, facts=facts)
    assert far < 1e-9
