"""Values per query or row of one trial, as a store keeps them for points that budgets choose."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.results.budgets import Budget
from bench_core.results.records import VALUE_ARRAYS, OperatingPoint, StoredValues, Trial
from bench_core.results.tables import columns_of, select, shaped


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
) -> list[dict[str, Any]]:
    """What names the trials that ``values_of`` has values of, in order."""
    where, limit = _within(within)
    return [*select(db, _VALUED.format(where), run, dataset, learner, split, *limit)]


def values_of(
    db: sqlite3.Connection, trial: Mapping[str, Any], split: str, within: Budget | None
) -> TrialValues:
    """The values of one of ``valued_trials`` at its points within the budget."""
    where, limit = _within(within)
    points = db.execute(_POINTS.format(where), [trial["key"], *limit])
    inside = {number: (_setting(point), p95) for number, point, p95 in points}
    stored = stored_values(db, trial["key"], split)
    kept = [k for k, number in enumerate(stored.points) if number in inside]
    named = {name: value for name, value in trial.items() if name != "key"}
    numbers = tuple(stored.points[k] for k in kept)
    return TrialValues(
        split=split,
        points=numbers,
        metric=stored.metric[kept],
        cost=stored.cost[kept],
        weights=stored.weights,
        rows=stored.rows,
        bought=stored.bought[kept],
        trial=trial["key"],
        **{**named, "params": _setting(trial["params"])},
        settings=tuple(inside[number][0] for number in numbers),
        p95=np.array([inside[number][1] for number in numbers], dtype=np.float64),
    )
