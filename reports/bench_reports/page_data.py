"""The data of the page's script, as plain JSON.

A data set has views: a metric and a kind of budget. The x axis of a view is the budget (on
validation); a curve is the test result of a learner's point within it, a step from each point to
the next. The slider's places are budgets at which some curve of the first view rises, among them
that of the answer; the last place has no limit. Under caps they are the measured caps.

A store adds the certainty at each place, the comparison of pairs of learners by query or row, and
the purchases of each point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.assembly import Picks, draws_of, trials_of, uses_of
from bench_core.leaderboard.board import SHARE, Board, Standing, Standings
from bench_core.leaderboard.bought_sensors import EVERY, NEVER, first_names
from bench_core.leaderboard.draws import Draws
from bench_core.leaderboard.ranks import least_difference
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import CAP, Budget
from bench_core.results.operating_points import Criterion, caps_of, criterion
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.wording import cost, quality, times
from bench_reports.budget_places import places, standings_at
from bench_reports.columns import order_words
from bench_reports.palette import COLOURS, look

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo, TrialValues
    from bench_core.results.store import Store

MEASURED = ("test_quality", "total_cost", "features_used")
ARRAYS = ("budget", "quality", "cost", "features", "rows")
"""Columns of the table of points that a curve shows, and the curve's arrays."""

COMPARED = 8
"""Number of learners compared in pairs: the first of the board, and the reference."""

ALIKE = 1e-6
"""Difference of two qualities of a query or row that counts as none."""

BARS = 10
"""Sensors with a bar of their own; the others share one."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The steps (p,) of one learner: test means over repeats from each ``budget`` on, NaN if
    unknown. ``rows`` (r, p) are the points of each repeat in ``Draws.points``, none under caps."""

    learner: str
    budget: FloatArray  # on validation, rising
    quality: FloatArray
    cost: FloatArray  # mean per row
    features: FloatArray  # mean number used by a row
    rows: IntArray

    def held(self, budget: float) -> int:
        """Return the last step within a budget, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1

    def thinned(self, budgets: Sequence[float]) -> Curve:
        """Return the steps held at budgets, and the last step."""
        steps = np.unique([self.held(budget) for budget in (*budgets, math.inf)])
        steps = steps[steps >= 0]
        return replace(self, **{name: getattr(self, name)[..., steps] for name in ARRAYS})


@dataclass(frozen=True, slots=True, eq=False)
class ChartView:
    """The curves of one metric under one kind of budget, at the places of the slider.

    ``whole`` is the cost of the reference's best point (of the costliest curve without one).
    ``standings``, if known, are those at each place, and for mean budgets without a limit.
    """

    metric: Criterion
    kind: str  # mean or cap
    whole: float
    curves: Sequence[Curve]
    picks: Picks
    places: Sequence[float] = ()
    standings: Sequence[Standings] = ()

    def certainty(self, learner: str) -> list[Standing | None]:
        """Return the learner's standing at each place, None without an interval."""
        at_places = ({row.learner: row for row in at.rows} for at in self.standings)
        rows = [at.get(learner) for at in at_places]
        return [None if row is None or math.isnan(row.interval.low) else row for row in rows]

    def ranking(self) -> list[tuple[Curve, Standing | None]]:
        """Return the curves without a limit, best first, each with its certainty."""
        sign = -1 if self.metric.higher_is_better else 1
        order = sorted(self.curves, key=lambda curve: (sign * curve.quality[-1], curve.cost[-1]))
        return [(curve, [None, *self.certainty(curve.learner)][-1]) for curve in order]


def views(
    info: RunInfo, board: Board, frame: pd.DataFrame, store: Store | None = None
) -> list[ChartView]:
    """Return the views of one data set that have a curve, its primary metric by mean cost first."""
    rows = frame[frame["dataset"] == board.dataset]
    metrics = [str(name) for use in uses_of(info, board.dataset)[:1] for name in use["metrics"]]
    names = [name for name in dict.fromkeys([board.metric, *metrics]) if name in rows]
    found = [_view(info, board, rows, name) for name in names if rows[name].notna().any()]
    found = [view for view in found if view.curves]
    if not found or found[0].metric.name != board.metric:
        return found
    first, caps = found[0], caps_of(rows)
    rising = places(budget for curve in first.curves for budget in curve.budget)
    answer = [affordable(board.answer.cheap.valid_cost)] if board.answer else []
    # the last place has no limit instead
    amounts = [*np.unique([*rising[:-1], *answer])]
    # each ring stands on a curve
    rings = [affordable(row.cheap.valid_cost) for row in board.rows if row.cheap]
    found = [
        replace(view, places=amounts, curves=[c.thinned([*amounts, *rings]) for c in view.curves])
        for view in found
    ]
    if caps and (curves := _capped(info, board, rows, first, caps)):
        amounts_of_caps = [cap for cap in caps if any(cap in curve.budget for curve in curves)]
        found.insert(1, replace(first, kind=CAP, curves=curves, places=amounts_of_caps))
    if store is None:
        return found
    kinds = {view.kind: [Budget(amount, view.kind) for amount in view.places] for view in found}
    budgets = [budget for of_kind in kinds.values() for budget in of_kind]
    sure = dict(zip(budgets, standings_at(info, store, frame, board, budgets), strict=True))
    without_limit = {"mean": [board.unlimited], CAP: []}
    return [
        replace(view, standings=[*(sure[b] for b in kinds[view.kind]), *without_limit[view.kind]])
        if view.metric.name == board.metric
        else view
        for view in found
    ]


def _view(info: RunInfo, board: Board, rows: pd.DataFrame, metric: str) -> ChartView:
    draws = draws_of(info, None, rows, board.dataset, criterion(info, metric))
    curves = []
    for name in draws.names:
        budgets, points = draws.curve(name)
        if len(budgets):
            amounts = np.array([affordable(budget) for budget in budgets])
            figures = (draws.points[column].to_numpy(np.float64)[points] for column in MEASURED)
            measured, paid, features = (values.mean(axis=0) for values in figures)
            curves.append(Curve(name, amounts, measured, paid, features, points))
    order = [row.learner for row in board.rows]
    curves.sort(key=lambda curve: order.index(curve.learner))
    # without a reference the costliest curve sets the scale; 1 if everything is free
    costs = {curve.learner: float(curve.budget[-1]) for curve in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    picks = Picks(draws, trials_of(rows))
    return ChartView(criterion(info, metric), "mean", whole, curves, picks)


def _capped(
    info: RunInfo, board: Board, rows: pd.DataFrame, first: ChartView, caps: Sequence[float]
) -> list[Curve]:
    """Return a curve for each learner from its points under caps, where all its repeats have
    one."""
    every = first.picks.draws
    repeats = dict(zip(every.names, every.there.sum(axis=0).tolist(), strict=True))
    steps: dict[str, list[list[float]]] = {row.learner: [] for row in board.rows}
    for cap in caps:
        budget = Budget(cap, CAP)
        draws = draws_of(info, None, rows, board.dataset, cap=budget)
        chosen = draws.chosen([budget])[0][budget]
        for k, name in enumerate(draws.names):
            points = chosen.row[chosen.row[:, k] >= 0, k]
            figures = draws.points[[*MEASURED]].to_numpy(dtype=np.float64)[points]
            # a mean over only some repeats would be biased
            if len(points) == repeats.get(name) and not np.isnan(figures[:, 0]).any():
                steps[name].append([cap, *figures.mean(axis=0)])
    curves = []
    for name, of_caps in steps.items():
        if of_caps:
            amounts, measured, paid, features = np.array(of_caps).T
            none = np.zeros((0, len(of_caps)), dtype=np.int64)
            curves.append(Curve(name, amounts, measured, paid, features, none))
    return curves


def affordable(cost: float) -> float:
    """Round a cost up to six digits: the least budget that pays for it."""
    rounded = float(f"{cost:.6g}")
    return rounded if rounded >= cost else float(f"{cost * (1 + 5e-6):.6g}")


class PageData(NamedTuple):
    """Content of the page: the views of each data set, all learners, and the data of its script."""

    views: Mapping[str, Sequence[ChartView]]
    learners: Sequence[str]
    json: Mapping[str, Any]


def page_data(
    info: RunInfo, boards: Sequence[Board], frame: pd.DataFrame, store: Store | None = None
) -> PageData:
    """Return the data of a run. Certainty, pairs and purchases need a store."""
    of = {board.dataset: views(info, board, frame, store) for board in boards}
    names = (curve.learner for found in of.values() for view in found for curve in view.curves)
    learners = list(dict.fromkeys(names))
    counts = range(2, len(learners) + 1) if len(boards) > 1 else ()
    made = {
        "run": one_line(info.run),
        "learners": [
            [one_line(name), int(name in info.baselines), *look(name)] for name in learners
        ],
        "colours": [light for light, _ in COLOURS],
        "open": _opened(info, boards, of),
        "level": CONFIDENCE,
        # by number of learners less two: the difference of mean ranks on one data set that
        # separates two; on n data sets it is this over the root of n
        "apart": [round(least_difference(1, k), 6) for k in counts],
        "sets": [_set(info, board, of[board.dataset], learners, frame, store) for board in boards],
    }
    return PageData(of, learners, made)


def _opened(info: RunInfo, boards: Sequence[Board], of: Mapping[str, Sequence[ChartView]]) -> int:
    """Return the position of the first board shown: the one with most test rows."""
    tested = [
        sum((use.get("rows") or {}).get("test", 0) for use in uses_of(info, board.dataset)[:1])
        if of[board.dataset]
        else -1
        for board in boards
    ]
    return tested.index(max(tested)) if tested else 0


def _set(
    info: RunInfo,
    board: Board,
    found: Sequence[ChartView],
    learners: Sequence[str],
    frame: pd.DataFrame,
    store: Store | None,
) -> dict[str, Any]:
    """Return the data of one data set. With a store it has ``pairs``, ``sensors``, and by curve of
    the first view the purchases ``bought``."""
    rows = {learners.index(row.learner): row for row in board.rows if row.learner in learners}
    marks = {place: ", ".join(board.marks_of(row)) for place, row in rows.items()}
    areas = {place: row.area.value for place, row in rows.items()}
    made = {
        "name": one_line(board.dataset),
        "data": one_line(board.same_as or board.dataset),
        "accounting": one_line(board.accounting),
        "unit": one_line(board.unit),
        "reference": one_line(board.reference),
        "standIn": board.stand_in,
        "order": order_words(board),
        "marks": {place: one_line(text) for place, text in marks.items() if text},
        # exact: ranks need them
        "areas": {k: float(f"{area:.9g}") for k, area in areas.items() if math.isfinite(area)},
        "views": [_drawn(view, learners, first=view is found[0]) for view in found],
        **_keeping(board, found, learners),
    }
    if store is None or not found:
        return made
    sensors, bought_by_curve = purchases(store, info.run, board.dataset, found[0])
    return {
        **made,
        "pairs": pairwise(info, store, board, found[0], frame, learners),
        "sensors": sensors,
        "bought": bought_by_curve,
    }


def _keeping(board: Board, found: Sequence[ChartView], learners: Sequence[str]) -> dict[str, Any]:
    """Return ``opens``: the place of the answer; ``keeps``: the quality that it keeps on test, the
    budget and test quality of each learner's model that is sure to keep it, the answer's learner
    with its saving in words, and the reference with the budget of the cost that is saved."""
    answer, reference = board.answer, board.reference_row
    if answer is None or reference is None or not found:
        return {"opens": len(found[0].places) if found else 0}
    target = share_of(reference.best.quality, SHARE, board.higher_is_better)
    sure = [row for row in board.rows if row.cheap and not row.saved.lost]
    return {
        "opens": found[0].places.index(affordable(answer.cheap.valid_cost)),
        "keeps": {
            "name": f"{SHARE:.0%} of {one_line(board.reference)}",
            "y": shown(quality, target),
            "at": {
                learners.index(row.learner): [
                    affordable(row.cheap.valid_cost),
                    shown(quality, row.cheap.quality),
                ]
                for row in sure
            },
            "from": learners.index(answer.learner),
            "to": [learners.index(board.reference), affordable(board.replaced.valid_cost)],
            "saved": ""
            if answer.reference or answer.saving <= 1
            else f"{times(answer.saving)} cheaper",
        },
    }


def _drawn(view: ChartView, learners: Sequence[str], *, first: bool) -> dict[str, Any]:
    """Return a view; a curve has budgets ``x``, qualities ``y``, costs ``c`` and features ``f``, as
    far as known, its certainty, and in the ``first`` view settings ``s``."""
    curves = []
    for curve in view.curves:
        figures: dict[str, list[Any]] = {
            "x": [shown("{:.6g}".format, budget) for budget in curve.budget],
            "y": [shown(quality, value) for value in curve.quality],
            "c": [shown(cost, value) for value in curve.cost],
            "f": [shown("{:.3g}".format, value) for value in curve.features],
        }
        known = {name: values for name, values in figures.items() if None not in values}
        sure = [_certainty(standing) for standing in view.certainty(curve.learner)]
        drawn = {"l": learners.index(curve.learner), **known}
        if any(sure):
            drawn["sure"] = sure
        # settings are the longest part of a page of many curves
        if first:
            picks = (view.picks.at(rows, curve.learner) for rows in curve.rows.T)
            drawn["s"] = [one_line(pick.settings[0].short) for pick in picks]
        curves.append(drawn)
    return {
        "metric": view.metric.name,
        "higher": view.metric.higher_is_better,
        "kind": view.kind,
        "whole": view.whole,
        "at": [shown("{:.6g}".format, amount) for amount in view.places],
        "curves": curves,
    }


def _certainty(standing: Standing | None) -> list[Any] | int:
    """Return ``[low, high, tier, best rank, worst rank]``, with a 1 if the mean cost on test
    exceeds the budget by more than chance; 0 for none."""
    if standing is None:
        return 0
    ends = (shown(quality, end) for end in standing.interval)
    return [*ends, standing.tier, *standing.ranks, *[1] * standing.over]


def shown(words: Callable[[float], str], value: float) -> float | None:
    """Return a number with the digits displayed, None if there is none; an integer if possible,
    which shortens the JSON."""
    text = words(float(value))
    number = math.nan if text == "-" else float(text)
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else number


def json_text(value: object) -> str:
    """Return JSON without spaces that cannot end its script element."""
    # the page holds it in a script element: "</script>" in a name must not end that
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def pairwise(
    info: RunInfo,
    store: Store,
    board: Board,
    view: ChartView,
    frame: pd.DataFrame,
    learners: Sequence[str],
) -> dict[str, Any] | None:
    """Return the percentages of units on which the first and the second of two learners is better,
    for each pair of the first ``COMPARED`` learners and each place. None without stored values."""
    draws = draws_of(info, store, frame, board.dataset, resamples=0, condensed=False)
    position = {draws.names[k]: k for k in draws.places}
    curves = [curve for curve in view.curves if curve.learner in position]
    # include the reference even if it is far behind
    reference = [curve for curve in curves if curve.learner == board.reference]
    compared = list(dict.fromkeys([*curves[: COMPARED - 1], *reference, *curves]))[:COMPARED]
    if len(compared) < 2:
        return None

    def won(pair: Sequence[Curve], budget: float) -> list[float]:
        """Return the mean over repeats; 0 without a point."""
        shares = np.zeros((len(draws.repeats), 2))
        for r in range(len(draws.repeats) if all(c.held(budget) >= 0 for c in pair) else 0):
            first, second = (
                draws.units(r, position[curve.learner], int(curve.rows[r, curve.held(budget)]))
                for curve in pair
            )
            if first is not None and second is not None:
                gain = (first - second) * (1 if view.metric.higher_is_better else -1)
                shares[r] = (gain > ALIKE).mean(), (gain < -ALIKE).mean()
        return percent(shares.mean(axis=0))

    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    return {
        "units": "queries" if queries else "rows",
        "learners": [learners.index(curve.learner) for curve in compared],
        "won": [
            [won(pair, budget) for budget in (*view.places, math.inf)]
            for pair in combinations(compared, 2)
        ],
    }


def percent(shares: FloatArray) -> list[float]:
    """Return percentages, below 1% with a digit: most units are equal for good learners."""
    return [round(100 * s, 1) if s < 0.01 else round(100 * s) for s in map(float, shares)]


def purchases(
    store: Store, run: str, dataset: str, view: ChartView
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return name and price of each sensor, and for each curve the purchases at its steps, 0 where
    they are not stored; nothing without sensors."""
    kept = [*store.values(run, dataset=dataset)]
    if not kept or not kept[0].trial.sensors.price:
        return [], []
    sensors = kept[0].trial.sensors
    price = np.array(sensors.price, dtype=np.float64)
    # trials under other sensors (another cost file) are not comparable
    stored = {
        (trial.learner, trial.fold, trial.seed, canonical(trial.params)): values
        for values in kept
        if (trial := values.trial).sensors == sensors
    }
    steps: list[list[Any]] = []
    for curve in view.curves:
        shares = (_shares(view.picks.draws, rows, stored) for rows in curve.rows.T)
        steps.append([0 if share is None else bought(share, price) for share in shares])
    names = [one_line(first_names(name))[:60] for name in sensors.names]
    return [[name, shown(cost, p)] for name, p in zip(names, price, strict=True)], steps


def _shares(
    draws: Draws, rows: IntArray, stored: Mapping[tuple[str, int, int, str], TrialValues]
) -> FloatArray | None:
    """Return the share of rows (s,) that buy each sensor at a point, the mean over its ``rows`` in
    the table of points, one of each repeat."""
    shares = []
    for row in rows.tolist():
        params, point = draws.key(row)
        learner, fold, seed = draws.points[["learner", "fold", "seed"]].iloc[row]
        values = stored.get((str(learner), int(fold), int(seed), params))
        if values is None or (setting := json.loads(point)) not in values.settings:
            return None
        shares.append(values.bought[values.settings.index(setting)].astype(np.float64))
    return np.asarray(np.mean(shares, axis=0))


def bought(share: FloatArray, price: FloatArray) -> list[Any]:
    """Return the purchases at one step, for example::

    [[2, 40, 0, 100],     sensors with the largest cost per row, and the percentage of rows
     5,                   mean percentage of the other sensors
     1, 3, 12, 46.5]      sensors bought for every row, for some and never, and their prices
    """
    order = np.lexsort((-price, -share, -share * price))
    every, never = share >= EVERY, share == NEVER
    # only none is 0 and only all is 100, also after rounding
    percentage = np.clip(np.rint(100 * share), 1, 99).astype(int)
    percentage[every], percentage[never] = 100, 0
    first, others = order[:BARS], order[BARS:]
    return [
        np.stack([first, percentage[first]], axis=1).ravel().tolist(),
        round(100 * float(share[others].mean())) if len(others) else 0,
        *(int(some.sum()) for some in (every, ~every & ~never, never)),
        shown(cost, float(price[never].sum())),
    ]
