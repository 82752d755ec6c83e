"""The curves of a run as the page shows them: views of each data set, curves of each view.

A view is a metric and a kind of budget. Its x axis is the budget (on validation), and a curve is a
step function of it: the test result of the point that a learner takes within the budget.

All data sets share the places of the slider: ``shares`` of the cost of the reference's best point,
and a last place without a limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.errors import one_line
from bench_core.leaderboard.assembly import uses_of, varied_parameters
from bench_core.leaderboard.board import Board
from bench_core.leaderboard.board import Pick as Choice
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
        steps = (tuple((one.point, one.params) for one in step) for step in self.picked)
        picks = (Choice(math.nan, math.nan, math.nan, own, self.varied) for own in steps)
        return [one_line(pick.settings[0].short) for pick in picks]


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

    def caps(self) -> FloatArray:
        """The caps that were measured, of a view of caps."""
        return np.unique(np.concatenate([curve.budget for curve in self.curves]))

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
    curves = []
    for name in points["learner"].unique():
        part = frontiers[frontiers["learner"] == name]
        if len(part):
            shown = own[own["learner"] == name] if metric.name == board.metric else None
            curves.append(_curve(str(name), part, shown))
    costs = {curve.learner: float(curve.budget[-1]) for curve in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    return View(metric, kind, whole, curves)


def _curve(learner: str, frontiers: pd.DataFrame, trials: pd.DataFrame | None) -> Curve:
    """The mean over repeats, with settings where their ``trials`` are given."""
    mean, held = selection.mean_path(frontiers)
    budget = np.array([exact(one) for one in mean["budget"]])
    means = (frontiers[name].to_numpy(float)[held].mean(axis=0) for name in MEASURED)
    curve = Curve(learner, budget, *means)
    if trials is None:
        return curve
    picks = [*map(Pick, *(frontiers[name].tolist() for name in Pick._fields))]
    picked = tuple(tuple(picks[row] for row in rows) for rows in held.T)
    return replace(curve, picked=picked, varied=varied_parameters(trials))


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
    capped = [view for own in found for view in own if view.kind == "cap"]
    caps = {cap / view.whole * (1 + 1e-9) for view in capped for cap in view.caps()}
    return sorted({*shares([own[0] for own in found if own]), *map(float, caps)})


def shares(firsts: Sequence[View]) -> list[float]:
    """Preferred numbers over the span of the curves, fewer of them the more curves there are."""
    spans = [curve.budget / view.whole for view in firsts for curve in view.curves]
    starts = [span[span > 0][0] for span in spans if (span > 0).any()]
    least = min(max(min(starts, default=1.0), _LEAST), 0.5)
    most = min(max(max((float(span[-1]) for span in spans), default=1.0), 1.0), _MOST)
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

    own = [(view, _places(view, grid)) for view in found if view.metric.name == board.metric]
    budgets = dict.fromkeys(budget for _, places in own for budget in places.values() if budget)
    sure = certified(info, store, replace(board, budgets=tuple(budgets)), frame)
    made = {at.budget: at.rows for at in sure.standings}
    made[None] = tuple(row.standing for row in sure.rows if row.standing)
    for view, places in own:
        for place, budget in places.items():
            for row in made.get(budget, ()):
                if not math.isnan(row.interval.low):
                    none: list[Certainty | None] = [None] * (len(grid) + 1)
                    certain = view.certainty.setdefault(row.learner, none)
                    certain[place] = Certainty(*row.interval, row.tier, *row.ranks)
    return replace(sure, budgets=board.budgets, standings=())


def _places(view: View, grid: Sequence[float]) -> dict[int, Budget | None]:
    """Places of the slider and their budgets: all, or those of the caps that were measured."""
    amounts = view.amounts(grid)
    if view.kind == "cap":
        caps = view.caps()
        return {int(np.searchsorted(amounts, cap)): Budget(float(cap), "cap") for cap in caps}
    return {**{k: Budget(v, view.kind) for k, v in enumerate(amounts)}, len(grid): None}


def exact(value: float) -> float:
    """A budget to six digits, enough to tell on which side of another one it is."""
    return float(f"{value:.6g}")
