"""The promises of data sets, metrics and cost models, one function each.

A check of data sets takes the data set and where files are; of metrics, the metric and examples to
judge; of cost models, the model, random purchases (60, s) and their queries.
"""

import re
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.conformance.tasks import CLASSES, ConformanceError, drawn_queries, with_copies
from bench_core.contracts import check, dataset_of, labels_fault, shapes_fault
from bench_core.costs.acquired import Acquired
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.cache import fingerprint, prepare
from bench_core.datasets.priced import from_json, same_sensors, to_json
from bench_core.protocols import CompleteDataset, Metric, MetricValues, Source
from bench_core.splits import Splits

ROWS, ROUNDING = 60, 1e-9


def _members(contract: type) -> Callable[..., None]:
    """The check that a plugin has all that its contract names, of the right types."""

    def check_members(plugin: Any, *context: Any) -> None:
        value = plugin if contract is Metric else type(plugin)
        check(value, contract, type(plugin).__name__)

    return check_members


def check_splits(dataset: Any, source: Source) -> None:
    """Train, valid and test have rows of the same features, which have names or not, and prices."""
    if fault := shapes_fault(_splits(dataset, source)):
        raise ConformanceError(fault)


def check_labels(dataset: Any, source: Source) -> None:
    """Labels are finite and fit the task: classes from 0, grades of queries at least 0."""
    if fault := labels_fault(dataset.task, _splits(dataset, source)):
        raise ConformanceError(fault)


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


DATASET_CHECKS = (
    _members(CompleteDataset),
    check_splits,
    check_labels,
    check_repeatable,
    check_cached,
)


def _splits(dataset: Any, source: Source, seed: int = 0, fold: int = 0) -> Splits:
    return dataset_of(dataset).prepare(source, "quick", fold, seed)


def _parts(splits: Splits) -> tuple[Examples, ...]:
    return splits.train, splits.valid, splits.test


def check_values(metric: Any, task: Task, examples: Examples) -> None:
    """Its name is one word. One value and one weight (m,) for each row or query; weights are finite
    and at least 0, values finite where the weight is above 0. Twice the same."""
    if re.search(r"\s", metric.name):
        raise ConformanceError(f"its name {metric.name!r} is not one word")
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


METRIC_CHECKS = (_members(Metric), check_values, check_copies, check_direction)


def _scores(task: Task, examples: Examples) -> FloatArray:
    shape = (len(examples), CLASSES) if task == Task.MULTICLASS else (len(examples),)
    return np.random.default_rng(0).normal(size=shape).round(1)


def _judged(metric: Any, scores: FloatArray, examples: Examples) -> MetricValues:
    found: MetricValues = metric.values(scores, examples.y, examples.queries, examples.multiplicity)
    return found


def check_bills(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """Bills are finite and at least 0; nothing costs nothing; all costs ``everything``."""
    for of in (None, queries):
        bill = _bill(costs, bought, of)
        if not (np.isfinite(bill) & (bill >= 0)).all():
            raise ConformanceError("a bill is negative or not finite")
    if _bill(costs, np.zeros_like(bought), queries).any():
        raise ConformanceError("buying nothing costs something")
    every = _bill(costs, np.ones((1, costs.sensors), dtype=bool), None)
    if not np.isclose(every[0], costs.everything, rtol=ROUNDING):
        raise ConformanceError(f"everything costs {every[0]:g}, not {costs.everything:g}")


def check_more_costs_more(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """A query that buys more sensors never costs less."""
    more = bought | (np.random.default_rng(1).random(bought.shape) < 0.2)
    starts = queries.boundaries[:-1]
    less_cost, more_cost = (
        np.add.reduceat(_bill(costs, mask, queries), starts) for mask in (bought, more)
    )
    if (more_cost < less_cost * (1 - ROUNDING)).any():
        raise ConformanceError("with more sensors a query costs less")


def check_blocks(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """A query's bill depends on nothing outside it."""
    whole = _bill(costs, bought, queries)
    for a, b in zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True):
        alone = _bill(costs, bought[a:b], Queries(np.array([0, b - a])))
        if not np.allclose(alone, whole[a:b], rtol=ROUNDING, atol=0):
            raise ConformanceError("a query by itself is billed otherwise than among others")


def check_state(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """``state`` is arrays and JSON; a model rebuilt from it bills the same."""
    again = from_json(to_json(costs))
    if not np.array_equal(_bill(again, bought, queries), _bill(costs, bought, queries)):
        raise ConformanceError("rebuilt from its state it bills otherwise")


def check_surrogate(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """``surrogate`` gives additive prices of the same sensors."""
    X = np.zeros((ROWS, costs.features), dtype=np.float32)
    prices = costs.surrogate(Examples(X, np.zeros(ROWS), queries))
    if not isinstance(prices, SensorPrices):
        raise ConformanceError(f"surrogate gives {prices!r}, not SensorPrices")
    if not same_sensors(prices, costs):
        raise ConformanceError("its features need other sensors than those of the surrogate")


COST_MODEL_CHECKS = (
    _members(CostModel),
    check_bills,
    check_more_costs_more,
    check_blocks,
    check_state,
    check_surrogate,
)


def purchases(costs: CostModel) -> tuple[BoolArray, Queries]:
    """Random purchases of the rows of some queries."""
    rng = np.random.default_rng(0)
    return rng.random((ROWS, costs.sensors)) < 0.4, drawn_queries(ROWS, rng)


def _bill(costs: CostModel, bought: BoolArray, queries: Queries | None) -> FloatArray:
    return np.broadcast_to(costs.feature_cost(Acquired.pack(bought), queries), len(bought))
