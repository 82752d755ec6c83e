"""Reading an existing model and metering it, beside LightGBM's bare prediction of the same trees.

300 trees over 20000 rows of 519 features: ours reads the text, and gives scores, packed sensors and
evaluated splits of 100 prefixes in blocks of 8000 rows; LightGBM gives the final scores. Figures go
to results/speed/importers.json; only the agreement can fail.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_models.libraries.serving import serve
from bench_trees.importers import read_model

from bench_core import Features, price_list

pytestmark = pytest.mark.speed

ROWS, FEATURES, TREES, BLOCK, ROUNDS = 20_000, 519, 300, 8000, 3
OUT = Path(__file__).parents[2] / "results" / "speed" / "importers.json"


def median_seconds(*functions: Callable[[], Any]) -> list[float]:
    """Of each function, run in turns after one warm-up."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def test_an_imported_model_against_bare_prediction() -> None:
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
    figures: dict[str, Any] = {"rows": ROWS, "features": FEATURES, "trees": TREES}
    figures["cores"] = os.cpu_count()
    figures["read_seconds"] = median_seconds(lambda: read_model(data))[0]
    scores: list[Any] = []

    def metered(threads: int) -> None:
        serving = replace(model, threads=threads)
        scores.clear()
        for start in range(0, ROWS, BLOCK):
            *_, last = serving.predict_path(Features(X[start : start + BLOCK]))
            scores.append(last.scores)

    for threads in (1, 2):
        ours, theirs = median_seconds(
            lambda n=threads: metered(n),  # type: ignore[misc]
            lambda n=threads: booster.predict(X, num_threads=n),  # type: ignore[misc]
        )
        figures[f"threads {threads}"] = {
            "path_seconds": ours,
            "lightgbm_seconds": theirs,
            "ratio": ours / theirs,
        }
    far = np.abs(np.concatenate(scores) - booster.predict(X, num_threads=2)).max()
    figures["largest_difference"] = float(far)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    assert far < 1e-9
