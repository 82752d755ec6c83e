"""The promises a data set makes, one function each: it takes the data set and where files are."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from bench_core.conformance.tasks import ConformanceError
from bench_core.contracts import check, dataset_of
from bench_core.data import Examples, Task
from bench_core.datasets.cache import fingerprint, prepare
from bench_core.protocols import CompleteDataset, Source
from bench_core.splits import SPLITS, Splits


def check_members(dataset: Any, source: Source) -> None:
    """It has name, task and prepare; what else it says is of the right type."""
    check(type(dataset), CompleteDataset, type(dataset).__name__)


def check_splits(dataset: Any, source: Source) -> None:
    """Train, valid and test have rows of the same features, which have names or not, and prices."""
    splits = _splits(dataset, source)
    d = splits.train.X.shape[1]
    for name, part in zip(SPLITS, _parts(splits), strict=True):
        if not len(part) or part.X.shape[1] != d:
            raise ConformanceError(f"{name} has {part.X.shape} cells, train {d} features")
    if splits.prices.features != d or len(splits.feature_names) not in (0, d):
        raise ConformanceError(f"prices or names are not of {d} features")


def check_labels(dataset: Any, source: Source) -> None:
    """Labels are finite and fit the task: classes from 0, grades of queries at least 0."""
    splits = _splits(dataset, source)
    if splits.task != dataset.task:
        raise ConformanceError(f"its task is {dataset.task}, that of its splits {splits.task}")
    classes = splits.classes
    if (splits.task in (Task.BINARY, Task.MULTICLASS)) != (classes >= 2):
        raise ConformanceError(f"{splits.task} with {classes} classes")
    y = np.concatenate([part.y for part in _parts(splits)])
    if not np.isfinite(y).all() or (classes and not np.isin(y, np.arange(classes)).all()):
        raise ConformanceError(f"labels {np.unique(y)[:5].tolist()} do not fit {splits.task}")
    if splits.task == Task.RANKING and (
        y.min() < 0 or any(part.queries is None for part in _parts(splits))
    ):
        raise ConformanceError("ranking needs queries, and grades of at least 0")


def check_repeatable(dataset: Any, source: Source) -> None:
    """Preparing twice gives the same arrays, also for arguments that ``depends_on`` leaves out."""
    first = fingerprint(_splits(dataset, source))
    again = {"seed": 0, "fold": 0}
    last = {"seed": 1, "fold": dataset_of(dataset).folds - 1}
    others = {k: v for k, v in last.items() if k not in dataset.depends_on}
    if fingerprint(_splits(dataset, source, **(again | others))) != first:
        raise ConformanceError(f"prepared again with {others}, its arrays are others")


def check_cached(dataset: Any, source: Source) -> None:
    """What the cache keeps is what was prepared."""
    with tempfile.TemporaryDirectory() as folder:
        kept = prepare(dataset, source=source, cache_dir=folder).splits
        if fingerprint(kept) != fingerprint(_splits(dataset, source)):
            raise ConformanceError("the cache holds other arrays")


DATASET_CHECKS = (check_members, check_splits, check_labels, check_repeatable, check_cached)


def _splits(dataset: Any, source: Source, seed: int = 0, fold: int = 0) -> Splits:
    return dataset_of(dataset).prepare(source, "quick", fold, seed)


def _parts(splits: Splits) -> tuple[Examples, ...]:
    return splits.train, splits.valid, splits.test
