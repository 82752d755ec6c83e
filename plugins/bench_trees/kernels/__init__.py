"""Compiled functions of the engine, with the data structures that they work on.

A kernel calls no kernel of another file, because numba's cache checks only the caller's file.
Kernels made by ``calling`` may: it checks the other files too. Arguments that belong together are
NamedTuples. Names without an underscore are called from Python; ``warm_up`` compiles them ahead of
use, with a notice, except for RARE modules. To shorten compilation, functions called only by
kernels are ``inner`` or inlined, and rows of arrays are copied by loops. For an array assignment
numba also compiles the message on unequal shapes, which takes more than a second.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

RARE = "few_rows", "lambdarank", "leaf_vectors", "table_cuts"
"""Modules with kernels that few runs need, compiled by the first run that does."""


def compiled() -> bool:
    """True if numba's cache has every kernel of the engine, compiled from its current source."""
    # numba compares its cache with the source, but has no public name for that
    return all(kernel._cache._cache_file._load_index() for kernel in _kernels())


def warm_up(say: Callable[[str], None] = print) -> None:
    """Compile kernels absent from numba's cache, after one line to ``say``; else return at once."""
    if compiled():
        return
    say("compiling kernels, once per machine, half a minute or more")
    _use_every_kernel()


def _kernels() -> list[Any]:
    """The public kernels made here. Kernels with an underscore and imported ones are compiled into
    their callers."""
    modules = [f"{__name__}.{m.name}" for m in iter_modules(__path__) if m.name not in RARE]
    found = [thing for name in modules for thing in vars(import_module(name)).items()]
    kernels = [kernel for name, kernel in found if hasattr(kernel, "py_func") and name[0] != "_"]
    return [kernel for kernel in kernels if kernel.py_func.__module__ in modules]


def _use_every_kernel() -> None:
    from bench_trees.binning import find_bins
    from bench_trees.boosting import boost
    from bench_trees.inference import Needs, Steps, Walked, lay_out, walk
    from bench_trees.penalties import Penalty
    from bench_trees.settings import Settings

    X = np.arange(60, dtype=np.float32).reshape(20, 3) % 7
    y = X[:, 0].astype(np.float64)
    bins = find_bins(X, max_bins=3)
    codes = bins.codes(X)
    settings = Settings(trees=2, min_rows=1)
    lazy = Penalty.plain(3, lazy=np.full(3, 1e-6))
    ensemble = boost(codes, bins, y, settings=settings, penalty=lazy)
    boost(codes, bins, y // 4, loss="logistic", settings=settings)
    layout = lay_out(ensemble, Needs.nothing(3))
    steps = Steps.prefixes([ensemble.trees], ensemble.base)
    walk(layout, steps, X, Walked.begin(len(X), 1, layout.words))
