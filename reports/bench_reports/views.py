"""The curves of a run as the page shows them: of each data set its views, of each view its curves.

A view is a metric and a kind of budget. Along a view's x axis stands the budget (on validation),
and a curve is a step function of it: the test result of the point that a learner takes within it.
All data sets share the places of the slider, ``shares`` of what the reference's best point costs,
and a last one without a limit.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.about import varied_parameters
from bench_core.leaderboard.assembly import uses_of
from bench_core.leaderboard.board import Board, Setting
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion, criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

COST_OF = {"mean": "total_cost", "p95": "cost_p95"}
"""Kinds of budget that the export rows can answer, and the column each bounds."""

PLACES = 160
"""Places along the logarithmic axis that a curve may step at; other views than a data set's first
have a third of them."""

FINE, MANY = 80, 400
"""Curves in all, above which they have steps at places of the slider alone, and above which these
are fewer."""

_R20 = (1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9)
_LEAST, _MOST = 1e-3, 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One learner's steps: at each ``budget`` (p,) the mean test ``quality`` and ``cost`` over
    repeats, the ``p95`` of cost and the ``features`` bought (NaN where unknown), and ``chosen``,
    in words; ``picked`` are the fold, seed, parameters and point of every repeat there."""

    learner: str
    budget: FloatArray
    quality: FloatArray
    cost: FloatArray
    p95: FloatArray
    features: FloatArray
    chosen: tuple[str, ...]
    picked: tuple[tuple[tuple[int, int, str, str], ...], ...] = ()

    def held(self, budget: float) -> int:
        """The step that a budget pays for, -1 for none."""
        return int(np.searchsorted(self.budget, budget, "right")) - 1


class Certainty(NamedTuple):
    """How sure a quality is: ends of its 95% interval, tie tier, best and worst rank."""

    low: float
    high: float
    tier: int
    first: int
    last: int


@dataclass(slots=True, eq=False)
class View:
    """The curves of one metric under one kind of budget. ``whole`` is what the reference's best
    point costs (of the costliest curve without one); ``certainty`` is that of each learner at each
    place of the slider."""

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


def views(info: RunInfo, board: Board, frame: pd.DataFrame) -> list[View]:
    """All views of one data set that have a curve; its primary metric by mean cost is the first."""
    own = frame[frame["dataset"] == board.dataset]
    metrics = [str(m) for use in uses_of(info, board.dataset)[:1] for m in use.get("metrics") or ()]
    metrics = list(dict.fromkeys([board.metric, *metrics]))
    asked = [(name, "mean") for name in metrics]
    asked[1:1] = [(board.metric, "p95")] if own["cost_p95"].notna().any() else []
    found = [
        _view(info, board, own, criterion(info, name), kind, first=name == board.metric)
        for name, kind in asked
        if name in own.columns and own[name].notna().any()
    ]
    if found and (caps := selection.caps_of(own)):
        primary = criterion(info, board.metric)
        found.insert(1, View(primary, "cap", found[0].whole, _capped(own, primary, caps)))
    return [view for view in found if view.curves]


def _capped(own: pd.DataFrame, metric: Criterion, caps: Sequence[float]) -> list[Curve]:
    """A curve for each learner from what was measured under caps, in all of its repeats."""
    import pandas as pd

    rows = []
    for cap in caps:
        budget = Budget(cap, "cap")
        chosen = selection.points_within(own, metric.name, metric.higher_is_better, budget)
        rows.append(chosen.assign(cap=cap))
    columns = ["test_quality", "total_cost", "cost_p95", "features_used"]
    every = pd.concat(rows)
    repeats = every.groupby("learner", observed=True)[["fold", "seed"]].apply(
        lambda r: len(r.drop_duplicates())
    )
    curves = []
    for name, part in every.groupby("learner", sort=False, observed=True):
        at = part.groupby("cap")
        whole = at.size() == repeats[name]
        means = at[columns].mean().astype(np.float64)[whole]
        if len(means):
            quality, paid, p95, features = (means[column].to_numpy() for column in columns)
            caps_of = means.index.to_numpy(np.float64)
            curves.append(Curve(str(name), caps_of, quality, paid, p95, features, ()))
    return curves


def _view(
    info: RunInfo, board: Board, own: pd.DataFrame, metric: Criterion, kind: str, *, first: bool
) -> View:
    points = selection.operating_points(own, metric.name, COST_OF[kind])
    curves = []
    frontiers = selection.curve(points, metric.higher_is_better)
    of = dict(list(frontiers.groupby("learner", observed=True)))
    for name in filter(of.__contains__, points["learner"].unique()):
        varied = varied_parameters(own[own["learner"] == name]) if first else None
        curves.append(_curve(str(name), of[name], varied, PLACES if first else PLACES // 3))
    costs = {c.learner: float(c.budget[-1]) for c in curves}
    whole = costs.get(board.reference, 0.0) or max(costs.values(), default=0.0) or 1.0
    return View(metric, kind, exact(whole), curves)


def _curve(
    learner: str, frontiers: pd.DataFrame, varied: frozenset[str] | None, places: int
) -> Curve:
    """The mean over repeats at the budgets that matter; ``varied`` None: without settings."""
    runs = [part for _, part in frontiers.groupby(list(selection.REPEAT), sort=True)]
    budgets = np.unique(frontiers["valid_cost"].to_numpy(dtype=np.float64))
    budgets = thinned(budgets[budgets >= max(run["valid_cost"].iloc[0] for run in runs)], places)
    held = [
        np.searchsorted(run["valid_cost"].to_numpy(dtype=np.float64), budgets, "right") - 1
        for run in runs
    ]
    means = {
        column: np.mean(
            [
                run[column].to_numpy(dtype=np.float64)[at]
                for run, at in zip(runs, held, strict=True)
            ],
            axis=0,
        )
        for column in ("test_quality", "total_cost", "cost_p95", "features_used")
    }
    picked = () if varied is None else _picked(runs, held)
    chosen = tuple(_settings(picked, varied or frozenset()))
    return Curve(
        learner,
        budgets,
        means["test_quality"],
        means["total_cost"],
        means["cost_p95"],
        means["features_used"],
        chosen,
        picked,
    )


def thinned(budgets: FloatArray, places: int) -> FloatArray:
    """The last budget at each place of a logarithmic axis over four decades below the largest."""
    if len(budgets) < 2 or budgets[-1] <= 0:
        return budgets
    with np.errstate(divide="ignore"):
        place = np.floor(np.log10(budgets / budgets[-1]) * places / 4)
    place = np.maximum(place, -places)
    last = np.append(place[1:] != place[:-1], True)
    last[:-1] |= (budgets[:-1] == 0) & (budgets[1:] > 0)  # what is free is a point of its own
    kept: FloatArray = budgets[last]
    return kept


def _picked(
    runs: Sequence[pd.DataFrame], held: Sequence[IntArray]
) -> tuple[tuple[tuple[int, int, str, str], ...], ...]:
    """By step the fold, seed, parameters and point of every repeat."""
    columns = ["fold", "seed", "params", "point"]
    rows = [list(zip(*(run[name].tolist() for name in columns), strict=True)) for run in runs]
    by_repeat = [[own[k] for k in at] for own, at in zip(rows, held, strict=True)]
    return tuple(zip(*by_repeat, strict=True))


def _settings(
    picked: Sequence[Sequence[tuple[int, int, str, str]]], varied: frozenset[str]
) -> Iterator[str]:
    for step in picked:
        (point, params), n = Counter((point, params) for *_, params, point in step).most_common(1)[
            0
        ]
        words = Setting(json.loads(point or "{}"), json.loads(params or "{}"), varied, n, len(step))
        yield one_line(words.short)


def places(firsts: Sequence[View], others: Sequence[View]) -> list[float]:
    """The places of the slider: ``shares`` over the first views of data sets, and the caps that
    were measured (a little above, as an amount may be rounded)."""
    caps = {
        float(cap / view.whole * (1 + 1e-9))
        for view in others
        if view.kind == "cap"
        for curve in view.curves
        for cap in curve.budget
    }
    return sorted({*shares(firsts), *caps})


def shares(all_views: Sequence[View]) -> list[float]:
    """Preferred numbers over what the curves span, 40 at most, or 24 or 16 where there are many
    curves."""
    spans = [(view, curve) for view in all_views for curve in view.curves]
    starts = [c.budget[c.budget > 0][0] / v.whole for v, c in spans if (c.budget > 0).any()]
    least = min(max(min(starts, default=1.0), _LEAST), 0.5)
    most = max((c.budget[-1] / v.whole for v, c in spans), default=1.0)
    most = min(max(float(most), 1.0), _MOST)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    fine = [float(f"{r * 10.0**d:.3g}") for d in decades for r in _R20]
    fine = [share for share in fine if least * 0.999 <= share <= most * 1.001]
    steps = 40 if len(spans) <= FINE else 24 if len(spans) <= MANY else 16
    return fine[:: math.ceil(len(fine) / steps)] if fine else [1.0]


def certify(
    info: RunInfo,
    store: Store,
    board: Board,
    frame: pd.DataFrame,
    found: Sequence[View],
    grid: Sequence[float],
) -> Board:
    """The board with its certainty; the views of its metric get how sure their order is at each
    place, from the same draws."""
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
    amounts = [share * view.whole for share in grid]
    if view.kind == "cap":
        caps = np.unique(np.concatenate([curve.budget for curve in view.curves]))
        return {int(np.searchsorted(amounts, cap)): Budget(float(cap), "cap") for cap in caps}
    return {**{k: Budget(v, view.kind) for k, v in enumerate(amounts)}, len(grid): None}


def exact(value: float) -> float:
    """A budget to six digits, enough to tell on which side of another one it is."""
    short = float(f"{value:.6g}")
    return int(short) if short == int(short) else short
