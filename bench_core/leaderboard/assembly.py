"""Boards, and the best learners within a budget, from the export rows of a run."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.costs.model import unit_named
from bench_core.errors import require
from bench_core.leaderboard.board import (
    CHEAPEST,
    NOTHING,
    SHARE,
    SURROGATE,
    Board,
    CurvePoint,
    Failure,
    Optimum,
    Pick,
    Row,
)
from bench_core.results import operating_points as selection
from bench_core.results.budgets import (
    CAP,
    Budget,
    Limit,
    Target,
    as_budgets,
    budget_of,
    default_budgets,
)
from bench_core.results.marks import Ends, repeated_paths, search_marks
from bench_core.results.operating_points import Criterion, criterion
from bench_core.results.records import AUDITS
from bench_core.splits import SPLITS, merged
from bench_core.terminal.wording import count, listed, settings

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo


_MEAN = ("budget", "test_quality", "test_quality_std", "test_cost")
_SETTING = ("learner", "params", "fold", "seed")
_ENDED = ("status", "audit", "error", "accounting", "unit", "stand_in", "surrogate")


def boards(info: RunInfo, frame: pd.DataFrame) -> list[Board]:
    """Return a board for each data set that has rows, in the run's order."""
    planned = [str(use["name"]) for use in info.datasets]
    trials = _trials(frame)
    names = dict.fromkeys([*planned, *map(str, trials["dataset"].unique())])
    parts = [(name, trials[trials["dataset"] == name]) for name in names]
    return [_board(info, name, frame, own) for name, own in parts if len(own)]


def _trials(frame: pd.DataFrame) -> pd.DataFrame:
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


def _board(info: RunInfo, name: str, every: pd.DataFrame, trials: pd.DataFrame) -> Board:
    """Return the board of a data set, from all rows of the run and from its own trials."""
    uses = uses_of(info, name)
    use: Mapping[str, Any] = uses[0] if uses else {}
    metric = primary_metric(info, name)
    given = merged(str(note) for u in uses for note in u.get("notes", ()))
    frame = selection.of_dataset(every, name, metric.name)  # one at a time in memory
    notes = (*given, *one_split_for_all(uses, frame, metric.name, info.baselines))
    if places := selection.undefined(frame, metric.name):
        notes = (*notes, f"{metric.name} is not defined on {places}, nor is a mean with it")
    rows = _rows(frame, trials, metric, info.reference, info.baselines, use.get("ends") or {})
    optimum = Optimum.of(use, metric.name)
    capped = (Budget(cap, CAP) for cap, _ in optimum.cap)
    budgets = tuple(dict.fromkeys((*budgets_of(use, rows), *capped)))
    paid = bool((every.loc[every["dataset"] == name, "evaluation_cost"] > 0).any())
    first = trials.iloc[0]  # facts of data and costs are the same for all
    stand_in = bool(first["stand_in"])
    marks = {
        "stand-in": stand_in,
        "sample": any(re.search(r"\bsample\b", note) for note in notes),
        SURROGATE: bool(first.get("surrogate", False)),
    }
    return Board(
        dataset=name,
        metric=metric.name,
        higher_is_better=metric.higher_is_better,
        accounting=str(first["accounting"]) or info.accounting,
        unit=unit_named(str(first["unit"])),
        reference=info.reference if any(row.reference for row in rows) else "",
        stand_in=stand_in,
        stand_in_for=str(use.get("stand_in_for", "")),
        marks=tuple(mark for mark, there in marks.items() if there),
        repeats=len(trials[["fold", "seed"]].drop_duplicates()),
        rows=rows,
        failures=failures(trials),
        facts=facts(use),
        same_as=str(use.get("same_as", "")),
        notes=notes,
        budgets=budgets,
        optimum=optimum,
        trees_paid=paid,
    )


def budgets_of(use: Mapping[str, Any], rows: Sequence[Row]) -> tuple[Budget, ...]:
    """Return the suite's budgets for a data set. Without any, return five on a logarithmic scale up
    to the cost of the reference's best point; () without a reference.

    They begin at the price of the cheapest feature, but no lower than at 1% of that cost. They do
    not depend on the other learners, so one more learner does not move them."""
    if named := use.get("budgets"):
        return as_budgets(named)
    whole = max((row.curve[-1].budget for row in rows if row.curve and row.reference), default=0.0)
    price = float(use.get("cheapest_price", 0))
    return default_budgets(max(price if price < whole else 0, CHEAPEST * whole), whole)


def _rows(
    frame: pd.DataFrame,
    trials: pd.DataFrame,
    metric: Criterion,
    reference: str,
    baselines: Sequence[str],
    ends: Mapping[str, Ends],
) -> tuple[Row, ...]:
    """Return rows that keep the quality, cheapest first, then the others, best first.

    Baselines come last, in the same order.
    """
    points = selection.operating_points(frame, metric.name)
    if points.empty:
        return ()
    higher = metric.higher_is_better
    frontiers = selection.curve(points, higher)
    best = selection.best_points(points, higher)
    saved = selection.savings(points, higher, reference, SHARE)
    single = _means(selection.savings(points, higher, reference, SHARE, mixes=False))
    own, saves = _by_learner(trials), _by_learner(saved)
    mean, saving, curves = _means(best), _means(saved), _by_learner(frontiers)
    marks, alike = search_marks(best, points, ends, higher), repeated_paths(points)
    rows = []
    for learner, chosen in _by_learner(best).items():
        varied = varied_parameters(own[learner])
        reaches = not math.isnan(saving[learner]["test_quality"])
        row = Row(
            learner=learner,
            reference=learner == reference,
            baseline=learner in baselines,
            audit=audit_mark(own[learner]),
            repeats=int(mean[learner]["repeats"]),
            best=_pick(mean[learner], chosen, varied),
            reached=int(saving[learner]["reached"]),
            cheap=_pick(saving[learner], saves[learner], varied) if reaches else NOTHING,
            single=float(single[learner]["test_cost"]),
            saving=float(saving[learner]["saving"]),
            curve=_curve(curves[learner], varied),
            alike=round(alike[learner]),
            marks=(*_marks(chosen, saves[learner]), *marks[learner]),
            **_effort(own[learner]),
        )
        rows.append(row)

    def rank(row: Row) -> tuple[bool, bool, float, str]:
        first = row.cheap.cost if row.cheap else row.best.quality * (-1 if higher else 1)
        first = math.inf if math.isnan(first) else first
        return row.baseline, not row.cheap, first, row.learner

    return tuple(sorted(rows, key=rank))


def _by_learner(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each learner."""
    found = selection.groups(table, ["learner"])
    parts = (table.iloc[rows].reset_index(drop=True) for rows in found)
    return {str(part["learner"].iloc[0]): part for part in parts}


def _means(chosen: pd.DataFrame) -> dict[str, Mapping[str, Any]]:
    """Return the row of ``over_repeats`` by learner."""
    means = selection.over_repeats(chosen).to_dict("records")
    return {str(mean["learner"]): mean for mean in means}


def _curve(frontiers: pd.DataFrame, varied: frozenset[str]) -> tuple[CurvePoint, ...]:
    """Return a learner's curve from the frontiers of its repeats."""
    mean, held = selection.mean_path(frontiers)
    every = selection.mixture(frontiers, held.flat())  # the repeats of a budget together
    choices, parts, n = _choices(every), every["part"].to_numpy(dtype=np.float64), len(held.point)
    means = zip(*(mean[name].tolist() for name in _MEAN), strict=True)
    return tuple(
        CurvePoint(
            budget, Pick(quality, spread, cost, choices[k : k + n], varied, _part(parts[k : k + n]))
        )
        for k, (budget, quality, spread, cost) in zip(
            range(0, len(choices), n or 1), means, strict=True
        )
    )


def _marks(*chosen: pd.DataFrame) -> tuple[str, ...]:
    cells = [cell for rows in chosen if "marks" in rows for cell in rows["marks"].dropna()]
    return tuple(sorted({mark for cell in cells for mark in str(cell).split(", ") if mark}))


def _effort(own: pd.DataFrame) -> dict[str, Any]:
    """Return the number of settings tried and the seconds of training, means over repeats."""
    repeats = len(own[["fold", "seed"]].drop_duplicates())
    seconds = float(own["fit_seconds"].astype("float64").sum())
    return {"fits": round(len(own) / repeats), "seconds": seconds / repeats}


def _choices(chosen: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """Return point and parameters of each row; for a mixture also its cheaper point's."""
    names = ("point", "params", "cheaper_point", "cheaper_params")
    every = zip(*(chosen[name].astype(str) for name in names), strict=True)
    mixed = (chosen["part"] > 0).tolist()
    return tuple(one if mixes else one[:2] for one, mixes in zip(every, mixed, strict=True))


def _part(parts: FloatArray) -> float:
    """Return the mean share of rows served by the cheaper points of mixtures."""
    return float(parts[parts > 0].mean()) if (parts > 0).any() else 0.0


def _pick(mean: Mapping[str, Any], chosen: pd.DataFrame, varied: frozenset[str]) -> Pick:
    """Return the pick of a row of ``over_repeats`` and of the rows that it averages."""
    return Pick(
        quality=float(mean["test_quality"]),
        spread=float(mean["test_quality_std"]),
        cost=float(mean["test_cost"]),
        choices=_choices(chosen),
        varied=varied,
        part=_part(chosen["part"].to_numpy(dtype=np.float64)),
        budget=float(mean["valid_cost"]),
    )


def audit_mark(own: pd.DataFrame) -> str:
    """Return the weakest audit of a learner's trials."""
    audits = {str(word) for word in own.loc[own["status"] == "ok", "audit"].dropna()} - {""}
    if "failed" in audits:
        return "failed in part"
    return min(audits, key=AUDITS.index, default="declared")


@dataclass(frozen=True, slots=True)
class Offer:
    """A learner within a budget: its test figures, and the validation figures that chose it."""

    learner: str
    pick: Pick
    valid_quality: float
    valid_cost: float
    audit: str
    repeats: int  # with a result
    of: int
    saving: float = math.nan  # at a share to keep: the reference's cost over this learner's


def offers(
    frame: pd.DataFrame,
    metric: Criterion,
    limit: Limit | float,
    reference: str = "",
    mixes: bool = True,
) -> list[Offer]:
    """Return learners within a budget on one data set, best on validation first; or learners that
    reach a target, cheapest on validation first. Without ``mixes`` each is at a single point.

    Learners without a result in some repeats come last.
    """
    limit = limit if isinstance(limit, Target) else budget_of(limit)
    chosen = selection.points_within(frame, metric, limit, reference, mixes)
    if chosen.empty:
        return []
    found, trials, picked = [], _by_learner(_trials(frame)), _by_learner(chosen)
    for mean in selection.over_repeats(chosen).to_dict("records"):
        learner = str(mean["learner"])
        own = trials[learner]
        offer = Offer(
            learner=learner,
            pick=_pick(mean, picked[learner], varied_parameters(own)),
            valid_quality=float(mean["valid_quality"]),
            valid_cost=float(mean["valid_cost"]),
            audit=audit_mark(own),
            repeats=int(mean["repeats"]),
            of=len(frame[["fold", "seed"]].drop_duplicates()),
            saving=float(mean.get("saving", math.nan)),
        )
        found.append(offer)
    sign = -1 if metric.higher_is_better else 1

    def place(offer: Offer) -> tuple[object, ...]:
        first = sign * offer.valid_quality, offer.valid_cost
        first = first[::-1] if isinstance(limit, Target) else first
        return offer.repeats < offer.of, *first, offer.learner

    return sorted(found, key=place)


def served(
    frame: pd.DataFrame, metric: Criterion, limit: Limit, reference: str, learner: str
) -> Offer | None:
    """Return a learner at the single point that ``bench model export`` writes, if there is one."""
    own = frame[frame["learner"].isin([learner, reference])]  # the reference sets the target
    found = offers(own, metric, limit, reference, mixes=False)
    return next((one for one in found if one.learner == learner), None)


def usual_limit(
    frame: pd.DataFrame, metric: Criterion, reference: str, learners: Sequence[str] = ()
) -> tuple[Limit, str]:
    """Return the default of all that choose a point: the least cost that keeps ``SHARE`` of the
    reference's best quality. If the ``learners`` (none: all) do not reach it on validation, return
    a budget without a limit, and the reason."""
    target = Target(SHARE)
    found = offers(frame, metric, target, reference)
    every = {offer.learner for offer in found if offer.repeats == offer.of}
    lacking = [name for name in learners if name not in every]
    if found and not lacking:
        return target, ""
    points = selection.operating_points(frame, metric.name)
    first = lacking[0] if lacking else ""
    why = selection.why_not_reached(points, metric, target, reference, first)
    return Budget(math.inf), f"{why}; shown is the best at any cost"


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
