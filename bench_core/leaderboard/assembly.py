"""Boards from the export rows of a run and its store."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import IntArray
from bench_core.costs.model import unit_named
from bench_core.errors import require
from bench_core.leaderboard.board import (
    CHEAPEST,
    FALLS,
    LOST,
    NOTHING,
    SHARE,
    SURROGATE,
    Board,
    CurvePoint,
    Failure,
    Likely,
    Pick,
    Row,
    Saved,
)
from bench_core.leaderboard.certainty import areas, kept, ratios, saving_order, savings, standings
from bench_core.leaderboard.draws import NO_LIMIT, Chosen, Draws
from bench_core.results import operating_points as table
from bench_core.results.budgets import CAP, Budget, Limit, Target, as_budgets, default_budgets
from bench_core.results.marks import Ends, repeated_paths, search_marks
from bench_core.results.operating_points import Criterion, criterion
from bench_core.results.records import AUDITS
from bench_core.splits import SPLITS, merged
from bench_core.statistics import SURE_ERRORS
from bench_core.statistics.bootstrap import DRAWS
from bench_core.statistics.split_shift import falling
from bench_core.terminal.wording import count, listed, settings

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

LEAST_CHANCE = 0.005
"""Below this a likeliest point is not shown."""

CELLS = 24
"""Costs at which a curve is averaged, evenly spaced on a logarithmic scale."""

_SETTING = ("learner", "params", "fold", "seed")
_ENDED = ("status", "audit", "error", "accounting", "unit", "stand_in", "surrogate")


def boards(
    info: RunInfo,
    frame: pd.DataFrame,
    store: Store | None = None,
    *,
    datasets: Sequence[str] = (),
    budgets: Mapping[str, Sequence[Budget]] = {},
    resamples: int = DRAWS,
) -> list[Board]:
    """Return a board for each data set that has rows (or of ``datasets``), in the run's order, with
    standings also at more ``budgets`` by data set. Without a store, or its values of each query or
    row, there are no intervals: standings are by quality."""
    planned = [str(use["name"]) for use in info.datasets]
    trials = trials_of(frame)
    names = dict.fromkeys([*planned, *map(str, trials["dataset"].unique())])
    parts = [(name, trials[trials["dataset"] == name]) for name in names]
    return [
        _board(info, store, name, frame, own, budgets.get(name, ()), resamples)
        for name, own in parts
        if len(own) and (not datasets or name in datasets)
    ]


def trials_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each trial, from the rows of its points."""
    names = ["dataset", *_SETTING, *_ENDED, "fit_seconds"]
    names = [name for name in names if name in frame]
    first = [name for name in ("dataset", *_SETTING, "accounting") if name in frame]
    return frame[names].drop_duplicates(first)


def primary_metric(info: RunInfo, dataset: str, name: str = "") -> Criterion:
    """Return the metric by which a data set's learners are compared, or the named metric.

    Raises UsageError for a metric that the run does not have.
    """
    known = [metric for use in uses_of(info, dataset) for metric in use.get("metrics") or ()]
    known = list(dict.fromkeys(map(str, known or info.metrics)))
    require("metric of this run", [name] if name else (), known)
    return criterion(info, name or known[0])


def uses_of(info: RunInfo, dataset: str) -> list[Mapping[str, Any]]:
    """Return the run's uses of a data set, one for each fold and seed."""
    return [use for use in info.datasets if use["name"] == dataset]


def draws_of(
    info: RunInfo,
    store: Store | None,
    frame: pd.DataFrame,
    dataset: str,
    metric: Criterion | None = None,
    **more: Any,
) -> Draws:
    """Return the operating points of a data set by its primary metric, or another one."""
    primary = primary_metric(info, dataset)
    judge = metric or primary
    same = judge.name == primary.name
    return Draws(store, info.run, frame, dataset, judge, info.reference, primary=same, **more)


def _board(
    info: RunInfo,
    store: Store | None,
    name: str,
    every: pd.DataFrame,
    trials: pd.DataFrame,
    more: Sequence[Budget],
    resamples: int,
) -> Board:
    """Return the board of a data set, from all rows of the run and from its own trials."""
    uses = uses_of(info, name)
    use: Mapping[str, Any] = uses[0] if uses else {}
    metric = primary_metric(info, name)
    notes = tuple(_notes(uses, every, name, metric.name, info.baselines))
    draws = draws_of(info, store, every, name, resamples=resamples)
    picks = Picks(draws, trials)
    curves = {name: _curve(picks, name) for name in draws.names}
    shown = tuple(dict.fromkeys(budgets_of(use, curves.get(draws.reference, ()))))
    paid = bool((every.loc[every["dataset"] == name, "evaluation_cost"] > 0).any())
    first = trials.iloc[0]  # facts of data and costs are the same for all
    stand_in = bool(first["stand_in"])
    marks = {
        "stand-in": stand_in,
        "sample": any(re.search(r"\bsample\b", note) for note in notes),
        SURROGATE: bool(first.get("surrogate", False)),
    }
    rows = use.get("rows") or {}
    checked = (use.get("queries") or {}).get("valid") or rows.get("valid", 0)
    board = Board(
        dataset=name,
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        accounting=str(first["accounting"]) or info.accounting,
        unit=unit_named(str(first["unit"])),
        reference=draws.reference,
        stand_in=stand_in,
        stand_in_for=str(use.get("stand_in_for", "")),
        marks=tuple(mark for mark, there in marks.items() if there),
        repeats=len(trials[["fold", "seed"]].drop_duplicates()),
        rows=(),
        failures=failures(trials),
        facts=facts(use),
        same_as=str(use.get("same_as", "")),
        notes=notes,
        budgets=shown,
        use=use,
        trees_paid=paid,
        tested=rows.get("test", 0) if metric.name == "accuracy" else 0,
        checked=checked,
    )
    return _filled(board, picks, info, curves, use.get("ends") or {}, more, every, store)


def _notes(
    uses: Sequence[Mapping[str, Any]],
    every: pd.DataFrame,
    name: str,
    metric: str,
    baselines: Sequence[str],
) -> Iterator[str]:
    """Yield the notes of a data set, and those on its repeats and its metric."""
    yield from merged(str(note) for use in uses for note in use.get("notes", ()))
    frame = table.of_dataset(every, name, metric)  # one at a time in memory
    yield from one_split_for_all(uses, frame, metric, baselines)
    if places := table.undefined(frame, metric):
        yield f"{metric} is not defined on {places}, nor is a mean with it"


def _filled(
    board: Board,
    picks: Picks,
    info: RunInfo,
    curves: Mapping[str, tuple[CurvePoint, ...]],
    ends: Mapping[str, Ends],
    more: Sequence[Budget],
    frame: pd.DataFrame,
    store: Store | None,
) -> Board:
    """Return the board with rows, standings and their certainty."""
    draws = picks.draws
    if not draws.names:
        return board
    target = Target(SHARE)
    budgets = tuple(dict.fromkeys((*board.budgets, *more)))
    limits: list[Limit] = [NO_LIMIT, *(one for one in budgets if one.kind != CAP)]
    limits += [target] if draws.reference else []
    costs = cost_range(board, draws, curves)
    grid = [] if costs is None else np.geomspace(*costs, 2 * CELLS + 1)[1::2].tolist()
    chosen, within = draws.chosen(limits, [Budget(amount) for amount in grid])
    unlimited = standings(draws, None, chosen[NO_LIMIT])
    at = []
    for budget in budgets:
        if budget.kind == CAP:  # each cap has its own points
            capped = draws_of(
                info, store, frame, board.dataset, cap=budget, resamples=draws.resamples
            )
            at.append(standings(capped, budget, capped.chosen([budget])[0][budget]))
        else:
            at.append(standings(draws, budget, chosen[budget]))
    rows = _rows(picks, chosen[NO_LIMIT], chosen.get(target), info, ends, curves)
    of = {one.learner: one for one in unlimited.rows}
    exceeded: dict[str, list[Budget]] = {}
    for one in (one for found in at for one in found.rows if one.over):
        exceeded.setdefault(one.learner, [])
    for found in at:
        for one in found.rows:
            if one.over and found.budget is not None:
                exceeded[one.learner].append(found.budget)
    lower = falling(draws.found, draws.higher) if draws.places else set()
    rows = [
        replace(
            row,
            standing=of.get(row.learner, row.standing),
            over=tuple(exceeded.get(row.learner, ())),
            marks=(*row.marks, FALLS) if row.learner in lower else row.marks,
        )
        for row in rows
    ]
    rows = areas(rows, board, draws, within)
    if draws.left_out and draws.places:
        lost = f"{count(draws.left_out, 'draw')} of {draws.resamples + 1}"
        line = f"intervals leave out {lost}, in which {board.metric} is not defined"
        board = replace(board, notes=(*board.notes, line))
    rows.sort(key=partial(_place, higher=board.higher_is_better))
    return replace(
        board,
        rows=tuple(rows),
        standings=tuple(at),
        budgets=budgets,
        unlimited=unlimited,
        costs=costs,
        draws=draws.resamples - draws.left_out if draws.places else 0,
    )


def _place(row: Row, *, higher: bool) -> tuple[object, ...]:
    """Return a sort key. Learners that keep the quality come first, in ``saving_order``. Others
    follow by tier of their best quality, baselines last."""
    if row.cheap and not row.saved.lost:
        order = saving_order(row.saved, row.saving, row.cheap.cost)
        return row.baseline, 0, *order, row.learner
    quality = row.best.quality * (-1 if higher else 1)
    quality = math.inf if math.isnan(quality) else quality
    return row.baseline, 1, row.standing.tier or math.inf, quality, row.best.cost, row.learner


def cost_range(
    board: Board, draws: Draws, curves: Mapping[str, Sequence[CurvePoint]]
) -> tuple[float, float] | None:
    """Return the range of costs for areas; None without a reference. It ends at the cost of the
    reference's best point, and starts at 1% of it, or at the cheapest point if that costs more."""
    whole = math.fsum(point.pick.cost for point in curves.get(board.reference, ())[-1:])
    cheapest = min((curve[0].budget for curve in curves.values() if curve), default=0.0)
    low = max(cheapest, CHEAPEST * whole)
    return (low, whole) if 0 < low < whole else None


def budgets_of(use: Mapping[str, Any], curve: Sequence[CurvePoint]) -> tuple[Budget, ...]:
    """Return the suite's budgets for a data set. Without any, return five on a logarithmic scale up
    to the cost of the reference's best point, the end of its ``curve``; () without a reference.

    They begin at the price of the cheapest feature, but no lower than at 1% of that cost. They do
    not depend on the other learners, so one more learner does not move them."""
    if named := use.get("budgets"):
        return as_budgets(named)
    whole = curve[-1].budget if curve else 0.0
    price = float(use.get("cheapest_price", 0))
    return default_budgets(max(price if price < whole else 0, CHEAPEST * whole), whole)


class Picks:
    """Chosen points as means over repeats, with the settings of each learner's trials."""

    def __init__(self, draws: Draws, trials: pd.DataFrame) -> None:
        self.draws, self.trials = draws, by_learner(trials)
        self.varied = {name: varied_parameters(own) for name, own in self.trials.items()}

    def pick(self, chosen: Chosen, k: int) -> Pick:
        """Return a learner's points; ``NOTHING`` if a repeat has none."""
        draws, there = self.draws, self.draws.there[:, k]
        rows = chosen.row[there, k]
        if (rows < 0).any():
            return NOTHING
        observed = chosen.quality[:, :, :1]
        observed = np.where(np.isnan(observed), chosen.held[:, :, :1], observed)
        return self.at(rows, draws.names[k], float(draws.mean(observed)[k]))

    def at(self, rows: IntArray, name: str, quality: float | None = None) -> Pick:
        """Return the mean over rows, one of each repeat."""
        params, points = self.draws.settings
        tests, costs = self.draws.test(rows)
        cost, valid = (float(one.mean()) for one in self.draws.valid(rows))
        return Pick(
            quality=float(tests.mean()) if quality is None else quality,
            spread=float(tests.std(ddof=1)) if len(rows) > 1 else math.nan,
            cost=float(costs.mean()),
            choices=tuple((points[k], params[k]) for k in rows),
            varied=self.varied.get(name, frozenset()),
            valid_quality=valid,
            valid_cost=cost,
        )


def _rows(
    picks: Picks,
    best: Chosen,
    sure: Chosen | None,
    info: RunInfo,
    ends: Mapping[str, Ends],
    curves: Mapping[str, tuple[CurvePoint, ...]],
) -> list[Row]:
    """Return the rows of learners, without standings and areas."""
    draws, points = picks.draws, picks.draws.points
    there = best.row >= 0
    marks = search_marks(points.iloc[best.row[there]], points, ends, draws.higher)
    alike = repeated_paths(points)
    saved: Mapping[str, Saved] = {}
    saving = np.full(len(draws.names), math.nan)
    if sure is not None:
        ratio = ratios(draws, sure)
        saved = savings(draws, sure, best, ratio, LOST)
        saving = draws.mean(ratio)
    rows = []
    for k, learner in enumerate(draws.names):
        own = picks.trials[learner]
        keeps = sure is not None and kept(draws, sure, k)
        used = [best, *([sure] if sure is not None else [])]
        rows.append(
            Row(
                learner=learner,
                reference=learner == draws.reference,
                baseline=learner in info.baselines,
                audit=audit_mark(own),
                repeats=int(draws.there[:, k].sum()),
                best=picks.pick(best, k),
                reached=0 if sure is None else int(sure.sure[:, k].sum()),
                cheap=picks.pick(sure, k) if sure is not None and keeps else NOTHING,
                likely=None if sure is None or keeps else likely(picks, sure, k),
                saving=float(saving[k]) if keeps else math.nan,
                curve=curves.get(learner, ()),
                alike=round(alike[learner]),
                marks=(*_marks(points, [one.row[:, k] for one in used]), *marks.get(learner, ())),
                saved=saved.get(learner, Saved()),
                **_effort(own),
            )
        )
    return rows


def likely(picks: Picks, chosen: Chosen, k: int) -> Likely | None:
    """Return the points of a learner that is not sure in some repeat; None where they are unlikely
    or unknown."""
    draws = picks.draws
    beyond = chosen.errors[draws.there[:, k], k]
    pick = picks.pick(chosen, k)
    if not pick or np.isnan(beyond).any():
        return None
    chances = [0.5 * math.erfc(-float(one) / math.sqrt(2)) for one in beyond]
    if np.mean(chances) < LEAST_CHANCE:
        return None
    worst = float(beyond.min())
    enough = (SURE_ERRORS / worst) ** 2 if worst > 0 else math.inf
    return Likely(pick, float(np.mean(chances)), enough)


def by_learner(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each learner."""
    found = table.groups(rows, ["learner"])
    parts = (rows.iloc[places].reset_index(drop=True) for places in found)
    return {str(part["learner"].iloc[0]): part for part in parts}


def _curve(picks: Picks, learner: str) -> tuple[CurvePoint, ...]:
    """Return the steps of a learner's curve."""
    budgets, rows = picks.draws.curve(learner)
    return tuple(
        CurvePoint(float(budget), picks.at(rows[:, j], learner)) for j, budget in enumerate(budgets)
    )


def _marks(points: pd.DataFrame, chosen: Sequence[IntArray]) -> tuple[str, ...]:
    if "marks" not in points:
        return ()
    rows = [row for one in chosen for row in one if row >= 0]
    cells = points["marks"].iloc[rows].dropna()
    return tuple(sorted({mark for cell in cells for mark in str(cell).split(", ") if mark}))


def _effort(own: pd.DataFrame) -> dict[str, Any]:
    """Return the number of settings tried and the seconds of training, means over repeats."""
    repeats = len(own[["fold", "seed"]].drop_duplicates())
    seconds = float(own["fit_seconds"].astype("float64").sum())
    return {"fits": round(len(own) / repeats), "seconds": seconds / repeats}


def audit_mark(own: pd.DataFrame) -> str:
    """Return the weakest audit of a learner's trials."""
    audits = {str(word) for word in own.loc[own["status"] == "ok", "audit"].dropna()} - {""}
    if "failed" in audits:
        return "failed in part"
    return min(audits, key=AUDITS.index, default="declared")


def one_split_for_all(
    uses: Sequence[Mapping[str, Any]], frame: pd.DataFrame, metric: str, baselines: Sequence[str]
) -> tuple[str, ...]:
    """Return a note if seeds repeat the training on the same rows."""
    seeds = {use["seed"] for use in uses}
    folds = {use["fold"] for use in uses}
    rows = {(use["fold"], use.get("fingerprint")) for use in uses}
    if len(seeds) < 2 or len(rows) > len(folds):
        return ()
    words = f"all {len(seeds)} seeds have the same rows"
    equal, others = equal_repeats(frame, metric, baselines)
    if equal and not others:
        return (f"{words}, and all repeats are equal: one seed is enough",)
    words += ": repeats differ only by the randomness of learners"
    return (words + f"; those of {listed(equal)} are equal" * bool(equal),)


def equal_repeats(
    frame: pd.DataFrame, metric: str, baselines: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the learners of a data set whose points are the same in several seeds, and the others,
    without ``baselines``."""
    methods = frame[~frame["learner"].isin(baselines)]
    methods = methods[methods[CAP].isna()] if CAP in methods else methods
    points = methods.groupby(["learner", "fold", "params", "point", "split"], observed=True)
    seeds = points["seed"].nunique()
    most = seeds.groupby("learner").transform("max")
    random = points[[metric, "total_cost"]].nunique().gt(1).any(axis=1)
    differs = (random | (seeds < most) | (most < 2)).groupby("learner").any()
    return [str(name) for name in differs[~differs].index], [*differs[differs].index]


def failures(trials: pd.DataFrame) -> tuple[Failure, ...]:
    """Return trials without a rank, grouped by their error."""
    refused = (trials["status"] == "ok") & (trials["audit"] == "failed")
    lost = trials.assign(status=trials["status"].astype(object).mask(refused, "audit failed"))
    lost = lost[lost["status"] != "ok"].astype({"error": object}).fillna({"error": ""})
    return tuple(
        Failure(
            learner=str(learner),
            status=str(status),
            error=str(error),
            params=_settings_of(part, varied_parameters(trials[trials["learner"] == learner])),
            trials=len(part),
        )
        for (learner, status, error), part in lost.groupby(
            ["learner", "status", "error"], observed=True
        )
    )


def _settings_of(rows: pd.DataFrame, varied: frozenset[str]) -> str:
    """Return the varied parameters of the first trial, and the number of other settings."""
    params = rows["params"].astype(object).fillna("{}").astype(str)
    known = json.loads(params.iloc[0] or "{}")
    first = settings({k: v for k, v in known.items() if k in varied}) or "its only setting"
    others = params.nunique() - 1
    return f"{first} and {count(others, 'other setting')}" if others else first


def facts(use: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the data set's facts in a few words."""
    facts = [str(use.get("task", ""))]
    for key, noun in (("queries", "queries"), ("rows", "rows")):
        sizes = use.get(key) or {}
        if any(sizes.values()):
            facts.append(f"{'/'.join(str(sizes.get(split, 0)) for split in SPLITS)} {noun}")
    if use.get("features"):
        facts.append(f"{use['features']} features")
    if use.get("price_of_everything"):
        facts.append(f"all of them cost {use['price_of_everything']:.6g}")
    return tuple(fact for fact in facts if fact)


def varied_parameters(own: pd.DataFrame) -> frozenset[str]:
    """Return the parameters that differ between the trials of one learner."""
    import pandas as pd

    seen = [json.loads(params or "{}") for params in map(str, pd.unique(own["params"]))]
    names = {name for params in seen for name in params}
    return frozenset(n for n in names if len({json.dumps(p.get(n)) for p in seen}) > 1)
