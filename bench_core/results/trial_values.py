"""Values per query or row of one trial, as a store keeps them for points that budgets choose."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.results import rows
from bench_core.results.budgets import CAP, Budget
from bench_core.results.records import StoredValues

_NAMES = ("learner", "params", "dataset", "fold", "seed", "fingerprint")


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


def values_of(
    db: sqlite3.Connection, trial: Mapping[str, Any], split: str, within: Budget | None
) -> Iterator[TrialValues]:
    """Those of a trial on a split: one, or none where no point takes part under the budget."""
    if trial["status"] != "ok":
        return
    of = {one.split: one for one in rows.points(db, trial)}
    own = of[split].points if split in of else ()
    p95 = of["valid"].column("cost_p95") if "valid" in of else np.full(len(own), np.inf)
    for one in rows.values(db, trial["key"], split):
        settings = {p: _setting(own[p]) for p in one.points}
        kept = [_is_within(settings[p], float(p95[p]), within) for p in one.points]
        if not any(kept):
            continue
        points = tuple(compress(one.points, kept))
        yield TrialValues(
            split=split,
            points=points,
            trial=trial["key"],
            settings=tuple(settings[p] for p in points),
            p95=p95[list(points)],
            metric=one.metric if all(kept) else one.metric[kept],
            cost=one.cost if all(kept) else one.cost[kept],
            bought=one.bought if all(kept) else one.bought[kept],
            weights=one.weights,
            rows=one.rows,
            **{name: trial["spec"][name] for name in _NAMES},
        )


_setting = lru_cache(4096)(json.loads)
"""A point from its canonical JSON; most trials of a run have the same."""


def _is_within(point: Mapping[str, float], p95: float, budget: Budget | None) -> bool:
    """Whether a point takes part under a budget, by its kind; its mean cost is not looked at."""
    kind, amount = ("mean", np.inf) if budget is None else (budget.kind, budget.amount)
    if kind == "cap":
        return point.get(CAP) == amount
    return CAP not in point and (kind == "mean" or p95 <= amount)
