"""Trained models of an estimator, and the choice among their operating points within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bench_core._io.large_arrays import inputs_digest
from bench_core.arrays import FloatArray
from bench_core.contracts import metric_of
from bench_core.costs.error_costs import ErrorCosts
from bench_core.costs.model import CostModel, costs_key
from bench_core.data import Examples
from bench_core.errors import BenchError
from bench_core.execution.caps import Caps
from bench_core.execution.fitting import fit_in_process
from bench_core.execution.predict import predict_split
from bench_core.execution.trial import calibrate, score_split
from bench_core.metrics import default_metric
from bench_core.metrics.calibration import Calibration
from bench_core.metrics.frontier import best_within
from bench_core.parameters import encode
from bench_core.protocols import Metric
from bench_core.results.budgets import CAP, COLUMNS, CONSTANT
from bench_core.results.records import OperatingPoint
from bench_core.sequential import ROUNDING
from bench_core.serving.model_programs import calibrated_program, capped_program, program_of
from bench_core.serving.policy_program import ServedProgram
from bench_core.serving.program import Program, Stop, constant_program
from bench_core.splits import Splits


class Point(NamedTuple):
    """An operating point of a trained model, as measured on the validation part."""

    learner: Any
    model: Any
    row: OperatingPoint
    bought: FloatArray  # (s,), share of rows that buy each sensor
    constant: bool  # every row has the same answer
    calibration: Calibration | None = None  # where errors have costs


class Chosen(NamedTuple):
    """The point of an answer, its quality, and a warning if it answers every row alike."""

    point: Point
    quality: float
    warning: str


class Fits(dict[str, "Trained"]):
    """Trained models that the clones of one estimator share, by what decides them."""

    def __bool__(self) -> bool:
        """Return True, also while it is empty."""
        return True


@dataclass(frozen=True, eq=False)
class Trained:
    """Models of a learner, one for each of its settings, with the validation part."""

    models: Sequence[tuple[Any, Any]]  # learner and model
    valid: Examples
    costs: CostModel
    constant: FloatArray
    classes: int
    metric: Metric
    errors: ErrorCosts | None = None

    @classmethod
    def of(
        cls,
        learners: Sequence[Any],
        splits: Splits,
        metric: Metric,
        seed: int,
        threads: int,
        errors: ErrorCosts | None = None,
    ) -> Trained:
        """Train the learner at each of its settings."""
        shared: dict[str, Any] = {}  # fits and arrays that several settings need
        stops_by = default_metric(splits.task) if metric_of(metric).in_money else metric
        models = [
            (learner, fit_in_process(learner, splits, stops_by, seed, threads, shared))
            for learner in learners
        ]
        facts = splits.costs, splits.constant, splits.classes, metric
        return cls(models, splits.valid, *facts, errors)

    def within(self, budget: float | None, kind: str) -> Chosen:
        """Return the point of best quality within a budget. Raises ValueError if the metric is not
        defined on the validation part."""
        limit, higher = np.inf if budget is None else float(budget), self.metric.higher_is_better
        points = self._of_paths
        if kind == CAP:
            most = limit * (1 + ROUNDING)
            points = [point for point in points if point.row.cost_max <= most] + self._measured(
                (limit,)
            )
        mean = np.array([point.row.cost for point in points])
        quality = np.array([point.row.metrics[self.metric.name] for point in points])
        most = np.inf if kind == CAP else limit  # all rows are within a cap
        at = best_within(mean, quality[None], most, higher)[0]
        if at < 0:
            why = metric_of(self.metric).undefined(self.valid.y)
            where = f"{self.metric.name} is not defined on the validation part"
            remedy = "use more validation rows or another metric"
            raise ValueError(f"{where}{why and f': {why}'}; {remedy}")
        warning = self._constant(limit, kind) if points[at].constant and budget is not None else ""
        return Chosen(points[at], float(quality[at]), warning)

    @cached_property
    def _of_paths(self) -> list[Point]:
        """All points of the models' paths, and the constant."""
        return self._measured(())

    def _measured(self, limits: tuple[float, ...]) -> list[Point]:
        """Measure all models: the points of their paths, or under ``limits`` those of the caps."""
        points, caps = list[Point](), Caps(limits, self.constant)
        for learner, model in self.models:
            path = predict_split(model, self.valid, self.costs, self.classes, caps=caps)
            used = {} if self.errors is None else calibrate({"valid": path}, self.valid)
            judged = path, self.valid, self.costs, [self.metric], "valid"
            for row in score_split(*judged, errors=self.errors).rows:
                scores = path.scores[row.number]
                alike = bool((scores == scores[:1]).all())
                if not limits or CAP in row.point:
                    of_point = path.bought[row.number], alike, used.get(row.number)
                    points.append(Point(learner, model, row, *of_point))
        return points

    def _constant(self, limit: float, kind: str) -> str:
        """Return the warning that every row has the same answer within a limit."""
        points = [point for point in self._of_paths if not point.constant]
        said = f"{'cap' if kind == CAP else 'budget'} {limit:g}: every row gets the same answer"
        if not points:
            return f"{said}, as at any cost"
        paid = [float(getattr(point.row, COLUMNS[kind])) for point in points]
        at = int(np.argmin(paid))
        place = ", ".join(f"{name} {value:g}" for name, value in points[at].row.point.items())
        cheapest = f"the cheapest point, {place} of {points[at].learner.name},"
        if paid[at] <= limit * (1 + ROUNDING):
            better = f"no point has a better {self.metric.name} on the held-out rows"
            return f"{said}: {better}; {cheapest} costs {paid[at]:.4g}"
        return f"{said}; {cheapest} costs {paid[at]:.4g}"


def key_of(
    learners: Sequence[Any],
    splits: Splits,
    metric: Metric,
    seed: int,
    threads: int,
    errors: ErrorCosts | None = None,
) -> str | None:
    """Return a digest of everything that decides ``Trained.of``; None if it cannot be digested."""
    judged = f"{type(metric).__module__}.{type(metric).__qualname__} {metric!r} {metric.name}"
    facts = judged, seed, threads, splits.task, splits.classes, splits.names, errors
    try:
        settings, costs = [encode(learner) for learner in learners], costs_key(splits.costs)
        return inputs_digest([settings, costs, facts, splits.train, splits.valid])
    except (BenchError, TypeError, ValueError, OSError, ImportError):  # of a user's own classes
        return None


def served_program(
    point: Point, limit: float | None, constant: FloatArray, features: int
) -> ServedProgram:
    """Return the program of a point, which a cap ``limit`` may stop. Raises UsageError if its model
    has none."""
    if CONSTANT in point.row.point:
        return constant_program(np.atleast_1d(constant), features)
    name = str(point.learner.name)
    if CAP in point.row.point:
        program = capped_program(point.model, name, features)
    else:
        program = program_of(point.model, name, point.row.point)
    if isinstance(program, Program):
        program = replace(program, nothing=np.atleast_1d(constant))
    if point.calibration is not None:
        program = calibrated_program(program, point.calibration, CAP in point.row.point)
    if isinstance(program, Program) and limit is not None and CAP not in point.row.point:
        # this point, or the constant
        return replace(program, stops=[Stop(len(program.steps) - 1, point.row.point)])
    return program
