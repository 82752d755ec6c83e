"""Points of a path as programs for serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench_core import UsageError
from bench_core.serving import END, Step


def place_of(point: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> int:
    """The index of a point on a path. Raises UsageError for an unknown point."""
    for place, other in enumerate(points):
        if dict(other) == dict(point):
            return place
    raise UsageError(f"the model has no operating point {dict(point)}")


def first_steps(steps: Sequence[Step], last: int) -> list[Step]:
    """Steps ``0..last``; the gate of the last one is not applied."""

    def within(onward: int) -> int:
        return onward if onward <= last else END

    before_last = [
        replace(step, then=within(step.then), otherwise=within(step.otherwise))
        for step in steps[:last]
    ]
    return [*before_last, replace(steps[last], gate="always", value=0.0, then=END, otherwise=END)]
