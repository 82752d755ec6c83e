"""Compiling the kernels ahead, so that the wait can be announced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SECONDS = 8
"""About how long the first compilation takes."""


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    # numba itself says whether what it stored is of this source; it has no public name for it
    if all(bool(kernel._cache._cache_file._load_index()) for kernel in kernels()):
        return
    say(f"compiling the kernels of forests, once per machine, about {SECONDS} s")
    _use_every_kernel()


def kernels() -> list[Any]:
    """The kernels that Python calls."""
    from bench_methods.budget_forest import flow, grow_kernels, routing, smoothed_dual_kernels

    return [
        flow.block,
        flow.cells,
        flow.levels,
        grow_kernels.grow,
        routing.first_needs,
        routing.route,
        smoothed_dual_kernels.best_closures,
        smoothed_dual_kernels.tree_isotonic,
        smoothed_dual_kernels.split_cost,
        smoothed_dual_kernels.spent,
    ]


def _use_every_kernel() -> None:
    from bench_core import Examples, Task, price_list
    from bench_methods.budget_forest.prune import BudgetPrune
    from bench_methods.budget_forest.rf import BudgetRF

    class Context:
        """A fit without a harness."""

        task, classes, seed, threads = Task.BINARY, 2, 0, 1
        metric: Any = None
        feature_names = ("a", "b", "c")

        def fitted(self, learner: Any) -> Any:
            return learner.fit(rows, rows, prices, self)

        def shared(self, name: str, build: Any) -> Any:
            return build()

        def progress(self, done: int, total: int) -> None:
            pass

    X = (np.arange(60, dtype=np.float32).reshape(20, 3) * 7) % 11
    rows, prices = Examples(X, (X[:, 0] > X[:, 1]).astype(np.float64)), price_list(np.ones(3))
    for solver in ("cut", "streamed"):
        BudgetPrune(base=BudgetRF(trees=2), solver=solver).fit(rows, rows, prices, Context())
