"""Cronus at the paper's size: seconds of its parts and the memory they take.

    pytest -m speed tests/speed/test_cronus.py -s     # prints what is done meanwhile

5000 trees on 141397 rows of ``yahoo-sim`` whose negatives count ten times. Never fails on a time.
BENCH_SPEED_ROWS and BENCH_SPEED_TREES make it smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from bench_datasets.yahoo.sim import PATTERNS, features, generate
from bench_methods.cronus import Cronus, CronusInit
from bench_methods.gbrt import GBRT
from bench_models.dictionary import dictionary
from bench_trees import warm_up
from paired import alternate, report, setting

from bench_core import Examples, Prices, Task

ROWS, TREES = setting("ROWS", 141_397), setting("TREES", 5000, least=20)
THREADS = 2


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
@pytest.mark.benchmark(group="cronus")
def test_the_cascade_is_fitted_at_the_size_of_the_paper(benchmark: Any) -> None:
    warm_up(lambda text: None)
    rows: Any = generate(PATTERNS["a"], 0, 0, ROWS)
    train = Examples(rows.X, rows.y, rows.queries, np.where(rows.y < 3, 10, 1))
    cost = np.array([f.price for f in features(PATTERNS["a"])], dtype=np.float64)
    prices = Prices.additive(cost, split=0.25, unit="feature evaluations")
    context: Any = Context()
    samples: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    models: dict[str, dict[str, Any]] = {}

    def timed(name: str, action: Callable[[], Any]) -> Any:
        results = []
        samples.update(
            alternate(benchmark, {name: lambda: results.append(action())}, 1, warm=False)
        )
        peaks[name] = peak()
        print(name, samples[name], peaks[name], flush=True)
        return results[0]

    base = GBRT(trees=TREES)
    context.base = timed("trees", lambda: base.fit(train, train, prices, context))
    share = train.weights / train.weights.sum()
    ensemble = context.base.ensemble
    timed("outputs of the trees", lambda: dictionary(ensemble, train.X, share, prices, THREADS))
    for kind, rho in ((CronusInit, 0.03), (Cronus, 0.03), (CronusInit, 0.003), (Cronus, 0.003)):
        learner = kind(base=base, rho_first=(rho,), rho_last=(rho,))
        name = f"{kind.name}, rho {rho:g}"
        model = timed(name, lambda it=learner: it.fit(train, train, prices, context))
        models[name] = {key: model.facts[key] for key in ("objective", "trees_per_stage")}
        print(name, models[name], flush=True)
    report(
        benchmark,
        samples,
        work=f"cascades of {TREES} trees, {ROWS} rows",
        facts={f"s, {name}": times[0] for name, times in samples.items()}
        | {"peak GiB of the process": peak()},
        peak_gib=peaks,
        models=models,
        threads=THREADS,
    )
