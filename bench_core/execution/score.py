"""Metrics and costs of every point of a predicted path, and the values that are stored."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import FloatArray
from bench_core.costs.bill import CostSummary, summarise_cost
from bench_core.costs.model import CostModel, needs_of
from bench_core.data import Examples, Queries
from bench_core.execution.predict import PredictedPath, in_order
from bench_core.metrics import Labels, evaluate
from bench_core.metrics.frontier import choosable
from bench_core.protocols import Metric, MetricValues
from bench_core.results.budgets import CAP
from bench_core.results.records import OperatingPoint, StoredValues

LARGEST_VALUE = 1e30
"""Of a metric, per unit: what intervals are made of must have sums in float32."""

VALUE_UNITS = 10_000
"""More rows than this are stored as means of neighbours: a bootstrap of so many blocks is as sharp,
and a store of many trials stays small."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitScore:
    """The rows of one split's path by point, and the units' values of every point."""

    rows: tuple[OperatingPoint, ...]
    units: int  # queries or rows that have a value of the primary metric each
    primary: tuple[FloatArray, ...]  # by point: these values (m,), condensed
    weights: FloatArray  # (m,)


def score_split(
    path: PredictedPath,
    examples: Examples,
    costs: CostModel,
    metrics: Sequence[Metric],
    split: str,
    threads: int = 1,
) -> SplitScore:
    """Metrics and costs of every point of a path, and under every cap."""
    labels = Labels(examples.y, examples.groups, examples.multiplicity)
    rows, primary = [], []
    weights, units = np.zeros(0), 0

    def judged(place: tuple[PredictedPath, int]) -> tuple[dict[str, MetricValues], CostSummary]:
        of, k = place
        values = evaluate(metrics, of.scores[k], labels)
        return values, summarise_cost(of.cost[k], examples.multiplicity)

    found = in_order(judged, path.places, threads)
    for p, ((of, k), (values, cost)) in enumerate(zip(path.places, found, strict=True)):
        first = values[metrics[0].name]
        units = len(first.values)
        condensed, weights = condense(first.values, first.weights)
        primary.append(condensed)
        rows.append(
            OperatingPoint(
                number=p,
                point=of.points[k],
                split=split,
                metrics={name: v.mean for name, v in values.items()},
                feature_cost=float(of.feature_cost[k]),
                evaluation_cost=float(of.evaluation_cost[k]),
                total_cost=cost.average,
                cost_p95=cost.p95,
                cost_max=cost.maximum,
                cap=of.points[k].get(CAP),
                features_used=int(readable(of.bought[k : k + 1] > 0, costs).sum()),
            )
        )
    return SplitScore(tuple(rows), units, tuple(primary), weights)


def readable(mask: NDArray[np.bool_], costs: CostModel) -> NDArray[np.bool_]:
    """Which features (n, d) can be read by rows that bought the sensors ``mask`` (n, s).

    A feature that needs no sensor is always readable.
    """
    start, needed = needs_of(costs)
    missing = np.zeros((len(mask), len(start)), dtype=np.int64)
    lacking = np.cumsum(~mask[:, needed], axis=1)
    missing[:, 1:] = np.pad(lacking, ((0, 0), (1, 0)))[:, start[1:]]
    result: NDArray[np.bool_] = np.diff(missing, axis=1) == 0
    return result


def points_to_keep(valid: Sequence[OperatingPoint], primary: Metric) -> tuple[int, ...]:
    """The points whose values are stored: those that a budget may choose by their rows on
    validation, and those of caps; none where no point can be chosen."""
    path = [row for row in valid if CAP not in row.point]
    cost = np.array([row.total_cost for row in path])
    p95 = np.array([row.cost_p95 for row in path])
    quality = np.array([row.metrics[primary.name] for row in path])
    points = choosable(cost, p95, quality, primary.higher_is_better)
    if len(points) == 0:
        return ()
    return (*map(int, points), *(row.number for row in valid[len(path) :]))


def stored_values(
    split: str, part: Examples, path: PredictedPath, score: SplitScore, kept: Sequence[int]
) -> StoredValues:
    """The values of a split, by query or row, at the points ``kept``."""
    costs, bought, rows = [], [], np.zeros(0)
    for p in kept:
        of, k = path.places[p]
        means, rows = unit_costs(of.cost[k], part.groups, part.weights, score.units)
        means, rows = condense(means, rows)
        costs.append(means)
        bought.append(of.bought[k])
    metric = np.clip([score.primary[p] for p in kept], -LARGEST_VALUE, LARGEST_VALUE)
    arrays = metric, np.stack(costs), score.weights, rows, np.stack(bought)
    return StoredValues(split, tuple(kept), *(array.astype(np.float32) for array in arrays))


def unit_costs(
    cost: FloatArray, queries: Queries | None, copies: FloatArray, units: int
) -> tuple[FloatArray, FloatArray]:
    """Mean cost (m,) and number of rows (m,) of the ``units`` queries, frames or rows.

    One unit for everything where a metric (auc) has no value per query or row.
    """
    if queries is None or units != len(queries):
        if units == len(cost):
            return cost, copies
        return np.array([(cost * copies).sum() / copies.sum()]), np.array([copies.sum()])
    starts = queries.boundaries[:-1]
    rows = np.add.reduceat(copies, starts)
    return np.add.reduceat(cost * copies, starts) / rows, rows


def condense(
    values: FloatArray, weights: FloatArray, units: int = VALUE_UNITS
) -> tuple[FloatArray, FloatArray]:
    """Weighted means and weights of consecutive units, so that at most ``units`` remain."""
    if len(values) <= units:
        return values, weights
    step = -(-len(values) // units)
    starts = np.arange(0, len(values), step)
    total = np.add.reduceat(weights, starts)
    sums = np.add.reduceat(values * weights, starts)
    return np.divide(sums, total, out=np.zeros_like(sums), where=total > 0), total
