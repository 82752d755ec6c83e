"""Boards, and what is best within a budget, from the export rows of a run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import UsageError, unknown
from bench_core.leaderboard.board import SHARE, Board, CurvePoint, Failure, Pick, Row
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget, as_budgets, budget_of, default_budgets
from bench_core.results.marks import Ends, repeated_paths, search_marks
from bench_core.results.operating_points import Criterion, criterion
from bench_core.splits import SPLITS
from bench_core.terminal.wording import count, settings

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo


_POINT = (*selection.BOARD, "learner", *selection.REPEAT, "point", "params")
_DRAWN = (*_POINT, "valid_quality", "valid_cost", "test_quality", "test_cost")
_MEAN = ("test_quality", "test_quality_std", "test_cost")
_TRIED = ("learner", *selection.REPEAT, "params", "point", *_DRAWN[-4:])
_UNREAD = ("trial", "learner_version", "predict_seconds", "peak_rss_mb", "machine", "created_at")
_TRIAL = ("learner", "params", "fold", "seed", "status", "audit", "fit_seconds")


def boards(info: RunInfo, frame: pd.DataFrame) -> list[Board]:
    """A board for each data set that has rows, in the run's order."""
    planned = [str(use["name"]) for use in info.datasets]
    names = dict.fromkeys([*planned, *map(str, frame["dataset"].unique())])
    parts = ((name, _of(frame, name)) for name in names)  # one at a time in memory
    return [_board(info, name, part) for name, part in parts if len(part)]


def _of(frame: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """The rows of a data set, without columns that no board reads."""
    import pandas as pd

    rows = np.flatnonzero(frame["dataset"] == dataset)
    read = frame.columns.difference(_UNREAD, sort=False)
    return pd.DataFrame({name: frame[name].array.take(rows) for name in read}, copy=False)


def primary_metric(info: RunInfo, dataset: str, name: str = "") -> Criterion:
    """The metric that a data set's learners are compared by, or the one named.

    Raises UsageError for a metric the run does not have.
    """
    known = [metric for use in uses_of(info, dataset) for metric in use.get("metrics") or ()]
    known = list(dict.fromkeys(map(str, known or info.metrics)))
    if name and name not in known:
        raise UsageError(unknown("metric of this run", name, known))
    return criterion(info, name or known[0])


def uses_of(info: RunInfo, dataset: str) -> list[Mapping[str, Any]]:
    """How the run used a data set, once for each fold and seed."""
    return [use for use in info.datasets if use["name"] == dataset]


def _board(info: RunInfo, name: str, frame: pd.DataFrame) -> Board:
    uses = uses_of(info, name)
    use: Mapping[str, Any] = uses[0] if uses else {}
    metric = primary_metric(info, name)
    given = dict.fromkeys(str(note) for u in uses for note in u.get("notes", ()))
    notes = (*given, *_one_split_for_all(uses))
    rows = _rows(frame, metric, info.reference, info.baselines, use.get("ends") or {})
    budgets = budgets_of(use, rows)
    rows = within_each(frame, metric, rows, budgets)
    stand_in = _any(frame, "stand_in")
    marks = {
        "stand-in": stand_in,
        "sample": any(re.search(r"\bsample\b", note) for note in notes),
        "trained on surrogate prices": _any(frame, "surrogate"),
    }
    return Board(
        dataset=name,
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        accounting=_values(frame, "accounting") or info.accounting,
        unit=_values(frame, "unit") or "cost units",
        reference=info.reference if any(row.reference for row in rows) else "",
        stand_in=stand_in,
        stand_in_for=str(use.get("stand_in_for", "")),
        marks=tuple(mark for mark, there in marks.items() if there),
        repeats=len(frame[["fold", "seed"]].drop_duplicates()),
        rows=rows,
        failures=_failures(frame),
        facts=_facts(use),
        same_as=str(use.get("same_as", "")),
        notes=notes,
        budgets=budgets,
        optimum=tuple((c, q) for c, q in (use.get("optimum") or {}).get(metric.name, ())),
    )


def budgets_of(use: Mapping[str, Any], rows: Sequence[Row]) -> tuple[Budget, ...]:
    """The budgets that the suite names for a data set, else five on a logarithmic scale from the
    cheapest point of a method's curve that costs anything to the reference's best; without a
    reference none."""
    if named := use.get("budgets"):
        return as_budgets(named)
    methods = [row for row in rows if row.curve and not row.baseline]
    costs = [point.budget for row in methods for point in row.curve if point.budget > 0]
    whole = max((row.curve[-1].budget for row in methods if row.reference), default=0.0)
    return default_budgets(min(costs, default=0.0), whole)


def within_each(
    frame: pd.DataFrame, metric: Criterion, rows: Sequence[Row], budgets: Sequence[Budget]
) -> tuple[Row, ...]:
    """The rows with what each reaches at these budgets."""
    other = {b: {o.learner: o for o in offers(frame, metric, b)} for b in budgets if b[1] != "mean"}

    def pick_of(row: Row, budget: Budget) -> Pick | None:
        if budget in other:
            offer = other[budget].get(row.learner)
            return offer.pick if offer and offer.repeats == row.repeats else None
        affordable = [point.pick for point in row.curve if point.budget <= budget.amount]
        return affordable[-1] if affordable else None

    return tuple(replace(row, within=tuple(pick_of(row, b) for b in budgets)) for row in rows)


def _any(frame: pd.DataFrame, flag: str) -> bool:
    return flag in frame and bool(frame[flag].fillna(False).astype(bool).any())


def _one_split_for_all(uses: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note where seeds repeat the training, but on the same rows."""
    seeds = {use["seed"] for use in uses}
    folds = {use["fold"] for use in uses}
    rows = {(use["fold"], use.get("fingerprint")) for use in uses}
    if len(seeds) < 2 or len(rows) > len(folds):
        return ()
    words = "they differ by the randomness of learners alone"
    return (f"all {len(seeds)} seeds have the same rows: {words}",)


def _rows(
    frame: pd.DataFrame,
    metric: Criterion,
    reference: str,
    baselines: Sequence[str],
    ends: Mapping[str, Ends],
) -> tuple[Row, ...]:
    """Rows that keep the quality first, the cheapest leading; then the others, best first.

    Baselines come below all others, in the same order.
    """
    points = selection.operating_points(frame, metric.name)
    if points.empty:
        return ()
    higher = metric.higher_is_better
    best, saved = (
        selection.best_points(points, higher),
        selection.savings(points, higher, reference, SHARE),
    )
    tables = {
        "trials": _trials(frame),
        "points": points[[c for c in _TRIED if c in points]],
        "best": best,
        "saved": saved,
        "mean": selection.over_repeats(best),
        "saving": selection.over_repeats(saved),
        "curve": selection.curve(points[[c for c in _DRAWN if c in points]], higher),
    }
    of = {name: _by_learner(table) for name, table in tables.items()}
    rows = []
    for learner in of["best"]:
        own = {name: parts[learner] for name, parts in of.items()}
        marks = search_marks(own["best"], own["points"], ends.get(learner, {}), higher)
        row = _row(learner, own, marks)
        rows.append(replace(row, reference=learner == reference, baseline=learner in baselines))

    def rank(row: Row) -> tuple[bool, bool, float, str]:
        first = row.cheap.cost if row.cheap else row.best.quality * (-1 if higher else 1)
        return row.baseline, row.cheap is None, first, row.learner

    return tuple(sorted(rows, key=rank))


def _by_learner(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    names = table["learner"].array
    found = selection.positions(table, ["learner"])
    return {str(names[rows[0]]): table.iloc[rows] for rows in found}


def _trials(frame: pd.DataFrame) -> pd.DataFrame:
    """What is known of the trials, of the many rows of a trial about one."""
    kept = frame[[name for name in _TRIAL if name in frame]]
    new = np.zeros(max(0, len(kept) - 1), dtype=bool)
    for name in kept.columns:
        codes = selection.codes_of(kept[name])[0]
        new |= codes[1:] != codes[:-1]
    return kept[np.append(True, new)] if len(kept) else kept


def _row(learner: str, own: Mapping[str, pd.DataFrame], marks: Sequence[str]) -> Row:
    """The row of one learner, from its trials, its points and those that were chosen."""
    varied = varied_parameters(own["trials"])
    mean, saving = own["mean"].iloc[0], own["saving"].iloc[0]
    reaches = not math.isnan(saving["test_quality"])
    return Row(
        learner=learner,
        reference=False,
        audit=audit_mark(own["trials"]),
        repeats=int(mean["repeats"]),
        best=pick(mean, own["best"], varied),
        reached=int(saving["reached"]),
        cheap=pick(saving, own["saved"], varied) if reaches else None,
        saving=float(saving["saving"]),
        curve=_curve(own["curve"], varied),
        alike=round(repeated_paths(own["points"])),
        marks=(*_marks(own["best"], own["saved"]), *marks),
        **_effort(own["trials"]),
    )


def _marks(*chosen: pd.DataFrame) -> tuple[str, ...]:
    words = [str(cell) for rows in chosen if "marks" in rows for cell in rows["marks"].dropna()]
    return tuple(sorted({mark for cell in words for mark in cell.split(", ") if mark}))


def _effort(own: pd.DataFrame) -> dict[str, Any]:
    """How many settings a learner tried and how long it trained, means over repeats."""
    trials = own.drop_duplicates(["params", "fold", "seed"])
    repeats = len(trials[["fold", "seed"]].drop_duplicates())
    seconds = float(trials["fit_seconds"].sum())  # what was not measured counts as nothing
    return {"fits": round(len(trials) / repeats), "seconds": seconds / repeats}


def pick(mean: pd.Series[Any], chosen: pd.DataFrame, varied: frozenset[str]) -> Pick:
    """A row of ``over_repeats`` or ``mean_curve`` with the rows it is the mean of."""
    return _pick(mean, _choices(chosen), varied)


def _choices(chosen: pd.DataFrame) -> list[tuple[str, str]]:
    """Point and parameters of each row."""
    return [*zip(selection.texts(chosen["point"]), selection.texts(chosen["params"]), strict=True)]


def _pick(
    mean: Mapping[str, Any] | pd.Series[Any],
    choices: Sequence[tuple[str, str]],
    varied: frozenset[str],
) -> Pick:
    return Pick(
        quality=float(mean["test_quality"]),
        spread=float(mean["test_quality_std"]),
        cost=float(mean["test_cost"]),
        choices=tuple(choices),
        varied=varied,
    )


def _curve(frontiers: pd.DataFrame, varied: frozenset[str]) -> tuple[CurvePoint, ...]:
    mean, paid = selection.mean_path(frontiers), frontiers["valid_cost"].to_numpy(float)
    every, budgets = _choices(frontiers), mean["budget"]
    runs = selection.positions(frontiers, ["fold", "seed"])  # the cheapest of each run first
    held = [run[np.searchsorted(paid[run], budgets, "right") - 1].tolist() for run in runs]
    numbers = zip(budgets.tolist(), *(mean[name].tolist() for name in _MEAN), strict=True)
    return tuple(
        CurvePoint(budget, Pick(quality, spread, cost, tuple([every[row] for row in rows]), varied))
        for (budget, quality, spread, cost), rows in zip(
            numbers, zip(*held, strict=True), strict=True
        )
    )


def varied_parameters(frame: pd.DataFrame) -> frozenset[str]:
    """The parameters in which the trials of one learner differ."""
    seen = [json.loads(params or "{}") for params in map(str, frame["params"].unique())]
    names = {name for params in seen for name in params}
    return frozenset(n for n in names if len({json.dumps(p.get(n)) for p in seen}) > 1)


_AUDITS = ("declared", "sampled", "verified")


def audit_mark(frame: pd.DataFrame) -> str:
    """The weakest audit of a learner's trials."""
    audits = {*map(str, frame.loc[frame["status"] == "ok", "audit"].dropna().unique())} - {""}
    if "failed" in audits:
        return "failed in part"
    return min(audits, key=lambda a: _AUDITS.index(a) if a in _AUDITS else -1, default="declared")


def _failures(frame: pd.DataFrame) -> tuple[Failure, ...]:
    """Trials without a place in the ranking, those that ended alike together."""
    refused = (frame["status"] == "ok") & (frame["audit"] == "failed")
    trial = ["learner", "params", "seed", "fold"]
    lost = frame[(frame["status"] != "ok") | refused].drop_duplicates(trial)
    lost = lost.assign(
        status=lost["status"].astype(object).where(lost["status"] != "ok", "audit failed"),
        error=lost["error"].astype(object).fillna("").astype(str),
    )
    return tuple(
        Failure(
            learner=str(learner),
            status=str(status),
            error=str(error),
            params=_settings_of(part, varied_parameters(frame[frame["learner"] == learner])),
            trials=len(part),
        )
        for (learner, status, error), part in lost.groupby(
            ["learner", "status", "error"], observed=True
        )
    )


def _settings_of(rows: pd.DataFrame, varied: frozenset[str]) -> str:
    """What the first of these trials has other than the learner's others, and how many more."""
    params = rows["params"].astype(object).fillna("{}").astype(str)
    known = json.loads(params.iloc[0] or "{}")
    first = settings({k: v for k, v in known.items() if k in varied}) or "its only setting"
    others = params.nunique() - 1
    return f"{first} and {count(others, 'other setting')}" if others else first


def _facts(use: Mapping[str, Any]) -> tuple[str, ...]:
    """The data set in a few words."""
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


def _values(frame: pd.DataFrame, column: str) -> str:
    """A column's values, of which there should be one."""
    return ", ".join(sorted({*map(str, frame[column].dropna().unique())} - {""}))


@dataclass(frozen=True, slots=True)
class Offer:
    """A learner within a budget: what to expect on test, and what it was chosen by.

    ``repeats`` of ``of`` repeats could afford anything.
    """

    learner: str
    pick: Pick
    valid_quality: float
    valid_cost: float
    audit: str
    repeats: int
    of: int


def offers(frame: pd.DataFrame, metric: Criterion, budget: Budget | float) -> list[Offer]:
    """All learners that can be afforded on one data set, the best on validation first.

    Those that only some repeats can afford come last.
    """
    within = budget_of(budget)
    chosen = selection.points_within(frame, metric.name, metric.higher_is_better, within)
    if chosen.empty:
        return []
    found = []
    for _, mean in selection.over_repeats(chosen).iterrows():
        learner = str(mean["learner"])
        own = frame[frame["learner"] == learner]
        offer = Offer(
            learner=learner,
            pick=pick(mean, chosen[chosen["learner"] == learner], varied_parameters(own)),
            valid_quality=float(mean["valid_quality"]),
            valid_cost=float(mean["valid_cost"]),
            audit=audit_mark(own),
            repeats=int(mean["repeats"]),
            of=len(frame[["fold", "seed"]].drop_duplicates()),
        )
        found.append(offer)
    sign = -1 if metric.higher_is_better else 1
    return sorted(
        found, key=lambda o: (o.repeats < o.of, sign * o.valid_quality, o.valid_cost, o.learner)
    )


def least_cost(frame: pd.DataFrame, metric: Criterion, kind: str = "mean") -> float:
    """The validation cost of the cheapest point of any learner, on average or for 95% of rows;
    NaN without any."""
    points = selection.operating_points(frame, metric.name)
    cost = points["valid_p95" if kind == "p95" else "valid_cost"]
    return float(cost.min()) if len(points) else math.nan
