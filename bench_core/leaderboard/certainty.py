"""Certainty of a board: standings at budgets, intervals, tie tiers, the order of rows, and one
number for each curve.

Points are chosen on validation and shown on test. Certainty is estimated from the store's values
per query or row, by the paired bootstrap of ``bench_core.statistics``. All budgets and learners
share its draws.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import Offer, boards, offers, primary_metric
from bench_core.leaderboard.board import (
    CHEAPEST,
    FALLS,
    LOST,
    SHARE,
    UNKNOWN,
    Board,
    Measure,
    Row,
    Saved,
    Standing,
    Standings,
)
from bench_core.metrics.frontier import hull, mixed_reaching, share_of, taken
from bench_core.protocols import GIVEN
from bench_core.results import operating_points as selection
from bench_core.results.budgets import CAP, KEEP, Budget, Limit, choice_within
from bench_core.statistics import LEVEL, WIDE_LEVEL
from bench_core.statistics.bootstrap import DRAWS, draw, effort, lacking
from bench_core.statistics.comparison import (
    Interval,
    better_than,
    interval,
    rank_intervals,
    spread_of,
    tiers,
)
from bench_core.statistics.repeats import (
    Level,
    Repeat,
    in_every,
    over_repeats,
    stored_repeats,
    with_seeds,
)
from bench_core.statistics.split_shift import falling
from bench_core.terminal.wording import cost, count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

CELLS = 24
"""Costs at which a curve is averaged, evenly spaced on a logarithmic scale."""

NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"

COST = "cost"
"""Key, with a budget, of the test cost of the point chosen within it."""

PAID, KEPT, BEST, TODAY = "paid", "kept", "best", "today"
"""Keys of a saving, with points chosen by the reference's quality: the cost at just that quality,
the qualities of two choices held in all draws, the cheapest that keeps it and the best, and, if the
reference was trained elsewhere, the costs of the best."""


def standings(
    info: RunInfo,
    store: Store | None,
    dataset: str,
    frame: pd.DataFrame,
    budgets: Sequence[Budget | None],
    *,
    resamples: int = DRAWS,
    mixes: bool = True,
) -> tuple[Standings, ...]:
    """Return the standings on one data set at each budget, from the export rows ``frame``. Without
    ``mixes`` each learner is at a single point.

    Without a store or its values, learners are ranked by quality only.
    """
    ranking = Ranking(info, store, dataset, frame, resamples, mixes)
    return tuple(ranking.standings(budgets, ranking.draws(budgets)))


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of the learners ``names``, which have values in all ``repeats``.

    Each repeat has arrays (learners, 1 + resamples) by key: a budget for quality, with ``COST`` for
    cost; ``PAID``, ``KEPT``, ``BEST`` and ``TODAY`` for savings. Without values there are no
    names, and ``note`` gives the reason."""

    names: Sequence[str]
    repeats: Sequence[Repeat]
    values: Sequence[Mapping[Hashable, FloatArray]]
    left_out: int = 0  # draws in which the metric is not defined
    note: str = ""  # reason for missing draws

    def level(self, key: Hashable) -> Level:
        """Return the level of a figure over repeats."""
        return over_repeats(self.repeats, [own[key] for own in self.values])

    def clipped(self, ends: Iterable[float]) -> Interval:
        """Clip the ends of an interval of quality to the range of units, as a mean lies in it."""
        lows, highs = zip(*(repeat.bounds for repeat in self.repeats), strict=True)
        return Interval(*(float(np.clip(end, min(lows), max(highs))) for end in ends))


class Ranking:
    """The operating points of a data set, and draws of their values in a store."""

    def __init__(
        self,
        info: RunInfo,
        store: Store | None,
        dataset: str,
        frame: pd.DataFrame,
        resamples: int,
        mixes: bool = True,
    ) -> None:
        metric = primary_metric(info, dataset)
        self._of = store, info.run, dataset
        self._metric, self.higher, self._mixes = metric.name, metric.higher_is_better, mixes
        self._frame = selection.of_dataset(frame, dataset, metric.name)
        points = selection.operating_points(self._frame, metric.name)
        self._points = selection.choosable_points(points, self.higher)
        self._given = set(points["learner"][selection.marked(points, GIVEN)].astype(str))
        of_repeat = points.drop_duplicates(["learner", *selection.REPEAT])
        self._repeats = of_repeat["learner"].astype(str).value_counts(sort=False)
        tried = points.drop_duplicates(["learner", "params", *selection.REPEAT])
        settings = tried.groupby([*selection.REPEAT]).size().max() if len(tried) else 0
        self._blocks, self._resamples = effort(int(settings), resamples)

    def draws(
        self,
        budgets: Sequence[Budget | None],
        grid: Sequence[Budget] = (),
        reference: str = "",
        cap: Budget | None = None,
        share: float = SHARE,
    ) -> Draws:
        """Draw quality and cost within budgets (without caps, except ``cap``), quality at the
        budgets of a grid, and savings at a share of the quality of a reference with values."""
        store, run, dataset = self._of
        budgets = [one for one in budgets if one is None or one.kind != CAP or one == cap]
        if store is None:
            return Draws((), (), (), note=NO_VALUES)
        found = stored_repeats(store, run, dataset, within=cap, blocks=self._blocks)
        names, higher, values = in_every(found), self.higher, []
        defined = np.ones(self._resamples + 1, dtype=bool)  # draws
        for repeat, seed in with_seeds(found if names else ()):
            drawn: dict[Hashable, list[FloatArray]] = defaultdict(list)
            if compared := reference in names:
                top = draw(repeat.candidates[reference], self._resamples, seed).valid_quality
                best = (np.fmax if higher else np.fmin).reduce(top, axis=1)
                aim = share_of(best, share, higher)
            for name in names:
                one = repeat.candidates[name]
                means = draw(one, self._resamples, seed)
                defined &= means.defined
                valid = means.valid_cost, means.valid_quality
                corners = hull(*valid, higher)
                for budget in dict.fromkeys((*budgets, *grid)):
                    choice = choice_within(
                        budget, *valid, one.p95, higher, corners, mixes=self._mixes
                    )
                    drawn[budget].append(taken(means.test_quality, choice))
                    if budget in budgets:
                        drawn[COST, budget].append(taken(means.test_cost, choice))
                if compared:
                    reaching = mixed_reaching(corners, aim, higher)
                    best = choice_within(None, *valid, one.p95, higher, corners)
                    drawn[PAID].append(taken(means.test_cost, reaching))
                    drawn[KEPT].append(taken(means.test_quality, reaching.held()))
                    drawn[BEST].append(taken(means.test_quality, best.held()))
                    if reference in self._given:
                        drawn[TODAY].append(taken(means.test_cost, best.held()))
            values.append({key: np.stack(own) for key, own in drawn.items()})
        left_out = int((~defined).sum())
        if where := lacking(defined):
            note = f"{self._metric} is not defined {where}: no intervals"
            return Draws((), (), (), left_out, note)
        values = [{key: drawn[:, defined] for key, drawn in own.items()} for own in values]
        return Draws(names, found, values, left_out, "" if names else NO_VALUES)

    def standings(self, budgets: Sequence[Budget | None], draws: Draws) -> list[Standings]:
        """Return the standings at each budget from ``draws``. Standings under caps are drawn here,
        since each cap has its own points."""
        found = []
        for budget in budgets:
            capped = budget is not None and budget.kind == CAP
            own = self.draws([budget], cap=budget) if capped else draws
            found.append(_standings(budget, self._chosen(budget), own, self.higher))
        return found

    def _chosen(self, budget: Budget | None) -> dict[str, tuple[float, float]]:
        """Return quality and cost on test by learner, NaN if a repeat has no result."""
        points = self._points
        if budget is not None and budget.kind == CAP:
            points = selection.operating_points(self._frame, self._metric, cap=budget.amount)
        chosen = selection.choices_within(points, self.higher, budget or math.inf, self._mixes)
        names = points["learner"].astype(str).to_numpy()[chosen.point]
        # a repeat in which the quality is not defined has no result
        figures = selection.mixed_figures(points, chosen).groupby(names)
        found = figures.mean().reindex(self._repeats.index)
        lacking = figures["test_quality"].count().reindex(self._repeats.index) != self._repeats
        found[lacking] = np.nan
        return {str(name): (quality, cost) for name, quality, cost in found.itertuples()}


def _standings(
    budget: Budget | None, chosen: Mapping[str, tuple[float, float]], draws: Draws, higher: bool
) -> Standings:
    there = [name for name, (quality, _) in chosen.items() if not math.isnan(quality)]
    tier: dict[str, int] = {}
    ranks, edges, over = {}, {}, set()
    if draws.names:
        level = draws.level(budget)
        place = {n: k for k, n in enumerate(draws.names) if np.isfinite(level.observed[k])}
        compared = [name for name in there if name in place]
        level = level.only([place[name] for name in compared])
        better = better_than(level, higher)
        tier = dict(zip(compared, map(int, tiers(better)), strict=True))
        ranks = dict(zip(compared, rank_intervals(better, len(there)), strict=True))
        limit = budget.amount if budget is not None and budget.kind == "mean" else math.inf
        paid = draws.level((COST, budget)).only([place[name] for name in compared])
        for k, name in enumerate(compared):
            shift = chosen[name][0] - level.observed[k]
            own = np.eye(len(compared))[k]
            edges[name] = draws.clipped(end + shift for end in interval(level, own))
            if limit * (1 + 1e-6) < interval(paid, own).low:  # sums in 32 bits
                over.add(name)
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
            name in over,
        )
        for name in sorted(order, key=tier.__getitem__)
    ]
    last = len(there) + 1, len(chosen)
    lacking = sorted(set(chosen) - set(there))
    rows += [Standing(name, ranks=last) for name in lacking]
    return Standings(budget, tuple(rows), draws.note)


def _place_others(
    order: Sequence[str], chosen: Mapping[str, tuple[float, float]], tier: dict[str, int]
) -> None:
    """Place learners that cannot be compared (a repeat failed, or there are no values) in the tier
    of the next better learner. If none can be compared, equal learners share a tier."""
    alone = not tier
    current, value = 0, math.nan
    for name in order:
        if alone and chosen[name][0] != value:
            current, value = current + 1, chosen[name][0]
        current = tier.setdefault(name, max(current, 1))


def all_certified(info: RunInfo, store: Store | None, frame: pd.DataFrame) -> list[Board]:
    """Return the boards of a run, each ``certified``."""
    return [certified(info, store, board, frame) for board in boards(info, frame)]


def certified(
    info: RunInfo,
    store: Store | None,
    board: Board,
    frame: pd.DataFrame,
    *,
    resamples: int = DRAWS,
) -> Board:
    """Return the board with intervals, tiers and areas, its rows sorted by certain savings.

    Without a store or its values, standings are by quality and the board keeps its order.
    """
    if not board.rows:
        return board
    board = replace(board, costs=cost_range(board))
    ranking = Ranking(info, store, board.dataset, frame, resamples)
    budgets = [None, *board.budgets]
    draws = ranking.draws(budgets, [*map(Budget, grid_of(board))], board.reference)
    at = ranking.standings(budgets, draws)
    best_of = {one.learner: one for one in at[0].rows}
    exceeded: dict[str, tuple[Budget, ...]] = {}
    for found in at[1:]:
        for one in found.rows:
            if one.over and found.budget is not None:
                exceeded[one.learner] = (*exceeded.get(one.learner, ()), found.budget)
    lower = falling(draws.repeats, board.higher_is_better)
    rows = [
        replace(
            row,
            standing=best_of.get(row.learner, row.standing),
            over=exceeded.get(row.learner, ()),
            marks=(*row.marks, FALLS) if row.learner in lower else row.marks,
        )
        for row in board.rows
    ]
    rows = _with_areas(rows, board, draws)
    if draws.names:
        rows = _with_savings(rows, board, draws)
        least = math.fsum(row.saving for row in rows if row.reference)
        rows.sort(key=partial(_place, higher=board.higher_is_better, least=least))
        board = replace(board, draws=draws.values[0][None].shape[1] - 1)
        if draws.left_out:
            lost = f"{count(draws.left_out, 'draw')} of {board.draws + draws.left_out}"
            line = f"intervals leave out {lost}, in which {board.metric} is not defined"
            board = replace(board, notes=(*board.notes, line))
    return replace(board, rows=tuple(rows), standings=tuple(at[1:]), unlimited=at[0])


def cost_range(board: Board) -> tuple[float, float] | None:
    """Return the range of costs for areas; None without a reference. It ends at the cost of the
    reference's best point, and starts at 1% of it, or at the cheapest point if that costs more."""
    whole = math.fsum(row.best.cost for row in board.rows if row.reference)
    cheapest = min((row.curve[0].budget for row in board.rows if row.curve), default=0.0)
    low = max(cheapest, CHEAPEST * whole)
    return (low, whole) if 0 < low < whole else None


def saving_order(saved: Saved, saving: float, paid: float, least: float) -> tuple[object, ...]:
    """Return the sort key of a learner that keeps the quality: the tier of its saving; within a
    tier first significant savings above ``least``, the reference's; then the cost, as displayed."""
    more = saving > least
    sure = more and round(saved.interval.low, 3) > 1  # as displayed
    return saved.tier or math.inf, not sure, float(cost(paid)), more, paid


def _place(row: Row, *, higher: bool, least: float) -> tuple[object, ...]:
    """Return a sort key. Learners that keep the quality come first, in ``saving_order``. Others
    follow by tier of their best quality, baselines last."""
    if row.saved.tier:
        order = saving_order(row.saved, row.saving, row.cheap.cost, least)
        return row.baseline, 0, *order, row.learner
    quality = row.best.quality * (-1 if higher else 1)
    quality = math.inf if math.isnan(quality) else quality
    return row.baseline, 1, row.standing.tier or math.inf, quality, row.best.cost, row.learner


def _with_savings(rows: Sequence[Row], board: Board, draws: Draws) -> list[Row]:
    """Return rows with ``saved`` set if they have a saving."""
    keeps = {row.learner: row.saving for row in rows if row.cheap}
    found = _saved(keeps, board.reference, draws, board.higher_is_better)
    return [replace(row, saved=found.get(row.learner, row.saved)) for row in rows]


def answers(
    info: RunInfo, store: Store, dataset: str, frame: pd.DataFrame, limit: Limit, metric: Criterion
) -> tuple[list[Offer], Mapping[str, Saved]]:
    """Return the learners of ``offers`` on one data set, within a budget at single points. Those
    that keep a share of the reference's quality are in the order of the board, with the certainty
    of their savings, if it is known."""
    found = offers(frame, metric, limit, info.reference, mixes=limit.kind == KEEP)
    if limit.kind != KEEP:
        return found, {}
    sure: Mapping[str, Saved] = {}
    savings = {one.learner: one.saving for one in found if not math.isnan(one.saving)}
    if savings and metric == primary_metric(info, dataset):  # no other metric has stored values
        ranking = Ranking(info, store, dataset, frame, DRAWS)
        draws = ranking.draws((), reference=info.reference, share=limit.amount)
        lost = lost_below(limit.amount)
        sure = _saved(savings, info.reference, draws, ranking.higher, lost)
    least = savings.get(info.reference, 1.0)

    def place(one: Offer) -> tuple[object, ...]:
        order = saving_order(sure.get(one.learner, Saved()), one.saving, one.pick.cost, least)
        return one.repeats < one.of, one.learner in info.baselines, *order, one.learner

    return sorted(found, key=place), sure


def best_learner(
    info: RunInfo, store: Store, dataset: str, frame: pd.DataFrame, limit: Limit, metric: Criterion
) -> str:
    """Return the first learner of ``answers``, "" if there is none."""
    found, _ = answers(info, store, dataset, frame, limit, metric)
    return found[0].learner if found else ""


def lost_below(share: float) -> float:
    """Return the share of the reference's quality below which, on test, a saving does not count."""
    return max(2 * share - 1, 0.01)


def _saved(
    savings: Mapping[str, float], baseline: str, draws: Draws, higher: bool, lost: float = LOST
) -> dict[str, Saved]:
    """Return, by learner, the certainty of its saving against the reference, and True if its test
    quality is certainly below ``lost`` of the reference's."""
    place = {name: k for k, name in enumerate(draws.names)}
    keeps = [name for name in savings if name in place]
    if baseline not in place or not keeps:
        return {}
    own, reference = [place[name] for name in keeps], place[baseline]
    saved = [
        _log_savings(drawn[PAID], drawn.get(TODAY, drawn[PAID])[reference])
        for drawn in draws.values
    ]
    beyond = [_beyond(drawn, reference, higher, lost) for drawn in draws.values]
    logs, short = (over_repeats(draws.repeats, values).only(own) for values in (saved, beyond))
    below = [interval(short, line).high < 0 for line in np.eye(len(keeps))]
    still = [k for k in range(len(keeps)) if not below[k]]
    better = better_than(logs.only(still), higher=True)
    tier = dict(zip(still, map(int, tiers(better)), strict=True))
    ranks = dict(zip(still, rank_intervals(better), strict=True))
    return {
        name: Saved(
            interval=_edges(logs, k, savings[name], LEVEL),
            wide=_edges(logs, k, savings[name], WIDE_LEVEL),
            tier=tier.get(k, 0),
            ranks=ranks.get(k, (len(still) + 1, len(keeps))),
            lost=below[k],
        )
        for k, name in enumerate(keeps)
    }


_FREE = 1e6  # saving of a learner that pays nothing


def _log_savings(paid: FloatArray, whole: FloatArray) -> FloatArray:
    """Return the logarithm of the reference's cost ``whole`` over each learner's at the quality. It
    is 0 for a learner that does not reach the quality, as the reference is needed."""
    own = np.maximum(paid, whole / _FREE)
    saved: FloatArray = np.log(np.maximum(whole, 1e-300) / np.maximum(own, 1e-300))
    return np.where(np.isnan(paid), 0.0, saved).round(6)


def _beyond(
    drawn: Mapping[Hashable, FloatArray], reference: int, higher: bool, lost: float
) -> FloatArray:
    """Return the margin of the held kept points on test above the share ``lost``."""
    target = share_of(drawn[BEST][reference], lost, higher)
    beyond: FloatArray = (drawn[KEPT] - target) * (1 if higher else -1)
    return beyond


def _edges(logs: Level, learner: int, saving: float, share: float) -> Interval:
    low, high = np.exp(spread_of(logs, learner, share))
    return Interval(float(min(low, saving)), float(max(high, saving)))


def grid_of(board: Board) -> FloatArray:
    """Return the costs at which curves are averaged for areas; none without a range."""
    if board.costs is None:
        return np.zeros(0)
    return np.geomspace(*board.costs, 2 * CELLS + 1)[1::2]


def _with_areas(rows: Sequence[Row], board: Board, draws: Draws) -> list[Row]:
    """Return rows with ``area``, ``regret`` and ``gap`` over the costs of the grid.

    A learner whose curve begins above the lowest cost has none. The regret is relative to the best
    learner at each cost, among learners with draws if there are any.
    """
    grid, sign = grid_of(board), 1 if board.higher_is_better else -1
    of = {row.learner: quality_within(row, grid) for row in rows if row.curve}
    of = {name: curve for name, curve in of.items() if not np.isnan(curve).any()}
    names = [name for name in of if not draws.names or name in draws.names]
    if not len(grid) or not names:
        return list(rows)
    several = np.stack([sign * of[name] for name in names])
    top, first = sign * float(several.max(axis=0).mean()), several.argmax(axis=0)
    contrast: dict[str, FloatArray] = {}
    if draws.names:
        own = [draws.names.index(name) for name in names]
        budgets = [*map(Budget, grid)]
        # (costs, learners, draws), then a row for each learner and one for the best
        curves = (np.stack([drawn[budget][own] for budget in budgets]) for drawn in draws.values)
        areas = [
            np.vstack([curve.mean(axis=0), curve[np.arange(len(first)), first].mean(axis=0)])
            for curve in curves
        ]
        level = over_repeats(draws.repeats, areas)
        contrast = dict(zip(names, np.eye(len(names) + 1), strict=False))
    found = []
    for row in rows:
        if row.learner in of:
            area, sure, below = float(of[row.learner].mean()), UNKNOWN, UNKNOWN
            if (one := contrast.get(row.learner)) is not None:
                sure = interval(level, one)
                below = interval(level, sign * (np.eye(len(one))[-1] - one))
            measure = Measure(area, sure)
            row = replace(row, area=measure, regret=Measure(sign * (top - area), below))
            row = replace(row, gap=_gap(measure, board, grid))
        found.append(row)
    return found


def _gap(area: Measure, board: Board, grid: FloatArray) -> Measure:
    """Return the mean distance of the curve to the known optimum, over the same costs."""
    if not board.optimum.mean:
        return Measure()
    corners = np.array(board.optimum.mean)
    most = float(np.interp(grid, corners[:, 0], corners[:, 1]).mean())
    low, high = most - area.interval.high, most - area.interval.low
    if board.higher_is_better:
        return Measure(most - area.value, Interval(low, high))
    return Measure(area.value - most, Interval(-high, -low))


def quality_within(row: Row, grid: FloatArray) -> FloatArray:
    """Return the quality of a learner's curve within each mean cost, NaN below the curve."""
    budgets = [point.budget for point in row.curve]
    quality = [point.pick.quality for point in row.curve]
    return np.where(grid * (1 + 1e-9) < budgets[0], np.nan, np.interp(grid, budgets, quality))
