"""The data of the page's script, as plain JSON.

A data set has views: a metric and a kind of budget. The x axis of a view is the budget (on
validation); a curve is the test result of a learner's point within it, a step from each point to
the next. The slider's places are budgets at which some curve of the first view rises, among them
that of the answer; the last place has no limit. Under caps they are the measured caps. The leader
of a place is the learner that ``bench best`` names there.

A store adds the certainty at each place and the purchases of each point.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.board import Board, Pick, Row, Standing
from bench_core.leaderboard.bought_sensors import EVERY, NEVER, first_names
from bench_core.leaderboard.certainty import standings
from bench_core.leaderboard.draws import NO_LIMIT, Chosen, Draws, uses_of
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import CAP, CONSTANT, Budget
from bench_core.results.operating_points import Criterion, caps_of
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.wording import cost, percent, quality, saving
from bench_reports.palette import COLOURS, DASHES, MARKS, look

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

PLACES = 30
"""Places of the slider, if answers do not take more; each costs a bootstrap of all learners."""

BARS = 10
"""Sensors with a bar of their own; the others share one."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The steps (p,) of one learner: test means over repeats from each ``budget`` on, NaN if
    unknown. ``rows`` (p, r) are the points of its repeats in ``Draws.points``, none under caps.
    ``sure`` is its standing at each place of the slider, None without an interval."""

    learner: str
    budget: FloatArray  # on validation, rising
    quality: FloatArray
    cost: FloatArray  # mean per row
    features: FloatArray  # mean number used by a row
    rows: IntArray
    sure: Sequence[Standing | None]

    def held(self, budget: float) -> int:
        """Return the last step within a budget, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1


@dataclass(frozen=True, slots=True, eq=False)
class ChartView:
    """The curves of one metric under one kind of budget, in the order of the board.

    ``places`` are the budgets of the slider; a place without a limit follows for mean budgets.
    ``leaders`` are the learners that are best on validation at each place, "" for none.
    """

    metric: Criterion
    kind: str  # mean or cap
    places: Sequence[float]
    leaders: Sequence[str]
    curves: Sequence[Curve]
    draws: Draws


def places(
    rising: Iterable[float], answers: Iterable[float] = (), *, count: int = PLACES
) -> list[float]:
    """Return the positive budgets at which some curve rises; of more than ``count`` an even
    selection, with the first, the last and all ``answers``."""
    always = {affordable(budget) for budget in answers}
    budgets = np.unique([affordable(budget) for budget in rising if budget > 0])
    most = max(count - len(always), 2)
    even = np.linspace(0, len(budgets) - 1, min(len(budgets), most)).round().astype(int)
    return sorted({*budgets[even].tolist(), *always})


def affordable(cost: float) -> float:
    """Round a cost up to six digits: the least budget that pays for it."""
    rounded = float(f"{cost:.6g}")
    return rounded if rounded >= cost else float(f"{cost * (1 + 5e-6):.6g}")


def views(
    info: RunInfo, board: Board, frame: pd.DataFrame, store: Store | None = None
) -> list[ChartView]:
    """Return the views of one data set that have a curve, its primary metric by mean cost first."""
    rows = frame[frame["dataset"] == board.dataset]
    uses = uses_of(info, board.dataset)
    metrics = [str(name) for use in uses[:1] for name in use.metrics]
    rising = [point.budget for row in board.rows for point in row.curve]
    answers = [row.cheap.valid_cost for row in board.rows if row.cheap]
    # instead of the last budget there is no limit; no curve rises if the metric is not defined
    most = max(rising, default=0.0)
    amounts = places(*([c for c in costs if c < most] for costs in (rising, answers)))
    charts = []
    for name in dict.fromkeys([board.metric, *metrics]):
        if name in rows and rows[name].notna().any():
            draws = Draws(info, store, rows, board.dataset, name)
            charts.append(mean_view(board, draws, amounts))
    if charts and (caps := [Budget(cap, CAP) for cap in caps_of(rows)]):
        # each cap has its own points
        capped = [(Draws(info, store, rows, board.dataset, cap=cap.amount), cap) for cap in caps]
        places_of = [Place(draws, cap, draws.chosen([cap])[0][cap]) for draws, cap in capped]
        charts.insert(1, _view(board, CAP, places_of))
    return [view for view in charts if view.curves]


class Place(NamedTuple):
    """The points chosen within a budget."""

    draws: Draws
    limit: Budget
    chosen: Chosen


def mean_view(board: Board, draws: Draws, amounts: Iterable[float]) -> ChartView:
    """Return the curves by mean cost, with their certainty at budgets and without a limit."""
    limits = [*map(Budget, amounts), NO_LIMIT]
    chosen, _ = draws.chosen(limits)
    return _view(board, "mean", [Place(draws, limit, chosen[limit]) for limit in limits])


def _view(board: Board, kind: str, places_of: Sequence[Place]) -> ChartView:
    """Return the curves through points chosen at places."""
    draws = places_of[0].draws
    standing = [standings(place.draws, place.limit, place.chosen).rows for place in places_of]
    rows = [{row.learner: row for row in of_place} for of_place in standing]
    curves: list[Curve] = []
    for name in (row.learner for row in board.rows):
        curves += _curve(name, [of.get(name, Standing(name)) for of in rows], places_of)
    leaders = [_leader(rows_of, draws.sign) for rows_of in standing]
    amounts = [place.limit.amount for place in places_of if place.limit != NO_LIMIT]
    return ChartView(draws.metric, kind, amounts, leaders, curves, draws)


def _leader(rows: Iterable[Standing], sign: int) -> str:
    """Return the learner with the best validation quality, of equals the cheapest; "" for none."""
    known = [one for one in rows if not math.isnan(one.valid[0] + one.quality)]
    order = [(-sign * one.valid[0], one.valid[1], one.learner) for one in known]
    return min(order)[-1] if order else ""


def _curve(learner: str, at: Sequence[Standing], places_of: Sequence[Place]) -> Iterator[Curve]:
    """Yield the curve of a learner's standings at places, if it has a point at one of them."""
    steps = [
        j
        for j, (before, now) in enumerate(pairwise([Standing(), *at]))
        if not math.isnan(now.quality) and (now.quality, now.cost) != (before.quality, before.cost)
    ]
    budgets, features, points = [], [], []
    for draws, limit, chosen in (places_of[j] for j in steps):
        k = draws.names.index(learner)
        rows = chosen.row[draws.there[:, k], k]
        # each repeat must be able to pay for its point
        paid = float(draws.valid(rows)[0].max())
        budgets.append(limit.amount if limit.kind == CAP else affordable(paid))
        features.append(draws.points["features_used"].iloc[rows].mean())
        points.append(rows)
    if steps:
        yield Curve(
            learner,
            budget=np.array(budgets),
            quality=np.array([at[j].quality for j in steps]),
            cost=np.array([at[j].cost for j in steps]),
            features=np.array(features),
            rows=np.array(points),
            sure=[None if math.isnan(standing.interval.low) else standing for standing in at],
        )


def page_data(
    info: RunInfo, boards: Sequence[Board], frame: pd.DataFrame, store: Store | None = None
) -> tuple[Mapping[str, Sequence[ChartView]], list[str], dict[str, Any]]:
    """Return the views of each data set, all learners, and the data of the page's script.
    Certainty and purchases need a store."""
    views_of = {board.dataset: views(info, board, frame, store) for board in boards}
    every = [view for charts in views_of.values() for view in charts]
    learners = list(dict.fromkeys(curve.learner for view in every for curve in view.curves))
    tested = [
        sum(use.rows.get("test", 0) for use in uses_of(info, name)[:1]) if charts else -1
        for name, charts in views_of.items()
    ]
    content = {
        "run": one_line(info.run),
        "learners": [
            [one_line(name), int(name in info.baselines), *look(name)] for name in learners
        ],
        "colours": [light for light, _ in COLOURS],
        "dashes": DASHES,
        "marks": MARKS,
        # the board shown first is the one with most test rows
        "open": tested.index(max(tested)) if tested else 0,
        "level": CONFIDENCE,
        "sets": [_set(info, board, views_of[board.dataset], learners, store) for board in boards],
    }
    return views_of, learners, content


def _set(
    info: RunInfo,
    board: Board,
    charts: Sequence[ChartView],
    learners: Sequence[str],
    store: Store | None,
) -> dict[str, Any]:
    """Return the data of one data set. With a store it has ``sensors``, and by curve of
    the first view the purchases ``bought``."""
    picks = {row.learner: row.curve[0].pick for row in board.rows if row.curve}
    content = {
        "name": one_line(board.dataset),
        "data": one_line(board.same_as or board.dataset),
        "accounting": one_line(board.accounting),
        "unit": unit_of(board),
        "reference": one_line(board.reference),
        "standIn": board.stand_in,
        "tested": board.tested,
        # caps of which the conclusion tells
        "told": [shown("{:.6g}".format, at.amount) for at in board.budgets if at.kind == CAP],
        "views": [
            _drawn(board, view, learners, picks if view is charts[0] else {}) for view in charts
        ],
        **_keeping(board, charts, learners),
    }
    if store is None or not charts:
        return content
    sensors, bought_by_curve = purchases(store, info.run, board.dataset, charts[0])
    return {
        **content,
        "sensors": sensors,
        "bought": bought_by_curve,
    }


def _keeping(board: Board, charts: Sequence[ChartView], learners: Sequence[str]) -> dict[str, Any]:
    """Return ``opens``: the place of the answer; ``keeps``: the quality that it keeps on test, the
    budget and test quality of each learner's model that is sure to keep it, the answer's learner
    with its test cost and its saving in words, and the reference with its budget by the same
    rule."""
    answer, reference = board.answer, board.reference_row
    if answer is None or reference is None or not charts:
        return {"opens": len(charts[0].places) if charts else 0}
    target = share_of(reference.best.quality, board.keep, board.higher_is_better)
    sure = [row for row in board.rows if row.cheap and not row.saved.lost]
    return {
        "opens": int(np.searchsorted(charts[0].places, affordable(answer.cheap.valid_cost))),
        "keeps": {
            "name": f"{percent(board.keep)} of {one_line(board.reference)}",
            "y": shown(quality, target),
            "at": {
                learners.index(row.learner): [
                    affordable(row.cheap.valid_cost),
                    shown(quality, row.cheap.quality),
                ]
                for row in sure
            },
            "from": learners.index(answer.learner),
            "to": [learners.index(board.reference), affordable(reference.cheap.valid_cost)],
            "cost": shown(cost, answer.cheap.cost),
            "saved": ""
            if answer.reference or answer.saving <= 1
            else f"{saving(answer.saving)} cheaper",
            "chance": by_chance(answer),
        },
    }


def lost_rows(board: Board, accuracy: float) -> str | None:
    """Return the number of wrong test rows, over repeats with one decimal; None if unknown."""
    if math.isnan(accuracy):
        return None
    return f"{board.wrong(accuracy):.{int(board.repeats > 1)}f}"


def unit_of(board: Board) -> str:
    """Return the unit of costs in words, "" if unknown."""
    return "features" if board.counted else one_line(board.unit)


def by_chance(row: Row) -> bool:
    """True if the measured interval of a saving includes none."""
    return not (row.saved.significant or math.isnan(row.saved.interval.low))


def _drawn(
    board: Board, view: ChartView, learners: Sequence[str], picks: Mapping[str, Pick]
) -> dict[str, Any]:
    """Return a view; a curve has budgets ``x``, qualities ``y``, costs ``c``, features ``f`` and
    wrong rows ``w``, as far as known, its certainty, settings ``s`` in the words of ``picks``, and
    a mark if its first step is the constant."""
    curves, (params, points) = [], view.draws.settings
    for curve in view.curves:
        figures: dict[str, list[Any]] = {
            "x": [shown("{:.6g}".format, budget) for budget in curve.budget],
            "y": [shown(quality, value) for value in curve.quality],
            "c": [shown(cost, value) for value in curve.cost],
            "f": [shown("{:.3g}".format, value) for value in curve.features],
        }
        if board.tested and view.metric.name == board.metric:
            figures["w"] = [lost_rows(board, value) for value in curve.quality.tolist()]
        known = {name: values for name, values in figures.items() if None not in values}
        sure = [_certainty(standing) for standing in curve.sure]
        drawn = {"l": learners.index(curve.learner), **known}
        if any(sure):
            drawn["sure"] = sure
        if all(CONSTANT in json.loads(points[row] or "{}") for row in curve.rows[0].tolist()):
            drawn["constant"] = 1
        # settings are the longest part of a page of many curves
        if pick := picks.get(curve.learner):
            choices = [tuple((points[j], params[j]) for j in rows) for rows in curve.rows]
            settings = (replace(pick, choices=of_step).settings[0] for of_step in choices)
            drawn["s"] = [one_line(setting.short) for setting in settings]
        curves.append(drawn)
    return {
        "metric": view.metric.name,
        "higher": view.metric.higher_is_better,
        "kind": view.kind,
        "leaders": [learners.index(name) if name in learners else -1 for name in view.leaders],
        "at": [shown("{:.6g}".format, amount) for amount in view.places],
        "curves": curves,
    }


def _certainty(standing: Standing | None) -> list[Any] | int:
    """Return ``[low, high, tier]``, with a 1 if the mean cost on test exceeds the budget by more
    than chance; 0 for none."""
    if standing is None:
        return 0
    ends = (shown(quality, end) for end in standing.interval)
    return [*ends, standing.tier, *[1] * standing.over]


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
    stored = {
        (trial.learner, trial.fold, trial.seed, canonical(trial.params), canonical(setting)): share
        for values in kept
        # trials under other sensors (another cost file) are not comparable
        if (trial := values.trial).sensors == sensors
        for setting, share in zip(values.settings, values.bought, strict=True)
    }
    trials = view.draws.points[["learner", "fold", "seed"]].to_numpy().tolist()

    def step(rows: IntArray) -> list[Any] | int:
        shares = [stored.get((*trials[row], *view.draws.key(row))) for row in rows.tolist()]
        known = [share.astype(np.float64) for share in shares if share is not None]
        return bought(np.mean(known, axis=0), price) if len(known) == len(rows) else 0

    names = [one_line(first_names(name))[:60] for name in sensors.names]
    return (
        [[name, shown(cost, float(amount))] for name, amount in zip(names, price, strict=True)],
        [[step(rows) for rows in curve.rows] for curve in view.curves],
    )


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
