"""Promises of metrics, one function each, given the metric, a task and examples to score."""

from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.conformance.cases import CLASSES, expect, with_copies
from bench_core.contracts import check, metric_of
from bench_core.data import Examples, Queries, Task
from bench_core.protocols import Metric, MetricValues

SLACK = 1e-9  # tolerance of bounds for rounding


def check_members(metric: Any, task: Task, examples: Examples) -> None:
    """A metric is an instance with ``name``, ``higher_is_better``, ``tasks`` and ``values``.

    Remedy: compare with the valid metric that 'bench new metric NAME' writes.
    """
    check(metric, Metric, type(metric).__name__)


def check_values(metric: Any, task: Task, examples: Examples) -> None:
    """``values`` returns MetricValues: one value and one weight (m,) for each row or query. Weights
    are finite and at least 0, values finite if the weight is above 0.

    Remedy: return MetricValues(values, weights), not their mean; give weight 0 to undefined values.
    """
    found = _judged(metric, _scores(task, examples), examples)
    given = isinstance(found, MetricValues)
    expect(given, f"values() of {metric.name} gives {found!r}, not MetricValues")
    values, weights = np.asarray(found.values), np.asarray(found.weights)
    one_each = values.ndim == 1 and values.shape == weights.shape
    expect(one_each, f"{values.shape} values and {weights.shape} weights")
    expect((np.isfinite(weights) & (weights >= 0)).all(), "a weight is negative or not finite")
    expect(np.isfinite(values[weights > 0]).all(), "a value is not finite")


def check_repeatable(metric: Any, task: Task, examples: Examples) -> None:
    """The same scores get the same values twice, and neither scores nor labels change.

    Remedy: sort and shift copies (``np.sort(scores)``, not ``scores.sort()``).
    """
    scores = _scores(task, examples)
    before = scores.tobytes()
    first, again = (_judged(metric, scores, examples) for _ in range(2))
    expect(scores.tobytes() == before, "it changes the scores")
    expect(np.array_equal(first.values, again.values), "judged twice, the values differ")


def check_ties(metric: Any, task: Task, examples: Examples) -> None:
    """Rows with many ties get the same value in another order: ties are no advantage.

    Remedy: give tied rows their average over all orders.
    """
    scores = np.round(_scores(task, examples))  # many tie
    order = _shuffled(examples)
    moved = Examples(examples.X[order], examples.y[order], examples.queries)
    one = _judged(metric, scores, examples).mean
    two = _judged(metric, scores[order], moved).mean  # the same pairs, moved
    if "stable" not in metric.name:
        _expect_alike(one, two, f"{one!r} in one order of the rows, {two!r} in another")


def check_copies(metric: Any, task: Task, examples: Examples) -> None:
    """A row of multiplicity m counts as m copies of it.

    Remedy: if ``multiplicity`` is not None, count each row that many times.
    """
    weighted, physical = with_copies(examples)
    scores = _scores(task, examples)
    rows = np.repeat(np.arange(len(weighted)), np.asarray(weighted.multiplicity))
    one, two = _judged(metric, scores, weighted).mean, _judged(metric, scores[rows], physical).mean
    _expect_alike(one, two, f"{one!r} with multiplicities, {two!r} with copies")


def check_direction(metric: Any, task: Task, examples: Examples) -> None:
    """The labels as scores are not worse than their opposite.

    Remedy: set ``higher_is_better`` to the other value.
    """
    y = examples.y
    # as scores: (n, 3) one-hot for classes, else centred labels
    right = np.eye(CLASSES)[y.astype(int)] if task == Task.MULTICLASS else y - y.mean()
    best, worst = (_judged(metric, scores, examples).mean for scores in (right, -right))
    right_way = best >= worst if metric.higher_is_better else best <= worst
    expect(right_way, f"labels as scores give {best:.6g}, their opposite {worst:.6g}")


def check_bounds(metric: Any, task: Task, examples: Examples) -> None:
    """A metric that declares ``bounds`` stays within them, for good, bad and constant scores.

    Remedy: correct ``bounds``, or values outside them.
    """
    if (bounds := metric_of(metric).bounds) is None:
        return
    least, most = bounds
    scores = _scores(task, examples)
    for how, given in (("random", scores), ("constant", scores * 0), ("huge", scores * 1e6)):
        value = _judged(metric, given, examples).mean
        within = np.isnan(value) or least - SLACK <= value <= most + SLACK
        expect(within, f"{how} scores give {value:g}, outside {least:g} to {most:g}")


def check_order_only(metric: Any, task: Task, examples: Examples) -> None:
    """A metric that declares ``order_only`` is unchanged by any increasing function of the scores.

    Remedy: only compare scores with one another, or remove ``order_only``.
    """
    if not (metric_of(metric).order_only) or task == Task.MULTICLASS:
        return
    scores = _scores(task, examples)
    one, two = (_judged(metric, s, examples).mean for s in (scores, np.exp(scores) + 5))
    _expect_alike(one, two, f"{one!r} for scores, {two!r} for exp(scores) + 5")


def _expect_alike(one: float, two: float, seen: str) -> None:
    expect(np.isclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True), seen)


def _shuffled(examples: Examples) -> Any:
    """Return the rows in another order, within each query."""
    rng = np.random.default_rng(3)
    queries = examples.queries or Queries(np.array([0, len(examples)]))
    pairs = zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True)
    return np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairs])


def _scores(task: Task, examples: Examples) -> FloatArray:
    # rounded, so that some tie
    shape = (len(examples), CLASSES) if task == Task.MULTICLASS else (len(examples),)
    return np.random.default_rng(0).normal(size=shape).round(1)


def _judged(metric: Any, scores: FloatArray, examples: Examples) -> MetricValues:
    found: MetricValues = metric.values(scores, examples.y, examples.queries, examples.multiplicity)
    return found
