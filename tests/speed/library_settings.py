"""Whether settings of LightGBM and CatBoost train the same trees sooner on wide data.

    python tests/speed/library_settings.py lightgbm 20      # so many trees of each, 300 x 20000

One thread, milliseconds of processor time a tree, and a digest of the trees: settings of the same
digest as the first, which are those of the learners ``lightgbm-cegb`` and ``catboost`` at 300 x
20000, train the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from wide import made

from bench_core import Task

ROWS, FEATURES = 300, 20_000
Parameters = dict[str, Any]

LIGHTGBM: dict[str, Parameters] = {
    "as in the learner": {},
    "row-wise": {"force_col_wise": False, "force_row_wise": True},
    "neither": {"force_col_wise": False},
    "no bundles": {"enable_bundle": False},
    "no sparse columns": {"is_enable_sparse": False},
    "no missing values": {"use_missing": False},
    "features filtered": {"feature_pre_filter": True},
}
CATBOOST: dict[str, Parameters] = {
    "as in the learner": {},
    "sampled once a tree": {"sampling_frequency": "PerTree"},
    "silent": {"logging_level": "Silent", "verbose": None, "metric_period": 1000},
    "no penalties": {"penalties_coefficient": None, "per_object_feature_penalties": None},
    "steps of the gradient": {"leaf_estimation_method": "Gradient"},
}


def lightgbm(X: Any, y: Any, trees: int, own: Parameters) -> tuple[float, str]:
    """Seconds, and the trees as text."""
    import lightgbm

    how = {
        "objective": "binary",
        "metric": "none",
        "num_leaves": 16,
        "max_bin": 37,
        "lambda_l2": 1.0,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "feature_pre_filter": False,
        "verbosity": -1,
        "cegb_tradeoff": 2.0,
        "cegb_penalty_feature_lazy": [0.3 * 0.69 / FEATURES] * FEATURES,
        **own,
    }
    data = lightgbm.Dataset(X, y, params=how, categorical_feature=[]).construct()
    start = time.process_time()
    text = lightgbm.train(how, data, trees).model_to_string()
    return time.process_time() - start, text.split("parameters:")[0]


def catboost(X: Any, y: Any, trees: int, own: Parameters) -> tuple[float, str]:
    """The same."""
    import catboost

    how = {
        "min_data_in_leaf": 20,
        "loss_function": "Logloss",
        "iterations": trees,
        "learning_rate": 0.1,
        "depth": 4,
        "grow_policy": "Depthwise",
        "border_count": 37,
        "score_function": "L2",
        "leaf_estimation_iterations": 1,
        "boosting_type": "Plain",
        "bootstrap_type": "No",
        "random_strength": 0,
        "random_seed": 0,
        "thread_count": 1,
        "allow_writing_files": False,
        "verbose": False,
        "penalties_coefficient": 2.0,
        "per_object_feature_penalties": [0.1 * 0.69 / FEATURES] * FEATURES,
        **own,
    }
    model = catboost.CatBoost({name: value for name, value in how.items() if value is not None})
    pool = catboost.Pool(X, y)
    start = time.process_time()
    model.fit(pool)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json")
        return seconds, json.dumps(json.loads(file.read_text())["trees"], sort_keys=True)


def main() -> None:
    """A line for each setting."""
    library, trees = sys.argv[1], int(sys.argv[2])
    train = made(ROWS, FEATURES, Task.BINARY).train
    work, cases = {"lightgbm": (lightgbm, LIGHTGBM), "catboost": (catboost, CATBOOST)}[library]
    for name, own in cases.items():
        seconds, text = work(train.X, train.y, trees, own)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        print(f"{name}: {1000 * seconds / trees:.0f} ms a tree, trees {digest}", flush=True)


if __name__ == "__main__":
    main()
