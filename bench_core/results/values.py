"""Values per query or row of one trial, as a store keeps them for points that budgets choose."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.results.budgets import CAP, Budget
from bench_core.results.records import OperatingPoint, Sensors, StoredValues, Trial
from bench_core.results.tables import record_of, select
from bench_core.splits import SPLITS


@dataclass(frozen=True, slots=True, eq=False)
class TrialValues(StoredValues):
    """The stored values of one trial on one split, with what names them.

    ``settings`` (p,) are the operating points, ``p95`` (p,) is what 95% of validation rows cost at
    most there. Units stand in the same order for all trials on
    one data set, fold, seed and split; ``fingerprint`` is that of the data.
    """

    trial: str
    learner: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    fingerprint: str
    settings: tuple[Mapping[str, float], ...]
    p95: FloatArray


class ValuedTrial(NamedTuple):
    """A trial that has stored values: ``trial`` is its key, ``params`` are JSON."""

    trial: str
    learner: str
    params: str
    dataset: str
    fold: int
    seed: int
    fingerprint: str


_VALUED = """
SELECT trial.key, trial.learner, trial.params, trial.dataset, trial.fold, trial.seed,
  trial.fingerprint
FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
CROSS JOIN unit_values ON unit_values.trial = trial.key
WHERE run = ? AND ? IN ('', dataset) AND ? IN ('', learner) AND status = 'ok'
  AND unit_values.split = ? AND EXISTS (
  SELECT 1 FROM json_each(unit_values.points) AS kept
  CROSS JOIN point ON point.trial = trial.key AND point.split = 'valid'
  AND point.number = kept.value WHERE {})
ORDER BY run_trial.position
"""
_POINTS = """
SELECT number, point, cost_p95 FROM point WHERE trial = ? AND split = 'valid' AND {}
"""


def valued_trials(
    db: sqlite3.Connection,
    run: str,
    split: str,
    dataset: str = "",
    learner: str = "",
    within: Budget | None = None,
) -> list[ValuedTrial]:
    """The trials that ``values_of`` has values of, in order."""
    where, limit = _within(within)
    asked = [run, dataset, learner, split, *limit]
    return [ValuedTrial(*row) for row in db.execute(_VALUED.format(where), asked)]


def values_of(
    db: sqlite3.Connection, trial: ValuedTrial, split: str, within: Budget | None
) -> TrialValues:
    """The values of one of ``valued_trials`` at its points within the budget."""
    where, limit = _within(within)
    points = db.execute(_POINTS.format(where), [trial.trial, *limit])
    inside = {number: (_setting(point), p95) for number, point, p95 in points}
    stored = stored_values(db, trial.trial, split)
    kept = [k for k, number in enumerate(stored.points) if number in inside]
    numbers = tuple(stored.points[k] for k in kept)
    return TrialValues(
        split=split,
        points=numbers,
        metric=stored.metric[kept],
        cost=stored.cost[kept],
        weights=stored.weights,
        rows=stored.rows,
        bought=stored.bought[kept],
        **{**trial._asdict(), "params": _setting(trial.params)},
        settings=tuple(inside[number][0] for number in numbers),
        p95=np.array([inside[number][1] for number in numbers], dtype=np.float64),
    )


def stored_values(
    db: sqlite3.Connection, trial: str, split: str, schema: str = "main"
) -> StoredValues:
    """The values of a trial on one split, which it must have."""
    query = f"SELECT * FROM {schema}.unit_values WHERE trial = ? AND split = ?"
    (row,) = select(db, query, trial, split)
    flat = record_of(StoredValues, row)
    count = len(flat.points)
    return replace(
        flat,
        metric=flat.metric.reshape(count, -1),
        cost=flat.cost.reshape(count, -1),
        bought=flat.bought.reshape(count, -1),
    )


def points_of(
    db: sqlite3.Connection, trial: Trial, schema: str = "main"
) -> tuple[OperatingPoint, ...]:
    """The operating points of a trial, split by split."""
    found = []
    query = f"SELECT * FROM {schema}.point WHERE trial = ? ORDER BY split, number"
    for row in select(db, query, trial.key):
        point = record_of(OperatingPoint, row)
        # the table has columns for the metrics of other runs too
        own = {name: point.metrics[name] for name in trial.metrics}
        found.append(replace(point, metrics=own))
    return tuple(sorted(found, key=lambda point: SPLITS.index(point.split)))


def sensors_of(db: sqlite3.Connection, key: str, schema: str = "main") -> Sensors:
    """The sensors of a list in table ``sensor``."""
    query = f"SELECT name, price FROM {schema}.sensor WHERE list = ? ORDER BY number"
    return Sensors(*map(tuple, zip(*db.execute(query, [key]), strict=True)))


def trial_of(db: sqlite3.Connection, key: str, schema: str = "main") -> Trial:
    """A trial with its points, values and sensors."""
    (row,) = select(db, f"SELECT * FROM {schema}.trial WHERE key = ?", key)
    trial = record_of(Trial, row)
    splits = f"SELECT split FROM {schema}.unit_values WHERE trial = ?"
    return replace(
        trial,
        points=points_of(db, trial, schema),
        values=tuple(
            stored_values(db, key, split, schema)
            for (split,) in db.execute(splits, [key]).fetchall()
        ),
        sensors=sensors_of(db, row["sensors"], schema),
    )


def _within(budget: Budget | None) -> tuple[str, list[float]]:
    """A condition in SQL on the points within a budget, and the numbers in it."""
    if budget is None or budget.kind == "mean":
        return "cap IS NULL", []
    if budget.kind == CAP:
        return "cap = ?", [budget.amount]
    return "cap IS NULL AND cost_p95 <= ?", [budget.amount]


_setting = lru_cache(4096)(json.loads)
"""A point or parameters from JSON; many trials of a run have the same."""
