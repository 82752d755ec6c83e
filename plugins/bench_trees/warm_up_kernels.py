"""Compiling the kernels ahead, so that the wait can be announced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SECONDS = 12
"""About how long the first compilation takes."""


def compiled() -> bool:
    """Whether every kernel of the engine is in numba's cache, compiled from its present source."""
    return all(_cached(kernel) for kernel in _kernels())


def warm_up(say: Callable[[str], None] = print) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    if compiled():
        return
    say(f"compiling kernels, once per machine, about {SECONDS} s")
    _use_every_kernel()


def _kernels() -> list[Any]:
    from bench_trees import binning, histogram, layout, losses, splitting
    from bench_trees.kernels import bitmask_traversal, partition, penalty_kernels

    return [
        binning._encode,
        binning._greedy_ends,
        histogram.accumulate,
        histogram.add_counts,
        bitmask_traversal.add_cells,
        bitmask_traversal.walk_tiles,
        layout._depths,
        layout._preorder,
        losses.lambdas,
        penalty_kernels.count_unpaid,
        penalty_kernels.mark_paid,
        partition.add_to_rows,
        partition.gather,
        partition.partition,
        splitting.best_cuts,
    ]


def _cached(kernel: Any) -> bool:
    # numba itself says whether what it stored is of this source; it has no public name for it
    return bool(kernel._cache._cache_file._load_index())


def _use_every_kernel() -> None:
    from bench_trees.binning import find_bins
    from bench_trees.boosting import boost
    from bench_trees.inference import use_every_kernel
    from bench_trees.penalties import Penalty
    from bench_trees.settings import Settings

    X = np.arange(60, dtype=np.float32).reshape(20, 3) % 7
    y = X[:, 0].astype(np.float64)
    bins = find_bins(X, max_bins=3)
    codes = bins.codes(X)
    settings = Settings(trees=2, min_rows=1)
    lazy = Penalty.plain(3, lazy=np.full(3, 1e-6))
    boost(codes, bins, y, settings=settings, penalty=lazy)
    boost(codes, bins, y, loss="lambdarank", settings=settings, queries=np.array([0, 20]))
    use_every_kernel()
