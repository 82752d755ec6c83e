"""How time and memory grow where rows, columns, trees or classes grow tenfold.

    pytest -m speed tests/speed/test_growth.py

``bench plan`` reads a file; ``bench run`` trains ``gbrt`` on it and judges its path, in one process
with one thread. Both are measured at one size and at ten times that size along each dimension: ten
is linear, more than 11 is reported as missed. What a tiny file takes is subtracted from the peak of
memory. Seconds of reading stand among the facts: most of them are the start of the process. Never
fails on a time.
"""

import os
import sys

import numpy as np
import pyarrow as pa
import pytest
from paired import SCALE, report, value
from pyarrow.csv import write_csv
from resident import watched

from bench_core.results.store import Store

pytestmark = pytest.mark.speed

SIZE = {"rows": round(100_000 * SCALE), "columns": 30, "trees": 100, "classes": 2}
TINY = {"rows": 500, "columns": 2, "trees": 1, "classes": 2}
LINEAR = 11.0


def write(path, rows, columns, classes):
    """Of the columns a third has few values, a third half zeros."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    X[:, ::3] = np.round(X[:, ::3] * 3) / 3
    X[:, 1::3] *= rng.random(X[:, 1::3].shape) < 0.5
    score = X[:, :2].sum(axis=1) + rng.normal(size=rows)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    table = {f"f{j}": column for j, column in enumerate(X.round(4).T)}
    write_csv(pa.table({**table, "y": labels}), path)


def bench(words, folder):
    command = [sys.executable, "-m", "bench_core", *words, "--no-progress", "--store", "own.db"]
    _, peaks = watched(command, os.environ | {"BENCH_CACHE": str(folder / "cache")}, folder)
    return peaks


def measured(folder, *, rows, columns, trees, classes):
    """Seconds of reading, training and judging, and bytes."""
    folder.mkdir()
    write(folder / "rows.csv", rows, columns, classes)
    data = ["--data", "rows.csv", "--label", "y", "--learners", "gbrt"]
    data += ["--task", "multiclass" if classes > 2 else "binary"]
    reading = bench(["plan", *data], folder)
    peaks = bench(["run", *data, "--set", f"gbrt.trees={trees}", "-w", "1", "-t", "1"], folder)
    frame = Store(folder / "own.db").frame("last")
    trial = frame[frame["learner"] == "gbrt"].iloc[0]
    return {
        "reading": reading.seconds,
        "training": float(trial["fit_seconds"]),
        "judging": float(trial["predict_seconds"]),
        "memory": peaks.private,
    }


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    home = tmp_path_factory.mktemp("growth")
    measured(home / "compiling", **TINY)
    return home, measured(home / "tiny", **TINY), measured(home / "start", **SIZE)


@pytest.mark.benchmark(group="growth")
@pytest.mark.parametrize("dimension", SIZE)
def test_growth(dimension, start, benchmark):
    home, tiny, before = start
    after = measured(home / dimension, **SIZE | {dimension: 10 * SIZE[dimension]})
    held = {"training": 0.0, "judging": 0.0, "memory": tiny["memory"]}
    report(
        benchmark,
        {"ours": [after["training"]]},
        work=f"{dimension} from {SIZE[dimension]} to {10 * SIZE[dimension]}",
        values={
            name: value((after[name] - least) / (before[name] - least), "x", LINEAR)
            for name, least in held.items()
        },
        facts={"s, reading before": before["reading"], "s, reading after": after["reading"]},
        before=before,
        after=after,
    )
