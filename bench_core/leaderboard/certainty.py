"""Certainty of a board: intervals, tie tiers, the order of rows, and one number for each curve.

The draws of one bootstrap serve all of them; see ``standings``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import FALLS, LOST, UNKNOWN, Board, Measure, Row, Saved
from bench_core.leaderboard.standings import BEST, KEPT, PAID, Draws, Ranking
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import Budget
from bench_core.statistics.aggregate_draws import Level
from bench_core.statistics.comparison import (
    LEVEL,
    Interval,
    better_than,
    interval,
    rank_intervals,
    spread_of,
    tiers,
)
from bench_core.statistics.repeats import over_repeats
from bench_core.statistics.split_shift import falling
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

CELLS = 24
"""Costs at which a curve is read for its mean quality, evenly spaced on a logarithmic scale."""

CHEAPEST = 0.01
"""Areas begin no lower than this part of what the reference's best point costs."""


def all_certified(info: RunInfo, store: Store | None, frame: pd.DataFrame) -> list[Board]:
    """The boards of a run, each ``certified``."""
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
    ranking = Ranking(info, store, board.dataset, frame, resamples)
    budgets = [None, *board.budgets]
    draws = ranking.draws([*budgets, *map(Budget, grid_of(board))], board.reference)
    at = ranking.standings(budgets, draws)
    best_of = {one.learner: one for one in at[0].rows}
    lower = falling(draws.repeats, board.higher_is_better)
    rows = [
        replace(
            row,
            standing=best_of.get(row.learner),
            marks=(*row.marks, FALLS) if row.learner in lower else row.marks,
        )
        for row in board.rows
    ]
    rows = _with_areas(rows, board, draws)
    if draws.names:
        rows = _with_savings(rows, board, draws)
        rows.sort(key=partial(_place, higher=board.higher_is_better))
        board = replace(board, draws=draws.values[0][None].shape[1] - 1)
        if draws.left_out:
            lost = f"{count(draws.left_out, 'draw')} of {board.draws + draws.left_out}"
            line = f"intervals leave out {lost}, in which {board.metric} is not defined"
            board = replace(board, notes=(*board.notes, line))
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
    quality = math.inf if math.isnan(quality) else quality
    return row.baseline, 1, tier or math.inf, quality, row.best.cost, row.learner


def _with_savings(rows: Sequence[Row], board: Board, draws: Draws) -> list[Row]:
    """Rows with ``saved`` where they have a saving."""
    place = {name: k for k, name in enumerate(draws.names)}
    keeps = [row for row in rows if row.cheap and row.learner in place]
    if board.reference not in place or not keeps:
        return list(rows)
    own, reference = [place[row.learner] for row in keeps], place[board.reference]
    saved = [_log_savings(drawn[PAID], reference) for drawn in draws.values]
    beyond = [_beyond(drawn, reference, board.higher_is_better) for drawn in draws.values]
    logs, short = (over_repeats(draws.repeats, values).only(own) for values in (saved, beyond))
    lost = [interval(short, line).high < 0 for line in np.eye(len(keeps))]
    still = [k for k in range(len(keeps)) if not lost[k]]
    better = better_than(logs.only(still), higher=True)
    tier = dict(zip(still, map(int, tiers(better)), strict=True))
    ranks = dict(zip(still, rank_intervals(better), strict=True))
    found = {
        row.learner: Saved(
            interval=_edges(logs, k, row.saving, LEVEL),
            wide=_edges(logs, k, row.saving, 0.99),
            tier=tier.get(k, 0),
            ranks=ranks.get(k, (len(still) + 1, len(keeps))),
            lost=lost[k],
        )
        for k, row in enumerate(keeps)
    }
    return [replace(row, saved=found.get(row.learner)) for row in rows]


_FREE = 1e6  # a saving where nothing is paid any more


def _log_savings(paid: FloatArray, reference: int) -> FloatArray:
    """Logarithm of the reference's cost of the quality over each learner's; where one does not have
    it, the reference is needed and nothing is saved."""
    whole = paid[reference]
    own = np.maximum(paid, whole / _FREE)
    saved: FloatArray = np.log(np.maximum(whole, 1e-300) / np.maximum(own, 1e-300))
    return np.where(np.isnan(paid), 0.0, saved).round(6)


def _beyond(drawn: Mapping[Hashable, FloatArray], reference: int, higher: bool) -> FloatArray:
    """By how much the kept points, held, are better on test than ``LOST`` asks for."""
    target = share_of(drawn[BEST][reference], LOST, higher)
    beyond: FloatArray = (drawn[KEPT] - target) * (1 if higher else -1)
    return beyond


def _edges(logs: Level, learner: int, saving: float, share: float) -> Interval:
    low, high = np.exp(spread_of(logs, learner, share))
    return Interval(float(min(low, saving)), float(max(high, saving)))


def grid_of(board: Board) -> FloatArray:
    """The costs at which curves are read for their areas; none without a range."""
    if board.costs is None:
        return np.zeros(0)
    return np.geomspace(*board.costs, 2 * CELLS + 1)[1::2]


def _with_areas(rows: Sequence[Row], board: Board, draws: Draws) -> list[Row]:
    """Rows with ``area``, ``regret`` and ``gap``, over the costs of the grid.

    Where a learner can afford nothing it counts as the worst of all at their cheapest points. The
    regret is against the learner that is first at each cost, of those with draws if there are any.
    """
    grid, sign = grid_of(board), 1 if board.higher_is_better else -1
    floor = min((sign * row.curve[0].pick.quality for row in rows if row.curve), default=0) * sign
    of = {row.learner: _read(row, grid, floor) for row in rows if row.curve}
    names = [name for name in of if not draws.names or name in draws.names]
    if not len(grid) or not names:
        return list(rows)
    several = np.stack([sign * of[name] for name in names])
    top, first = sign * float(several.max(axis=0).mean()), several.argmax(axis=0)
    contrast: dict[str, FloatArray] = {}
    if draws.names:
        best = [draws.names.index(names[k]) for k in first]
        budgets = [*map(Budget, grid)]
        # (costs, learners, draws), then a row for each learner and one for what is first
        curves = (np.stack([own[budget] for budget in budgets]) for own in draws.values)
        filled = [np.where(np.isnan(curve), floor, curve) for curve in curves]
        areas = [
            np.vstack([curve.mean(axis=0), curve[np.arange(len(best)), best].mean(axis=0)])
            for curve in filled
        ]
        level = over_repeats(draws.repeats, areas)
        contrast = dict(zip(draws.names, np.eye(len(draws.names) + 1), strict=False))
    found = []
    for row in rows:
        if row.learner in of:
            area, sure, below = float(of[row.learner].mean()), UNKNOWN, UNKNOWN
            if (own := contrast.get(row.learner)) is not None:
                sure = interval(level, own)
                below = interval(level, sign * (np.eye(len(own))[-1] - own))
            measure = Measure(area, sure)
            row = replace(row, area=measure, regret=Measure(sign * (top - area), below))
            row = replace(row, gap=_gap(measure, board, grid))
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


def _read(row: Row, grid: FloatArray, floor: float) -> FloatArray:
    """The quality within each cost."""
    at = np.searchsorted([point.budget for point in row.curve], grid * (1 + 1e-9), "right") - 1
    quality = np.array([point.pick.quality for point in row.curve])
    return np.where(at < 0, floor, quality[at])
