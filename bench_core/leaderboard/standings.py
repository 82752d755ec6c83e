"""Standings at budgets: quality with its interval, tie tiers and rank intervals.

Points are chosen on validation and shown on test. How sure an order is comes from the values per
query or row that the store holds, by the paired bootstrap of ``bench_core.statistics``; all budgets
and all learners share its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import primary_metric
from bench_core.leaderboard.board import UNKNOWN
from bench_core.leaderboard.board import Standing as Standing
from bench_core.leaderboard.board import Standings as Standings
from bench_core.metrics.frontier import best_under
from bench_core.results import operating_points as selection
from bench_core.results.budgets import CAP, Budget
from bench_core.results.marks import paths_of
from bench_core.results.operating_points import Criterion
from bench_core.statistics.aggregate_draws import Level
from bench_core.statistics.blocks import effort
from bench_core.statistics.bootstrap import Candidates
from bench_core.statistics.bootstrap_data import (
    Ask,
    Drawn,
    Repeat,
    bounds,
    by_repeat,
    draws,
    over_repeats,
    repeats,
)
from bench_core.statistics.comparison import (
    better_than,
    interval,
    rank_intervals,
    tiers,
)
from bench_core.statistics.intervals import Interval
from bench_core.statistics.point_selection import Choose, at_budget

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store
    from bench_core.results.values import ValuedTrial

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
    values = Values.of(store, info.run, dataset, frame, primary_metric(info, dataset))
    known = values.levels(budgets, resamples)
    return tuple(standing(b, values, level) for b, level in zip(budgets, known, strict=True))


class Named(NamedTuple):
    """A level of quality with the names of its learners, and the bounds of any mean."""

    names: tuple[str, ...]
    level: Level
    bounds: tuple[float, float]


class Path(NamedTuple):
    """The operating points (p,) of one learner in one repeat."""

    valid_quality: FloatArray
    valid_cost: FloatArray
    valid_p95: FloatArray
    test_quality: FloatArray
    test_cost: FloatArray

    def chosen(self, budget: Budget | None, higher: bool) -> int | None:
        """The best point within the budget, as ``operating_points.under_budget`` takes it."""
        limit, inside = np.inf, np.arange(len(self.valid_cost))
        if budget is not None and budget.kind == "mean":
            limit = budget.amount
        if budget is not None and budget.kind == "p95":
            inside = np.flatnonzero(self.valid_p95 <= budget.amount)
        best = best_under(self.valid_cost[inside], self.valid_quality[inside], limit, higher)
        return None if best is None else int(inside[best])


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The operating points of a data set's ranking, those rows of it that are under caps, and the
    stored values of its trials."""

    store: Store | None
    run: str
    dataset: str
    metric: Criterion
    capped: pd.DataFrame
    paths: dict[str, list[Path]]
    trials: frozenset[tuple[str, int, int, str]]

    @classmethod
    def of(
        cls, store: Store | None, run: str, dataset: str, frame: pd.DataFrame, metric: Criterion
    ) -> Values:
        """Of the data set's rows among ``frame``."""
        frame = selection.of_dataset(frame, dataset, metric.name)
        points = selection.operating_points(frame, metric.name)
        tried = paths_of(points)
        trials = ((learner, int(fold), int(seed), text) for learner, text, fold, seed in tried)
        capped = frame[frame[CAP].notna()] if CAP in frame.columns else frame[:0]
        return cls(store, run, dataset, metric, capped, _paths(points), frozenset(trials))

    def chosen(self, budget: Budget | None) -> dict[str, tuple[float, float]]:
        """By learner quality and cost on test, NaN where not every repeat affords something."""
        paths, found = self.paths, {}
        if budget is not None and budget.kind == "cap":
            points = selection.operating_points(self.capped, self.metric.name, cap=budget.amount)
            paths = _paths(points)
        for learner, every in self.paths.items():
            own = paths.get(learner, [])
            picks = [(path, path.chosen(budget, self.metric.higher_is_better)) for path in own]
            there = [
                (path.test_quality[k], path.test_cost[k]) for path, k in picks if k is not None
            ]
            quality, cost = np.mean(there, axis=0) if len(there) == len(every) else (np.nan, np.nan)
            found[learner] = float(quality), float(cost)
        return found

    def repeats(
        self, resamples: int, within: Budget | None = None
    ) -> tuple[list[str], Iterator[Repeat], int]:
        """The learners that have finished in every repeat, the repeats on their units, each read
        when it is asked for, and how many ``resamples`` at most are worth their time."""
        if self.store is None:
            return [], iter(()), resamples
        found = self.store.valued(self.run, "valid", self.dataset, within=within)
        names, parts = by_repeat(
            [one for one in found if (one.learner, one.fold, one.seed, one.params) in self.trials]
        )
        blocks, resamples = effort(max(map(len, parts), default=0), resamples)
        return names, (self._read(names, part, within, blocks) for part in parts), resamples

    def _read(
        self,
        names: Sequence[str],
        trials: Sequence[ValuedTrial],
        within: Budget | None,
        blocks: int,
    ) -> Repeat:
        """One repeat, learner by learner: as blocks its values take less room."""
        assert self.store is not None
        every: dict[str, Candidates] = {}
        for name in names:
            own = [one for one in trials if one.learner == name]
            valid, test = (self.store.values_of(own, of, within) for of in ("valid", "test"))
            (repeat,) = repeats(valid, test, [name], blocks)
            every |= repeat.candidates
        return replace(repeat, candidates=every)

    def levels(self, budgets: Sequence[Budget | None], resamples: int) -> list[Named | None]:
        """The level of quality at each budget, None without values."""
        known: dict[Budget | None, Named | None] = {}
        caps = [budget for budget in budgets if budget is not None and budget.kind == "cap"]
        if others := [budget for budget in budgets if budget not in caps]:
            known |= self._levels(others, resamples)
        for cap in caps:
            known |= self._levels([cap], resamples, cap)
        return [known.get(budget) for budget in budgets]

    def _levels(
        self, budgets: Sequence[Budget | None], resamples: int, within: Budget | None = None
    ) -> dict[Budget | None, Named | None]:
        tails = [budget for budget in budgets if budget is not None and budget.kind == "p95"]
        means = [budget for budget in budgets if budget not in tails]
        higher, parts = self.metric.higher_is_better, [part for part in (means, tails) if part]
        asks = [Ask(choices_within(part, higher), part is tails, priced=0) for part in parts]
        names, found, resamples = self.repeats(resamples, within)
        drawn = [joined_asks(of) for of in draws(found, asks, resamples)]
        places = enumerate(chain(*parts) if drawn else ())
        return {budget: named(names, drawn, place) for place, budget in places}


def choices_within(budgets: Sequence[Budget | None], higher: bool) -> list[Callable[[], Choose]]:
    """The choice of the best within each of the budgets."""
    return [partial(at_budget, _limit(budget), higher) for budget in budgets]


def joined_asks(of: Sequence[Drawn]) -> Drawn:
    """The qualities of all asks of one repeat, one after another; costs are left out."""
    quality = np.concatenate([one.quality for one in of])
    return of[0]._replace(quality=quality, cost=quality[:0])


def named(names: Sequence[str], drawn: Sequence[Drawn], place: int) -> Named:
    """The level of quality of the choice at this place."""
    level = over_repeats(drawn, [one.quality[place] for one in drawn])
    return Named(tuple(names), level, bounds(drawn))


def _limit(budget: Budget | None) -> float:
    """Limit on the cost of a chosen point in a draw. The cost of 95% of rows is the same in all
    draws, except for rounding."""
    if budget is None or budget.kind == "cap":
        return math.inf
    return budget.amount * (1 + 1e-5 * (budget.kind == "p95"))


def _paths(points: pd.DataFrame) -> dict[str, list[Path]]:
    """By learner its points in each repeat."""
    found: dict[str, list[Path]] = {}
    arrays = [points[name].to_numpy(dtype=np.float64) for name in Path._fields]
    for rows in selection.groups(points, ["learner", *selection.REPEAT]):
        learner = str(points["learner"].iloc[rows[0]])
        found.setdefault(learner, []).append(Path(*(values[rows] for values in arrays)))
    return found


def standing(budget: Budget | None, values: Values, named: Named | None) -> Standings:
    """The standings at one budget, with the level of quality there."""
    chosen, higher = values.chosen(budget), values.metric.higher_is_better
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
