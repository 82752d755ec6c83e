"""The promises of data sets, one function each, given the data set and where its files are."""

import tempfile
from functools import lru_cache
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray
from bench_core.conformance.case import Check, ConformanceError
from bench_core.contracts import check, dataset_of, labels_fault, shapes_fault
from bench_core.data import Examples
from bench_core.datasets.cache import fingerprint, prepare
from bench_core.protocols import CompleteDataset, Source
from bench_core.splits import Splits

STRAY = 0.02
"""The share of test rows that may also be training rows, above that which training rows repeat
among themselves."""


def check_members(dataset: Any, source: Source) -> None:
    """A data set has ``name``, ``task`` and ``prepare``; what else it has is of the right type.

    Remedy: compare with the data set that 'bench new dataset NAME' writes, which is sound.
    """
    check(type(dataset), CompleteDataset, type(dataset).__name__)


def check_title(dataset: Any, source: Source) -> None:
    """A data set has a title: the line that lists and boards show.

    Remedy: write ``title = "..."`` in the class.
    """
    if not dataset_of(dataset).title.strip():
        raise ConformanceError(f"{dataset.name} has no title")


def check_splits(dataset: Any, source: Source) -> None:
    """Train, valid and test have rows of the same features, which have names or not, and prices.

    Remedy: return Splits(train, valid, test, prices=price_list(costs), ...), a cost per column.
    """
    if fault := shapes_fault(_splits(dataset, source)):
        raise ConformanceError(fault)


def check_cells(dataset: Any, source: Source) -> None:
    """Features are float32, as models see them when they predict; missing cells are NaN, and no
    cell is infinite.

    Remedy: write X.astype(np.float32) once, where X is made.
    """
    for part in _parts(_splits(dataset, source)):
        if part.X.dtype != np.float32:
            raise ConformanceError(f"features X are {part.X.dtype}")
        if np.isinf(part.X).any():
            raise ConformanceError("a cell of X is infinite")


def check_labels(dataset: Any, source: Source) -> None:
    """Labels are finite and fit the task: classes from 0, grades of queries at least 0.

    Remedy: number classes 0..K-1 and say ``classes=K``; give ranking rows their Queries.
    """
    if fault := labels_fault(dataset.task, _splits(dataset, source)):
        raise ConformanceError(fault)


def check_classes(dataset: Any, source: Source) -> None:
    """Every class has training rows.

    Remedy: number the classes that training rows have, and leave out rows of others; or split so
    that each part has all.
    """
    splits = _splits(dataset, source)
    lack = np.setdiff1d(np.arange(splits.classes), splits.train.y)
    if len(lack):
        raise ConformanceError(f"no training row has class {lack[0]}")


def check_disjoint(dataset: Any, source: Source) -> None:
    """No validation or test row is a training row, but for what repeats by chance.

    Remedy: shuffle once and cut the rows into three, queries and persons as a whole.
    """
    splits = _splits(dataset, source)
    known = _rows(splits.train)
    half = len(known) // 2
    chance = float(_among(known[half:], known[:half]).mean()) if half else 0.0
    for name in ("valid", "test"):
        share = float(_among(_rows(getattr(splits, name)), known).mean())
        if share > 2 * chance + STRAY:
            raise ConformanceError(f"{share:.0%} of the {name} rows are training rows too")


def check_repeatable(dataset: Any, source: Source) -> None:
    """Preparing twice gives the same arrays, also for arguments that ``depends_on`` leaves out.

    Remedy: draw from np.random.default_rng(seed), and name in ``depends_on`` what changes arrays.
    """
    first = fingerprint(_splits(dataset, source))
    last = {"seed": 1, "fold": dataset_of(dataset).folds - 1}
    others = {k: v for k, v in last.items() if k not in dataset_of(dataset).depends_on}
    again = {"seed": 0, "fold": 0} | others
    if fingerprint(dataset.prepare(source, "quick", **again)) != first:
        raise ConformanceError(f"prepared again with {others}, its arrays are others")


def check_cached(dataset: Any, source: Source) -> None:
    """What the cache keeps is what was prepared.

    Remedy: keep to arrays of numbers, in the types that Examples names.
    """
    with tempfile.TemporaryDirectory() as folder:
        kept = prepare(dataset, source=source, cache_dir=folder).splits
        if fingerprint(kept) != fingerprint(_splits(dataset, source)):
            raise ConformanceError("the cache holds other arrays")


DATASET_CHECKS: tuple[Check, ...] = (
    check_members,
    check_title,
    check_splits,
    check_cells,
    check_labels,
    check_classes,
    check_disjoint,
    check_repeatable,
    check_cached,
)


def _splits(dataset: Any, source: Any) -> Splits:
    """Profile quick, prepared once for all checks but that of repetition."""
    return _prepared(dataset, source)


@lru_cache(maxsize=1)
def _prepared(dataset: Any, source: Any) -> Splits:
    made = dataset_of(dataset).prepare(source, "quick", fold=0, seed=0)
    return made if shapes_fault(made) else made.complete(dataset_of(dataset).task)


def _parts(splits: Splits) -> tuple[Examples, ...]:
    return splits.train, splits.valid, splits.test


def _rows(part: Examples) -> Any:
    """Each row's cells as one value of bytes."""
    X = np.ascontiguousarray(part.X, dtype=np.float32)
    return X.view(f"V{X.shape[1] * X.itemsize}").ravel()


def _among(rows: Any, known: Any) -> BoolArray:
    """A mask of the rows that stand among others."""
    seen = {row.tobytes() for row in known}
    return np.array([row.tobytes() in seen for row in rows])
