"""Seconds and memory of fits on wide data: few rows, many features, of which five matter.

    python tests/speed/wide.py 72 7129 l1 adapt-lin     # without names every learner

Each learner is fitted at its defaults in a process of its own. Seconds are of its own fit; what it
needs (a base, a large model) is fitted once, before. ``library`` are the processor's seconds of the
library's own training, called directly; the rest is ours. MiB are the most that the process held
resident, data, Python, libraries and those models included. The bar, a minute and 1 GB, holds for
the lesser of clock and processor, since on a busy machine the clock counts others' work too.
``--limit``: seconds of processor time until a process is stopped. Tasks are binary; what only ranks
gets queries of ten rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import time
from typing import Any
from unittest.mock import patch

import numpy as np
from bench_models.libraries import LibraryTrees

from bench_core import Examples, Prices, Queries, Splits, Task
from bench_core.conformance.tasks import with_learners
from bench_core.contracts import learner_of
from bench_core.execution.in_process import Kept, fit_in_process
from bench_core.metrics import default_metric
from bench_core.plugins import load_registry

WITHOUT_DEFAULT = {"imported", "sklearn"}  # they need a file or the name of a class
QUERY = 10
SECONDS, MIB = 60, 10**9 / 2**20
HEAD = "| learner | s | processor s | library | MiB | bar |\n|---|---|---|---|---|---|"


def made(rows: int, features: int, task: Task) -> Splits:
    """Normal columns; the label is the sign of a noisy sum of the first five."""
    rng = np.random.default_rng(0)

    def part(n: int) -> Examples:
        X = rng.standard_normal((n, features), dtype=np.float32)
        score = X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=n)
        sizes = np.diff(np.arange(0, n + QUERY, QUERY).clip(max=n))
        queries = Queries.from_sizes(sizes) if task == Task.RANKING else None
        return Examples(X, (score > 0).astype(np.float64), queries)

    train, valid, test = part(rows), part(rows), part(2)
    prices = Prices.additive(np.ones(features))
    classes = 2 if task == Task.BINARY else 0
    return Splits(train, valid, test, prices=prices, task=task, classes=classes)


def row(name: str, splits: Splits, kept: Kept, threads: int) -> str:
    """One row of the table."""
    learner, metric = with_learners(load_registry().learner(name)()), default_metric(splits.task)
    kind = type(learner) if isinstance(learner, LibraryTrees) else LibraryTrees
    trained, own = kind._trained, list[float]()

    def timed(*arguments: Any) -> bytes:
        start = time.process_time()
        raw: bytes = trained(*arguments)
        own.append(time.process_time() - start)
        return raw

    with patch.object(kind, "_trained", timed):
        start, processor = time.perf_counter(), time.process_time()
        fit_in_process(learner, splits, metric, 0, threads, kept)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    library = f"{own[0]:.1f}" if own else ""
    bar = "met" if min(seconds, processor) <= SECONDS and mib <= MIB else "**missed**"
    return f"| `{name}` | {seconds:.1f} | {processor:.1f} | {library} | {mib:.0f} | {bar} |"


def main() -> None:
    """A line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("features", type=int)
    parser.add_argument("learners", nargs="*")
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    tasks: dict[Task, tuple[Splits, Kept]] = {}
    print(HEAD, flush=True)
    for name in options.learners or sorted(set(load_registry().learners) - WITHOUT_DEFAULT):
        learner = with_learners(load_registry().learner(name)())
        task = Task.BINARY if Task.BINARY in learner.tasks else Task.RANKING
        if task not in tasks:
            tasks[task] = made(options.rows, options.features, task), Kept()
        splits, kept = tasks[task]
        for needed in learner_of(learner).needs():
            fit_in_process(needed, splits, default_metric(task), 0, 1, kept)
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, options.limit)
            print(row(name, splits, kept, options.threads), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print(f"| `{name}` | more than {options.limit}, or failed | | | | |", flush=True)


if __name__ == "__main__":
    main()
