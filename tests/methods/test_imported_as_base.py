"""An existing model's file under cascades, early exits and pruning, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers.boosted_cases import examples

from bench_core import Examples, Task
from bench_core.cli import main

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")

STANDING = ("cronus", "early-exit", "budget-prune")


def data_file(task: Task) -> tuple[Examples, list[str]]:
    """Rows written to a file of this folder, and the options that read it."""
    rows = examples(task)
    X = np.nan_to_num(rows.X)
    if rows.queries is not None:
        query = rows.queries.index()
        lines = [
            f"{y:g} qid:{q} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row))
            for row, y, q in zip(X, rows.y, query, strict=True)
        ]
        Path("data.svm").write_text("\n".join(lines) + "\n")
        Path("costs").write_text("1\n5\n20\n50\n")
        return Examples(X, rows.y, rows.queries), ["--data", "data.svm"]
    table = [",".join(f"{v:.6f}" for v in [*row, y]) for row, y in zip(X, rows.y, strict=True)]
    Path("data.csv").write_text("\n".join(["a,b,c,d,label", *table]) + "\n")
    Path("costs").write_text("a:1\nb:5\nc:20\nd:50\n")
    return Examples(X, rows.y), ["--data", "data.csv", "--label", "label", "--task", str(task)]


def of_lightgbm(rows: Examples, objective: str, **more: Any) -> str:
    sizes = None if rows.queries is None else rows.queries.sizes
    data = lightgbm.Dataset(rows.X, rows.y, group=sizes)
    how = {"objective": objective, "verbosity": -1, "num_threads": 1, "num_leaves": 6, **more}
    lightgbm.train(how, data, 12).save_model("model.txt")
    return "model.txt"


def of_xgboost(rows: Examples, name: str) -> str:
    how = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3}
    xgboost.train(how, xgboost.DMatrix(rows.X, rows.y), 12).save_model(name)
    return name


BAGS = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
FILES: dict[str, tuple[Task, Callable[[Examples], str], tuple[str, ...]]] = {
    "LightGBM": (Task.BINARY, lambda rows: of_lightgbm(rows, "binary"), STANDING),
    "XGBoost UBJ": (Task.BINARY, lambda rows: of_xgboost(rows, "m.ubj"), STANDING),
    "ranker": (Task.RANKING, lambda rows: of_lightgbm(rows, "lambdarank"), STANDING),
    "three classes": (
        Task.MULTICLASS,
        lambda rows: of_lightgbm(rows, "multiclass", num_class=3),
        STANDING[1:],
    ),
    "forest of three classes": (
        Task.MULTICLASS,
        lambda rows: of_lightgbm(rows, "multiclass", num_class=3, **BAGS),
        STANDING[2:],
    ),
    "forest": (Task.BINARY, lambda rows: of_lightgbm(rows, "binary", **BAGS), STANDING),
}


def settings(file: str, learners: tuple[str, ...]) -> list[str]:
    """The ``--set`` options that put ``file`` under the learners."""
    found = [f"imported.file={file}", "budget-prune.tradeoff=[0,0.7,100]"]
    found += [f'{name}.base={{learner="imported",file="{file}"}}' for name in learners]
    if "cronus" in learners:
        found += ["cronus.stages=2", "cronus.cycles=1", "cronus.tradeoff=[0.01,10]"]
    if "early-exit" in learners:
        found += ["early-exit.every=3"]
    return [word for setting in found for word in ("--set", setting)]


def bench(*words: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code


@pytest.mark.parametrize("kind", FILES)
def test_a_run_stands_on_the_file_and_every_bill_is_verified(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_STORE", "bench.db")
    task, save, learners = FILES[kind]
    rows, options = data_file(task)
    metric = "ndcg@5" if task is Task.RANKING else "accuracy"
    asked = ["-l", ",".join(["imported", *learners]), *settings(save(rows), learners)]
    how = ["--costs", "costs", "-m", metric, "--executor", "inline", "--audit", "full", "-q"]
    bench("run", *options, *asked, *how)
    bench("export", "-o", "out.csv")
    frame = pd.read_csv("out.csv")
    assert set(frame["status"]) == {"ok"}
    assert set(frame["audit"]) == {"verified"}
    by_name = dict(list(frame[frame["split"] == "test"].groupby("learner")))
    assert set(by_name) == {"imported", *learners}
    own = by_name["imported"].iloc[-1]
    assert all(by_name[name]["feature_cost"].min() < own["feature_cost"] for name in learners)
    pruned = by_name["budget-prune"]
    tradeoff = pruned["params"].map(lambda text: json.loads(text)["tradeoff"])
    assert pruned[tradeoff == 100].iloc[-1]["feature_cost"] == 0
    for whole in (pruned[tradeoff == 0], by_name.get("early-exit", by_name["imported"])):
        for column in (metric, "feature_cost"):
            assert whole.iloc[-1][column] == own[column]
