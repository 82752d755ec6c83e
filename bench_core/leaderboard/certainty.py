"""Certainty of a board: intervals, tie tiers, the order of rows, and one number for each curve.

The draws of one bootstrap serve all of them; see ``standings``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.leaderboard.assembly import boards, primary_metric
from bench_core.leaderboard.board import LOST, SHARE, UNKNOWN, Board, Measure, Row, Saved
from bench_core.leaderboard.standings import (
    Named,
    Values,
    choices_within,
    joined_asks,
    named,
    standing,
)
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import Budget
from bench_core.statistics import bootstrap_data
from bench_core.statistics.aggregate_draws import Level
from bench_core.statistics.bootstrap_data import Ask
from bench_core.statistics.comparison import (
    better_than,
    interval,
    rank_intervals,
    spread_of,
    tiers,
)
from bench_core.statistics.intervals import Interval
from bench_core.statistics.point_selection import Choose, at_budget, best, held, keeping, paying

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store
    from bench_core.statistics.bootstrap import Draws

CELLS = 24
"""Costs at which a curve is read for its mean quality, evenly spaced on a logarithmic scale."""

CHEAPEST = 0.01
"""Areas begin no lower than this part of what the reference's best point costs."""


def all_certified(info: RunInfo, store: Store | None, frame: pd.DataFrame) -> list[Board]:
    """The boards of a run, each ``certified``."""
    with bootstrap_data.one_thread():
        return [certified(info, store, board, frame) for board in boards(info, frame)]


def certified(
    info: RunInfo,
    store: Store | None,
    board: Board,
    frame: pd.DataFrame,
    *,
    resamples: int = 2000,
) -> Board:
    """The board with intervals, tiers and areas, its rows in the order of certainty.

    Without a store, or without values in it, the board has standings by value and keeps its order.
    """
    if not board.rows:
        return board
    board = replace(board, costs=cost_range(board))
    metric = primary_metric(info, board.dataset)
    values = Values.of(store, info.run, board.dataset, frame, metric)
    drawn = Drawn.of(values, board, resamples)
    known = {} if drawn is None else drawn.levels
    caps = [budget for budget in board.budgets if budget not in known]
    known |= zip(caps, values.levels(caps, resamples), strict=True)
    at = [standing(b, values, known.get(b)) for b in (None, *board.budgets)]
    best_of = {one.learner: one for one in at[0].rows}
    rows = [replace(row, standing=best_of.get(row.learner)) for row in board.rows]
    rows = _with_areas(rows, board, drawn)
    if drawn is not None:
        rows = _with_savings(rows, board, drawn)
        rows.sort(key=partial(_place, higher=board.higher_is_better))
        board = replace(board, draws=drawn.repeats[0].quality.shape[-1] - 1)
    return replace(board, rows=tuple(rows), standings=tuple(at[1:]), unlimited=at[0])


def cost_range(board: Board) -> tuple[float, float] | None:
    """From the cheapest point of any learner, or 1% of what the reference costs at its best where
    that is more, to what the reference costs; None without such a reference."""
    whole = math.fsum(row.best.cost for row in board.rows if row.reference)
    cheapest = min((row.curve[0].budget for row in board.rows if row.curve), default=0.0)
    low = max(cheapest, CHEAPEST * whole)
    return (low, whole) if 0 < low < whole else None


def _place(row: Row, *, higher: bool) -> tuple[object, ...]:
    """Sort key. Learners that keep the quality come first, by tiers of the saving, in a tier by the
    lower end of its interval; then the others by tiers of their best quality; baselines last."""
    if row.cheap and row.saved and not row.saved.lost:
        sure = -round(row.saved.interval.low, 1)
        return row.baseline, 0, row.saved.tier, sure, row.cheap.cost, row.learner
    tier = row.standing.tier if row.standing else 0
    quality = row.best.quality * (-1 if higher else 1)
    return row.baseline, 1, tier or math.inf, quality, row.best.cost, row.learner


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """The learners' curves (costs,) by name, read at the costs ``grid_of`` a board. Where a learner
    can afford nothing it counts as the worst of the learners at their cheapest points, ``floor``.
    Among those with draws, ``names``, the one at place ``first`` is the best at each cost."""

    grid: FloatArray
    of: Mapping[str, FloatArray]
    floor: float
    first: IntArray
    names: Sequence[str]

    @classmethod
    def read(cls, board: Board, names: Sequence[str] | None = None) -> Curves | None:
        """The curves of a board; None where it has none. Without ``names`` all learners compete."""
        grid, higher = grid_of(board), board.higher_is_better
        read = {row.learner: _read(row, grid) for row in board.rows if row.curve}
        names = [name for name in read if names is None or name in names]
        if not len(grid) or not names:
            return None
        pick = np.nanmin if higher else np.nanmax
        floor = float(pick([row.curve[0].pick.quality for row in board.rows if row.curve]))
        of = {name: np.where(np.isnan(q), floor, q) for name, q in read.items()}
        several = np.stack([of[name] for name in names])
        return cls(grid, of, floor, (several if higher else -several).argmax(axis=0), names)

    @property
    def top(self) -> float:
        """The mean of what is first at each cost."""
        several = np.stack([self.of[name] for name in self.names])
        return float(several[self.first, np.arange(len(self.grid))].mean())

    def areas(self, quality: Draws, drawn: Sequence[str]) -> FloatArray:
        """From the draws (costs, learners, n) of the learners ``drawn`` those (learners + 1, n) of
        the mean over costs, the last that of what is first at each."""
        curves = np.where(np.isnan(quality), self.floor, quality)
        first = [drawn.index(self.names[k]) for k in self.first]
        top = curves[np.arange(len(first)), first].mean(axis=0)
        return np.vstack([curves.mean(axis=0), top])


_KEPT = 4  # choices that are drawn before those of the grid and of budgets


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Draws of the learners ``names``, by repeat: (choices, learners, 1 + resamples) of the cost of
    each where it has just the quality of a saving, and of its quality there, at its best, with two
    points held, its best and the cheapest that keeps the quality, and within each of the
    ``budgets``, of mean cost and of that of 95% of rows. ``areas`` are those of the curves, if the
    board has any."""

    names: Sequence[str]
    repeats: Sequence[bootstrap_data.Drawn]
    areas: Sequence[FloatArray]
    reference: int | None
    budgets: Sequence[Budget]

    @classmethod
    def of(cls, values: Values, board: Board, resamples: int) -> Drawn | None:
        """Draw, for what the board shows; None without values. Of a repeat only what is needed is
        kept."""
        names, found, resamples = values.repeats(resamples)
        higher, curves = board.higher_is_better, Curves.read(board, names)
        reference = names.index(board.reference) if board.reference in names else None
        means, tails = ([b for b in board.budgets if b.kind == kind] for kind in ("mean", "p95"))
        grid: list[Callable[[], Choose]] = [
            partial(at_budget, cost, higher) for cost in grid_of(board)
        ]
        kept = [*_keeping(reference, higher), *grid, *choices_within(means, higher)]
        asks = [Ask(kept, priced=1), Ask(choices_within(tails, higher), tails=True, priced=0)]
        asks = asks if tails else asks[:1]

        areas, repeats = [], []
        for of in bootstrap_data.draws(found, asks, resamples):
            if curves:
                areas.append(curves.areas(of[0].quality[_KEPT : _KEPT + len(grid)], names))
            # of the grid only the areas are kept: 24 ways to choose are most of the memory
            shown = np.delete(of[0].quality, np.s_[_KEPT : _KEPT + len(grid)], axis=0)
            joined = joined_asks([of[0]._replace(quality=shown), *of[1:]])
            repeats.append(joined._replace(cost=of[0].cost))
        return cls(names, repeats, areas, reference, [*means, *tails]) if repeats else None

    @property
    def levels(self) -> dict[Budget | None, Named | None]:
        """The levels of quality at the best point (None) and within the budgets."""
        places: dict[Budget | None, int] = {None: 1}
        places |= {budget: _KEPT + k for k, budget in enumerate(self.budgets)}
        return {b: named(self.names, self.repeats, k) for b, k in places.items()}

    def joined(self, values: Sequence[FloatArray]) -> Level:
        """The level over repeats."""
        return bootstrap_data.over_repeats(self.repeats, values)


def _keeping(reference: int | None, higher: bool) -> list[Callable[[], Choose]]:
    """The choices of just the quality of a saving, of the best, and of the best and the cheapest
    that keeps the quality, held."""
    top = partial(best, higher)
    if reference is None:
        return [top, top, lambda: held(top()), lambda: held(top())]
    keep = partial(keeping, SHARE, reference, higher)
    pay = partial(paying, SHARE, reference, higher)
    return [pay, top, lambda: held(top()), lambda: held(keep())]


def _with_savings(rows: Sequence[Row], board: Board, drawn: Drawn) -> list[Row]:
    """Rows with ``saved`` where they have a saving."""
    place = {name: k for k, name in enumerate(drawn.names)}
    keeps = [row for row in rows if row.cheap and row.learner in place]
    if drawn.reference is None or not keeps:
        return list(rows)
    own = [place[row.learner] for row in keeps]
    saved = [_log_savings(one.cost, drawn.reference) for one in drawn.repeats]
    beyond = [_beyond(one.quality, drawn.reference, board) for one in drawn.repeats]
    logs, short = (drawn.joined(values).only(own) for values in (saved, beyond))
    lost = [interval(short, line).high < 0 for line in np.eye(len(keeps))]
    still = [k for k in range(len(keeps)) if not lost[k]]
    better = better_than(logs.only(still), higher=True)
    tier = dict(zip(still, map(int, tiers(better)), strict=True))
    ranks = dict(zip(still, rank_intervals(better), strict=True))
    found = {
        row.learner: Saved(
            interval=_edges(logs, k, row.saving, 0.95),
            wide=_edges(logs, k, row.saving, 0.99),
            tier=tier.get(k, 0),
            ranks=ranks.get(k, (len(still) + 1, len(keeps))),
            lost=lost[k],
        )
        for k, row in enumerate(keeps)
    }
    return [replace(row, saved=found.get(row.learner)) for row in rows]


_FREE = 1e6  # a saving where nothing is paid any more


def _log_savings(cost: Draws, reference: int) -> FloatArray:
    """Logarithm of the reference's cost of the quality over each learner's; where one does not have
    it, the reference is needed and nothing is saved."""
    whole = cost[0, reference]
    paid = np.maximum(cost[0], whole / _FREE)
    saved: FloatArray = np.log(np.maximum(whole, 1e-300) / np.maximum(paid, 1e-300))
    rounded: FloatArray = np.where(np.isnan(cost[0]), 0.0, saved).round(6)
    return rounded


def _beyond(quality: Draws, reference: int, board: Board) -> FloatArray:
    """By how much the kept points, held, are better on test than ``LOST`` asks for."""
    target = share_of(quality[2, reference], LOST, board.higher_is_better)
    beyond: FloatArray = (quality[3] - target) * (1 if board.higher_is_better else -1)
    return beyond


def _edges(logs: Level, learner: int, saving: float, share: float) -> Interval:
    low, high = np.exp(spread_of(logs, learner, share))
    return Interval(float(min(low, saving)), float(max(high, saving)))


def grid_of(board: Board) -> FloatArray:
    """The costs at which curves are read for their areas; none without a range."""
    if board.costs is None:
        return np.zeros(0)
    return np.geomspace(*board.costs, 2 * CELLS + 1)[1::2]


def _with_areas(rows: Sequence[Row], board: Board, drawn: Drawn | None) -> list[Row]:
    """Rows with ``area``, ``regret`` and ``gap``."""
    curves = Curves.read(board, drawn.names if drawn else None)
    if curves is None:
        return list(rows)
    sign = 1 if board.higher_is_better else -1
    edges = _area_intervals(drawn) if drawn else {}
    found = []
    for row in rows:
        if row.learner in curves.of:
            area = float(curves.of[row.learner].mean())
            at, below = edges.get(row.learner, (UNKNOWN, UNKNOWN))
            regret = Measure(sign * (curves.top - area), below if sign > 0 else _negative(below))
            row = replace(row, area=Measure(area, at), regret=regret)
            row = replace(row, gap=_gap(Measure(area, at), board, curves.grid))
        found.append(row)
    return found


def _gap(area: Measure, board: Board, grid: FloatArray) -> Measure | None:
    """Mean distance of the curve to the known optimum, over the same costs."""
    if not board.optimum:
        return None
    corners = np.array(board.optimum)
    most = float(np.interp(grid, corners[:, 0], corners[:, 1]).mean())
    low, high = most - area.interval.high, most - area.interval.low
    if board.higher_is_better:
        return Measure(most - area.value, Interval(low, high))
    return Measure(area.value - most, Interval(-high, -low))


def _negative(one: Interval) -> Interval:
    return Interval(-one.high, -one.low)


def _read(row: Row, grid: FloatArray) -> FloatArray:
    """The quality within each cost, NaN where nothing is affordable."""
    at = np.searchsorted([point.budget for point in row.curve], grid * (1 + 1e-9), "right") - 1
    quality = np.array([point.pick.quality for point in row.curve])
    return np.where(at < 0, np.nan, quality[at])


def _area_intervals(drawn: Drawn) -> Mapping[str, tuple[Interval, Interval]]:
    """By learner the intervals of its area, and of what it lacks to the learners that are first
    at each cost."""
    level = drawn.joined(drawn.areas)
    own = np.eye(len(drawn.names) + 1)
    return {
        name: (interval(level, own[k]), interval(level, own[-1] - own[k]))
        for k, name in enumerate(drawn.names)
    }
