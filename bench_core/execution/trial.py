"""One trial as a function of a JSON specification.

``run_trial`` loads a fitted model, predicts the splits in blocks, and computes costs, scores and
audit, in a worker process or in the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench_core._io.machine import peak_rss_mb, reset_peak_rss
from bench_core.arrays import FloatArray, IntArray
from bench_core.contracts import model_of
from bench_core.costs.bill import mean_cost
from bench_core.costs.by_row import ByRow
from bench_core.costs.error_costs import ErrorCosts
from bench_core.costs.model import CostModel
from bench_core.data import Examples, Queries, Task
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError, failure, plain_marks
from bench_core.execution.fitting import Progress, find_metric, open_splits, run_fit
from bench_core.execution.new_process import ModelElsewhere
from bench_core.execution.predict import PredictedPath, in_order, predict_split, readable
from bench_core.metrics import Labels, evaluate
from bench_core.metrics.calibration import Calibration, calibrated
from bench_core.metrics.frontier import frontier
from bench_core.metrics.rows import TOTAL_COST, right_by_class
from bench_core.protocols import Metric, MetricValues
from bench_core.results.budgets import CAP, CONSTANT
from bench_core.results.records import (
    FitSpec,
    Job,
    OperatingPoint,
    Outcome,
    Result,
    Sensors,
    Status,
    StoredValues,
    Trial,
    TrialSpec,
)
from bench_core.results.store_files import load_model, state_path
from bench_core.sequential import ROUNDING
from bench_core.splits import Splits

LARGEST_VALUE = 1e30
"""Maximum metric value per unit in float32, as sums for intervals must not overflow. Larger ones
are kept in float64, and infinite ones as the largest."""

VALUE_UNITS = 10_000
"""Maximum rows stored separately; more are stored as means of neighbours. A bootstrap of so many
blocks is as precise, and a store of many trials stays small."""


Faults = tuple[type[BaseException], ...]


def attempt(job: Job, progress: Progress, faults: Faults = (Exception, SystemExit)) -> Outcome:
    """Run a job in this process and return its outcome, also if one of ``faults`` is raised."""
    started = time.perf_counter()
    status, line, trace = Status.OK, "", ""
    result: Result = None
    try:
        if isinstance(job.spec, FitSpec):
            result = run_fit(job.spec, progress)
        else:
            result = run_trial(job.spec, progress)
    except faults as error:
        status, line, trace = failure(error)
    return Outcome(job, status, line, trace, result, time.perf_counter() - started)


def run_trial(spec: TrialSpec, progress: Progress = lambda done, total: None) -> Trial:
    """Predict, bill, score and audit with one fitted model."""
    reset_peak_rss()
    splits = open_splits(spec)
    metrics = [find_metric(name, spec.plugins) for name in spec.metrics]
    model = load_model(state_path(spec.states, spec.fit))
    choice = splits.task is Task.CHOICE  # without a purchase there is no answer
    caps = None if choice else Caps(spec.caps, splits.constant)
    parts = {name: getattr(splits, name) for name in spec.splits}
    total, done, paths = sum(map(len, parts.values())), 0, {}
    for name, examples in parts.items():
        paths[name] = predict_split(
            model,
            examples,
            splits.costs,
            splits.classes,
            spec.accounting,
            lambda rows, before=done: progress(before + rows, total),  # type: ignore[misc]
            spec.threads,
            caps,
            calls=splits.calls.tolist() if choice else (),
        )
        done += len(examples)
    if any(path.points != paths["test"].points for path in paths.values()):
        raise ContractError(f"its path differs between the splits {', '.join(paths)}")
    with ModelElsewhere(state_path(spec.states, spec.fit)) as elsewhere:
        verdict = replay(
            model,
            splits.test,
            splits.costs,
            splits.classes,
            spec.audit_mode,
            seed=spec.key,
            path=paths["test"],
            accounting=spec.accounting,
            fresh=elsewhere.fresh if spec.audit_mode == "full" else elsewhere.load_here,
        )
        if elsewhere.fault and not verdict.reason:
            why = f"asked in the audit's own process, as another cannot load it: {elsewhere.fault}"
            verdict = replace(verdict, reason=why)
    errors = None
    if spec.error_costs:  # after the audit, which compares what the model itself gives
        errors = ErrorCosts.of(spec.error_costs, splits.train, splits.price_columns)
        calibrate(paths, splits.valid)
    scores = {
        name: score_split(
            *(paths[name], examples, splits.costs, metrics, name, spec.threads),
            splits.columns,
            errors,
            0 if choice else splits.classes,
        )
        for name, examples in parts.items()
    }
    stored_points = points_to_keep(scores["valid"].rows, metrics[0])
    return Trial.of(
        spec,
        points=tuple(row for score in scores.values() for row in score.rows),
        values=tuple(
            stored_values(name, parts[name], paths[name], scores[name], stored_points)
            for name in ("valid", "test")
            if stored_points
        ),
        audit=verdict.word,
        error=verdict.reason,
        predict_seconds=paths["valid"].seconds + paths["test"].seconds,
        peak_rss_mb=peak_rss_mb(),
        marks=plain_marks(model_of(model).marks),
        sensors=sensors_of(splits),
    )


def calibrate(paths: Mapping[str, PredictedPath], valid: Examples) -> dict[int, Calibration]:
    """Calibrate the scores of every point on validation rows, where that helps; return the
    calibrations by number of the point. Validation rows get scores by other validation rows."""
    used = {}
    for p, point in paths["valid"].numbered.items():
        if CONSTANT in point:
            continue
        calibration, held = calibrated(paths["valid"].scores[p], valid)
        if calibration is not None:
            used[p] = calibration
            for name, path in paths.items():
                path.scores[p] = held if name == "valid" else calibration.of(path.scores[p])
    return used


def sensors_of(splits: Splits) -> Sensors:
    """Sensors by the columns that need them. Features of a text column differ between folds."""
    users: list[dict[str, None]] = [{} for _ in range(splits.costs.sensors)]
    for j, name in enumerate(splits.columns):
        for sensor in splits.costs.sensors_of(j):
            users[sensor][name] = None
    if isinstance(splits.costs, ByRow):  # not by features of sensors that require it
        for s in splits.costs.priced.tolist():
            users[s] = dict.fromkeys(splits.columns[j] for j in splits.costs.yields(s).tolist())
    return Sensors(tuple(map(", ".join, users)), tuple(splits.prices.sensor.tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class SplitScore:
    """Rows of results of one split's path by point, and the units' values at every point."""

    rows: tuple[OperatingPoint, ...]
    units: int  # queries, groups or rows, each with a value of the primary metric
    primary: Mapping[int, FloatArray]  # by point number: condensed values (m,)
    weights: FloatArray  # (m,)
    right: Mapping[int, FloatArray]  # by point number, of classifiers: right answers by class


def score_split(
    path: PredictedPath,
    examples: Examples,
    costs: CostModel,
    metrics: Sequence[Metric],
    split: str,
    threads: int = 1,
    columns: Sequence[str] = (),
    errors: ErrorCosts | None = None,
    classes: int = 0,
) -> SplitScore:
    """Compute metrics and costs of every point of a path, and under every cap. ``columns`` (d,) are
    the user's, counted instead of the features that they are encoded as; of ``classes`` the right
    answers are counted."""
    of_rows = examples.units, examples.multiplicity, errors, examples.price_columns
    labels = Labels(examples.y, *of_rows)
    rows, primary, right = [], {}, {}
    weights, units, names = np.zeros(0), 0, columns or range(costs.features)

    def judged(p: int) -> dict[str, MetricValues]:
        return evaluate(metrics, path.scores[p], labels, path.cost[p])

    points = path.numbered
    results = in_order(judged, [*points], threads)
    for (p, point), values in zip(points.items(), results, strict=True):
        first = values[metrics[0].name]
        if classes:
            right[p] = right_by_class(path.scores[p], examples.y, classes, errors)
        of_units, of_unit = by_group(first.values, first.weights, examples.units)
        units = len(of_units)
        condensed, weights = condense(of_units, of_unit)
        primary[p] = condensed
        read = readable(path.bought[[p]] > 0, costs)[0]
        rows.append(
            OperatingPoint(
                number=p,
                point=point,
                split=split,
                metrics={name: v.mean for name, v in values.items()},
                feature_cost=float(path.feature_cost[p]),
                evaluation_cost=float(path.evaluation_cost[p]),
                cost=mean_cost(path.cost[p], examples.multiplicity),
                cost_max=float(path.cost[p].max()),
                cap=point.get(CAP),
                **beyond(path.cost[p], point.get(CAP, np.inf), examples.weights),
                features_used=len({names[j] for j in np.flatnonzero(read).tolist()}),
            )
        )
    return SplitScore(tuple(rows), units, primary, weights, right)


def beyond(cost: FloatArray, cap: float, copies: FloatArray) -> dict[str, float]:
    """Share of rows that cost (n,) more than a cap, and the mean excess of these rows."""
    over = copies * (cost > cap * (1 + ROUNDING))
    excess = (over * (cost - cap)).sum() / over.sum() if over.any() else 0.0
    return {"over_cap": float(over.sum() / copies.sum()), "excess": float(excess)}


def points_to_keep(valid: Sequence[OperatingPoint], primary: Metric) -> tuple[int, ...]:
    """Points whose values are stored: possible choices of a budget by validation results, the best
    constant that total costs are compared with, and the points of caps; none if no point can be
    chosen."""
    path = [row for row in valid if CAP not in row.point]
    cost = np.array([row.cost for row in path])
    quality = np.array([row.metrics[primary.name] for row in path])
    points = frontier(cost, quality, primary.higher_is_better)
    if len(points) == 0:
        return ()
    frontier_points = [path[k].number for k in points]
    if primary.name == TOTAL_COST:  # a model that buys nothing either may beat it
        constants = (row.number for row in path if CONSTANT in row.point)
        frontier_points += [number for number in constants if number not in frontier_points]
    return (*frontier_points, *(row.number for row in valid if CAP in row.point))


def stored_values(
    split: str, examples: Examples, path: PredictedPath, score: SplitScore, points: Sequence[int]
) -> StoredValues:
    """Values of a split, by query, group or row, at these ``points``."""
    costs, rows = [], np.zeros(0)
    for p in points:
        means, rows = unit_costs(path.cost[p], examples.units, examples.weights, score.units)
        means, rows = condense(means, rows)
        costs.append(means)
    bought = path.bought[[*points]]
    # points without an order have no steps, and steps without purchases are left out
    orders = [path.steps.get(p, np.zeros((0, bought.shape[1]))) for p in points]
    depth = max(int(np.flatnonzero(order.any(axis=1)).max(initial=-1)) + 1 for order in orders)
    steps = np.zeros((len(points), depth, bought.shape[1]))
    for k, order in enumerate(orders):
        steps[k, : len(order)] = order[:depth]
    metric = np.array([score.primary[p] for p in points])
    finite = np.abs(metric, where=np.isfinite(metric), out=np.zeros_like(metric)).max(initial=0)
    most = max(float(finite), LARGEST_VALUE)
    metric = np.clip(metric, -most, most).astype(np.float32 if most == LARGEST_VALUE else float)
    arrays = [np.stack(costs), score.weights, rows, bought, *([steps] if depth else [])]
    others = (array.astype(np.float32) for array in arrays)
    values = StoredValues(split, tuple(points), metric, *others)
    both = {"nothing": path.nothing, "paid": path.paid}
    more: dict[str, Any] = {
        k: v[[*points]].astype(np.float32) for k, v in both.items() if v is not None
    }
    if score.right:
        more["right"] = np.stack([score.right[p] for p in points]).astype(np.float32)
    return replace(values, **more)


def unit_costs(
    cost: FloatArray, groups: Queries | None, copies: FloatArray, units: int
) -> tuple[FloatArray, FloatArray]:
    """Mean cost (m,) and number of rows (m,) of the ``units`` queries, groups or rows.

    A single unit if a metric (auc) has no value per query or row.
    """
    if groups is not None and units == len(groups):
        return _means(cost, copies, groups.boundaries[:-1])
    if units == len(cost):
        return cost, copies
    return np.array([(cost * copies).sum() / copies.sum()]), np.array([copies.sum()])


def by_group(
    values: FloatArray, weights: FloatArray, groups: Queries | None
) -> tuple[FloatArray, FloatArray]:
    """Weighted means and weights of the groups, if the values are of their rows: rows of a patient
    are not independent, so that intervals draw patients."""
    if groups is None or len(values) != groups.rows:
        return values, weights
    return _means(values, weights, groups.boundaries[:-1])


def condense(
    values: FloatArray, weights: FloatArray, units: int = VALUE_UNITS
) -> tuple[FloatArray, FloatArray]:
    """Weighted means and weights of groups of consecutive units, at most ``units`` groups."""
    if len(values) <= units:
        return values, weights
    step = -(-len(values) // units)
    return _means(values, weights, np.arange(0, len(values), step))


def _means(
    values: FloatArray, weights: FloatArray, starts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted means and weights of the consecutive groups that begin at ``starts``."""
    total = np.add.reduceat(weights, starts)
    sums = np.add.reduceat(values * weights, starts)
    return np.divide(sums, total, out=np.zeros_like(sums), where=total > 0), total
