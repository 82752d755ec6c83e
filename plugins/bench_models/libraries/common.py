"""What libraries share: being installed, physical copies, group sizes, errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from bench_core import Examples, InputError, Prices, Queries, Task, UsageError
from bench_core.arrays import FloatArray
from bench_models.tradeoff import LossPrices


@cache
def version_of(learner: str, *distributions: str) -> str:
    """The version of the first of these distributions that is installed, without importing it.

    Raises UsageError that says how to install it.
    """
    for name in distributions:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    raise UsageError(
        f"{learner} needs {distributions[0]}, which is not installed: "
        "pip install 'budget-bench[peers]'"
    )


@contextmanager
def library_errors(learner: str) -> Iterator[None]:
    """The complaint of a library about the data as one line."""
    try:
        yield
    except (UsageError, InputError, MemoryError):
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = lines[0] if lines else type(error).__name__
        raise InputError(f"{learner}: {type(error).__name__}: {text}") from error


def with_physical_copies(train: Examples) -> Examples:
    """Every row as many times as its multiplicity: limits on rows and bins then count copies."""
    copies = train.multiplicity
    if copies is None:
        return train
    queries = train.queries
    if queries is not None:
        sizes = np.add.reduceat(copies, queries.boundaries[:-1])
        queries = Queries.from_sizes(sizes)
    return Examples(np.repeat(train.X, copies, axis=0), np.repeat(train.y, copies), queries)


def check_classes(learner: str, train: Examples, task: Task) -> None:
    """Raise InputError where training labels are all of one class."""
    if task in (Task.BINARY, Task.MULTICLASS) and len(np.unique(train.y)) < 2:
        raise InputError(
            f"{learner}: all training labels are {train.y[0]:g}; it needs at least two classes"
        )


def bought_alone(row: LossPrices, prices: Prices) -> FloatArray:
    """What each feature costs one row in loss units if nothing else is bought, (d,)."""
    return np.array([row.sensor[prices.of(j)].sum() for j in range(prices.features)])


def group_sizes(train: Examples) -> Any:
    """Rows per query; one query where there are none."""
    return np.array([len(train)]) if train.queries is None else train.queries.sizes
