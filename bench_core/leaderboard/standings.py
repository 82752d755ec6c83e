"""Standings at budgets: quality with its interval, tie tiers and rank intervals.

Points are chosen on validation and shown on test. How sure an order is comes from the values per
query or row that the store holds, by the paired bootstrap of ``bench_core.statistics``; all budgets
and all learners share its draws.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import primary_metric
from bench_core.leaderboard.board import SHARE, UNKNOWN
from bench_core.leaderboard.board import Standing as Standing
from bench_core.leaderboard.board import Standings as Standings
from bench_core.results import operating_points as selection
from bench_core.results.budgets import CAP, Budget
from bench_core.statistics.aggregate_draws import Level
from bench_core.statistics.bootstrap import Means, draw, effort, lacking
from bench_core.statistics.comparison import (
    Interval,
    better_than,
    interval,
    rank_intervals,
    tiers,
)
from bench_core.statistics.point_selection import (
    Choice,
    as_good,
    at_budget,
    cheapest,
    share_of_best,
    taken,
)
from bench_core.statistics.repeats import (
    Repeat,
    in_every,
    over_repeats,
    stored_repeats,
    with_seeds,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"

PAID, KEPT, BEST = "paid", "kept", "best"
"""Of a saving, with points chosen by the reference's quality: the cost of just that quality, and
the qualities of two points held in all draws, the cheapest that keeps it and the best."""


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
    ranking = Ranking(info, store, dataset, frame, resamples)
    return tuple(ranking.standings(budgets, ranking.draws(budgets)))


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the learners ``names``, which have values in every one of the ``repeats``: for each
    repeat arrays (learners, 1 + resamples), by budget those of quality, and by ``PAID``, ``KEPT``
    and ``BEST`` those of the saving. No names where there are no values, which ``note`` says."""

    names: Sequence[str]
    repeats: Sequence[Repeat]
    values: Sequence[Mapping[Hashable, FloatArray]]
    left_out: int = 0  # draws in which the metric is not defined
    note: str = ""  # why there are none

    def level(self, key: Hashable) -> Level:
        """The level of a figure over repeats."""
        return over_repeats(self.repeats, [own[key] for own in self.values])

    def clipped(self, ends: Iterable[float]) -> Interval:
        """The ends of an interval of quality: no mean lies beyond all units."""
        lows, highs = zip(*(repeat.bounds for repeat in self.repeats), strict=True)
        return Interval(*(float(np.clip(end, min(lows), max(highs))) for end in ends))


class Ranking:
    """The operating points of a data set, and draws of the values that a store has of them."""

    def __init__(
        self,
        info: RunInfo,
        store: Store | None,
        dataset: str,
        frame: pd.DataFrame,
        resamples: int,
    ) -> None:
        metric = primary_metric(info, dataset)
        self._of = store, info.run, dataset
        self._metric, self.higher = metric.name, metric.higher_is_better
        self._frame = selection.of_dataset(frame, dataset, metric.name)
        points = selection.operating_points(self._frame, metric.name)
        self._points = selection.choosable_points(points, self.higher)
        of_repeat = points.drop_duplicates(["learner", *selection.REPEAT])
        self._repeats = of_repeat["learner"].astype(str).value_counts(sort=False)
        tried = points.drop_duplicates(["learner", "params", *selection.REPEAT])
        settings = tried.groupby([*selection.REPEAT]).size().max() if len(tried) else 0
        self._blocks, self._resamples = effort(int(settings), resamples)

    def draws(self, budgets: Iterable[Budget | None], reference: str = "") -> Draws:
        """Draws of the quality within budgets, other than caps, and of savings against a reference
        that has values."""
        return self._drawn([one for one in budgets if one is None or one.kind != CAP], reference)

    def _drawn(
        self, budgets: Sequence[Budget | None], reference: str = "", within: Budget | None = None
    ) -> Draws:
        store, run, dataset = self._of
        if store is None:
            return Draws((), (), (), note=NO_VALUES)
        found = stored_repeats(store, run, dataset, within=within, blocks=self._blocks)
        names, higher, values = in_every(found), self.higher, []
        defined = np.ones(self._resamples + 1, dtype=bool)  # draws
        for repeat, seed in with_seeds(found if names else ()):
            drawn: dict[Hashable, list[FloatArray]] = defaultdict(list)
            if compared := reference in names:
                top = draw(repeat.candidates[reference], self._resamples, seed)
                aim = share_of_best(top.valid_quality, SHARE, higher)
            for name in names:
                one = repeat.candidates[name]
                means = draw(one, self._resamples, seed)
                defined &= means.defined
                for budget in budgets:
                    choice = _within(means, one.p95, budget, higher)
                    drawn[budget].append(taken(means.test_quality, choice))
                if compared:
                    valid = means.valid_quality, means.valid_cost
                    kept = cheapest(*valid, aim, higher).held()
                    best = at_budget(*valid, math.inf, higher).held()
                    drawn[PAID].append(taken(means.test_cost, as_good(*valid, aim, higher)))
                    drawn[KEPT].append(taken(means.test_quality, kept))
                    drawn[BEST].append(taken(means.test_quality, best))
            values.append({key: np.stack(own) for key, own in drawn.items()})
        left_out = int((~defined).sum())
        if where := lacking(defined):
            note = f"{self._metric} is not defined {where}: no intervals"
            return Draws((), (), (), left_out, note)
        values = [{key: drawn[:, defined] for key, drawn in own.items()} for own in values]
        return Draws(names, found, values, left_out, "" if names else NO_VALUES)

    def standings(self, budgets: Sequence[Budget | None], draws: Draws) -> list[Standings]:
        """The standings at each of the budgets, with their ``draws``; those under caps are drawn
        here, since a cap has points of its own."""
        found = []
        for budget in budgets:
            if budget is not None and budget.kind == CAP:
                own = self._drawn([budget], within=budget)
            else:
                own = draws
            found.append(_standings(budget, self._chosen(budget), own, self.higher))
        return found

    def _chosen(self, budget: Budget | None) -> dict[str, tuple[float, float]]:
        """By learner quality and cost on test, NaN where not every repeat affords something."""
        points = self._points
        if budget is not None and budget.kind == CAP:
            points = selection.operating_points(self._frame, self._metric, cap=budget.amount)
        best = selection.under_budget(points, self.higher, budget or math.inf)
        # a repeat in which the quality is not defined lacks like one that affords nothing
        figures = best[["test_quality", "test_cost"]].groupby(best["learner"].astype(str))
        found = figures.mean().reindex(self._repeats.index)
        lacking = figures["test_quality"].count().reindex(self._repeats.index) != self._repeats
        found[lacking] = np.nan
        return {str(name): (quality, cost) for name, quality, cost in found.itertuples()}


def _within(means: Means, p95: FloatArray, budget: Budget | None, higher: bool) -> Choice:
    """The best point within a budget; what was measured under a cap is all within it."""
    quality, cost, limit = means.valid_quality, means.valid_cost, math.inf
    if budget is not None and budget.kind == "p95":  # the same in all draws
        cost = np.broadcast_to(p95, quality.shape)
    if budget is not None and budget.kind != CAP:
        limit = budget.amount
    return at_budget(quality, cost, limit, higher)


def _standings(
    budget: Budget | None, chosen: Mapping[str, tuple[float, float]], draws: Draws, higher: bool
) -> Standings:
    there = [name for name, (quality, _) in chosen.items() if not math.isnan(quality)]
    tier: dict[str, int] = {}
    ranks, edges = {}, {}
    if draws.names:
        level = draws.level(budget)
        place = {n: k for k, n in enumerate(draws.names) if np.isfinite(level.observed[k])}
        compared = [name for name in there if name in place]
        level = level.only([place[name] for name in compared])
        better = better_than(level, higher)
        tier = dict(zip(compared, map(int, tiers(better)), strict=True))
        ranks = dict(zip(compared, rank_intervals(better, len(there)), strict=True))
        for k, name in enumerate(compared):
            shift = chosen[name][0] - level.observed[k]
            around = interval(level, np.eye(len(compared))[k])
            edges[name] = draws.clipped(end + shift for end in around)
    sign = -1 if higher else 1
    order = sorted(there, key=lambda name: (sign * chosen[name][0], chosen[name][1], name))
    _place_others(order, chosen, tier)
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
    lacking = sorted(set(chosen) - set(there))
    rows += [Standing(name, math.nan, UNKNOWN, math.nan, 0, last) for name in lacking]
    return Standings(budget, tuple(rows), draws.note)


def _place_others(
    order: Sequence[str], chosen: Mapping[str, tuple[float, float]], tier: dict[str, int]
) -> None:
    """Learners that cannot be compared (a repeat failed, or there are no values) join the tier of
    the next better one; where none can be compared, equals share a tier."""
    alone = not tier
    current, value = 0, math.nan
    for name in order:
        if alone and chosen[name][0] != value:
            current, value = current + 1, chosen[name][0]
        current = tier.setdefault(name, max(current, 1))
