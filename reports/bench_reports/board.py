"""What a leaderboard holds, whatever it is shown on: one ``Board`` per data set.

Everything is selected on validation and shown on test.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_reports.words import count, settings

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.store import RunInfo

SHARE = 0.99
"""The part of the reference's best validation quality that a saving must keep."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One operating point of one setting, averaged over seeds and folds.

    ``quality`` and ``cost`` are on test, ``spread`` is the standard deviation of quality over the
    ``repeats`` (NaN for one). ``valid_quality`` and ``valid_cost`` are what it was chosen by.
    """

    params: Mapping[str, object]
    point: Mapping[str, object]
    quality: float
    spread: float
    cost: float
    valid_quality: float
    valid_cost: float
    repeats: int


@dataclass(frozen=True, slots=True)
class Row:
    """A learner on the board.

    ``best`` has the best validation quality; ``cheap`` is the cheapest that keeps ``SHARE`` of the
    reference's (None if none does) and ``saving`` the reference's cost over its cost. ``curve``
    is the validation frontier, cheapest first.
    """

    learner: str
    version: str
    reference: bool
    audit: str
    best: Pick
    cheap: Pick | None
    saving: float
    curve: tuple[Pick, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials of a learner that ended alike without a result, or that the audit refused."""

    learner: str
    status: str
    error: str
    params: str
    trials: int


@dataclass(frozen=True, slots=True)
class Board:
    """The leaderboard of one data set: rows sorted, failures below."""

    dataset: str
    title: str
    task: str
    metric: str
    higher_is_better: bool
    accounting: str
    unit: str
    reference: str
    stand_in_for: str
    stand_in: bool
    sample: bool
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]
    facts: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def marks(self) -> tuple[str, ...]:
        """What must be said wherever a number of this board is shown."""
        marks = ("stand-in",) if self.stand_in else ()
        return (*marks, "sample") if self.sample else marks


def notice(board: Board) -> str:
    """The sentence that goes with a stand-in, or nothing."""
    if not board.stand_in:
        return ""
    missing = board.stand_in_for or "the real data"
    return (
        f"{missing} is not here: these results are on the generator {board.dataset}, "
        "which shows that the chain works, never that a method does"
    )


def boards(info: RunInfo, frame: pd.DataFrame) -> list[Board]:
    """A board per data set of the run, in the run's order, then those only the rows know."""
    uses: dict[str, list[Mapping[str, Any]]] = {str(name): [] for name in frame["dataset"].unique()}
    for use in info.datasets:
        uses.setdefault(str(use["name"]), []).append(use)
    order = list(dict.fromkeys([str(u["name"]) for u in info.datasets] + list(uses)))
    return [
        _board(info, uses[name], frame[frame["dataset"] == name], name)
        for name in order
        if (frame["dataset"] == name).any()
    ]


def _board(
    info: RunInfo, uses: Sequence[Mapping[str, Any]], frame: pd.DataFrame, name: str
) -> Board:
    use: Mapping[str, Any] = uses[0] if uses else {}
    metric = str((use.get("metrics") or info.metrics)[0])
    higher = bool(info.higher_is_better.get(metric, True))
    notes = tuple(dict.fromkeys(str(n) for u in uses for n in u.get("notes", ())))
    refused = frame["audit"] == "failed"
    rows = _rows(info, frame[(frame["status"] == "ok") & ~refused], metric, higher)
    return Board(
        dataset=name,
        title=str(use.get("title", "")),
        task=str(use.get("task", "")),
        metric=metric,
        higher_is_better=higher,
        accounting=_only(frame, "accounting", info.accounting),
        unit=_only(frame, "unit", "cost"),
        reference=info.reference if any(row.reference for row in rows) else "",
        stand_in_for=str(use.get("stand_in_for", "")),
        stand_in=bool(frame["stand_in"].fillna(False).astype(bool).any()),
        sample=any(re.search(r"\bsample\b", note) for note in notes),
        rows=rows,
        failures=_failures(frame, refused),
        facts=_facts(use, frame),
        notes=notes,
    )


def _rows(info: RunInfo, frame: pd.DataFrame, metric: str, higher: bool) -> tuple[Row, ...]:
    """Those that keep the quality first, cheapest first; then the others, best first."""
    picks = {
        str(learner): operating_points(part, metric) for learner, part in frame.groupby("learner")
    }
    best = {
        learner: best_point(points, higher) for learner, points in picks.items() if points
    }
    standard = best.get(info.reference)
    if standard is None and best:
        standard = best_point(list(best.values()), higher)
    rows = []
    for learner, top in best.items():
        assert standard is not None
        cheap = cheapest_keeping(picks[learner], standard, higher)
        part = frame[frame["learner"] == learner]
        rows.append(
            Row(
                learner=learner,
                version=_only(part, "learner_version", ""),
                reference=learner == info.reference,
                audit=weakest(set(part["audit"].astype(str))),
                best=top,
                cheap=cheap,
                saving=_ratio(standard.cost, cheap.cost) if cheap else math.nan,
                curve=tuple(frontier(picks[learner], higher)),
            )
        )
    sign = -1 if higher else 1
    rows.sort(
        key=lambda r: (
            r.cheap is None,
            r.cheap.cost if r.cheap else sign * r.best.quality,
            r.learner,
        )
    )
    return tuple(rows)


def operating_points(frame: pd.DataFrame, metric: str) -> list[Pick]:
    """All settings and points of one learner, averaged over seeds and folds.

    Points that only some of a setting's repeats have are left out: their mean would be over
    other data.
    """
    found = []
    scored = frame[frame[metric].notna()]
    for params, setting in scored.groupby("params"):
        repeats = len(setting[["seed", "fold"]].drop_duplicates())
        for point, rows in setting.groupby("point", sort=False):
            valid, test = rows[rows["split"] == "valid"], rows[rows["split"] == "test"]
            if len(valid) != repeats or len(test) != repeats:
                continue
            found.append(
                Pick(
                    params=json.loads(str(params)),
                    point=json.loads(str(point)),
                    quality=float(test[metric].mean()),
                    spread=float(test[metric].std(ddof=1)) if repeats > 1 else math.nan,
                    cost=float(test["total_cost"].mean()),
                    valid_quality=float(valid[metric].mean()),
                    valid_cost=float(valid["total_cost"].mean()),
                    repeats=repeats,
                )
            )
    return found


def best_point(points: Sequence[Pick], higher: bool) -> Pick:
    """The best validation quality; among equals the cheapest."""
    sign = -1 if higher else 1
    return min(points, key=lambda p: (sign * p.valid_quality, p.valid_cost))


def frontier(points: Sequence[Pick], higher: bool) -> list[Pick]:
    """The points no other is both cheaper and as good as on validation, cheapest first."""
    sign = -1 if higher else 1
    kept: list[Pick] = []
    for point in sorted(points, key=lambda p: (p.valid_cost, sign * p.valid_quality)):
        if not kept or sign * point.valid_quality < sign * kept[-1].valid_quality:
            kept.append(point)
    return kept


def cheapest_keeping(points: Sequence[Pick], standard: Pick, higher: bool) -> Pick | None:
    """The cheapest on validation that keeps ``SHARE`` of the standard's validation quality."""
    wanted = standard.valid_quality * SHARE if higher else standard.valid_quality / SHARE
    sign = 1 if higher else -1
    good = [p for p in points if sign * p.valid_quality >= sign * wanted]
    return min(good, key=lambda p: (p.valid_cost, -sign * p.valid_quality), default=None)


def _ratio(whole: float, part: float) -> float:
    return whole / part if part > 0 else math.inf if whole > 0 else 1.0


_AUDITS = ("failed", "declared", "sampled", "verified")


def weakest(audits: set[str]) -> str:
    """The least that can be said of all trials of a row."""
    return min(audits, key=lambda a: _AUDITS.index(a) if a in _AUDITS else -1, default="")


def _failures(frame: pd.DataFrame, refused: pd.Series[bool]) -> tuple[Failure, ...]:
    """Trials without a place in the ranking, those that ended alike together."""
    trial = ["learner", "params", "seed", "fold"]
    lost = frame[(frame["status"] != "ok") | refused].drop_duplicates(trial)
    lost = lost.assign(
        status=lost["status"].where(lost["status"] != "ok", "audit failed"),
        error=lost["error"].fillna("").astype(str),
    )
    return tuple(
        Failure(
            learner=str(learner),
            status=str(status),
            error=str(error),
            params=_settings_of(part["params"]),
            trials=len(part),
        )
        for (learner, status, error), part in lost.groupby(["learner", "status", "error"])
    )


def _settings_of(params: pd.Series[str]) -> str:
    first = settings(json.loads(str(params.iloc[0] or "{}")))
    others = params.nunique() - 1
    return f"{first} and {count(others, 'other setting')}" if others else first


def _facts(use: Mapping[str, Any], frame: pd.DataFrame) -> tuple[str, ...]:
    """The data set in a few words."""
    facts = [str(use.get("task", ""))]
    rows = use.get("rows") or {}
    if rows:
        sizes = "/".join(str(rows.get(split, 0)) for split in ("train", "valid", "test"))
        facts.append(f"{sizes} rows")
    if use.get("features"):
        facts.append(f"{use['features']} features")
    if use.get("price_of_everything"):
        facts.append(f"all of them cost {use['price_of_everything']:.6g}")
    seeds = frame["seed"].nunique()
    facts.append(count(seeds, "seed"))
    return tuple(fact for fact in facts if fact)


def _only(frame: pd.DataFrame, column: str, otherwise: str) -> str:
    """A column's values, which should be one."""
    values = sorted(set(frame[column].dropna().astype(str)) - {""})
    return ", ".join(values) or otherwise
