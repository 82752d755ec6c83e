"""What the parts of training with gradients take, in milliseconds of the processor a tree.

    python tests/speed/gradients.py [--rows 100000] [--rounds 5]   # minutes, one thread

Data as in ``test_training_shapes.py``. A part's time includes what it calls; it is the least of the
rounds, so that other work hardly moves it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from typing import Any

import numpy as np
from bench_trees import Settings, boost, boosting, find_bins, grower, warm_up
from bench_trees.losses import Loss, named
from test_training_shapes import CLASSES, QUERY, rows

CASES = [("logistic", 30), ("softmax", 30), ("lambdarank", 136), ("lambdarank", 519)]
PARTS = {
    "gradients": (boosting._Descent, "_slopes"),
    "growing": (grower, "grow"),
}
spent: dict[str, float] = defaultdict(float)


def timed(name: str, function: Any) -> Any:
    """The function, whose time is added to that of ``name``."""

    def wrapped(*args: Any, **more: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **more)
        finally:
            spent[name] += time.process_time() - start

    return wrapped


def measured(name: str, n: int, d: int, rounds: int) -> dict[str, float]:
    """Milliseconds of each part, and of all."""
    X, y = rows(n, d)
    grades = {"logistic": 2, "softmax": CLASSES, "lambdarank": 5}[name]
    y = np.searchsorted(np.quantile(y, np.arange(1, grades) / grades), y).astype(np.float64)
    loss: Loss = named(name, y)
    bins = find_bins(X)
    words, trees = bins.words(X, threads=1), max(2, 60 // loss.outputs)
    settings = Settings(trees=trees, max_depth=4, max_leaves=16, min_rows=20)
    queries = np.unique(np.append(np.arange(0, n, QUERY), n)) if name == "lambdarank" else None
    fit = timed("all", boost)
    found: list[dict[str, float]] = []
    for _ in range(rounds):
        spent.clear()
        fit(words, bins, y, loss=loss, settings=settings, queries=queries, threads=1)
        found.append({part: 1000 * s / trees / loss.outputs for part, s in spent.items()})
    return {part: min(each[part] for each in found) for part in found[0]}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warm_up(print)
    for name, (owner, function) in PARTS.items():
        setattr(owner, function, timed(name, getattr(owner, function)))
    columns = [*PARTS, "all"]
    print(f"| loss | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, d in CASES:
        cells = measured(name, options.rows, d, options.rounds)
        print(f"| {name}, {d} columns | {' | '.join(f'{cells[c]:.2f}' for c in columns)} |")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
