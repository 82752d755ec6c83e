"""Standings at budgets: quality with its interval, tie tiers and rank intervals.

Points are chosen on validation and shown on test. How sure an order is comes from the values per
query or row that the store holds, by the paired bootstrap of ``bench_core.statistics``; all budgets
and all learners share its draws.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.leaderboard.assembly import primary_metric
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion
from bench_core.statistics.bootstrap import at_budget, best
from bench_core.statistics.comparison import (
    Interval,
    better_than,
    interval,
    rank_intervals,
    tiers,
)
from bench_core.statistics.levels import Level
from bench_core.statistics.pools import Repeat, complete, condensed, levels, repeats

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store, TrialValues

UNKNOWN = Interval(math.nan, math.nan)
NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"
COLUMNS = {"mean": "total_cost", "p95": "cost_p95", "cap": "cost_max"}
"""What a budget of each kind bounds on validation."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A learner at a budget.

    ``quality`` is on test, the mean over repeats, with its 95% ``interval``, and NaN unless every
    repeat can afford something; ``cost`` is the mean test cost. Tier 1 leads, tier 0 can afford
    nothing. ``ranks`` are the best and the worst rank that the data leave it.
    """

    learner: str
    quality: float
    interval: Interval
    cost: float
    tier: int
    ranks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Standings:
    """All learners of a data set at a budget (None: without a limit), the best tier first, then by
    quality; ``note`` says why intervals are missing."""

    budget: Budget | None
    rows: tuple[Standing, ...]
    note: str = ""


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
        _standings(budget, _chosen(frame, metric, budget), level, metric.higher_is_better)
        for budget, level in zip(budgets, known, strict=True)
    )


Named = tuple[tuple[str, ...], Level]
"""A level with the names of its learners."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The stored values of the trials that take part in a data set's ranking, by split, and their
    operating points."""

    valid: Sequence[TrialValues]
    test: Sequence[TrialValues]
    frame: pd.DataFrame
    metric: Criterion

    @classmethod
    def of(
        cls, store: Store | None, run: str, dataset: str, frame: pd.DataFrame, metric: Criterion
    ) -> Values:
        """Read from the store; none without one."""
        if store is None:
            return cls((), (), frame, metric)
        points = selection.operating_points(frame, metric.name)
        usable = {_trial(row) for _, row in points[list(_TRIAL)].drop_duplicates().iterrows()}
        valid, test = (
            [
                condensed(one)
                for learner in points["learner"].unique()  # at a time: values are large
                for one in store.values(run, split=split, dataset=dataset, learner=learner)
                if _key(one) in usable
            ]
            for split in ("valid", "test")
        )
        return cls(valid, test, frame, metric)

    def repeats(self, affordable: Budget | None = None) -> list[Repeat]:
        """The learners that have finished in every repeat, on their units; with a budget, only
        their points that it affords on validation."""
        valid, test = self.valid, self.test
        if affordable is not None:
            allowed = self._affordable(affordable)
            valid, test = (
                [_only(one, allowed[_key(one)]) for one in part if _key(one) in allowed]
                for part in (valid, test)
            )
        return repeats(valid, test, names) if (names := complete(valid)) else []

    def levels(self, budgets: Sequence[Budget | None], resamples: int) -> list[Named | None]:
        """The level of quality at each budget, None without values."""
        if not self.valid:
            return [None] * len(budgets)
        higher = self.metric.higher_is_better
        means = [b for b in budgets if b is None or b.kind == "mean"]
        known: dict[Budget | None, Named | None] = {}
        every = self.repeats()
        amounts = [math.inf if b is None else b.amount for b in means]
        choices = [partial(at_budget, amount, higher) for amount in amounts]
        found = levels(every, choices, higher, resamples) if every else []
        for budget, (level, _) in zip(means, found, strict=bool(every)):
            known[budget] = tuple(every[0].candidates), level
        for budget in budgets:
            if budget not in known:
                known[budget] = None
                if some := self.repeats(budget):
                    ((level, _),) = levels(some, [partial(best, higher)], higher, resamples)
                    known[budget] = tuple(some[0].candidates), level
        return [known[budget] for budget in budgets]

    def _affordable(self, budget: Budget) -> dict[tuple[Any, ...], list[int]]:
        """Of each trial the points within the budget on validation."""
        points = _points(self.frame, self.metric, budget)
        inside = points[points["valid_cost"] <= budget.amount]
        names = {(*_trial(row), _same(row["point"])) for _, row in inside.iterrows()}
        return {
            _key(one): kept
            for one in self.valid
            if (
                kept := [
                    k for k, s in enumerate(one.settings) if (*_key(one), canonical(s)) in names
                ]
            )
        }


_TRIAL = ("learner", "fold", "seed", "params")


def _trial(row: pd.Series[Any]) -> tuple[str, int, int, str]:
    return str(row["learner"]), int(row["fold"]), int(row["seed"]), _same(row["params"])


def _key(one: TrialValues) -> tuple[str, int, int, str]:
    return one.learner, one.fold, one.seed, canonical(one.params)


def _same(text: Any) -> str:
    """JSON in its one spelling."""
    return canonical(json.loads(text or "{}"))


def _only(one: TrialValues, points: list[int]) -> TrialValues:
    return replace(
        one,
        metric=one.metric[points],
        cost=one.cost[points],
        points=tuple(one.points[p] for p in points),
        settings=tuple(one.settings[p] for p in points),
        bought=one.bought[points],
    )


def _points(frame: pd.DataFrame, metric: Criterion, budget: Budget | None) -> pd.DataFrame:
    """Operating points, ``valid_cost`` being what the budget bounds."""
    column = COLUMNS["mean" if budget is None else budget.kind]
    return selection.operating_points(frame, metric.name, column)


def _chosen(
    frame: pd.DataFrame, metric: Criterion, budget: Budget | None
) -> dict[str, tuple[float, float]]:
    """By learner quality and cost on test, NaN where not every repeat affords something."""
    points = _points(frame, metric, budget)
    amount = math.inf if budget is None else budget.amount
    chosen = selection.under_budget(points, metric.higher_is_better, amount)
    repeats_of = _repeats(points)
    found = dict.fromkeys(map(str, points["learner"].unique()), (math.nan, math.nan))
    for learner, count in _repeats(chosen).items():
        if count == repeats_of[learner]:
            own = chosen[chosen["learner"] == learner]
            found[learner] = float(own["test_quality"].mean()), float(own["total_cost"].mean())
    return found


def _repeats(rows: pd.DataFrame) -> dict[str, int]:
    trials = rows[["learner", "fold", "seed"]].drop_duplicates()
    return {str(name): int(n) for name, n in trials["learner"].value_counts().items()}


def _standings(
    budget: Budget | None,
    chosen: dict[str, tuple[float, float]],
    named: Named | None,
    higher: bool,
) -> Standings:
    there = [name for name, (quality, _) in chosen.items() if not math.isnan(quality)]
    place = {name: k for k, name in enumerate(named[0])} if named else {}
    finite = np.isfinite(named[1].observed) if named else np.zeros(0)
    compared = [name for name in there if name in place and finite[place[name]]]
    tier, ranks, edges = {}, {}, {}
    if named and compared:
        level = named[1].only([place[name] for name in compared])
        better = better_than(level, higher)
        tier = dict(zip(compared, map(int, tiers(better)), strict=True))
        among = zip(compared, rank_intervals(better, len(there)), strict=True)
        ranks = dict(among)
        for k, name in enumerate(compared):
            low, high = interval(level, np.eye(len(compared))[k])
            shift = chosen[name][0] - level.observed[k]
            edges[name] = Interval(low + shift, high + shift)
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
