"""A tree engine for learning under feature costs: plain arrays in, flat ensembles out.

    bins = find_bins(X)                                   # quantile edges, float32
    codes = bins.codes(X, threads=2)                      # uint8 (d, n), feature-major
    penalty = Penalty.plain(coupled=price)                # or any sharing of sensors
    ensemble = boost(codes, bins, y, loss="squared", settings=Settings(), penalty=penalty)

Names are loaded on first use, so that importing this package imports neither numba nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "binning": ("Bins", "find_bins"),
    "boosting": ("boost",),
    "ensemble": ("Ensemble",),
    "growing_tree": ("Settings",),
    "kernels": ("warm_up",),
    "losses": ("LambdaRank", "Logistic", "Loss", "Softmax", "Squared"),
    "penalties": ("Ledger", "Penalty"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [
    "Bins",
    "Ensemble",
    "LambdaRank",
    "Ledger",
    "Logistic",
    "Loss",
    "Penalty",
    "Settings",
    "Softmax",
    "Squared",
    "boost",
    "find_bins",
    "warm_up",
]

if TYPE_CHECKING:
    from bench_trees.binning import Bins, find_bins
    from bench_trees.boosting import boost
    from bench_trees.ensemble import Ensemble
    from bench_trees.growing_tree import Settings
    from bench_trees.kernels import warm_up
    from bench_trees.losses import LambdaRank, Logistic, Loss, Softmax, Squared
    from bench_trees.penalties import Ledger, Penalty


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_trees' has no attribute {name!r}")
    return getattr(import_module(f"bench_trees.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
