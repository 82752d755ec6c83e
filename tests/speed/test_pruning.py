"""BudgetPrune at HEPMASS's size, which the published solver did not finish: time, memory, gap.

    pytest -m speed tests/speed/test_pruning.py -s     # prints what is done meanwhile

Rows are generated: two equally frequent classes, 28 correlated features of which seven carry most
of the signal. 40 BudgetRF trees of at most 10 levels are grown on as many rows as then pay, timed
apart. Never fails on a time, only on the gap that the pruning certifies. BENCH_SPEED_ROWS changes
the number of rows (default 350000; HEPMASS: 3500000), BENCH_SPEED_TRADEOFFS the tradeoffs.
"""

from __future__ import annotations

import os
import resource
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune, BudgetRF, bench_warm_up
from paired import alternate, report, setting, value

from bench_core import Examples, Prices, Task
from bench_core.metrics import default_metric

ROWS = setting("ROWS", 350_000)
TRADEOFFS = [float(t) for t in os.environ.get("BENCH_SPEED_TRADEOFFS", "0.2,0.5").split(",")]
"""Each pruned for by itself, and before them the whole path."""
FEATURES = 28
THREADS = 2
TREES = setting("TREES", 40, least=5)
DEPTH = 10
GAP = 1e-3
BAR = 60.0  # seconds of each pruning


def events(seed: int) -> Examples:
    """Signal and background; the mean of feature j moves by ``shift[j]`` between them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, ROWS)
    shift = np.full(FEATURES, 0.1, dtype=np.float32)
    shift[:7] = np.linspace(0.6, 0.3, 7)
    X = rng.standard_normal((ROWS, FEATURES), dtype=np.float32)
    for j in range(FEATURES):
        X[:, j] += (2 * y - 1) * shift[j]
    for j in range(7, 21):
        X[:, j] += 0.3 * X[:, (j - 7) // 2]
    return Examples(X, y.astype(np.float64))


class Context:
    """A fit without a harness, reporting what takes long."""

    task, classes, seed, threads = Task.BINARY, 2, 0, THREADS
    metric = default_metric(Task.BINARY)
    feature_names: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.forest: Any = None

    def fitted(self, learner: Any) -> Any:
        return self.forest

    def shared(self, name: str, build: Any) -> Any:
        return build()

    def progress(self, done: int, total: int) -> None:
        print(f"{time.strftime('%H:%M:%S')} {done} of {total}", flush=True)


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@pytest.mark.speed
@pytest.mark.benchmark(group="pruning")
def test_pruning_at_the_size_of_hepmass(benchmark: Any) -> None:
    bench_warm_up(print)
    prices, context = Prices.additive(np.ones(FEATURES)), Context()
    base = BudgetRF(trees=TREES, depth=DEPTH, min_rows=max(1, ROWS // 20000))
    train, valid = events(0), events(1)
    found: dict[str, dict[str, Any]] = {}

    def grow() -> None:
        context.forest = base.fit(train, train, prices, context)

    def prune(side: str, tradeoff: float | None) -> None:
        learner = BudgetPrune(base=base, tradeoff=tradeoff, tolerance=GAP)
        model: Any = learner.fit(train, valid, prices, context)
        found[side] = facts = dict((model.whole if tradeoff is None else model).facts)
        print(facts, flush=True)

    wanted = {"path": None, **{f"tradeoff {t:g}": t for t in TRADEOFFS}}
    sides = {"training": grow, **{k: partial(prune, k, t) for k, t in wanted.items()}}
    samples = alternate(benchmark, sides, 1, warm=False)
    assert context.forest is not None
    report(
        benchmark,
        samples,
        work=f"pruning {TREES} trees of at most {DEPTH} levels, {ROWS} x {FEATURES}",
        facts={
            **{f"s, {side}": times[0] for side, times in samples.items()},
            **{f"gap, {side}": facts["gap"] for side, facts in found.items()},
            "peak GiB of the process": peak_gib(),
        },
        values={side: value(samples[side][0], "s", BAR) for side in wanted},
        nodes=len(context.forest.numbers.ensemble.feature),
        threads=THREADS,
        prunings=found,
    )
    assert max(facts["gap"] for facts in found.values()) <= GAP
