"""Standings at budgets: quality with its interval, tie tiers and rank intervals.

Points are chosen on validation and shown on test. How sure an order is comes from the values per
query or row that the store holds, by the paired bootstrap of ``bench_core.statistics``; all budgets
and all learners share its draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.leaderboard.assembly import primary_metric
from bench_core.leaderboard.board import UNKNOWN
from bench_core.leaderboard.board import Standing as Standing
from bench_core.leaderboard.board import Standings as Standings
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion
from bench_core.statistics.bootstrap import at_budget, best
from bench_core.statistics.comparison import (
    better_than,
    interval,
    rank_intervals,
    tiers,
)
from bench_core.statistics.intervals import Interval
from bench_core.statistics.levels import Level
from bench_core.statistics.pools import Repeat, bounds, complete, condensed, levels, repeats

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store, TrialValues

NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"


def standings(
    info: RunInfo,
    store: Store | None,
    dataset: str,
    frame: pd.DataFrame,
    budgets: Sequence[Budget | None],
    *,
    resamples: int = 2000,
) -> tuple[Standings, ...]:
    """The standings on one data set at each of the budgets, from the export rows ``frame``.

    Without a store, or where it has no values, learners stand by their quality alone.
    """
    metric = primary_metric(info, dataset)
    frame = frame[frame["dataset"] == dataset]
    values = Values.of(store, info.run, dataset, frame, metric)
    known = values.levels(budgets, resamples)
    return tuple(
        standing(budget, frame, metric, level) for budget, level in zip(budgets, known, strict=True)
    )


class Named(NamedTuple):
    """A level of quality with the names of its learners, and the bounds of any mean."""

    names: tuple[str, ...]
    level: Level
    bounds: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The stored values of the trials that take part in a data set's ranking."""

    store: Store | None
    run: str
    dataset: str
    metric: Criterion
    trials: frozenset[tuple[str, int, int, str]]

    @classmethod
    def of(
        cls, store: Store | None, run: str, dataset: str, frame: pd.DataFrame, metric: Criterion
    ) -> Values:
        """Of the data set's rows in ``frame``."""
        points = selection.operating_points(frame, metric.name)
        named = points[["learner", "fold", "seed", "params"]].drop_duplicates()
        trials = (
            (str(learner), int(fold), int(seed), canonical(json.loads(params or "{}")))
            for learner, fold, seed, params in named.itertuples(index=False)
        )
        return cls(store, run, dataset, metric, frozenset(trials))

    def repeats(self, within: Budget | None = None) -> list[Repeat]:
        """The learners that have finished in every repeat, on their units; of a cap what was
        measured under it, of a cost for 95% of rows the points that keep to it."""
        valid, test = (self._read(split, within) for split in ("valid", "test"))
        return repeats(valid, test, names) if (names := complete(valid)) else []

    def levels(self, budgets: Sequence[Budget | None], resamples: int) -> list[Named | None]:
        """The level of quality at each budget, None without values."""
        higher = self.metric.higher_is_better
        means = [b for b in budgets if b is None or b.kind == "mean"]
        known: dict[Budget | None, Named | None] = {}
        every = self.repeats() if means else []
        amounts = [math.inf if b is None else b.amount for b in means]
        choices = [partial(at_budget, amount, higher) for amount in amounts]
        found = levels(every, choices, higher, resamples) if every else []
        for budget, (level, _) in zip(means, found, strict=bool(every)):
            known[budget] = Named(tuple(every[0].candidates), level, bounds(every))
        for budget in budgets:
            if budget is not None and budget.kind != "mean" and (some := self.repeats(budget)):
                ((level, _),) = levels(some, [partial(best, higher)], higher, resamples)
                known[budget] = Named(tuple(some[0].candidates), level, bounds(some))
        return [known.get(budget) for budget in budgets]

    def _read(self, split: str, within: Budget | None) -> list[TrialValues]:
        if self.store is None:
            return []
        return [
            condensed(one)
            for learner in dict.fromkeys(name for name, *_ in sorted(self.trials))
            for one in self.store.values(  # of a learner at a time: values are large
                self.run, split=split, dataset=self.dataset, learner=learner, within=within
            )
            if (one.learner, one.fold, one.seed, canonical(one.params)) in self.trials
        ]


def _chosen(
    frame: pd.DataFrame, metric: Criterion, budget: Budget | None
) -> dict[str, tuple[float, float]]:
    """By learner quality and cost on test, NaN where not every repeat affords something."""
    higher = metric.higher_is_better
    points = selection.operating_points(frame, metric.name)
    if budget is None:
        chosen = selection.best_points(points, higher)
    else:
        chosen = selection.points_within(frame, metric.name, higher, budget)
    repeats_of = _repeats(points)
    found = dict.fromkeys(map(str, points["learner"].unique()), (math.nan, math.nan))
    for learner, count in _repeats(chosen).items():
        if count == repeats_of[learner]:
            own = chosen[chosen["learner"] == learner]
            found[learner] = float(own["test_quality"].mean()), float(own["test_cost"].mean())
    return found


def _repeats(rows: pd.DataFrame) -> dict[str, int]:
    trials = rows[["learner", "fold", "seed"]].drop_duplicates()
    return {str(name): int(n) for name, n in trials["learner"].value_counts().items()}


def standing(
    budget: Budget | None, frame: pd.DataFrame, metric: Criterion, named: Named | None
) -> Standings:
    """The standings at one budget, from a data set's rows and the level of quality there."""
    chosen, higher = _chosen(frame, metric, budget), metric.higher_is_better
    there = [name for name, (quality, _) in chosen.items() if not math.isnan(quality)]
    place = {name: k for k, name in enumerate(named.names)} if named else {}
    finite = np.isfinite(named.level.observed) if named else np.zeros(0)
    compared = [name for name in there if name in place and finite[place[name]]]
    tier, ranks, edges = {}, {}, {}
    if named and compared:
        level = named.level.only([place[name] for name in compared])
        better = better_than(level, higher)
        tier = dict(zip(compared, map(int, tiers(better)), strict=True))
        among = zip(compared, rank_intervals(better, len(there)), strict=True)
        ranks = dict(among)
        for k, name in enumerate(compared):
            around = interval(level, np.eye(len(compared))[k])
            shift = chosen[name][0] - level.observed[k]
            edges[name] = Interval(*(float(np.clip(e + shift, *named.bounds)) for e in around))
    sign = -1 if higher else 1
    order = sorted(there, key=lambda name: (sign * chosen[name][0], chosen[name][1], name))
    _place_others(order, chosen, tier)
    lacking = sorted(set(chosen) - set(there))
    rows = [
        Standing(
            name,
            chosen[name][0],
            edges.get(name, UNKNOWN),
            chosen[name][1],
            tier[name],
            ranks.get(name, (1, len(there))),
        )
        for name in sorted(order, key=tier.__getitem__)
    ]
    last = len(there) + 1, len(chosen)
    rows += [Standing(name, math.nan, UNKNOWN, math.nan, 0, last) for name in lacking]
    return Standings(budget, tuple(rows), "" if named else NO_VALUES)


def _place_others(
    order: Sequence[str], chosen: dict[str, tuple[float, float]], tier: dict[str, int]
) -> None:
    """Learners that cannot be compared (a repeat failed, or there are no values) join the tier of
    the next better one; where none can be compared, equals share a tier."""
    alone = not tier
    current, value = 0, math.nan
    for name in order:
        if alone and chosen[name][0] != value:
            current, value = current + 1, chosen[name][0]
        current = tier.setdefault(name, max(current, 1))
