"""The promises a metric makes, one function each: it takes the metric and examples to judge."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.conformance.tasks import CLASSES, ConformanceError, with_copies
from bench_core.contracts import check
from bench_core.data import Examples, Task
from bench_core.protocols import Metric, MetricValues


def check_members(metric: Any, task: Task, examples: Examples) -> None:
    """It has name, direction, tasks and values; the name is one word."""
    check(metric, Metric, type(metric).__name__)
    if re.search(r"\s", metric.name):
        raise ConformanceError(f"its name {metric.name!r} is not one word")


def check_values(metric: Any, task: Task, examples: Examples) -> None:
    """One value and one weight (m,) for each row or query; weights are finite and at least 0,
    values finite where the weight is above 0. Twice the same."""
    scores = _scores(task, examples)
    first, again = (_judged(metric, scores, examples) for _ in range(2))
    values, weights = np.asarray(first.values), np.asarray(first.weights)
    if values.ndim != 1 or values.shape != weights.shape:
        raise ConformanceError(f"{values.shape} values and {weights.shape} weights")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ConformanceError("a weight is negative or not finite")
    if not np.isfinite(values[weights > 0]).all():
        raise ConformanceError("a value is not finite")
    if not np.array_equal(first.values, again.values):
        raise ConformanceError("judged twice, the values differ")


def check_copies(metric: Any, task: Task, examples: Examples) -> None:
    """A row of multiplicity m counts as m copies of it."""
    weighted, physical = with_copies(examples)
    scores = _scores(task, examples)
    rows = np.repeat(np.arange(len(weighted)), np.asarray(weighted.multiplicity))
    one, two = _judged(metric, scores, weighted).mean, _judged(metric, scores[rows], physical).mean
    if not np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise ConformanceError(f"{one!r} with multiplicities, {two!r} with copies")


def check_direction(metric: Any, task: Task, examples: Examples) -> None:
    """The labels themselves as scores are not judged worse than their opposite."""
    y = examples.y
    right = np.eye(CLASSES)[y.astype(int)] if task == Task.MULTICLASS else y - y.mean()
    best, worst = (_judged(metric, scores, examples).mean for scores in (right, -right))
    if best < worst if metric.higher_is_better else best > worst:
        raise ConformanceError(f"labels as scores give {best:.6g}, their opposite {worst:.6g}")


METRIC_CHECKS = (check_members, check_values, check_copies, check_direction)


def _scores(task: Task, examples: Examples) -> FloatArray:
    shape = (len(examples), CLASSES) if task == Task.MULTICLASS else (len(examples),)
    return np.random.default_rng(0).normal(size=shape).round(1)


def _judged(metric: Any, scores: FloatArray, examples: Examples) -> MetricValues:
    found: MetricValues = metric.values(scores, examples.y, examples.queries, examples.multiplicity)
    return found
