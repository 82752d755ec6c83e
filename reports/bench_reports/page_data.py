"""The data of the page's script, as plain JSON.

A data set has views: a metric and a kind of budget. The x axis of a view is the budget (on
validation); a curve is the test result of a learner's point within it, a step from each point to
the next. All data sets share the positions of the slider: ``shares`` of the cost of the reference's
best point, and a last position without a limit.

A store adds the certainty at each position of the slider, the comparison of each pair of learners
by query or row, and the purchases at the steps of the curves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard import bought_sensors
from bench_core.leaderboard.assembly import boards as boards_of
from bench_core.leaderboard.assembly import draws_of, uses_of, varied_parameters
from bench_core.leaderboard.board import SHARE, Board, Measure, Standing
from bench_core.leaderboard.board import Pick as Choice
from bench_core.leaderboard.bought_sensors import EVERY, NEVER, first_names, ordered
from bench_core.leaderboard.columns import order_words
from bench_core.leaderboard.draws import NO_LIMIT, Draws
from bench_core.leaderboard.ranks import least_difference
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion, caps_of, criterion
from bench_core.statistics import CONFIDENCE
from bench_core.statistics.repeats import on_same_rows
from bench_core.terminal.wording import cost, count, quality, times
from bench_reports.palette import COLOURS, look

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo, TrialValues
    from bench_core.results.store import Store


MEASURED = ("test_quality", "total_cost", "features_used")

PLACES, FEWEST = 40, 16
"""Positions of the slider: 40, or 16 if very many curves share the page."""

# Renard's series R20, the preferred numbers between 1 and 10
_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
_LEAST, _MOST = 1e-3, 20.0

FEW = 80
"""Up to this number of curves all purchases are shown, above it only the best learners'."""

COMPARED = 8
"""Number of learners compared within budgets: the best ones and the reference."""

ALIKE = 1e-6

GROUPS, BEST, NAMED, ORDERED = 5, 6, 6, 16
"""Numbers shown: groups of sensors by price; learners with purchases along budgets if curves are
many; sensors named of those bought for every row, for some and never; sensors with steps."""

Trials = Mapping[tuple[str, int, int, str], "TrialValues"]


class RepeatPoint(NamedTuple):
    """The point of one repeat at a step of a curve; ``params`` and ``point`` are JSON."""

    fold: int
    seed: int
    params: str
    point: str


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The steps (p,) of one learner: test means over repeats at each ``budget``, NaN if unknown,
    and the point of each repeat there (``picked``, empty if settings are not shown)."""

    learner: str
    budget: FloatArray  # on validation, rising
    quality: FloatArray
    cost: FloatArray  # mean per row
    features: FloatArray  # mean number used by a row
    picked: tuple[tuple[RepeatPoint, ...], ...] = ()
    varied: frozenset[str] = frozenset()

    def held(self, budget: float) -> int:
        """Return the last step within a budget, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1

    def settings(self) -> list[str]:
        """Return the most frequent setting at each step, in words."""
        found = []
        for step in self.picked:
            choices = tuple((one.point, one.params) for one in step)
            pick = Choice(math.nan, math.nan, math.nan, choices, self.varied)
            found.append(one_line(pick.settings[0].short))
        return found


@dataclass(slots=True, eq=False)
class ChartView:
    """The curves of one metric under one kind of budget.

    ``whole`` is the cost of the reference's best point (of the costliest curve without one).
    ``certainty`` holds one entry per learner and position of the slider.
    """

    metric: Criterion
    kind: str  # mean or cap
    whole: float
    curves: list[Curve]
    certainty: dict[str, list[Standing | None]] = field(default_factory=dict)

    def ranking(self) -> list[tuple[Curve, Standing | None]]:
        """Return the curves without a limit, best first, each with its certainty."""
        sign = -1 if self.metric.higher_is_better else 1
        known = ((c, (self.certainty.get(c.learner) or [None])[-1]) for c in self.curves)
        return sorted(known, key=lambda pair: (sign * pair[0].quality[-1], pair[0].cost[-1]))

    def caps(self) -> FloatArray:
        """Return the measured caps of a view of caps."""
        return np.unique(np.concatenate([curve.budget for curve in self.curves]))

    def amounts(self, shares: Iterable[float]) -> list[float]:
        """Return the budgets at the positions of the slider that have a limit."""
        return [share * self.whole for share in shares]


def views(info: RunInfo, board: Board, frame: pd.DataFrame) -> list[ChartView]:
    """Return the views of one data set that have a curve, its primary metric by mean cost first."""
    own = frame[frame["dataset"] == board.dataset]
    uses = uses_of(info, board.dataset)
    metrics = [str(name) for use in uses[:1] for name in use.get("metrics") or ()]
    # the first view is the board's own
    found = [
        _view(info, board, own, criterion(info, name))
        for name in dict.fromkeys([board.metric, *metrics])
        if name in own.columns and own[name].notna().any()
    ]
    if found and (caps := caps_of(own)):
        primary = criterion(info, board.metric)
        curves = _capped(info, board, own, primary, caps)
        found.insert(1, ChartView(primary, "cap", found[0].whole, curves))
    return [view for view in found if view.curves]


def _view(info: RunInfo, board: Board, own: pd.DataFrame, metric: Criterion) -> ChartView:
    draws = Draws(None, info.run, own, board.dataset, metric, board.reference)
    curves = []
    for name in draws.names:
        budgets, rows = draws.curve(name)
        shown = own[own["learner"] == name] if metric.name == board.metric else None
        if len(budgets):
            curves.append(_curve(draws, name, budgets, rows, shown))
    # without a reference the costliest curve sets the scale; 1 if everything is free
    costs = {curve.learner: float(curve.budget[-1]) for curve in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    return ChartView(metric, "mean", whole, curves)


def _curve(
    draws: Draws, learner: str, budgets: FloatArray, rows: IntArray, trials: pd.DataFrame | None
) -> Curve:
    """Return the mean over repeats of rows (repeats, budgets), with settings if their ``trials``
    are given."""
    points = draws.points
    means = (points[name].to_numpy(dtype=np.float64)[rows].mean(axis=0) for name in MEASURED)
    curve = Curve(learner, np.array([enough(one) for one in budgets]), *means)
    if trials is None:
        return curve
    params, texts = draws.settings
    folds, seeds = (points[name].to_numpy() for name in ("fold", "seed"))
    picked = tuple(
        tuple(RepeatPoint(int(folds[k]), int(seeds[k]), params[k], texts[k]) for k in step)
        for step in rows.T
    )
    return replace(curve, picked=picked, varied=varied_parameters(trials))


def _capped(
    info: RunInfo, board: Board, own: pd.DataFrame, metric: Criterion, caps: Sequence[float]
) -> list[Curve]:
    """Return a curve for each learner from its points under caps, where all its repeats have
    one."""
    every = Draws(None, info.run, own, board.dataset, metric)
    repeats = dict(zip(every.names, every.there.sum(axis=0).tolist(), strict=True))
    steps: dict[str, list[list[float]]] = {}
    for cap in caps:
        budget = Budget(cap, "cap")
        draws = Draws(None, info.run, own, board.dataset, metric, cap=budget)
        chosen = draws.chosen([budget])[0][budget]
        for k, name in enumerate(draws.names):
            rows = chosen.row[chosen.row[:, k] >= 0, k]
            figures = draws.points[[*MEASURED]].to_numpy(dtype=np.float64)[rows]
            # a mean over only some repeats would be biased
            if len(rows) == repeats.get(name) and not np.isnan(figures[:, 0]).any():
                steps.setdefault(name, []).append([cap, *figures.mean(axis=0)])
    return [Curve(name, *np.array(rows).T) for name, rows in steps.items()]


def slider(found: Sequence[Sequence[ChartView]], kept: Sequence[float] = ()) -> list[float]:
    """Return the positions of the slider: ``shares`` over the first views, the shares ``kept`` at
    which the page opens, and the measured caps (slightly above, as an amount may be rounded)."""
    capped = [view for own in found for view in own if view.kind == "cap"]
    caps = {cap / view.whole * (1 + 1e-9) for view in capped for cap in view.caps()}
    firsts = [own[0] for own in found if own]
    return sorted({*shares(firsts, kept), *kept, *map(float, caps)})


def shares(firsts: Sequence[ChartView], kept: Sequence[float] = ()) -> list[float]:
    """Return preferred numbers over the span of the curves, from half of the shares ``kept`` on;
    more curves give fewer numbers."""
    spans = [curve.budget / view.whole for view in firsts for curve in view.curves]
    starts = [span[span > 0][0] for span in spans if (span > 0).any()]
    starts += [share / 2 for share in kept]
    least = min(max(min(starts, default=1.0), _LEAST), 0.5)
    most = min(max(max((float(span[-1]) for span in spans), default=1.0), 1.0), _MOST)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    found = [float(f"{r * 10.0**d:.3g}") for d in decades for r in _R20]
    found = [share for share in found if least * 0.999 <= share <= most * 1.001]
    # every position costs a bootstrap of all learners and a column of intervals in the page
    steps = min(max(6000 // max(len(spans), 1), FEWEST), PLACES)
    return found[:: math.ceil(len(found) / steps)] if found else [1.0]


def thinned(curve: Curve, amounts: Sequence[float]) -> Curve:
    """Return the curve's steps around some of the ``amounts``, and the last step."""
    # curve.budget    1.0  1.1  2.0    3.0  3.1    8.0  99.0
    # amounts       |               |            |           0.5, 2.5 and 5.0
    # kept          1.0         2.0 3.0      3.1   8.0  99.0
    held = [curve.held(amount) for amount in (*amounts, math.inf)]
    kept = np.unique([step for at in held for step in (at, at + 1)])
    kept = kept[(kept >= 0) & (kept < len(curve.budget))]
    columns = ("budget", "quality", "cost", "features")
    arrays = {name: getattr(curve, name)[kept] for name in columns}
    picked = tuple(curve.picked[k] for k in kept) if curve.picked else ()
    return replace(curve, **arrays, picked=picked)


def certify(
    info: RunInfo,
    store: Store,
    board: Board,
    frame: pd.DataFrame,
    found: Sequence[ChartView],
    grid: Sequence[float],
) -> Board:
    """Return the board with its certainty. The views of its metric get a ``certainty`` at each
    position of the slider, from the same draws."""
    # one call for all budgets, so that all positions of the slider share the same draws
    own = [(view, _places(view, grid)) for view in found if view.metric.name == board.metric]
    budgets = dict.fromkeys(budget for _, places in own for budget in places.values() if budget)
    name = board.dataset
    (sure,) = boards_of(info, frame, store, datasets=(name,), budgets={name: [*budgets]})
    made = {at.budget: at.rows for at in sure.standings}
    made[None] = tuple(row.standing for row in sure.rows)
    for view, places in own:
        for place, budget in places.items():
            for row in made.get(budget, ()):
                if not math.isnan(row.interval.low):
                    none: list[Standing | None] = [None] * (len(grid) + 1)
                    view.certainty.setdefault(row.learner, none)[place] = row
    return replace(sure, budgets=board.budgets, standings=())


def _places(view: ChartView, grid: Sequence[float]) -> dict[int, Budget | None]:
    """Return positions of the slider and their budgets: all, or only measured caps."""
    amounts = view.amounts(grid)
    if view.kind == "cap":  # results under other caps do not exist
        caps = view.caps()
        return {int(np.searchsorted(amounts, cap)): Budget(float(cap), "cap") for cap in caps}
    return {**{k: Budget(v, view.kind) for k, v in enumerate(amounts)}, len(grid): None}


def exact(value: float) -> float:
    """Round a price to six digits."""
    return float(f"{value:.6g}")


def enough(cost: float) -> float:
    """Round a cost up to six digits: the least budget that pays for it."""
    rounded = exact(cost)
    return rounded if rounded >= cost else exact(cost * (1 + 5e-6))


def share_at(cost: float, whole: float) -> float:
    """Return the least share of ``whole`` that pays for a cost."""
    return enough(enough(cost) / whole * (1 + 1e-9))  # the product with it may be rounded down


class PageData(NamedTuple):
    """Content of the page: boards with their certainty, the views of each data set, all learners,
    and the data of its script."""

    boards: Sequence[Board]
    views: Mapping[str, Sequence[ChartView]]
    learners: Sequence[str]
    json: Mapping[str, Any]


def page_data(
    info: RunInfo, boards: Sequence[Board], frame: pd.DataFrame, store: Store | None = None
) -> PageData:
    """Return the data of a run. Certainty, pairs and purchases need a store."""
    of = {board.dataset: views(info, board, frame) for board in boards}
    opened = _opened(info, boards, of)
    kept = () if opened is None else _kept_share(info, boards[opened], of, frame, store)
    grid = slider(list(of.values()), [*kept])
    curves = [curve for own in of.values() for view in own for curve in view.curves]
    learners = list(dict.fromkeys(curve.learner for curve in curves))
    few = sum(len(own[0].curves) for own in of.values() if own) <= FEW
    sure, sets = [], []
    for board in boards:
        own, pairs, bought = of[board.dataset], None, None
        if store is not None and own:
            amounts = own[0].amounts(grid)
            whole = learners if few else followed(own[0], board.reference)
            board = certify(info, store, board, frame, own, grid)
            pairs = pairwise(info, store, board, own[0], frame, learners, amounts)
            bought = purchases(store, info.run, board.dataset, own[0], learners, amounts, whole)
        place = {row.learner: k for k, row in enumerate(board.rows)}
        for view in own:
            view.curves.sort(key=lambda curve: place[curve.learner])
        drawn = [_drawn(view, learners, grid, whole=few or view is own[0]) for view in own]
        more = {"views": drawn, "pairs": pairs, "bought": bought}
        sure.append(board)
        sets.append({**_about(board, learners), **_keeping(board, own, learners, grid), **more})
    counts = range(2, len(learners) + 1) if len(boards) > 1 else ()
    json = {
        "run": one_line(info.run),
        "learners": [
            [one_line(name), int(name in info.baselines), *look(name)] for name in learners
        ],
        "colours": [light for light, _ in COLOURS],
        "open": opened or 0,
        "shares": grid,
        "level": CONFIDENCE,
        # by number of learners less two: the difference of mean ranks on one data set that
        # separates two; on n data sets it is this over the root of n
        "apart": [round(least_difference(1, k), 6) for k in counts],
        "sets": sets,
    }
    return PageData(sure, of, learners, json)


def _opened(
    info: RunInfo, boards: Sequence[Board], of: Mapping[str, Sequence[ChartView]]
) -> int | None:
    """Return the position of the first board shown: the one with most test rows."""
    there = [k for k, board in enumerate(boards) if of[board.dataset]]

    def tested(k: int) -> int:
        uses = uses_of(info, boards[k].dataset)
        return int((uses[0].get("rows") or {}).get("test", 0)) if uses else 0

    return max(there, key=tested, default=None)


def _kept_share(
    info: RunInfo,
    board: Board,
    of: Mapping[str, Sequence[ChartView]],
    frame: pd.DataFrame,
    store: Store | None,
) -> Iterator[float]:
    """Return the budget at which the learner of a board's conclusion keeps the quality, as a
    share."""
    (sure,) = boards_of(info, frame, store, datasets=(board.dataset,))
    if sure.answer is not None:
        yield share_at(sure.answer.cheap.valid_cost, of[board.dataset][0].whole)


def _keeping(
    board: Board, own: Sequence[ChartView], learners: Sequence[str], grid: Sequence[float]
) -> dict[str, Any]:
    """Return ``opens``: the position of the slider at which the learner of the conclusion keeps the
    quality; ``keeps``: that quality on test, the budget and test quality of each learner's model
    that is sure to keep it, the learner with its saving in words, and the reference with the budget
    of the cost that is saved; ``order``: the board's order in words."""
    row, reference = board.answer, board.reference_row
    if row is None or reference is None or not own:
        return {"opens": len(grid), "order": order_words(board)}
    target = share_of(reference.best.quality, SHARE, board.higher_is_better)
    kept = [one for one in board.rows if one.cheap and not one.saved.lost]
    saved = "" if row.reference or row.saving <= 1 else f"{times(row.saving)} cheaper"
    return {
        "opens": int(np.searchsorted(grid, share_at(row.cheap.valid_cost, own[0].whole))),
        "order": order_words(board),
        "keeps": {
            "name": f"{SHARE:.0%} of {one_line(board.reference)}",
            "y": shown(quality, target),
            "at": {
                learners.index(one.learner): [
                    enough(one.cheap.valid_cost),
                    shown(quality, one.cheap.quality),
                ]
                for one in kept
            },
            "from": learners.index(row.learner),
            "to": [learners.index(board.reference), enough(reference.cheap.valid_cost)],
            "saved": saved,
        },
    }


def _about(board: Board, learners: Sequence[str]) -> dict[str, Any]:
    rows = {learners.index(row.learner): row for row in board.rows if row.learner in learners}
    marks = {place: ", ".join(board.marks_of(row)) for place, row in rows.items()}
    return {
        "name": one_line(board.dataset),
        "data": one_line(board.same_as or board.dataset),
        "accounting": one_line(board.accounting),
        "unit": one_line(board.unit),
        "reference": one_line(board.reference),
        "standIn": board.stand_in,
        "marks": {place: one_line(text) for place, text in marks.items() if text},
        "areas": {
            place: [*_measure(row.area), *_measure(row.regret)]
            for place, row in rows.items()
            if math.isfinite(row.area.value)
        },
    }


def _measure(measure: Measure) -> list[float | None]:
    """Return the exact value, which ranks need, and the ends of its interval as displayed."""
    if not math.isfinite(measure.value):
        return []
    return [float(f"{measure.value:.9g}"), *(shown(quality, end) for end in measure.interval)]


def _drawn(
    view: ChartView, learners: Sequence[str], grid: Sequence[float], *, whole: bool
) -> dict[str, Any]:
    amounts = view.amounts(grid)
    curves = [thinned(curve, amounts) for curve in view.curves]
    return {
        "metric": view.metric.name,
        "higher": view.metric.higher_is_better,
        "kind": view.kind,
        "whole": view.whole,
        "curves": [
            {
                "l": learners.index(curve.learner),
                **_steps(curve, whole=whole),
                **_certainty(view.certainty.get(curve.learner, ())),
            }
            for curve in curves
        ],
    }


def _steps(curve: Curve, *, whole: bool) -> dict[str, list[Any]]:
    """Return budgets ``x`` and qualities ``y``; for a ``whole`` curve also costs ``c``, features
    ``f`` and settings ``s``, as far as they are known."""
    made: dict[str, list[Any]] = {
        "x": [_short(budget) for budget in curve.budget],
        "y": [shown(quality, value) for value in curve.quality],
        "c": [shown(cost, value) for value in curve.cost],
        "f": [shown("{:.3g}".format, value) for value in curve.features],
        "s": curve.settings(),
    }
    # settings are the longest part of a page of many curves, so other views omit them
    names = "xycfs" if whole else "xy"
    return {name: made[name] for name in names if made[name] and None not in made[name]}


def _certainty(known: Iterable[Standing | None]) -> dict[str, list[Any]]:
    """Return ``[low, high, tier, best rank, worst rank]`` for each position of the slider, with a 1
    if the mean cost on test exceeds the budget by more than chance; 0 for none."""
    rows = [
        [*(shown(quality, end) for end in one.interval), one.tier, *one.ranks, *[1] * one.over]
        if one
        else 0
        for one in known
    ]
    return {"sure": rows} if any(rows) else {}


def shown(words: Callable[[float], str], value: float) -> float | None:
    """Return a number with the digits displayed; None if there is none."""
    text = words(float(value))
    return None if text == "-" or not math.isfinite(float(text)) else _short(float(text))


def _short(value: float) -> float:
    """Return an integer if possible, which shortens the JSON."""
    return int(value) if value == int(value) else float(value)


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
    amounts: Sequence[float],
) -> dict[str, Any] | None:
    """Return the share of units, in percent, on which each learner of a pair is better, both at
    their best (``best``: for each learner a row with all learners behind it), for the first
    ``COMPARED`` learners also at each amount (``within``). None without stored values."""
    frame = frame[frame["dataset"] == board.dataset]
    draws = draws_of(info, store, frame, board.dataset, resamples=0, condensed=False)
    ranked = [curve.learner for curve, _ in view.ranking()]
    # include the reference even if it is far behind
    top = [*ranked[: COMPARED - 1], *([board.reference] if board.reference else ())]
    place = {draws.names[k]: k for k in draws.places}
    names = [name for name in dict.fromkeys([*top, *ranked]) if name in place]
    if len(names) < 2:
        return None
    budgets = [Budget(amount) for amount in amounts]
    chosen, _ = draws.chosen([NO_LIMIT, *budgets])
    repeats = range(len(draws.repeats))

    def units(budget: Budget, name: str) -> list[FloatArray | None]:
        """Return the quality by unit of a learner's point in each repeat."""
        k = place[name]
        return [draws.units(r, k, int(chosen[budget].row[r, k])) for r in repeats]

    # repeats on the same rows are averaged
    quality = []
    for name in names:
        best = [np.zeros(0) if one is None else one for one in units(NO_LIMIT, name)]
        means = [np.mean([best[k] for k in same], axis=0) for same in on_same_rows(draws.found)]
        quality.append(np.concatenate(means))
    higher, first = view.metric.higher_is_better, sum(name in top for name in names)
    within = [[units(budget, name) for budget in budgets] for name in names[:first]]
    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    return {
        "units": "queries" if queries else "rows",
        "learners": [learners.index(name) for name in names],
        "best": [
            [percent(_won(one - other, higher)) for other in quality[k + 1 :]]
            for k, one in enumerate(quality)
        ],
        "first": first,
        "within": [
            [_shares(x, y, higher) for x, y in zip(a, b, strict=True)]
            for a, b in combinations(within, 2)
        ],
    }


def _shares(
    a: Sequence[FloatArray | None], b: Sequence[FloatArray | None], higher: bool
) -> list[float]:
    """Return the percentages of units on which the first of two is better and worse, the mean over
    repeats; 0 without a point."""
    parts = [
        np.zeros(2) if x is None or y is None else _won(x - y, higher)
        for x, y in zip(a, b, strict=True)
    ]
    return percent(np.mean(parts, axis=0))


def _won(gain: FloatArray, higher: bool) -> FloatArray:
    gain = gain if higher else -gain
    return np.array([(gain > ALIKE).mean(), (gain < -ALIKE).mean()])


def percent(shares: FloatArray) -> list[float]:
    """Return percentages, below 1% with a digit: most units are equal for good learners."""
    return [round(100 * s, 1) if s < 0.01 else round(100 * s) for s in map(float, shares)]


def purchases(
    store: Store,
    run: str,
    dataset: str,
    view: ChartView,
    learners: Sequence[str],
    amounts: Sequence[float],
    whole: Collection[str],
) -> dict[str, Any] | None:
    """Return the purchases on one data set, None if the store has none.

    For learners not in ``whole`` only the last step is shown.
    """
    kept = [*store.values(run, dataset=dataset, capped=True)]
    if not kept or not kept[0].trial.sensors.price:
        return None
    sensors = kept[0].trial.sensors
    price = np.array(sensors.price, dtype=np.float64)
    of, titles = groups(price)
    # trials under other sensors (another cost file) are not comparable
    trials = {
        (ran.learner, ran.fold, ran.seed, canonical(ran.params)): one
        for one in kept
        if (ran := one.trial).sensors == sensors
    }
    found = {}
    for curve in view.curves:
        if steps := list(_bought_steps(curve, amounts, trials, price, of)):
            own = steps if curve.learner in whole else steps[-1:]
            found[learners.index(curve.learner)] = own
    names = [one_line(first_names(name))[:60] for name in sensors.names]
    return {"groups": titles, "names": names, "of": found} if found else None


def groups(price: FloatArray) -> tuple[IntArray, list[str]]:
    """Return the group (s,) of each sensor and the groups' titles: one group for each price, or
    five groups of similar size."""
    edges = np.unique(price)
    if len(edges) > GROUPS:
        parts = np.linspace(0, 1, GROUPS + 1)[1:]
        edges = np.unique(np.quantile(price, parts, method="inverted_cdf"))
    of = np.searchsorted(edges, price)
    titles = []
    for k in range(len(edges)):
        least, most = (cost(float(edge)) for edge in (price[of == k].min(), price[of == k].max()))
        prices = least if least == most else f"{least} to {most}"
        titles.append(f"cost {prices} ({count(int((of == k).sum()), 'sensor')})")
    return of, titles


def followed(view: ChartView, reference: str) -> set[str]:
    """Return the learners whose purchases are shown at all budgets, if there are many."""
    return {reference, *(curve.learner for curve, _ in view.ranking()[:BEST])}


def _bought_steps(
    curve: Curve, amounts: Sequence[float], trials: Trials, price: FloatArray, of: IntArray
) -> Iterator[dict[str, Any]]:
    """Return the purchases of a curve's points at the ``amounts``, and at its last point, where
    they are stored for every repeat."""
    ends = curve.budget[:1], curve.budget[-1:]
    inside = [budget for budget in amounts if ends[0] <= budget < ends[1]] if curve.picked else []
    for budget in [*inside, *(ends[1] if curve.picked else ())]:
        step = curve.picked[curve.held(budget)]
        kept = [_kept(curve.learner, pick, trials) for pick in step]
        there = [(*one, 1 / len(step)) for one in kept if one]
        if len(there) == len(step):
            share = np.sum([w * one.bought[k].astype(np.float64) for one, k, w in there], axis=0)
            yield {"x": exact(budget), **bought(share, price, of), **_order(there)}


def bought(share: FloatArray, price: FloatArray, of: IntArray) -> dict[str, Any]:
    """Return the purchases at one step, for example::

        {"g": [100, 40],                    percentage of rows that buy, by group of sensors
         "every": [1, [0]],                 bought for every row: number, and the first sensors
         "some": [2, [2, 1], [40, 99]],     bought for some rows, with percentages
         "never": [0, []], "saved": 0}      never bought, and their total price

    Sensors with the largest cost per row come first.
    """
    order = np.lexsort((-price, -share, -share * price))

    def listed(inside: BoolArray) -> list[Any]:
        own = order[inside[order]]
        return [len(own), own[:NAMED].tolist()]

    every, never = share >= EVERY, share == NEVER
    some = listed(~every & ~never)
    # "some" is neither none nor all, also after rounding
    percent = np.clip(np.rint(100 * share[some[1]]), 1, 99).astype(int)
    return {
        "g": [round(100 * float(share[of == k].mean())) for k in range(of.max() + 1)],
        "every": listed(every),
        "some": [*some, percent.tolist()],
        "never": listed(never),
        "saved": exact(float(price[never].sum())),
    }


def _order(points: Sequence[tuple[TrialValues, int, float]]) -> dict[str, Any]:
    """Return the order of purchases, if a model records it. For each of the first sensors by mean
    step: its position, the percentage of rows that buy it, the mean step, and a digit per step, 9
    for all rows and 0 for none."""
    found = ordered(bought_sensors.purchases(points))
    if not any(one.steps for one in found):
        return {}
    names = points[0][0].trial.sensors.names
    return {
        "order": [
            [
                names.index(one.features),
                round(100 * one.share),
                round(one.step, 1),
                "".join(str(max(round(9 * share), int(share > 0))) for share in one.steps),
            ]
            for one in found[:ORDERED]
        ]
    }


def _kept(learner: str, pick: RepeatPoint, trials: Trials) -> tuple[TrialValues, int] | None:
    params, point = (json.loads(text or "{}") for text in (pick.params, pick.point))
    one = trials.get((learner, pick.fold, pick.seed, canonical(params)))
    return (one, one.settings.index(point)) if one and point in one.settings else None
