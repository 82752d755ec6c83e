"""The leaderboard on the terminal: tables where there is one, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_core.cli.tables import Column, Table, plain_lines, show
from bench_reports.board import SHARE, Board, Row, notice
from bench_reports.words import cost, count, one_line, quality, times

if TYPE_CHECKING:
    from rich.console import Console

    from bench_core.store import RunInfo

PERCENT = f"{SHARE:.0%}"


def show_boards(
    info: RunInfo, boards: Sequence[Board], to: Console, *, verbose: bool = False
) -> None:
    """Write all leaderboards of a run."""
    if not to.is_terminal:
        to.out(text_boards(info, boards, verbose=verbose), highlight=False, end="")
        return
    from rich.text import Text

    for line in heading(info):
        to.print(Text(line, style="bold"))
    for board in boards:
        to.print()
        to.print(Text(board_title(board), style="bold"))
        if board.stand_in:
            to.print(Text(notice(board), style="yellow"))
        show(table(board), to)
        for line in (*failure_lines(board), *(setting_lines(board) if verbose else ())):
            to.print(Text(line, style="red" if line.startswith("failed") else ""))
        for line in note_lines(board):
            to.print(Text(line, style="dim"))
        to.print(Text(legend(board), style="dim"))


def text_boards(info: RunInfo, boards: Sequence[Board], *, verbose: bool = False) -> str:
    """All leaderboards as plain text: one row a line, never cut."""
    lines = heading(info)
    for board in boards:
        lines += ["", board_title(board)]
        lines += [f"notice: {notice(board)}"] if board.stand_in else []
        lines += plain_lines(table(board, named=True))
        lines += [*failure_lines(board), *(setting_lines(board) if verbose else ())]
        lines += [*note_lines(board), legend(board)]
    return "".join(f"{line}\n" for line in lines)


def heading(info: RunInfo) -> list[str]:
    """Which run this is."""
    title = f"{info.title}: " if info.title else ""
    return [one_line(f"{title}{run_line(info)}")]


def run_line(info: RunInfo) -> str:
    """Suite and profile, name, date, and whether it is finished."""
    name = " ".join(part for part in (info.suite, info.profile) if part)
    state = "" if info.state == "finished" else f", {info.state}"
    return one_line(f"{f'{name}, ' if name else ''}run {info.run} of {info.created_at}{state}")


def board_title(board: Board) -> str:
    """The data set, what it is, and the marks that go with its numbers."""
    marks = "".join(f" [{mark}]" for mark in board.marks)
    return one_line(f"{board.dataset}{marks}: {', '.join(board.facts)}")


def table(board: Board, *, named: bool = False) -> Table:
    """The rows; ``named`` puts the data set in front of each."""
    columns = [
        Column("learner", style="bold"),
        Column(board.metric, right=True),
        Column("±", right=True),
        Column("cost", right=True),
        Column(f"{PERCENT} {board.metric}", right=True),
        Column(f"{PERCENT} cost", right=True),
        Column("saving", right=True),
        Column("audit"),
        Column("marks"),
    ]
    rows = [
        [one_line(row.learner), *_numbers(row), row.audit, ", ".join(board.marks_of(row)) or "-"]
        for row in board.rows
    ]
    if named:
        columns.insert(0, Column("data set"))
        rows = [[board.dataset, *row] for row in rows]
    return Table("", columns, rows)


def _numbers(row: Row) -> list[str]:
    best = row.best
    cheap = ["-", "-", "-"]
    if row.cheap is not None:
        cheap = [quality(row.cheap.quality), cost(row.cheap.cost), times(row.saving)]
    return [quality(best.quality), quality(best.spread), cost(best.cost), *cheap]


def failure_lines(board: Board) -> list[str]:
    """What has no place in the ranking, and why."""
    return [
        one_line(
            f"failed: {f.learner}: {f.status} ({count(f.trials, 'trial')}; {f.params}): {f.error}"
        )
        for f in board.failures
    ]


def setting_lines(board: Board) -> list[str]:
    """The settings behind each row."""
    lines = []
    for row in board.rows:
        lines += [f"{row.learner}: best {setting}" for setting in row.best.settings]
        if row.cheap is not None:
            lines += [f"{row.learner}: {PERCENT} {setting}" for setting in row.cheap.settings]
    return [one_line(line) for line in lines]


def note_lines(board: Board) -> list[str]:
    """Remarks of the data set."""
    return [f"note: {one_line(note)}" for note in board.notes]


def legend(board: Board) -> str:
    """What the columns mean, in one line."""
    over = f" over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    means = f"chosen on validation, shown on test{over and f', mean and ±{over}'}"
    costs = f"cost: mean per row in {one_line(board.unit)}, accounting {board.accounting}"
    if not board.reference:
        return f"{means}; {costs}; no reference learner here, so no saving"
    reference = one_line(board.reference)
    return (
        f"{means}; {costs}; {PERCENT}: the cheapest point that keeps {PERCENT} of {reference}'s "
        f"best {board.metric}; saving: what {reference} costs at its best over what that costs"
    )
