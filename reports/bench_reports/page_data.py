"""The data of the page's script, as plain JSON.

A data set has views: a metric and a kind of budget. The x axis of a view is the budget (on
validation); a curve is the test result of a learner's point within it. Between two points a curve
is a line for a mean cost, which mixes them, and a step for other kinds. All data sets share the
positions of the slider: ``shares`` of the cost of the reference's best point, and a last position
without a limit.

A store adds the certainty at each position of the slider, the comparison of each pair of learners
by query or row, and the purchases at the steps of the curves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard import bought_sensors
from bench_core.leaderboard.assembly import uses_of, varied_parameters
from bench_core.leaderboard.board import SHARE, Board, Measure, Optimum, Standing
from bench_core.leaderboard.board import Pick as Choice
from bench_core.leaderboard.bought_sensors import EVERY, NEVER, first_names, ordered
from bench_core.leaderboard.conclusion import conclusion
from bench_core.leaderboard.pairs import thirds
from bench_core.leaderboard.ranks import least_difference
from bench_core.metrics.frontier import share_of
from bench_core.results import operating_points as selection
from bench_core.results.budgets import COLUMNS, Budget
from bench_core.results.operating_points import Criterion, criterion
from bench_core.statistics import CONFIDENCE
from bench_core.statistics.bootstrap import chosen_points
from bench_core.statistics.repeats import in_every, stored_repeats, units_within
from bench_core.terminal.wording import cost, count, quality, times
from bench_reports.columns import order_words
from bench_reports.palette import COLOURS, look

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo, TrialValues
    from bench_core.results.store import Store


MEASURED = ("test_quality", "total_cost", "cost_p95", "features_used")

PLACES, FEWEST = 40, 16
"""Positions of the slider: 40, or 16 if very many curves share the page."""

# Renard's series R20, the preferred numbers between 1 and 10
_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
_LEAST, _MOST = 1e-3, 20.0

FEW = 80
"""Up to this number of curves all purchases are shown, above it only the best learners'."""

COMPARED = 8
"""Number of learners compared by thirds and within budgets: the best ones and the reference."""

ALIKE = 1e-6
Mixture = tuple[tuple[float, FloatArray], ...]
"""The share of units that each point serves, and its quality by unit."""

GROUPS, MOST_STAGES, BEST, NAMED, ORDERED = 5, 40, 6, 6, 16
"""Numbers shown: groups of sensors by price; stages; learners with purchases along budgets if
curves are many; sensors named of those bought for every row, for some and never; sensors with
steps."""

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
    p95: FloatArray  # 95% quantile of the rows' costs
    features: FloatArray  # mean number used by a row
    picked: tuple[tuple[tuple[RepeatPoint, RepeatPoint, float], ...], ...] = ()
    varied: frozenset[str] = frozenset()

    def held(self, budget: float) -> int:
        """Return the last step within a budget, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1

    def settings(self) -> list[str]:
        """Return the most frequent setting at each step, in words."""
        found = []
        for step in self.picked:
            own = tuple(
                (a.point, a.params, *((b.point, b.params) if part else ())) for a, b, part in step
            )
            mixed = [part for *_, part in step if part]
            part = sum(mixed) / len(mixed) if mixed else 0.0
            pick = Choice(math.nan, math.nan, math.nan, own, self.varied, part)
            found.append(one_line(pick.settings[0].short))
        return found


@dataclass(slots=True, eq=False)
class ChartView:
    """The curves of one metric under one kind of budget.

    ``whole`` is the cost of the reference's best point (of the costliest curve without one).
    ``certainty`` holds one entry per learner and position of the slider.
    """

    metric: Criterion
    kind: str  # mean, p95 or cap
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
    asked = [(name, "mean") for name in dict.fromkeys([board.metric, *metrics])]
    asked[1:1] = [(board.metric, "p95")] if own["cost_p95"].notna().any() else []
    found = [
        _view(board, own, criterion(info, name), kind)
        for name, kind in asked
        if name in own.columns and own[name].notna().any()
    ]
    if found and (caps := selection.caps_of(own)):
        primary = criterion(info, board.metric)
        found.insert(1, ChartView(primary, "cap", found[0].whole, _capped(own, primary, caps)))
    return [view for view in found if view.curves]


def _view(board: Board, own: pd.DataFrame, metric: Criterion, kind: str) -> ChartView:
    points = selection.operating_points(own, metric.name, COLUMNS[kind])
    frontiers = selection.curve(points, metric.higher_is_better, kind == "mean")
    curves = []
    for name in points["learner"].unique():
        part = frontiers[frontiers["learner"] == name]
        shown = own[own["learner"] == name] if metric.name == board.metric else None
        curves.append(_curve(str(name), part, shown, kind == "mean"))
    curves = [curve for curve in curves if len(curve.budget)]
    # without a reference the costliest curve sets the scale; 1 if everything is free
    costs = {curve.learner: float(curve.budget[-1]) for curve in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    return ChartView(metric, kind, whole, curves)


def _curve(
    learner: str, frontiers: pd.DataFrame, trials: pd.DataFrame | None, mixes: bool
) -> Curve:
    """Return the mean over repeats, with settings if their ``trials`` are given."""
    mean, held = selection.mean_path(frontiers, mixes)
    budget = np.array([exact(one) for one in mean["budget"]])
    means = (selection.mixed_values(frontiers, held, name).mean(axis=0) for name in MEASURED)
    curve = Curve(learner, budget, *means)
    if trials is None:
        return curve
    picks = [*map(RepeatPoint, *(frontiers[name].tolist() for name in RepeatPoint._fields))]
    pairs = zip(held.point.T, held.cheaper.T, held.part.T, strict=True)
    picked = tuple(
        tuple((picks[a], picks[b], float(part)) for a, b, part in zip(*rows, strict=True))
        for rows in pairs
    )
    return replace(curve, picked=picked, varied=varied_parameters(trials))


def _capped(own: pd.DataFrame, metric: Criterion, caps: Sequence[float]) -> list[Curve]:
    """Return a curve for each learner from rows under caps, if all of its repeats have some."""
    import pandas as pd

    every = pd.concat(
        selection.points_within(own, metric, Budget(cap, "cap")).assign(cap=cap) for cap in caps
    )
    curves = []
    for name, part in every.groupby("learner", sort=False, observed=True):
        at = part.groupby("cap")
        # a mean over only some repeats would be biased
        whole = at["test_quality"].count() == len(part[["fold", "seed"]].drop_duplicates())
        means = at[list(MEASURED)].mean().astype(np.float64)[whole]
        if len(means):
            columns = (means[column].to_numpy() for column in MEASURED)
            curves.append(Curve(str(name), means.index.to_numpy(np.float64), *columns))
    return curves


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
    columns = ("budget", "quality", "cost", "p95", "features")
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
    from bench_core.leaderboard.certainty import certified

    # one call for all budgets, so that all positions of the slider share the same draws
    own = [(view, _places(view, grid)) for view in found if view.metric.name == board.metric]
    budgets = dict.fromkeys(budget for _, places in own for budget in places.values() if budget)
    tabled = board.budgets if board.optimum != Optimum() else ()  # by the distances to the optimum
    budgets |= dict.fromkeys(tabled)
    sure = certified(info, store, replace(board, budgets=tuple(budgets)), frame)
    made = {at.budget: at.rows for at in sure.standings}
    made[None] = tuple(row.standing for row in sure.rows)
    for view, places in own:
        for place, budget in places.items():
            for row in made.get(budget, ()):
                if not math.isnan(row.interval.low):
                    none: list[Standing | None] = [None] * (len(grid) + 1)
                    view.certainty.setdefault(row.learner, none)[place] = row
    standings = {at.budget: at for at in sure.standings}
    return replace(sure, budgets=board.budgets, standings=tuple(standings[b] for b in tabled))


def _places(view: ChartView, grid: Sequence[float]) -> dict[int, Budget | None]:
    """Return positions of the slider and their budgets: all, or only measured caps."""
    amounts = view.amounts(grid)
    if view.kind == "cap":  # results under other caps do not exist
        caps = view.caps()
        return {int(np.searchsorted(amounts, cap)): Budget(float(cap), "cap") for cap in caps}
    return {**{k: Budget(v, view.kind) for k, v in enumerate(amounts)}, len(grid): None}


def exact(value: float) -> float:
    """Round a budget to six digits, enough to compare it with another one."""
    return float(f"{value:.6g}")


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
            pairs = pairwise(info, store, board, own[0], learners, amounts)
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
    from bench_core.leaderboard.certainty import certified

    row = conclusion(certified(info, store, board, frame)).row
    if row is not None:
        yield exact(row.cheap.budget / of[board.dataset][0].whole)


def _keeping(
    board: Board, own: Sequence[ChartView], learners: Sequence[str], grid: Sequence[float]
) -> dict[str, Any]:
    """Return ``opens``: the position of the slider at which the learner of the conclusion keeps the
    quality; ``keeps``: that quality on test, the budgets at which learners reach it on validation,
    the learner with its saving in words, and the reference with the budget of the cost that is
    saved; ``order``: the board's order in words."""
    row = conclusion(board).row
    if row is None or not own:
        return {"opens": len(grid), "order": order_words(board)}
    reference = next(one for one in board.rows if one.reference)
    share = row.cheap.budget / own[0].whole
    target = share_of(reference.best.quality, SHARE, board.higher_is_better)
    kept = [one for one in board.rows if one.cheap and not one.saved.lost]
    saved = "" if row.reference or row.saving <= 1 else f"{times(row.saving)} cheaper"
    return {
        "opens": int(np.searchsorted(grid, share * (1 - 1e-5))),
        "order": order_words(board),
        "keeps": {
            "name": f"{SHARE:.0%} of {one_line(board.reference)}",
            "y": shown(quality, target),
            "at": {learners.index(one.learner): exact(one.cheap.budget) for one in kept},
            "from": learners.index(row.learner),
            "to": [learners.index(board.reference), exact(board.replaced.budget)],
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
    """Return budgets ``x`` and qualities ``y``; for a ``whole`` curve also costs ``c``, costs of
    95% of rows ``p``, features ``f`` and settings ``s``, as far as they are known."""
    made: dict[str, list[Any]] = {
        "x": [_short(budget) for budget in curve.budget],
        "y": [shown(quality, value) for value in curve.quality],
        "c": [shown(cost, value) for value in curve.cost],
        "p": [shown(cost, value) for value in curve.p95],
        "f": [shown("{:.3g}".format, value) for value in curve.features],
        "s": curve.settings(),
    }
    # settings are the longest part of a page of many curves, so other views omit them
    names = "xycpfs" if whole else "xy"
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
    learners: Sequence[str],
    amounts: Sequence[float],
) -> dict[str, Any] | None:
    """Return the share of units, in percent, on which each learner of a pair is better, both at
    their best (``best``: for each learner a row with all learners behind it).

    For the first ``COMPARED`` learners also the same at each amount (``within``), where units of a
    mixture draw their points, and the mean
    difference in each third of the units with its 95% error (``thirds``, by pair and kind). None
    without stored values.
    """
    ranked = [curve.learner for curve, _ in view.ranking()]
    # include the reference even if it is far behind
    top = [*ranked[: COMPARED - 1], *([board.reference] if board.reference else ())]
    asked = list(dict.fromkeys([*top, *ranked]))
    found = stored_repeats(store, info.run, board.dataset, asked)
    there = in_every(found)
    names = [name for name in asked if name in there]
    if len(names) < 2:
        return None
    higher = view.metric.higher_is_better
    best = {name: units_within(found, name, math.inf, higher) for name in names}
    quality = [best[name][0] for name in names]
    first = sum(name in top for name in names)
    within = [  # by learner, amount and repeat
        [
            [chosen_points(one.candidates[name], amount, higher) for one in found]
            for amount in amounts
        ]
        for name in names[:first]
    ]
    # thirds by size and by price: a method may win only on large or on expensive queries
    payer = board.reference if board.reference in names else names[0]
    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    kinds = {"rows of a query": best[names[0]][2]} if queries else {}  # else copies of a row
    kinds[f"what {payer} pays"] = best[payer][1]
    return {
        "units": "queries" if queries else "rows",
        "learners": [learners.index(name) for name in names],
        "best": [
            _shares((one - other for other in quality[k + 1 :]), higher)
            for k, one in enumerate(quality)
        ],
        "first": first,
        "within": [
            [_shares_of_mixtures(x, y, higher) for x, y in zip(a, b, strict=True)]
            for a, b in combinations(within, 2)
        ],
        "kinds": [*kinds],
        "thirds": [
            [_thirds(a - b, by) for by in kinds.values()]
            for a, b in combinations(quality[:first], 2)
        ],
    }


def _shares(gains: Iterable[FloatArray], higher: bool) -> list[list[float]]:
    """Return the percentages of units on which the first of two is better and worse, by gain; 0 if
    unknown."""
    return [percent(_won(gain, higher)) for gain in gains]


def _shares_of_mixtures(a: Sequence[Mixture], b: Sequence[Mixture], higher: bool) -> list[float]:
    """Return the same of two mixtures by repeat, of which each unit draws a point."""
    parts = [
        np.sum(
            [p * q * _won(x - y, higher) for (p, x), (q, y) in product(*pair)] or [np.zeros(2)], 0
        )
        for pair in zip(a, b, strict=True)
    ]
    return percent(np.mean(parts, axis=0))


def _won(gain: FloatArray, higher: bool) -> FloatArray:
    gain = gain if higher else -gain
    return np.array([(gain > ALIKE).mean(), (gain < -ALIKE).mean()])


def percent(shares: FloatArray) -> list[float]:
    """Return percentages, below 1% with a digit: most units are equal for good learners."""
    return [round(100 * s, 1) if s < 0.01 else round(100 * s) for s in map(float, shares)]


def _thirds(gain: FloatArray, by: FloatArray) -> list[list[float]]:
    """Return mean gains by thirds, each with its 95% error."""
    return [[round(m, 4), round(ends.high - m, 4)] for m, ends in thirds(gain, by)]


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
    """Return the purchases of a curve's points and mixtures at the ``amounts``, and at its last
    point, where they are stored for every repeat. Stages are of the first repeat's more expensive
    point."""
    ends = curve.budget[:1], curve.budget[-1:]
    inside = [budget for budget in amounts if ends[0] <= budget < ends[1]] if curve.picked else []
    for budget in [*inside, *(ends[1] if curve.picked else ())]:
        k = curve.held(budget)
        part, after = 0.0, min(k + 1, len(curve.budget) - 1)
        if after > k:
            part = (budget - curve.budget[k]) / (curve.budget[after] - curve.budget[k])
        parts = [
            (_kept(curve.learner, pick, trials), share * weight / len(curve.picked[step]))
            for step, share in ((after, part), (k, 1 - part))
            for point, cheaper, low in curve.picked[step]
            for pick, weight in ((point, 1 - low), (cheaper, low))
            if share * weight
        ]
        there = [(*kept, weight) for kept, weight in parts if kept]
        if len(there) == len(parts):
            share = np.sum([w * one.bought[k].astype(np.float64) for one, k, w in there], axis=0)
            shown = {**bought(share, price, of), **_stages(*there[0][:2]), **_order(there)}
            yield {"x": exact(budget), **shown}


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


def _stages(one: TrialValues, place: int) -> dict[str, Any]:
    """Return the tree of stages: the parent of each, the sensors that may be bought up to it and
    their price, and the percentage of rows that reach it."""
    stages = one.stages
    if stages is None or place not in stages.reached or not 1 < len(stages.parent) <= MOST_STAGES:
        return {}
    price = [exact(value) for value in stages.price]
    reached = [round(100 * share) for share in stages.reached[place]]
    # [parent, sensors, price, % of rows] by stage
    return {"stages": [*map(list, zip(stages.parent, stages.sensors, price, reached, strict=True))]}
