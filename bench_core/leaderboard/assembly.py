"""Boards from the export rows of a run and its store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import IntArray
from bench_core.costs.model import unit_named
from bench_core.datasets.cautions import joined
from bench_core.leaderboard.board import (
    CHEAPEST,
    FALLS,
    LESS,
    NOTHING,
    SURROGATE,
    UNREACHABLE,
    Board,
    ClassRows,
    CurvePoint,
    Failure,
    Measure,
    Pick,
    Row,
    Standing,
    Standings,
)
from bench_core.leaderboard.certainty import areas, kept, saving_order, savings, standings
from bench_core.leaderboard.draws import NO_LIMIT, Chosen, Draws, drawn_by_seed, uses_of
from bench_core.leaderboard.picks import audit_mark, likely, pick, pick_at, trials_of
from bench_core.leaderboard.rare_class import class_rows
from bench_core.leaderboard.selection import Choice
from bench_core.results import operating_points as table
from bench_core.results.budgets import CAP, Budget, Limit, Target, as_budgets, default_budgets
from bench_core.results.operating_points import search_marks
from bench_core.results.records import DatasetUse
from bench_core.splits import CAUTION, ORACLE, SAMPLE, SPLITS, STAND_IN
from bench_core.statistics.bootstrap import DRAWS
from bench_core.statistics.split_shift import falling
from bench_core.terminal.wording import count, listed, settings

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

CELLS = 24
"""Costs at which a curve is averaged, evenly spaced on a logarithmic scale."""


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
    present = [str(name) for name in frame["dataset"].unique()]
    planned = [use.name for use in info.datasets]
    return [
        _board(Choice(info, store, frame, name, resamples=resamples), budgets.get(name, ()))
        for name in dict.fromkeys([*planned, *present])
        if name in present and (not datasets or name in datasets)
    ]


def _board(draws: Choice, more: Sequence[Budget]) -> Board:
    """Return the board of a data set, with standings also at ``more`` budgets."""
    info, metric, first = draws.info, draws.metric, draws.trials.iloc[0]
    uses = uses_of(info, draws.dataset)
    use = uses[0] if uses else DatasetUse()  # costs and data are the same for all
    curves = {name: _curve(draws, name) for name in draws.names}
    budgets = dict.fromkeys((*budgets_of(use, curves.get(draws.reference, ())), *more))
    costs = cost_range(draws.reference, curves)
    constant = constant_pick(draws)
    grid = [] if costs is None else np.geomspace(*costs, 2 * CELLS + 1)[1::2].tolist()
    limits: list[Limit] = [NO_LIMIT, Target(info.keep)]
    limits += [budget for budget in budgets if budget.kind != CAP]
    chosen, within = draws.chosen(limits, [Budget(amount) for amount in grid])
    unlimited, at = Standings(None, ()), []
    if draws.names:
        unlimited = standings(draws, None, chosen[NO_LIMIT])
        for budget in budgets:
            under = draws.under(budget)
            points = chosen[budget] if under is draws else under.chosen([budget])[0][budget]
            at.append(standings(under, budget, points))
    rows = _rows(draws, use, chosen, curves, [unlimited, *at], areas(draws, within))
    notes_of_uses = [note for use in uses for note in use.notes]
    # a stand-in has a notice
    notes = [*joined(note.text for note in notes_of_uses if note.kind != STAND_IN)]
    notes += _repeats(draws, uses)
    stand_in = bool(first["stand_in"])
    marks = {
        "stand-in": stand_in,
        SAMPLE: any(note.kind == SAMPLE for note in notes_of_uses),
        SURROGATE: bool(first.get("surrogate", False)),
    }
    board = Board(
        dataset=draws.dataset,
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        accounting=str(first["accounting"]) or info.accounting,
        unit="features" if use.counted else unit_named(str(first["unit"])),
        reference=draws.reference,
        stand_in=stand_in,
        stand_in_for=use.stand_in_for,
        marks=tuple(mark for mark, there in marks.items() if there),
        repeats=len(draws.trials[["fold", "seed"]].drop_duplicates()),
        rows=tuple(sorted(rows, key=lambda row: _place(row, draws.sign))),
        failures=tuple(failures(draws)),
        facts=tuple(facts(use)),
        notes=tuple(notes),
        cautions=tuple(joined(note.text for note in notes_of_uses if note.kind == CAUTION)),
        budgets=tuple(budgets),
        standings=tuple(at),
        unlimited=unlimited,
        costs=costs,
        draws=draws.resamples - draws.left_out if draws.places else 0,
        keep=info.keep,
        use=use,
        same_as=use.same_as,
        trees_paid=bool((draws.frame["evaluation_cost"] > 0).any()),
        tested=use.rows.get("test", 0) if metric.name == "accuracy" else 0,
        checked=use.units("valid"),
        undefined=draws.undefined,
        sources=tuple(_sources(uses, metric.name)),
        extremes=extremes(draws, use) if metric.in_money else None,
        constant=constant,
        constant_class=_class_of(constant.quality, uses) if metric.name == "accuracy" else "",
    )
    less, reference = None, board.reference_row
    if reference is not None and board.answer is reference and board.keep > LESS:
        less = None if board.totals else draws.at(Target(LESS)).of()
    return replace(
        board,
        classes=_classes(draws, board, chosen),
        less=less if less and less.learner != board.reference else None,
    )


def constant_pick(draws: Draws) -> Pick:
    """Return the best constant answer of each repeat on validation; ``NOTHING`` if one has none."""
    constants = []
    for r in range(len(draws.repeats)):
        rows = np.concatenate([draws.rows(r, name) for name in draws.names])
        if not len(rows := rows[draws.constant[rows]]):
            return NOTHING
        constants.append(rows[(draws.sign * draws.valid(rows)[1]).argmax()])
    return pick_at(draws, np.array(constants), "") if constants else NOTHING


def _class_of(accuracy: float, uses: Sequence[DatasetUse]) -> str:
    """Return the class that a constant of this accuracy on test answers, "" if it is not known."""
    shares: dict[str, float] = {}
    for use in uses:
        for label, rows in use.test_classes.items():
            share = rows / use.rows["test"] / len(uses)
            shares[label] = shares.get(label, 0.0) + share
    alike = [label for label, share in shares.items() if math.isclose(share, accuracy)]
    return alike[0] if len(alike) == 1 else ""


def _classes(draws: Draws, board: Board, chosen: Mapping[Limit, Chosen]) -> tuple[ClassRows, ...]:
    """Return the classes with the test rows that the named model and the reference answer right."""
    row, reference = board.named, board.reference_row

    def points(learner: str, limit: Limit) -> pd.DataFrame:
        rows = chosen[limit].row[:, draws.names.index(learner)]
        return draws.points.iloc[rows if (rows >= 0).all() else rows[:0]]

    if row is None or row.learner not in draws.names:
        return ()
    model = points(row.learner, NO_LIMIT if board.totals else Target(board.keep))
    best = points(reference.learner, NO_LIMIT) if reference else model[:0]
    return class_rows(draws.store, draws.info, model, best)


def _sources(uses: Sequence[DatasetUse], metric: str) -> Iterator[Row]:
    """Yield a row for each source of a choice alone, by rising cost, and one for the oracle: means
    over repeats."""
    rows = []
    for name in uses[0].sources if uses and metric in ("score", "regret") else ():
        figures = [use.sources[name] for use in uses]
        quality, cost = (float(np.mean([at[of] for at in figures])) for of in (metric, "cost"))
        rows.append(
            Row(
                learner=name,
                reference=False,
                baseline=True,
                audit="",
                repeats=len(uses),
                best=Pick(quality, cost, ()),
                reached=0,
                curve=(),
                marks=(UNREACHABLE,) if name == ORACLE else (),
                standing=Standing(name, quality, cost=cost),
            )
        )
    yield from sorted(rows, key=lambda row: (row.learner == ORACLE, row.best.cost, row.learner))


def extremes(draws: Draws, use: DatasetUse) -> tuple[float, float]:
    """Return mean total costs on test: of buying everything, with the answers of the model that has
    the least cost of errors on validation, and of the best constant, which buys nothing."""
    totals = []
    for r in range(len(draws.repeats)):
        rows = np.concatenate([draws.rows(r, name) for name in draws.names])
        cost, total = draws.valid(rows)
        best = int((total - cost).argmin())
        constant = int(draws.constant[rows].argmax())
        test_total, test_cost = draws.test(rows[[best, constant]])
        totals.append((use.price_of_everything + test_total[0] - test_cost[0], test_total[1]))
    everything, nothing = np.mean(totals, axis=0).tolist()
    return everything, nothing


def _repeats(draws: Draws, uses: Sequence[DatasetUse]) -> Iterator[str]:
    """Yield notes on the repeats of a data set and its metric."""
    metric = draws.metric.name
    frame = table.of_dataset(draws.frame, draws.dataset, metric)  # one at a time in memory
    yield from one_split_for_all(uses, frame, metric, draws.info.baselines)
    if drawn_by_seed(uses) == "rows" and not any(use.stand_in for use in uses):
        yield (
            "each seed draws its own rows; those that several share make intervals too narrow "
            "(Nadeau and Bengio, 2003)"
        )
    if draws.left_out and draws.places:
        lost = f"{count(draws.left_out, 'draw')} of {draws.resamples + 1}"
        yield f"intervals leave out {lost}, in which {metric} is not defined"


def _place(row: Row, sign: int) -> tuple[object, ...]:
    """Return a sort key. Learners that keep the quality come first, in ``saving_order``. Others
    follow by tier of their best quality, baselines last."""
    if row.cheap and not row.saved.lost:
        order = saving_order(row.saved, row.saving, row.cheap.cost)
        return row.baseline, 0, *order, row.learner
    quality = math.inf if math.isnan(row.best.quality) else -sign * row.best.quality
    return row.baseline, 1, row.standing.tier or math.inf, quality, row.best.cost, row.learner


def cost_range(
    reference: str, curves: Mapping[str, Sequence[CurvePoint]]
) -> tuple[float, float] | None:
    """Return the range of costs for areas; None without a reference. It ends at the cost of the
    reference's best point, and starts at 1% of it, or at the cheapest point if that costs more."""
    whole = math.fsum(point.pick.cost for point in curves.get(reference, ())[-1:])
    cheapest = min((curve[0].budget for curve in curves.values() if curve), default=0.0)
    low = max(cheapest, CHEAPEST * whole)
    return (low, whole) if 0 < low < whole else None


def budgets_of(use: DatasetUse, curve: Sequence[CurvePoint]) -> tuple[Budget, ...]:
    """Return the suite's budgets for a data set, and the run's caps. Without any, return five on a
    logarithmic scale up to the cost of the reference's best point, the end of its ``curve``; ()
    without a reference.

    They begin at the price of the cheapest feature, but no lower than at 1% of that cost. They do
    not depend on the other learners, so one more learner does not move them."""
    if named := (*as_budgets(use.budgets), *(Budget(cap, CAP) for cap in use.caps)):
        return tuple(dict.fromkeys(named))
    whole = curve[-1].budget if curve else 0.0
    price = use.cheapest_price
    return default_budgets(max(price if price < whole else 0, CHEAPEST * whole), whole)


def _rows(
    draws: Draws,
    use: DatasetUse,
    chosen: Mapping[Limit, Chosen],
    curves: Mapping[str, tuple[CurvePoint, ...]],
    at: Sequence[Standings],
    means: Mapping[str, tuple[Measure, Measure]],
) -> Iterator[Row]:
    """Yield the rows of learners, whose standings are ``at`` any cost and at budgets."""
    best, sure = chosen[NO_LIMIT], chosen[Target(draws.info.keep)]
    saved = savings(draws, sure, best, draws.info.keep)
    best_points = draws.points.iloc[best.row[best.row >= 0]]
    of_search = search_marks(best_points, draws.points, use.ends, draws.higher)
    lower = falling(draws.found, draws.higher) if draws.places else set()
    standing = {row.learner: row for row in at[0].rows}
    for k, learner in enumerate(draws.names):
        trials, keeps = trials_of(draws, learner), kept(draws, sure, k)
        area, regret = means.get(learner, (Measure(), Measure()))
        marks = _marks(draws.points, np.concatenate([best.row[:, k], sure.row[:, k]]))
        marks += (*of_search.get(learner, ()), *([FALLS] if learner in lower else []))
        repeats = len(trials[["fold", "seed"]].drop_duplicates())
        over = [one.budget for one in at for row in one.rows if row.over and row.learner == learner]
        yield Row(
            learner=learner,
            reference=learner == draws.reference,
            baseline=learner in draws.info.baselines,
            audit=audit_mark(trials),
            repeats=int(draws.there[:, k].sum()),
            best=pick(draws, best, k),
            reached=int(sure.sure[:, k].sum()),
            cheap=pick(draws, sure, k) if keeps else NOTHING,
            likely=None if keeps else likely(draws, sure, k),
            saving=saved[k][0],
            saved=saved[k][1],
            curve=curves[learner],
            fits=round(len(trials) / repeats),
            seconds=float(trials["fit_seconds"].astype("float64").sum()) / repeats,
            marks=marks,
            standing=standing[learner],
            area=area,
            regret=regret,
            over=tuple(budget for budget in over if budget is not None),
        )


def _curve(draws: Draws, learner: str) -> tuple[CurvePoint, ...]:
    """Return the steps of a learner's curve."""
    budgets, rows = draws.curve(learner)
    steps = zip(budgets.tolist(), rows.T, strict=True)
    return tuple(CurvePoint(budget, pick_at(draws, at, learner)) for budget, at in steps)


def _marks(points: pd.DataFrame, rows: IntArray) -> tuple[str, ...]:
    """Return the marks of the models at some rows, -1 for none."""
    if "marks" not in points:
        return ()
    cells = points["marks"].iloc[rows[rows >= 0]].dropna()
    return tuple(sorted({mark for cell in cells for mark in str(cell).split(", ") if mark}))


def one_split_for_all(
    uses: Sequence[DatasetUse], frame: pd.DataFrame, metric: str, baselines: Sequence[str]
) -> tuple[str, ...]:
    """Return a note if seeds repeat the training on the same rows. Repeats of a learner are equal
    if its points are the same in several seeds."""
    seeds = {use.seed for use in uses}
    folds = {use.fold for use in uses}
    rows = {(use.fold, use.fingerprint) for use in uses}
    if len(seeds) < 2 or len(rows) > len(folds):
        return ()
    words = f"all {len(seeds)} seeds have the same rows"
    methods = frame[~frame["learner"].isin(baselines)]
    methods = methods[methods[CAP].isna()] if CAP in methods else methods
    points = methods.groupby(["learner", "fold", "params", "point", "split"], observed=True)
    repeats = points["seed"].nunique()
    most = repeats.groupby("learner").transform("max")
    random = points[[metric, "cost"]].nunique().gt(1).any(axis=1)
    differs = (random | (repeats < most) | (most < 2)).groupby("learner").any()
    equal = [str(name) for name in differs[~differs].index]
    if equal and not differs.any():
        return (f"{words}, and all repeats are equal: one seed is enough",)
    words += ": repeats differ only by the randomness of learners"
    return (words + f"; those of {listed(equal)} are equal" * bool(equal),)


def failures(draws: Draws) -> Iterator[Failure]:
    """Yield trials without a rank, grouped by their error, with the varied parameters of the first
    one."""
    trials = draws.trials
    refused = (trials["status"] == "ok") & (trials["audit"] == "failed")
    lost = trials.assign(status=trials["status"].astype(object).mask(refused, "audit failed"))
    lost = lost[lost["status"] != "ok"].astype({"error": object}).fillna({"error": ""})
    by_error = lost.groupby(["learner", "status", "error"], observed=True)
    for (learner, status, error), rows in by_error:
        texts = rows["params"].astype(object).fillna("{}").astype(str)
        params, others = json.loads(texts.iloc[0] or "{}"), texts.nunique() - 1
        varied = {name: params[name] for name in params if name in draws.varied[str(learner)]}
        words = settings(varied) or "its only setting"
        words += f" and {count(others, 'other setting')}" if others else ""
        yield Failure(str(learner), str(status), str(error), words, len(rows))


def facts(use: DatasetUse) -> Iterator[str]:
    """Yield the data set's facts in a few words."""
    if use.task:
        yield use.task
    for sizes, noun in ((use.queries, use.units("test")[1]), (use.rows, "rows")):
        if any(sizes.values()):
            yield f"{'/'.join(str(sizes.get(split, 0)) for split in SPLITS)} {noun}"
    if use.features:
        yield f"{use.features} features"
    if use.price_of_everything and not use.counted:
        yield f"all of them cost {use.price_of_everything:.6g}"
