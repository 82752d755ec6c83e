"""The leaderboard as text: the same tables on a terminal, in a pipe and in a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.datasets.cautions import joined
from bench_core.errors import one_line
from bench_core.leaderboard.board import (
    FALLS,
    OVER,
    UNREACHABLE,
    Board,
    Row,
    lost_below,
    notice,
)
from bench_core.leaderboard.columns import (
    FEATURES,
    QUALITY,
    Column,
    explained,
    order_words,
    row_names,
    rule_words,
    target,
)
from bench_core.leaderboard.conclusion import (
    conclusion,
    over_datasets,
    overall_conclusion,
    ranked_by,
)
from bench_core.protocols import DIVERGED
from bench_core.results.budgets import SHARE
from bench_core.results.operating_points import AT_EDGE, NOT_CONVERGED
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import (
    GAP,
    TEXT_WIDTH,
    Table,
    console,
    fits,
    plain_lines,
    show,
    wrapped,
    write_text,
)
from bench_core.terminal.wording import count, half, percent, quality, rank_range, run_line
from bench_reports.panels import Panel, Panels

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


LONG_TITLE = 10  # a metric with a longer name is headed "quality"

RANKS = (
    f"rank: {CONFIDENCE} range (Nemenyi test); *: not significantly worse than the best. "
    "Only learners with a result on every data set."
)

MEANINGS = {
    NOT_CONVERGED: "more trees would still help",
    AT_EDGE: "the best value ends the range that was tried: try values beyond",
    DIVERGED: "training diverged and was stopped; no saving is measured against it",
    OVER: f"mean cost on test is above the budget by more than its {CONFIDENCE} interval",
    UNREACHABLE: "takes the best answer of each row after seeing all, luck included",
    FALLS: "worse on test than on validation by more than chance (p <= .001): test rows differ, "
    "or validation rows were trained on",
}
"""Meanings of marks, by the beginning of the mark."""


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    store: Store | None = None,
    columns: Sequence[str] = (),
    against: str = "",
    noted: bool = False,
    registry: Registry | None = None,
) -> None:
    """Write all boards. ``noted``: without the notes that the run has shown."""
    from bench_core.leaderboard.assembly import boards

    shown = boards(run, frame, store)
    if noted:
        texts = [(use.name, note.text) for use in run.datasets for note in use.notes]
        for k, board in enumerate(shown):
            seen = {*joined(text for name, text in texts if name == board.dataset)}
            shown[k] = replace(board, notes=tuple(n for n in board.notes if n not in seen))
    panels = Panels(run, frame, store, shown, columns, against, registry)
    if output is None:
        show_boards(panels, console(), sections)
    else:
        write_text(output, text_boards(panels, sections))


def show_boards(panels: Panels, to: Console, sections: Sequence[Section] = ()) -> None:
    """Write all leaderboards of a run, followed by the summary of each section."""
    if not to.is_terminal:  # a pipe or a file: nothing is cut or coloured
        to.out(text_boards(panels, sections), highlight=False, end="")
        return
    from rich.text import Text

    for block in _parts(panels, sections, to.width):
        if isinstance(block, Table):
            show(block, to)
        else:
            to.print(Text(block[0], style=block[1]))


def text_boards(panels: Panels, sections: Sequence[Section] = ()) -> str:
    """Return all leaderboards as plain text of ``TEXT_WIDTH``; rows of tables are never broken."""
    parts = _parts(panels, sections, TEXT_WIDTH)
    lines = (plain_lines(part) if isinstance(part, Table) else [wrapped(part[0])] for part in parts)
    return "".join(f"{line}\n" for line in chain.from_iterable(lines))


def _parts(
    panels: Panels, sections: Sequence[Section], width: int
) -> Iterator[tuple[str, str] | Table]:
    """Yield tables, and lines with their styles."""
    boards = panels.boards
    yield from ((line, "bold") for line in heading(panels.info))
    if overall := overall_conclusion(boards):
        yield " ".join(overall), "bold"
    tables = [panels.of(board) for board in boards]
    ranked = any(board.rows for board in boards)
    legends = [legend(*both) if ranked else [] for both in zip(boards, tables, strict=True)]
    for board, shown, lines, following in zip(
        boards, tables, legends, [*legends[1:], None], strict=True
    ):
        yield "", ""
        yield one_line(f"{board.dataset}{marked(board)}: {', '.join(board.facts)}"), "bold"
        if board.rows:
            yield " ".join(conclusion(board)), ""
        if board.stand_in:
            yield f"notice: {notice(board)}.", "yellow"
        if board.rows:
            yield screen_table(shown[0], board.metric)
            yield from ((line, "dim") for line in mark_lines(board))
            yield from (budget_table(panel, width) for panel in shown[1:])
        for line in failure_lines(board):
            yield line, "red" if line.startswith("failed") else ""
        yield from ((f"note: {one_line(note)}", "dim") for note in board.notes)
        if lines != following:  # below the last of consecutive boards that share it
            yield from ((line, "dim") for line in lines)
    if any(board.saves and board.keep == SHARE for board in boards):
        yield "Another share: bench report --keep 95%.", "dim"
    if ranks := rank_table(boards, width):
        yield "", ""
        yield ranks
        if ranks.titles[3] == "1":
            names = over_datasets(boards)[0]
            yield ", ".join(f"{k + 1}: {name}" for k, name in enumerate(names)), "dim"
        yield RANKS, "dim"
    if sections:
        yield "", ""
    for section in sections:  # a summary, and the command that shows more
        hint = section.hint and f"; {section.hint}"
        yield one_line(f"{section.name}: {section.summary}{hint}"), ""


def mark_lines(board: Board) -> list[str]:
    """Return a line for each mark with the rows that have it and its meaning, and for audits if
    they differ."""
    learners: dict[str, list[str]] = {}
    for row in (*board.rows, *board.sources):
        # the order of rows shows who is reference and baseline
        for mark in own_marks(board, row):
            if mark != "reference":
                learners.setdefault(mark, []).append(row.learner)
    return [
        one_line(f"{mark}: {', '.join(names)}{meaning and f'; {meaning}'}")
        for mark, names in learners.items()
        for meaning in [meaning_of(mark, board)]
    ]


def own_marks(board: Board, row: Row) -> list[str]:
    """Return the marks of a row without those of its board, which are in the title, and without
    baseline, as these are listed last; an audit is one if not all rows share it."""
    marks = [mark for mark in board.marks_of(row) if mark not in {*board.marks, "baseline"}]
    return marks + [f"audit {row.audit}"] * (len({other.audit for other in board.rows}) > 1)


def meaning_of(mark: str, board: Board) -> str:
    """Return the meaning of a mark, "" if its words say it."""
    least = lost_below(board.keep)
    if mark == f"below {percent(least)}":
        return lost_words(least, board.reference, board.metric)
    return next((words for start, words in MEANINGS.items() if mark.startswith(start)), "")


def lost_words(share: float, reference: str, metric: str) -> str:
    """Return why a saving does not count."""
    return (
        f"on test that point is significantly below {share * 100:.6g}% of {reference}'s best "
        f"{metric}, so the saving does not count"
    )


def heading(info: RunInfo) -> list[str]:
    """Return the title of the run, if it has one, and ``run_line``."""
    return [one_line(info.title), run_line(info)] if info.title else [run_line(info)]


def marked(board: Board) -> str:
    """Return a board's marks, to follow its name."""
    return "".join(f" [{mark}]" for mark in board.marks)


def failure_lines(board: Board) -> list[str]:
    """Return trials that are not ranked, with their errors. A trial that does not suit the data is
    skipped, not failed."""
    lines = [] if board.rows else [f"{board.dataset}: no learner has a result"]
    for failure in board.failures:
        what = f"failed: {failure.learner}: {failure.status}"
        what = f"skipped: {failure.learner}" if failure.status == "skipped" else what
        trials = f"{count(failure.trials, 'trial')}; {failure.params}"
        lines.append(one_line(f"{what} ({trials}): {failure.error}"))
    return lines


def legend(board: Board, panels: Sequence[Panel]) -> list[str]:
    """Return two lines: the source of models and unit of costs; the columns, why figures are
    missing, and the order of rows."""
    shown = [column for panel in panels for column in panel.columns if not panel.title]
    words = [explained(shown), _lacking(board), order_words(board)]
    if panels[-1].title and not panels[-1].tested and not any(at.note for at in board.at):
        words.insert(1, "*: not significantly worse than the best.")
    return [selection_line(board), " ".join(filter(None, words))]


def _lacking(board: Board) -> str:
    """Return why there is no saving or no interval; an undefined metric is the conclusion."""
    if board.undefined:
        return ""
    if board.totals:
        return " ".join(sorted({f"{at.note}." for at in board.at if at.note}))
    lines = {f"{at.note}." for at in board.at if at.note}
    reference = board.reference_row
    if not board.reference:
        lines.add("No saving without a reference learner (bench run --reference NAME).")
    elif reference and not reference.reached and DIVERGED not in reference.marks:
        lines.add(f"No saving, as a constant, which costs nothing, has {target(board)}.")
    return " ".join(sorted(lines))


def selection_line(board: Board) -> str:
    """Return the source of models and figures, and the unit of costs."""
    over = f", means over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    models = "Points are chosen on validation"
    if board.saves:
        models = f"Each row is one model: {rule_words(board)}"
    audits = {row.audit for row in board.rows}
    audit = f"; audit: {one_line(audits.pop())}" if len(audits) == 1 else ""
    unit = f" in {one_line(board.unit)}" if board.unit else ""
    priced = f"mean per row{unit}, for features {'and trees' if board.trees_paid else 'only'}"
    if board.counted:
        priced = "mean number of features per row"
    name = "cost"
    if board.totals:  # of which the sentence and other columns tell the rest
        name = FEATURES
        parts = "with trees" if board.trees_paid else "without errors"
        priced = f"mean cost per row{unit}, {parts}"
    billed = "" if board.accounting == "path" else f"; accounting: {board.accounting}"
    return f"{models}; figures are from test{over}. {name}: {priced}{billed}{audit}."


def screen_table(panel: Panel, metric: str = "") -> Table:
    """Return a table for a terminal; a long ``metric`` is headed "quality"."""
    titles = [column.title for column in panel.columns]
    if len(metric) > LONG_TITLE:
        titles = [QUALITY if title == metric else title for title in titles]
    names = row_names(panel.rows)
    cells = [
        [one_line(name), *(column.text(row) for column in panel.columns)]
        for name, row in zip(names, panel.rows, strict=True)
    ]
    # baselines come last, below a rule
    methods = sum(not row.baseline for row in panel.rows)
    return Table(
        ["learner", *titles],
        cells,
        "learner",
        [title for title in titles if title not in WORDS],
        ("learner",),
        row_styles=["dim" if row.baseline else "" for row in panel.rows],
        rule=methods if 0 < methods < len(panel.rows) else None,
    )


WORDS = ("audit", "marks", "setting")
"""Columns of words; all others are of numbers."""


def budget_table(panel: Panel, width: int) -> Table:
    """Return quality within each budget, with half the width of its interval if there is room."""
    for with_half in (True, False):
        shown = [
            replace(column, text=partial(_cell, column, with_half, not panel.tested))
            for column in panel.columns
        ]
        table = screen_table(panel._replace(columns=shown))
        if fits(table, width):
            break
    bold = {
        (i, j)
        for j, column in enumerate(panel.columns, 1)
        for i, row in enumerate(panel.rows)
        if row.learner in panel.leaders(column)[0]
    }
    return replace(table, title=panel.title, bold_cells=frozenset(bold))


def _cell(column: Column, with_half: bool, stars: bool, row: Row) -> str:
    """Return a value, with half its interval if requested and known, and a mark of tier 1."""
    value, written = column.value(row), column.text(row)
    if column.interval is None or column.tier is None or not isinstance(value, float):
        return written
    width = column.interval(row).high - column.interval(row).low
    mark = "*" if column.tier(row) == 1 else " "
    mark = "" if math.isnan(width) or not stars else mark
    if not with_half or math.isnan(width):
        return written + mark
    # one decimal less than elsewhere, as ± takes room: 0.799±.012
    decimals = 3 if abs(value) >= 0.1 else 4
    width_shown = half(column.interval(row), decimals, value)
    sign = "" if width_shown[0] in "+-" else "±"  # both sides have one
    return f"{quality(value, decimals)}{sign}{width_shown}{mark}"


def rank_table(boards: Sequence[Board], width: int) -> Table | None:
    """Return ranks over several data sets, which are numbered if their names do not fit."""
    names, ranked = over_datasets(boards)
    if not ranked:
        return None
    baselines = {row.learner for board in boards for row in board.rows if row.baseline}
    # 32: about the width of names, mean and rank
    heads = list(names)
    if sum(GAP + max(len(name), 4) for name in heads) > width - 32:
        heads = [str(k + 1) for k in range(len(names))]
    titles = ["learner", "mean rank", "rank", *heads]
    rows = [
        [
            one_line(learner.learner),
            f"{learner.mean:.2f}{'*' if learner.tier == 1 else ' '}",
            rank_range(learner.ranks),
            *(f"{rank:g}" for rank in learner.by_dataset),
        ]
        for learner in sorted(ranked, key=lambda learner: learner.learner in baselines)
    ]
    title = f"Mean rank over {len(names)} data sets (by {ranked_by(boards)})"
    return Table(titles, rows, "learner", titles[1:], ("learner",), title=title)
