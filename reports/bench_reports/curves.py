"""The curves of a run as the page shows them: views of each data set, curves of each view.

A view is a metric and a kind of budget. Its x axis is the budget (on validation), and a curve is a
step function of it: the test result of the point that a learner takes within the budget.

All data sets share the places of the slider: ``shares`` of the cost of the reference's best point,
and a last place without a limit.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.assembly import uses_of, varied_parameters
from bench_core.leaderboard.board import Board, Setting
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion, criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

COST_OF = {"mean": "total_cost", "p95": "cost_p95"}
"""The column that bounds each kind of budget; caps have rows of their own."""

MEASURED = ("test_quality", "total_cost", "cost_p95", "features_used")

PLACES, FEWEST = 40, 16
"""Places of the slider: 40, or 16 where very many curves share the page."""

# Renard's series R20, the preferred numbers between 1 and 10
_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
_LEAST, _MOST = 1e-3, 20.0


class Pick(NamedTuple):
    """The point that one repeat takes at a step of a curve; ``params`` and ``point`` are JSON."""

    fold: int
    seed: int
    params: str
    point: str


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The steps (p,) of one learner: means over repeats on test at each ``budget``, NaN where
    unknown, and what each repeat takes there (``picked``, empty where settings are not shown)."""

    learner: str
    budget: FloatArray
    quality: FloatArray
    cost: FloatArray
    p95: FloatArray
    features: FloatArray
    picked: tuple[tuple[Pick, ...], ...] = ()
    varied: frozenset[str] = frozenset()

    def held(self, budget: float) -> int:
        """The step that a budget pays for, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1

    def settings(self) -> list[str]:
        """The setting that most repeats take at each step, in words."""
        found = []
        for step in self.picked:
            chosen = Counter((pick.point, pick.params) for pick in step)
            (point, params), n = chosen.most_common(1)[0]
            setting = Setting(
                json.loads(point or "{}"), json.loads(params or "{}"), self.varied, n, len(step)
            )
            found.append(one_line(setting.short))
        return found


class Certainty(NamedTuple):
    """The 95% interval of a quality, its tie tier, and the best and worst rank it may have."""

    low: float
    high: float
    tier: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class View:
    """The curves of one metric under one kind of budget.

    ``whole`` is the cost of the reference's best point (of the costliest curve without one).
    ``certainty`` holds for each learner one entry per place of the slider.
    """

    metric: Criterion
    kind: str
    whole: float
    curves: list[Curve]
    certainty: dict[str, list[Certainty | None]] = field(default_factory=dict)

    def ranking(self) -> list[tuple[Curve, Certainty | None]]:
        """The curves without a limit, best first, each with its certainty."""
        sign = -1 if self.metric.higher_is_better else 1
        known = ((c, (self.certainty.get(c.learner) or [None])[-1]) for c in self.curves)
        return sorted(known, key=lambda pair: (sign * pair[0].quality[-1], pair[0].cost[-1]))

    def amounts(self, shares: Iterable[float]) -> list[float]:
        """The budgets at the places of the slider that have a limit."""
        return [share * self.whole for share in shares]


def views(info: RunInfo, board: Board, frame: pd.DataFrame) -> list[View]:
    """The views of one data set that have a curve, its primary metric by mean cost first."""
    own = frame[frame["dataset"] == board.dataset]
    uses = uses_of(info, board.dataset)
    metrics = [str(name) for use in uses[:1] for name in use.get("metrics") or ()]
    asked = [(name, "mean") for name in dict.fromkeys([board.metric, *metrics])]
    asked[1:1] = [(board.metric, "p95")] if own["cost_p95"].notna().any() else []
    found = [
        _view(info, board, own, criterion(info, name), kind)
        for name, kind in asked
        if name in own.columns and own[name].notna().any()
    ]
    if found and (caps := selection.caps_of(own)):
        primary = criterion(info, board.metric)
        found.insert(1, View(primary, "cap", found[0].whole, _capped(own, primary, caps)))
    return [view for view in found if view.curves]


def _view(info: RunInfo, board: Board, own: pd.DataFrame, metric: Criterion, kind: str) -> View:
    points = selection.operating_points(own, metric.name, COST_OF[kind])
    frontiers = selection.curve(points, metric.higher_is_better)
    parts = dict(list(frontiers.groupby("learner", observed=True)))
    first = metric.name == board.metric
    curves = [
        _curve(str(name), parts[name], own[own["learner"] == name] if first else None)
        for name in points["learner"].unique()
        if name in parts
    ]
    costs = {curve.learner: float(curve.budget[-1]) for curve in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    return View(metric, kind, whole, curves)


def _curve(learner: str, frontiers: pd.DataFrame, trials: pd.DataFrame | None) -> Curve:
    """The mean over repeats from the first budget at which every repeat can afford something."""
    runs = [part for _, part in frontiers.groupby(list(selection.REPEAT), sort=True)]
    costs = [run["valid_cost"].to_numpy(dtype=np.float64) for run in runs]
    budget = np.unique(np.concatenate(costs))
    # below this some repeat has no point yet, so a mean would be over fewer repeats
    budget = budget[budget >= max(cost[0] for cost in costs)]
    held = [np.searchsorted(cost, budget, "right") - 1 for cost in costs]
    means = (
        np.mean([run[name].to_numpy(float)[at] for run, at in zip(runs, held, strict=True)], axis=0)
        for name in MEASURED
    )
    curve = Curve(learner, np.array([exact(one) for one in budget]), *means)
    if trials is None:
        return curve
    return replace(curve, picked=_picked(runs, held), varied=varied_parameters(trials))


def _picked(runs: Sequence[pd.DataFrame], held: Sequence[IntArray]) -> tuple[tuple[Pick, ...], ...]:
    """By step the choice of every repeat."""
    columns = [[run[name].tolist() for name in Pick._fields] for run in runs]
    rows = [list(map(Pick, *own)) for own in columns]
    by_repeat = [[own[k] for k in at] for own, at in zip(rows, held, strict=True)]
    return tuple(zip(*by_repeat, strict=True))


def _capped(own: pd.DataFrame, metric: Criterion, caps: Sequence[float]) -> list[Curve]:
    """A curve for each learner from the rows under caps, where all of its repeats have some."""
    import pandas as pd

    every = pd.concat(
        selection.points_within(
            own, metric.name, metric.higher_is_better, Budget(cap, "cap")
        ).assign(cap=cap)
        for cap in caps
    )
    curves = []
    for name, part in every.groupby("learner", sort=False, observed=True):
        at = part.groupby("cap")
        whole = at.size() == len(part[["fold", "seed"]].drop_duplicates())
        means = at[list(MEASURED)].mean().astype(np.float64)[whole]
        if len(means):
            columns = (means[column].to_numpy() for column in MEASURED)
            curves.append(Curve(str(name), means.index.to_numpy(np.float64), *columns))
    return curves


def slider(found: Sequence[Sequence[View]]) -> list[float]:
    """The places of the slider: ``shares`` over the first views, and the caps that were measured
    (a little above, as an amount may be rounded)."""
    caps = {
        float(cap / view.whole * (1 + 1e-9))
        for views_of in found
        for view in views_of
        if view.kind == "cap"
        for curve in view.curves
        for cap in curve.budget
    }
    return sorted({*shares([views_of[0] for views_of in found if views_of]), *caps})


def shares(firsts: Sequence[View]) -> list[float]:
    """Preferred numbers over the span of the curves, fewer of them the more curves there are."""
    spans = [(view, curve) for view in firsts for curve in view.curves]
    starts = [c.budget[c.budget > 0][0] / v.whole for v, c in spans if (c.budget > 0).any()]
    least = min(max(min(starts, default=1.0), _LEAST), 0.5)
    most = max((c.budget[-1] / v.whole for v, c in spans), default=1.0)
    most = min(max(float(most), 1.0), _MOST)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    found = [float(f"{r * 10.0**d:.3g}") for d in decades for r in _R20]
    found = [share for share in found if least * 0.999 <= share <= most * 1.001]
    # every place costs a bootstrap of all learners and a column of intervals in the page
    steps = min(max(6000 // max(len(spans), 1), FEWEST), PLACES)
    return found[:: math.ceil(len(found) / steps)] if found else [1.0]


def thinned(curve: Curve, amounts: Sequence[float], parts: int) -> Curve:
    """The curve's steps that are held at some of the ``amounts``, or between two of them at one of
    so many equal ``parts``, and the last."""
    places = np.arange(parts * (len(amounts) - 1) + 1) / parts
    between = np.exp(np.interp(places, np.arange(len(amounts)), np.log(amounts)))
    # curve.budget    1.0  1.1  2.0    3.0  3.1    8.0  99.0
    # amounts       |               |            |           0.5, 2.5 and 5.0
    # kept                      2.0         3.1         99.0 with one part
    budgets = [*amounts, *between, np.inf]
    kept = np.unique(np.searchsorted(curve.budget, budgets, "right") - 1)
    kept = kept[kept >= 0]
    columns = ("budget", "quality", "cost", "p95", "features")
    arrays = {name: getattr(curve, name)[kept] for name in columns}
    picked = tuple(curve.picked[k] for k in kept) if curve.picked else ()
    return replace(curve, **arrays, picked=picked)


def certify(
    info: RunInfo,
    store: Store,
    board: Board,
    frame: pd.DataFrame,
    found: Sequence[View],
    grid: Sequence[float],
) -> Board:
    """The board with its certainty. The views of its metric get a ``certainty`` at each place of
    the slider, from the same draws."""
    from bench_core.leaderboard.certainty import certified

    own = [view for view in found if view.metric.name == board.metric]
    places = [_certified_places(view, grid) for view in own]
    budgets = tuple({budget: None for of in places for budget in of.values() if budget})
    sure = certified(info, store, replace(board, budgets=budgets), frame)
    made = {at.budget: at.rows for at in sure.standings}
    made[None] = tuple(row.standing for row in sure.rows if row.standing)
    for view, of in zip(own, places, strict=True):
        for place, budget in of.items():
            for row in made.get(budget, ()):
                if not math.isnan(row.interval.low):
                    none: list[Certainty | None] = [None] * (len(grid) + 1)
                    certain = view.certainty.setdefault(row.learner, none)
                    certain[place] = Certainty(*row.interval, row.tier, *row.ranks)
    return replace(sure, budgets=board.budgets, standings=())


def _certified_places(view: View, grid: Sequence[float]) -> dict[int, Budget | None]:
    """Places of the slider and their budgets: all, or those of the caps that were measured."""
    amounts = view.amounts(grid)
    if view.kind == "cap":
        caps = np.unique(np.concatenate([curve.budget for curve in view.curves]))
        return {int(np.searchsorted(amounts, cap)): Budget(float(cap), "cap") for cap in caps}
    return {**{k: Budget(v, view.kind) for k, v in enumerate(amounts)}, len(grid): None}


def exact(value: float) -> float:
    """A budget to six digits, enough to tell on which side of another one it is."""
    return float(f"{value:.6g}")
