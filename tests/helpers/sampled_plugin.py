"""Every registered data set with fewer rows, for tests that try all learners on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import bench_core
from bench_core import Examples, Queries, Source, Splits, Task
from bench_core.contracts import dataset_of
from bench_core.plugins import load_registry

ROWS = {"train": 1200, "valid": 400, "test": 400}


def _evenly(part: Examples, most: int) -> Examples:
    """Whole queries, or rows, evenly spaced: about ``most`` rows."""
    if part.queries is None:
        count = min(most, len(part))
        rows = np.unique(np.linspace(0, len(part) - 1, count).astype(np.int64))
        return Examples(np.ascontiguousarray(part.X[rows]), part.y[rows])
    step = max(1, len(part) // most)
    kept = np.arange(0, len(part.queries), step)
    bounds = part.queries.boundaries
    rows = np.concatenate([np.arange(bounds[q], bounds[q + 1]) for q in kept])
    queries = Queries.from_sizes(part.queries.sizes[kept])
    copies = None if part.multiplicity is None else part.multiplicity[rows]
    return Examples(np.ascontiguousarray(part.X[rows]), part.y[rows], queries, copies)


@dataclass(frozen=True)
class Sampled:
    """Rows of another data set, evenly spaced in each split, at its true prices."""

    full: ClassVar[type[Any]]
    name: ClassVar[str]
    task: ClassVar[Task]
    title: ClassVar[str] = "A sample for tests"
    folds: ClassVar[int] = 1
    files: ClassVar[tuple[str, ...]]
    stand_in_for: ClassVar[str] = ""
    version: ClassVar[int] = 1

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The three splits with fewer rows."""
        splits = self.full().prepare(source, size, fold, seed)
        parts = {name: _evenly(getattr(splits, name), most) for name, most in ROWS.items()}
        return replace(splits, **parts)


def _sampled(full: type[Any]) -> type[Sampled]:
    own = {
        "full": full,
        "name": f"{full.name}-sample",
        "task": full.task,
        "files": dataset_of(full).files,
    }
    name = f"{full.__name__}Sample"
    made = type(name, (Sampled,), {**own, "__module__": __name__})
    globals()[name] = made
    return made


SAMPLED = {cls.name: cls for cls in map(_sampled, load_registry().datasets.values())}


@bench_core.hookimpl
def bench_datasets() -> Sequence[type[Any]]:
    """One sample of each."""
    return list(SAMPLED.values())
