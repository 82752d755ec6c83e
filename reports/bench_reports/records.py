"""Boards for other programs: CSV with a row for each learner and budget, and JSON. The same run
gives the same bytes.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import no_formula, one_line
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import UNREACHABLE
from bench_core.leaderboard.columns import QUALITY, columns, standing_fields
from bench_core.leaderboard.conclusion import conclusion, over_datasets, overall_conclusion
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.request import command
from bench_core.terminal.tables import write_text
from bench_reports.panels import Panels

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row, Standing
    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo


def write_csv(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    store: Any = None,
    against: str = "",
    registry: Registry | None = None,
) -> None:
    """Write one row for each data set, learner and budget: its quality there; without a limit (an
    empty budget) also the columns of the board, with the model's cost and quality as ``model cost``
    and ``model quality``. With a learner ``against`` there is a column of adjusted p-values."""
    shown = boards(run, frame, store)
    panels = Panels(run, frame, store, shown, against=against, registry=registry)
    records = [record for board in shown for record in _records(board, panels)]
    titles = list(dict.fromkeys(title for record in records for title in record))
    text = StringIO()
    rows = csv.DictWriter(text, titles, restval="", lineterminator="\n")
    rows.writeheader()
    rows.writerows({title: _cell(value) for title, value in one.items()} for one in records)
    write_text(output or Path("-"), text.getvalue())


def _records(board: Board, panels: Panels) -> Iterator[dict[str, float | str]]:
    tests = [panels.p_values(board, at.budget) for at in board.at]
    sources = ((row, (row.standing,)) for row in board.sources)  # at any cost alone
    for row, standings in chain(board.lines(), sources):
        role = "reference" if row.reference else "baseline" if row.baseline else ""
        role = UNREACHABLE if UNREACHABLE in row.marks else role
        there = slice(-len(standings), None)
        for at, standing, differences in zip(board.at[there], standings, tests[there], strict=True):
            test = differences.get(row.learner)
            yield {
                "dataset": board.dataset,
                "metric": board.metric,
                "unit": board.unit,
                "learner": row.learner,
                "role": role,
                "budget kind": at.budget.kind if at.budget else "",
                "budget": at.budget.amount if at.budget else math.nan,
                **standing_fields(standing),
                **({} if at.budget else _of_model(board, row, panels.registry)),
                **({"p": test.adjusted if test else ""} if panels.against else {}),
            }


def _of_model(board: Board, row: Row, registry: Registry | None) -> dict[str, float | str]:
    """Return the columns of the board; the figures of the model it shows have its name."""
    model = ("cost", QUALITY, "low", "high", "tier")
    return {
        f"model {name}" if name in model else name: value
        for column in columns(board, registry)
        for name, value in column.fields(row).items()
        if name != "tier"  # of the best point, as at each budget
    }


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return no_formula(one_line(value))
    return "" if math.isnan(value) else f"{value:.10g}"


def write_json(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section] = (),
    store: Any = None,
    registry: Registry | None = None,
) -> None:
    """Write boards with curves, standings and failures as one JSON document."""
    shown = boards(run, frame, store)
    names, ranked = over_datasets(shown)
    document = {
        "run": run.run,
        "title": run.title,
        "state": run.state,
        "command": command(run.request),
        "methods": paragraph(run, frame, registry=registry),
        "conclusion": overall_conclusion(shown),
        "ranks": [
            {**asdict(learner), "by_dataset": dict(zip(names, learner.by_dataset, strict=True))}
            for learner in ranked
        ],
        "datasets": [_board(board, registry) for board in shown],
        "sections": [{"name": s.name, "summary": s.summary} for s in sections],
    }
    # NaN is not JSON
    text = json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(output or Path("-"), f"{text}\n")


def _board(board: Board, registry: Registry | None) -> dict[str, Any]:
    same = ("dataset", "metric", "higher_is_better", "unit", "accounting", "reference", "stand_in")
    return {
        **{name: getattr(board, name) for name in same},
        "facts": board.facts,
        "conclusion": conclusion(board),
        "notes": [*board.remarks()],
        "budgets": [at.budget for at in board.at],
        "learners": [_learner(board, row, standings, registry) for row, standings in board.lines()],
        "sources": [
            {"source": row.learner, QUALITY: row.best.quality, "cost": row.best.cost}
            for row in board.sources
        ],
        "failures": [asdict(failure) for failure in board.failures],
    }


def _learner(
    board: Board, row: Row, standings: Sequence[Standing], registry: Registry | None
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for column in columns(board, registry):
        figures |= column.fields(row)
    return {
        "learner": row.learner,
        "baseline": row.baseline,
        **figures,
        "marks": board.marks_of(row),
        "chosen": [setting.full for setting in row.model.settings],
        "standings": [*map(standing_fields, standings)],
        "curve": [
            {"budget": point.budget, "quality": point.pick.quality, "cost": point.pick.cost}
            for point in row.curve
        ],
    }


def _plain(value: Any) -> Any:
    """Return JSON values: budgets and intervals by their fields, null for infinite and NaN."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value
