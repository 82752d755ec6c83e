"""Boosting on growing sets of features, in step on several divisions of the training rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from bench_models import held_out_fits
from bench_models.held_out_fits import Fits, HeldOutFit
from bench_models.path_of_models import Subsets, rows_of
from bench_models.tradeoff import labels_of

from bench_core import Task
from bench_core.arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Settings

Division = tuple[IntArray, IntArray]
"""Numbers of the units (queries, else rows) to fit on, and of those held out."""

CHUNK = 10
LEAST_FALL = 2e-4
"""Of the constant's loss: a smaller fall is none."""


def units(whole: Subsets) -> int:
    """Number of queries, else rows."""
    return len(whole.train if whole.train.queries is None else whole.train.queries)


def copies_of(whole: Subsets, chosen: IntArray) -> IntArray:
    """How many copies (n,) there are of each row that belongs to one of the units, else 0."""
    rows = whole.train
    unit = np.arange(len(rows)) if rows.queries is None else rows.queries.index()
    taken = np.isin(unit, chosen).astype(np.int64)
    return taken if rows.multiplicity is None else taken * rows.multiplicity


def fold(whole: Subsets, division: Division) -> HeldOutFit:
    """Before any tree: at the constant of all rows."""
    fitted, held = (copies_of(whole, part) for part in division)
    base = whole.loss.base(labels_of(whole.train))
    return HeldOutFit.begin(whole.of_rows(fitted), rows_of(whole.train, held), base)


def total(folds: Fits) -> float:
    """The held-out loss of all folds, summed."""
    return sum(fold.total for fold in folds)


def converged(
    folds: Fits, features: BoolArray, settings: Settings, most: int, patience: int
) -> list[HeldOutFit]:
    """All folds, continued until their held-out loss together has stopped falling."""
    least = LEAST_FALL * sum(fold.constant_total for fold in folds)

    def falls(new: Fits, best: Fits) -> bool:
        return total(new) < total(best) - least

    return held_out_fits.converged(
        folds, features, settings, most, chunk=CHUNK, patience=patience, falls=falls
    )


def divisions(whole: Subsets, folds: int, rng: np.random.Generator) -> list[Division]:
    """Each of about equal parts held out once, classes evenly; at most ``folds`` parts."""
    count = units(whole)
    parts = min(folds, count)
    if parts < 2:
        return [(np.arange(count), np.arange(count))]
    order = rng.permutation(count)
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):
        order = order[np.argsort(whole.train.y[order], kind="stable")]
    part = np.empty(count, dtype=np.int64)
    part[order] = np.arange(count) % parts
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(parts)]
