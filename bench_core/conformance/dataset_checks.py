"""Promises of data sets, one function each, given the data set and the location of its files."""

from functools import lru_cache
from typing import Any

import numpy as np

from bench_core.conformance.cases import expect
from bench_core.contracts import check, dataset_of, labels_fault, shapes_fault
from bench_core.data import Examples
from bench_core.datasets.cache import fingerprint
from bench_core.protocols import CompleteDataset
from bench_core.splits import Splits

# allowed fraction of test rows equal to training rows, in excess of chance
STRAY = 0.02


def check_members(dataset: Any, source: Any) -> None:
    """A data set has ``name``, ``task`` and ``prepare``; its other members have the right types.

    Remedy: compare with the valid data set that 'bench new dataset NAME' writes.
    """
    check(type(dataset), CompleteDataset, type(dataset).__name__)


def check_title(dataset: Any, source: Any) -> None:
    """A data set has a title, which lists and boards show.

    Remedy: write ``title = "..."`` in the class.
    """
    expect(dataset_of(dataset).title.strip(), f"{dataset.name} has no title")


def check_splits(dataset: Any, source: Any) -> None:
    """Train, valid and test have rows of the same features, optional names, and prices.

    Remedy: return Splits(train, valid, test, prices=price_list(costs), ...), one cost per column.
    """
    fault = shapes_fault(_splits(dataset, source))
    expect(not fault, fault)


def check_cells(dataset: Any, source: Any) -> None:
    """Features are float32, as models receive them; missing cells are NaN, and no cell is infinite.

    Remedy: write X.astype(np.float32) once, where X is created.
    """
    splits = _splits(dataset, source)
    for part in (splits.train, splits.valid, splits.test):
        expect(part.X.dtype == np.float32, f"features X are {part.X.dtype}")
        expect(not np.isinf(part.X).any(), "a cell of X is infinite")


def check_labels(dataset: Any, source: Any) -> None:
    """Labels are finite and fit the task: classes from 0, each with training rows; grades of
    queries at least 0.

    Remedy: number the classes of training rows 0..K-1 and omit rows of other classes, or split so
    that each part has all classes; give ranking rows their Queries.
    """
    splits = _splits(dataset, source)
    fault = labels_fault(dataset.task, splits)
    expect(not fault, fault)
    lacking = np.setdiff1d(np.arange(splits.classes), splits.train.y)
    expect(not len(lacking), f"no training row has class {lacking[:1]}")


def check_disjoint(dataset: Any, source: Any) -> None:
    """No validation or test row is a training row, except for repetitions by chance.

    Remedy: shuffle once and divide the rows into three parts, keeping queries and persons together.
    """
    splits = _splits(dataset, source)
    training_rows = _rows(splits.train)
    # repetitions within training estimate repetitions by chance
    half = len(training_rows) // 2
    chance = _share(training_rows[half:], training_rows[:half])
    for name in ("valid", "test"):
        share = _share(_rows(getattr(splits, name)), training_rows)
        few = share <= 2 * chance + STRAY
        expect(few, f"{share:.0%} of the {name} rows are training rows too")


def check_repeatable(dataset: Any, source: Any) -> None:
    """Preparing twice gives the same arrays, also with other arguments not in ``depends_on``.

    Remedy: draw from np.random.default_rng(seed), and list in ``depends_on`` the arguments that
    change arrays.
    """
    whole = dataset_of(dataset)
    others = {"seed": 1, "fold": whole.folds - 1}
    others = {name: value for name, value in others.items() if name not in whole.depends_on}
    # change arguments that have no effect according to the data set
    again = dataset.prepare(source, "quick", **{"seed": 0, "fold": 0, **others})
    alike = fingerprint(again) == fingerprint(_splits(dataset, source))
    expect(alike, f"prepared again with {others}, its arrays differ")


@lru_cache(maxsize=1)
def _splits(dataset: Any, source: Any) -> Splits:
    """Prepare profile quick once for all checks except repetition."""
    made = dataset_of(dataset).prepare(source, "quick", fold=0, seed=0)
    return made if shapes_fault(made) else made.complete(dataset_of(dataset).task)


def _rows(part: Examples) -> list[bytes]:
    """Return the cells of each row as one value."""
    return [row.tobytes() for row in np.asarray(part.X, dtype=np.float32)]


def _share(rows: list[bytes], known: list[bytes]) -> float:
    """Fraction of rows that occur among others."""
    return sum(map(set(known).__contains__, rows)) / max(1, len(rows))
