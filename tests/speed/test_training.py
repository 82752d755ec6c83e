"""Training time beside LightGBM's at equal settings, one run, alternating.

    pytest -m speed tests/speed/test_training.py -s

Writes results/speed/training.json: seconds per tree of every round, medians and their ratio.
Never fails on a time. BENCH_SPEED_ROWS changes the number of rows (default 100000).
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_trees import Penalty, Settings, boost, find_bins, warm_up

lightgbm = pytest.importorskip("lightgbm")

ROWS = int(os.environ.get("BENCH_SPEED_ROWS", "100000"))
FEATURES = 519
THREADS = 2
TREES = 10
ROUNDS = 5
TRADEOFF = 1e-4  # loss units per row and unit of cost: some features are bought, most are not
OUTPUT = Path(__file__).parents[2] / "results" / "speed" / "training.json"

PARAMS = {
    "objective": "regression",
    "num_leaves": 16,
    "max_depth": 4,
    "max_bin": 255,
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "num_threads": THREADS,
    "force_col_wise": True,  # else it times both ways in every run; this is the faster one
    "verbosity": -1,
}
MODES: dict[str, tuple[dict[str, Any], Penalty | None]] = {
    "plain": ({}, None),
    "coupled": (
        {"cegb_tradeoff": 2 * TRADEOFF, "cegb_penalty_feature_coupled": [float(ROWS)] * FEATURES},
        Penalty.plain(FEATURES, coupled=np.full(FEATURES, TRADEOFF * ROWS)),
    ),
    "lazy": (
        {"cegb_tradeoff": 2 * TRADEOFF, "cegb_penalty_feature_lazy": [1.0] * FEATURES},
        Penalty.plain(FEATURES, lazy=np.full(FEATURES, TRADEOFF)),
    ),
}


def skewed_rows() -> tuple[np.ndarray, np.ndarray]:
    """Continuous columns with heavy tails, 0 to 90 percent zeros; a signal in a fifth of them."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 1, (ROWS, FEATURES)).astype(np.float32) ** 2
    for j, zeros in enumerate(rng.uniform(0, 0.9, FEATURES)):
        X[rng.random(ROWS) < zeros, j] = 0
    signal = np.log1p(X[:, ::5]) @ rng.normal(size=len(range(0, FEATURES, 5)))
    signal /= signal.std()
    return X, signal + 0.5 * np.sin(3 * X[:, 3]) + rng.normal(0, 0.5, ROWS)


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def record(name: str, ours: list[float], theirs: list[float], unit: str) -> None:
    """Add one comparison to the JSON file and print it."""
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    known[name] = {
        "ours": ours,
        "lightgbm": theirs,
        "median_ours": median(ours),
        "median_lightgbm": median(theirs),
        "ratio": median(ours) / median(theirs),
        "unit": unit,
        "rows": ROWS,
        "features": FEATURES,
        "threads": THREADS,
        "load_before": os.getloadavg()[0],
        "lightgbm_version": lightgbm.__version__,
        "machine": platform.processor() or platform.machine(),
    }
    OUTPUT.write_text(json.dumps(known, indent=1) + "\n")
    print(
        f"\n{name}: {median(ours):.4f} {unit}, LightGBM {median(theirs):.4f}, "
        f"ratio {known[name]['ratio']:.2f}"
    )


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    warm_up(print)
    X, y = skewed_rows()
    ours: list[float] = []
    theirs: list[float] = []
    made: dict[str, Any] = {"y": y}

    def ours_once() -> None:
        made["bins"] = find_bins(X, threads=THREADS)
        made["codes"] = made["bins"].codes(X, threads=THREADS)

    def theirs_once() -> None:
        made["dataset"] = lightgbm.Dataset(X, y, params=PARAMS).construct()

    for _ in range(3):
        ours.append(seconds(ours_once))
        theirs.append(seconds(theirs_once))
    record("dataset construction", ours, theirs, "s")
    return made


@pytest.mark.speed
@pytest.mark.parametrize("mode", MODES)
def test_training_time(mode: str, data: dict[str, Any]) -> None:
    params, penalty = MODES[mode]
    settings = Settings(trees=TREES, max_depth=4, max_leaves=16, min_rows=20)
    trees: dict[str, int] = {}

    def ours_once() -> None:
        model = boost(
            data["codes"],
            data["bins"],
            data["y"],
            settings=settings,
            penalty=penalty,
            threads=THREADS,
        )
        trees["ours"] = model.trees

    def theirs_once() -> None:
        model = lightgbm.train({**PARAMS, **params}, data["dataset"], TREES)
        trees["lightgbm"] = model.num_trees()

    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        ours.append(seconds(ours_once) / TREES)
        theirs.append(seconds(theirs_once) / TREES)
    assert trees == {"ours": TREES, "lightgbm": TREES}  # else the two did unequal work
    record(mode, ours, theirs, "s per tree")
