"""A program as Python lists, which a walk of one row reads fastest, and rows on their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench_core.serving.program import END, Columns, Program, Step, Trees, segments


@dataclass(slots=True, eq=False)
class Row:
    """A row on its way. ``cells``: values by feature, None where not bought; ``bits``: the set of
    sensors bought; ``bought``: features in the order asked for; ``stop``: step and score of the
    last stop passed, where a cap may end the way; ``walked``: the last step whose features were
    bought. ``stopped``: how its way ended, ``"end"``,
    ``"gate"``, ``"rejected"`` (by a gate too) or ``"cap"``."""

    cells: list[float | None]
    own: list[float]
    score: list[float]
    bits: int = 0
    splits: float = 0.0
    trees: int = 0
    next: int = 0
    last: int = END
    walked: int = -1
    stopped: str = ""
    stop: tuple[int, list[float]] | None = None
    bought: list[int] = field(default_factory=list)


class Tables:
    """A program as lists, and for each feature its sensors and what is bought with it."""

    def __init__(self, program: Program, sensors_of: Callable[[int], Any]) -> None:
        self.program, self.features = program, program.features.tolist()
        self.outputs, self.width = program.outputs, len(program.multiplier)
        self.trees = Lists(program.trees)
        self.vectors = [] if program.vectors is None else program.vectors.tolist()
        self.multiplier = program.multiplier.tolist()
        self.steps = [StepTables(number, step) for number, step in enumerate(program.steps)]
        for step, last in zip(self.steps, segments(program), strict=True):
            step.segment = self.steps[step.number : last + 1]
        self.stops = sorted(stop.step for stop in program.stops)
        self.needs = {f: _bits(sensors_of(f)) for f in self.features}
        self.free = [f for f in self.features if not self.needs[f]]
        by_sensor: dict[int, list[int]] = {}
        for f in self.features:
            for s in sensors_of(f).tolist():
                by_sensor.setdefault(s, []).append(f)
        self.mates = {
            f: sorted({m for s in sensors_of(f).tolist() for m in by_sensor[s]}) or self.free
            for f in self.features
        }

    def row(self) -> Row:
        """A row before its first step."""
        zeros = [0.0] * self.outputs
        return Row([None] * self.width, zeros, list(zeros))


def _bits(sensors: Any) -> int:
    return sum(1 << s for s in set(sensors.tolist()))


class Lists:
    """Trees as lists; ``root`` (T,) are their first nodes."""

    def __init__(self, trees: Trees) -> None:
        self.root = trees.start[:-1].tolist()
        self.feature, self.threshold = trees.feature.tolist(), trees.threshold.tolist()
        self.left, self.right = trees.left.tolist(), trees.right.tolist()
        self.missing_left = trees.missing_left.tolist()
        self.value, self.output = trees.value.tolist(), trees.output.tolist()


class StepTables:
    """A step as lists; ``reads`` are the features it needs whatever the row; ``segment``: the steps
    from it to the end of its segment (``segments``)."""

    segment: list[StepTables]

    def __init__(self, number: int, step: Step) -> None:
        self.number, self.step, self.bias = number, step, step.bias.tolist()
        self.uses = list(
            zip(step.trees.tolist(), step.weights.tolist(), step.fresh.tolist(), strict=True)
        )
        self.columns = column_list(step.columns)
        kernel = [] if step.kernel is None else step.kernel.features.tolist()
        self.reads = list(dict.fromkeys([*step.columns.feature.tolist(), *kernel]))
        self.sentinel = None if step.sentinel is None else Lists(step.sentinel)


def column_list(columns: Columns) -> list[tuple[Any, ...]]:
    """One tuple for each column: feature, output, weight, whether scaled, mean, factor."""
    parts = (
        columns.feature,
        columns.output,
        columns.weight,
        columns.scaled,
        columns.mean,
        columns.factor,
    )
    return list(zip(*(part.tolist() for part in parts), strict=True))
