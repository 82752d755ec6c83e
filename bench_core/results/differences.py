"""Differences between two results of one trial: in a store, repeated, or in another store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.results.records import COSTS, VALUE_ARRAYS, Trial

TOLERANCE = 1e-9
"""Relative difference allowed between results of one model on two processors."""


class Unlike(NamedTuple):
    """A number, or anything else, that is not the same: where, what, and what it was and is."""

    where: str
    what: str
    then: Any
    now: Any


def differences(then: Trial, now: Trial, tolerance: float = 0.0) -> Iterator[Unlike]:
    """Differences in the points and values of two results; NaN equals NaN."""
    one, two = _numbers(then), _numbers(now)
    for where, what in {**one, **two}:
        a, b = one.get((where, what)), two.get((where, what))
        if a is None or b is None or not _close(a, b, tolerance):
            yield Unlike(where, what, a, b)
    kept, new = ({values.split: values for values in trial.values} for trial in (then, now))
    for split in {**kept, **new}:
        before, after = kept.get(split), new.get(split)
        if before is None or after is None or before.points != after.points:
            yield Unlike(split, "frontier by query or row", "other values", "these")
            continue
        for name in VALUE_ARRAYS:
            a, b = getattr(before, name), getattr(after, name)
            # kept as float32
            if a.shape != b.shape or not _close(a, b, 1e-6 if tolerance else 0.0):
                yield Unlike(split, f"{name} by query or row", "other values", "these")


def _numbers(trial: Trial) -> dict[tuple[str, str], float]:
    """The numbers of all points by place and name; None of a number that is not there."""
    return {
        (f"{point.split} at {canonical(point.point)}", name): value
        for point in trial.points
        for name, value in (
            *point.metrics.items(),
            *((name, getattr(point, name)) for name in (*COSTS, "features_used")),
        )
    }


def _close(a: Any, b: Any, tolerance: float) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))
