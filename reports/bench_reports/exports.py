"""Boards as tables for other programs: CSV with a row for each learner and budget, and JSON."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import no_formula, one_line
from bench_core.leaderboard.board import UNKNOWN
from bench_core.leaderboard.certainty import all_certified
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.invocation import command
from bench_core.results.budgets import Budget
from bench_core.terminal.tables import write_text

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

TITLES = (
    *("dataset", "metric", "unit", "learner", "role", "kind", "budget"),
    *("quality", "low", "high", "cost", "tier", "best_rank", "worst_rank", "marks"),
    *("saving", "saving_low", "saving_high", "saving_low_99", "saving_high_99"),
    *("area", "area_low", "area_high", "regret", "regret_low", "regret_high"),
)


def write_csv(run: RunInfo, frame: pd.DataFrame, output: Path | None, *, store: Any = None) -> None:
    """Write one row for each data set, learner and budget; no limit is an empty budget."""
    text = StringIO()
    made = csv.writer(text, lineterminator="\n")
    made.writerow(TITLES)
    for board in all_certified(run, store, frame):
        made.writerows(_rows(board))
    write_text(output or Path("-"), text.getvalue())


def _rows(board: Board) -> Iterator[list[str]]:
    for row, found in board.lines():
        role = "reference" if row.reference else "baseline" if row.baseline else ""
        for at, one in zip(board.at, found, strict=True):
            # no limit is an empty cell
            budget, kind = at.budget or Budget(math.nan, "")
            texts = board.dataset, board.metric, board.unit, row.learner, role, kind
            yield [
                *(no_formula(one_line(text)) for text in texts),
                *map(_number, (budget, one.quality, *one.interval, one.cost)),
                *map(str, (one.tier, *one.ranks)),
                no_formula(one_line(", ".join(board.marks_of(row)))),
                *map(_number, _of_the_curve(row) if at.budget is None else [math.nan] * 11),
            ]


def _of_the_curve(row: Row) -> Iterator[float]:
    """Saving, area and regret with their intervals, which no single budget has."""
    # 95% and 99%
    ends = (*row.saved.interval, *row.saved.wide) if row.saved else (*UNKNOWN, *UNKNOWN)
    yield from (row.saving, *ends)
    for one in (row.area, row.regret):
        yield from (one.value, *one.interval) if one else (math.nan, *UNKNOWN)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def write_json(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section] = (),
    store: Any = None,
) -> None:
    """Write boards with curves, standings and failures as one JSON document."""
    document = {
        "run": run.run,
        "title": run.title,
        "state": run.state,
        "command": command(run.request),
        "methods": paragraph(run, frame),
        "datasets": [_board(board) for board in all_certified(run, store, frame)],
        "sections": [{"name": s.name, "summary": s.summary} for s in sections],
    }
    # NaN is not JSON
    text = json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(output or Path("-"), f"{text}\n")


def _board(board: Board) -> dict[str, Any]:
    same = ("dataset", "metric", "higher_is_better", "unit", "accounting", "reference", "stand_in")
    return {
        **_fields(board, *same),
        "facts": board.facts,
        "notes": [*board.remarks()],
        "budgets": [at.budget for at in board.at],
        "learners": [
            {
                **_fields(row, "learner", "baseline"),
                "marks": board.marks_of(row),
                **_fields(row, "audit", "saving"),
                "saving_interval": row.saved and row.saved.interval,
                "saving_interval_99": row.saved and row.saved.wide,
                "area": row.area and _fields(row.area, "value", "interval"),
                "regret": row.regret and _fields(row.regret, "value", "interval"),
                "settings": [setting.full for setting in row.best.settings],
                "standings": [_fields(one, *STANDING) for one in found],
                "curve": [
                    {"budget": point.budget, **_fields(point.pick, "quality", "spread", "cost")}
                    for point in row.curve
                ],
            }
            for row, found in board.lines()
        ],
        "failures": [asdict(lost) for lost in board.failures],
    }


STANDING = ("quality", "interval", "cost", "tier", "ranks")


def _fields(one: object, *names: str) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}


def _plain(value: Any) -> Any:
    """JSON values: budgets by their fields, null for what is not finite."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # budgets and intervals
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value
