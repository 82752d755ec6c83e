"""Whether what the store says of a trial is what doing it again gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.results.records import CELLS, VALUE_ARRAYS, PointRow, StoredValues, TrialResult
from bench_core.results.rows import Points
from bench_core.results.store import Store

TOLERANCE = 1e-9


def unlike_stored(store: Store, trial: str, again: TrialResult) -> str:
    """The first thing that the store says of a ``trial`` and that doing it ``again`` does not
    give, in one line, or nothing."""
    points, values = store.of_trial(trial)
    found = {(one.split, k): (one, k) for one in points for k in range(len(one.points))}
    if found.keys() != {(row.split, row.index) for row in again.rows}:
        return "the store has other points than the model"
    for row in again.rows:
        for what, kept, new in _numbers(*found[row.split, row.index], row):
            if not _equal(kept, new):
                at = f"{row.split} at {dict(row.point)}"
                return f"{at}: the store says {what} {kept!s:.40}, the model gives {new!s:.40}"
    for stored in again.values:
        if what := _other_values(values.get(stored.split), stored):
            return f"{stored.split}: the store has another {what} by query or row than the model"
    return ""


def _numbers(kept: Points, k: int, row: PointRow) -> Iterator[tuple[str, Any, Any]]:
    yield "point", kept.points[k], canonical(row.point)
    yield "metrics", sorted(kept.columns), sorted([*row.metrics, *CELLS])
    for name in kept.columns:
        new = row.metrics[name] if name in row.metrics else getattr(row, name)
        yield name, float(kept.column(name)[k]), new


def _equal(kept: Any, new: Any) -> bool:
    if not isinstance(kept, float):
        return bool(kept == new)
    return bool(np.isclose(kept, new, rtol=TOLERANCE, atol=TOLERANCE * 1e-3, equal_nan=True))


def _other_values(kept: StoredValues | None, new: StoredValues) -> str:
    if kept is None or tuple(kept.points) != tuple(new.points):
        return "frontier"
    for name in VALUE_ARRAYS:
        a, b = getattr(kept, name), getattr(new, name)
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True):
            return name
    return ""
