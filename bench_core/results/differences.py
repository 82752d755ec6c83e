"""Differences between two results of one trial: in a store, repeated, or in another store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.results.records import COSTS, VALUE_ARRAYS, OperatingPoint, StoredValues, Trial

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
    before, after = ({(p.split, canonical(p.point)): p for p in t.points} for t in (then, now))
    for key in {**before, **after}:
        where = " at ".join(key)
        if key not in before or key not in after:
            there = [("missing", "there")[key in points] for points in (before, after)]
            yield Unlike(where, "point", *there)
            continue
        one, two = _numbers(before[key]), _numbers(after[key])
        for name in {**one, **two}:
            a, b = one.get(name), two.get(name)
            if a is None or b is None or not _close(a, b, tolerance):
                yield Unlike(where, name, a, b)
    kept, new = ({values.split: values for values in trial.values} for trial in (then, now))
    for split in {**kept, **new}:
        for name in _unlike_values(kept.get(split), new.get(split), tolerance):
            yield Unlike(split, f"{name} by query or row", "other values", "these")


def _numbers(point: OperatingPoint) -> dict[str, float]:
    costs = {name: getattr(point, name) for name in (*COSTS, "features_used")}
    return {**point.metrics, **costs}


def _close(a: Any, b: Any, tolerance: float) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))


def _unlike_values(
    then: StoredValues | None, now: StoredValues | None, tolerance: float
) -> Iterator[str]:
    if then is None or now is None or then.points != now.points:
        yield "frontier"
        return
    # kept as float32
    close = 1e-6 if tolerance else 0.0
    for name in VALUE_ARRAYS:
        a, b = getattr(then, name), getattr(now, name)
        if a.shape != b.shape or not _close(a, b, close):
            yield name
