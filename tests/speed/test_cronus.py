"""Cronus at the paper's size: seconds of its parts and the memory they take.

    pytest -m speed tests/speed/test_cronus.py -s

5000 trees on 141397 rows of ``yahoo-sim`` whose negatives count ten times. Writes
results/speed/cronus.json. Never fails on a time. BENCH_SPEED_ROWS and BENCH_SPEED_TREES make it
smaller.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_datasets.yahoo.sim import PATTERNS, features, generate
from bench_methods.cronus import Cronus, CronusInit
from bench_methods.gbrt import GBRT
from bench_models.dictionary import dictionary
from bench_trees import warm_up

from bench_core import Examples, Prices, Task

ROWS = int(os.environ.get("BENCH_SPEED_ROWS", "141397"))
TREES = int(os.environ.get("BENCH_SPEED_TREES", "5000"))
THREADS = 2
OUTPUT = Path(__file__).parents[2] / "results" / "speed" / "cronus.json"


class Context:
    """What a fit is offered; the base is fitted beforehand."""

    task, classes, metric, seed, threads = Task.RANKING, 2, None, 0, THREADS
    base: Any = None

    def fitted(self, learner: Any) -> Any:
        return self.base

    def shared(self, name: str, build: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        return build()

    def progress(self, done: int, total: int) -> None:
        pass


def peak() -> float:
    """The most memory this process has held, GiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@pytest.mark.speed
def test_the_cascade_is_fitted_at_the_size_of_the_paper() -> None:
    warm_up(lambda text: None)
    rows: Any = generate(PATTERNS["a"], 0, 0, ROWS)
    train = Examples(rows.X, rows.y, rows.queries, np.where(rows.y < 3, 10, 1))
    cost = np.array([f.price for f in features(PATTERNS["a"])], dtype=np.float64)
    prices = Prices.additive(cost, split=0.25, unit="feature evaluations")
    context: Any = Context()
    found: dict[str, Any] = {"rows": ROWS, "trees": TREES, "threads": THREADS}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = action()
        found[name] = {"seconds": time.perf_counter() - start, "peak GiB": peak()}
        print(name, found[name])
        return result

    base = GBRT(trees=TREES)
    context.base = timed("trees", lambda: base.fit(train, train, prices, context))
    share = train.weights / train.weights.sum()
    ensemble = context.base.ensemble
    timed("outputs of the trees", lambda: dictionary(ensemble, train.X, share, prices, THREADS))
    for kind, rho in ((CronusInit, 1e-4), (Cronus, 1e-4), (CronusInit, 1e-5), (Cronus, 1e-5)):
        learner = kind(base=base, rho_first=rho, rho_last=rho)
        name = f"{kind.name}, rho {rho:g}"
        model = timed(name, lambda it=learner: it.fit(train, train, prices, context))
        found[name]["objective"] = model.facts["objective"]
        found[name]["trees per stage"] = model.facts["trees_per_stage"]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    found["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
