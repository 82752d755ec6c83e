"""Measure the typical times of ``bench plan``: seconds of a fit and of a trial of each learner.

``python tests/speed/typical_seconds.py`` writes ``bench_core/planning/typical_seconds.json``. Each
learner runs with one setting on two generated tables; a line through both times, over
``rows * sqrt(columns)``, gives seconds of a small set and seconds per million of these.
"""

import json
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

import bench_core
from bench_core.planning.plan import TYPICAL
from bench_core.results.store import Store

SHAPES = ((1500, 10), (15_000, 30))
LIMIT = 90.0  # seconds of a job


def table(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3]) + 0.5 * rng.normal(size=rows)
    return X, (score > 0.4).astype(int)


def measured() -> dict[str, list[list[float]]]:
    """Return the fits' and trials' times of each learner, with the table's size, by learner."""
    times: dict[str, list[list[float]]] = {}
    for rows, columns in SHAPES:
        X, y = table(rows, columns)
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder, "bench.db")
            bench_core.run(
                X, y, learners="all", configs=1, timeout=LIMIT, store=store, threads=1, audit="off"
            )
            by_learner: dict[str, list[tuple[float, float]]] = {}
            for _, learner, fit, trial in Store(store).durations():
                by_learner.setdefault(learner, []).append((fit, trial))
        for learner, pairs in by_learner.items():
            fit, trial = (median(times) for times in zip(*pairs, strict=True))
            times.setdefault(learner, []).append([rows * columns**0.5 / 1e6, fit, trial])
    return times


def line(sizes: list[float], seconds: list[float]) -> list[float]:
    """Return seconds at no rows, and per million of ``rows * sqrt(columns)``."""
    slope = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0]) if len(sizes) > 1 else 0.0
    slope = max(slope, 0.0) if len(sizes) > 1 else seconds[0] / sizes[0]
    start = max(seconds[0] - slope * sizes[0], 0.05)
    return [float(f"{start:.2g}"), float(f"{slope:.2g}")]


if __name__ == "__main__":
    found = {}
    for learner, rows in sorted(measured().items()):
        sizes, fits, trials = map(list, zip(*rows, strict=True))
        found[learner] = [
            *line([0.6 * s for s in sizes], fits),
            *line([0.4 * s for s in sizes], trials),
        ]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    TYPICAL.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
