"""How sure a board is: intervals, tie tiers, the order of rows, and one number for each curve.

The draws of one bootstrap serve all of them; see ``standings``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import primary_metric
from bench_core.leaderboard.board import LOST, SHARE, UNKNOWN, Board, Measure, Row, Saved
from bench_core.leaderboard.standings import Named, Values, standing
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import Budget
from bench_core.statistics.bootstrap import Choose, at_budget, best, held, keeping
from bench_core.statistics.comparison import (
    better_than,
    interval,
    rank_intervals,
    spread_of,
    tiers,
)
from bench_core.statistics.intervals import Interval
from bench_core.statistics.levels import Level
from bench_core.statistics.pools import Repeat, bounds, draws, over_repeats

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
    board, budgets = replace(board, costs=cost_range(board)), board.budgets
    frame = frame[frame["dataset"] == board.dataset]
    metric = primary_metric(info, board.dataset)
    values = Values.of(store, info.run, board.dataset, frame, metric)
    found = values.repeats()
    drawn = Drawn.of(found, board, budgets, resamples) if found else None
    known = {} if drawn is None else drawn.levels(budgets)
    others = [budget for budget in budgets if budget not in known]
    known |= zip(others, values.levels(others, resamples), strict=True)
    at = [standing(b, values, known.get(b)) for b in (None, *budgets)]
    best_of = {one.learner: one for one in at[0].rows}
    rows = [replace(row, standing=best_of.get(row.learner)) for row in board.rows]
    rows = _with_areas(rows, board, drawn)
    if drawn is not None:
        rows = _with_savings(rows, board, drawn)
        rows.sort(key=partial(_place, higher=board.higher_is_better))
    return replace(board, rows=tuple(rows), standings=tuple(at[1:]), unlimited=at[0])


def cost_range(board: Board) -> tuple[float, float] | None:
    """From the cheapest point of any learner, or 1% of what the reference costs at its best where
    that is more, to what the reference costs; None without such a reference."""
    whole = math.fsum(row.best.cost for row in board.rows if row.reference)
    cheapest = min((row.curve[0].budget for row in board.rows if row.curve), default=0.0)
    low = max(cheapest, CHEAPEST * whole)
    return (low, whole) if 0 < low < whole else None


def _means(budgets: Sequence[Budget]) -> list[Budget]:
    return [budget for budget in budgets if budget.kind == "mean"]


def _place(row: Row, *, higher: bool) -> tuple[object, ...]:
    """Those that keep the quality first, by tiers of the saving, in a tier by what they surely
    save; then the others by tiers of their best quality. Baselines come last, alike."""
    if row.cheap and row.saved and not row.saved.lost:
        sure = -round(row.saved.interval.low, 1)
        return row.baseline, 0, row.saved.tier, sure, row.cheap.cost, row.learner
    tier = row.standing.tier if row.standing else 0
    quality = row.best.quality * (-1 if higher else 1)
    return row.baseline, 1, tier or math.inf, quality, row.best.cost, row.learner


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Draws of the learners ``names``, by repeat: quality and cost (choices, learners, 1 +
    resamples) of each at its best and at the cheapest point that keeps the quality, both also with
    the points held, then within each of the costs of ``grid_of`` the board, then within the mean
    budgets."""

    repeats: Sequence[Repeat]
    names: tuple[str, ...]
    values: Sequence[tuple[Draws, Draws]]
    reference: int | None

    @classmethod
    def of(
        cls, found: Sequence[Repeat], board: Board, budgets: Sequence[Budget], resamples: int
    ) -> Drawn:
        """Draw, for what the board shows."""
        names, higher = tuple(found[0].candidates), board.higher_is_better
        reference = names.index(board.reference) if board.reference in names else None

        def keep() -> Choose:
            return best(higher) if reference is None else keeping(SHARE, reference, higher)

        choices: list[Callable[[], Choose]] = [
            partial(best, higher),
            keep,
            lambda: held(best(higher)),
            lambda: held(keep()),
            *(partial(at_budget, cost, higher) for cost in grid_of(board)),
            *(partial(at_budget, one.amount, higher) for one in _means(budgets)),
        ]
        return cls(found, names, draws(found, choices, higher, resamples), reference)

    def levels(self, budgets: Sequence[Budget]) -> dict[Budget | None, Named | None]:
        """The levels of quality at the best point (None) and within the mean budgets."""
        means = _means(budgets)
        place: dict[Budget | None, int] = {None: 0}
        for k, budget in enumerate(reversed(means)):
            place[budget] = -1 - k
        return {
            b: Named(self.names, self.joined([q[k] for q, _ in self.values]), bounds(self.repeats))
            for b, k in place.items()
        }

    def joined(self, values: Sequence[FloatArray]) -> Level:
        """The level over repeats."""
        return over_repeats(self.repeats, values)


def _with_savings(rows: Sequence[Row], board: Board, drawn: Drawn) -> list[Row]:
    """Rows with ``saved`` where they have a saving."""
    place = {name: k for k, name in enumerate(drawn.names)}
    keeps = [row for row in rows if row.cheap and row.learner in place]
    if drawn.reference is None or not keeps:
        return list(rows)
    own = [place[row.learner] for row in keeps]
    logs = drawn.joined([_log_savings(cost, drawn.reference) for _, cost in drawn.values]).only(own)
    short = drawn.joined([_beyond(q, drawn.reference, board) for q, _ in drawn.values]).only(own)
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
    """What the reference costs at its best over what each learner costs where it keeps the quality;
    where it does not, the reference is needed and nothing is saved."""
    paid = np.maximum(cost[1], cost[0, reference] / _FREE)
    saved: FloatArray = np.log(np.maximum(cost[0, reference], 1e-300) / np.maximum(paid, 1e-300))
    rounded: FloatArray = np.where(np.isnan(cost[1]), 0.0, saved).round(6)
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
    """Rows with ``area``, ``regret`` and ``gap``; where a learner can afford nothing, it counts as
    the worst of the learners at their cheapest points."""
    grid = grid_of(board)
    read = {row.learner: _read(row, grid) for row in rows if row.curve}
    names = [name for name in read if drawn is None or name in drawn.names]
    if not len(grid) or not names:
        return list(rows)
    pick = np.nanmin if board.higher_is_better else np.nanmax
    floor = float(pick([row.curve[0].pick.quality for row in rows if row.curve]))
    curves = {name: np.where(np.isnan(q), floor, q) for name, q in read.items()}
    sign = 1 if board.higher_is_better else -1
    first = (sign * np.stack([curves[name] for name in names])).argmax(axis=0)
    top = np.stack([curves[name] for name in names])[first, np.arange(len(grid))].mean()
    edges = (
        _area_intervals(drawn, [drawn.names.index(names[k]) for k in first], floor) if drawn else {}
    )
    found = []
    for row in rows:
        if row.learner in curves:
            area = float(curves[row.learner].mean())
            at, below = edges.get(row.learner, (UNKNOWN, UNKNOWN))
            regret = Measure(sign * (float(top) - area), below if sign > 0 else _negative(below))
            row = replace(row, area=Measure(area, at), regret=regret)
            row = replace(row, gap=_gap(Measure(area, at), board, grid))
        found.append(row)
    return found


def _gap(area: Measure, board: Board, grid: FloatArray) -> Measure | None:
    """What the curve lacks to the known optimum, a mean over the same costs."""
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


def _area_intervals(
    drawn: Drawn, first: Sequence[int], floor: float
) -> Mapping[str, tuple[Interval, Interval]]:
    """By learner the intervals of its area, and of what it lacks to the learners that are ``first``
    at each cost."""
    values = []
    for quality, _ in drawn.values:
        read = quality[4 : 4 + len(first)]  # (costs, learners, draws)
        curves = np.where(np.isnan(read), floor, read)
        top = curves[np.arange(len(first)), list(first)].mean(axis=0)
        values.append(np.vstack([curves.mean(axis=0), top]))
    level = drawn.joined(values)
    own = np.eye(len(drawn.names) + 1)
    return {
        name: (interval(level, own[k]), interval(level, own[-1] - own[k]))
        for k, name in enumerate(drawn.names)
    }
