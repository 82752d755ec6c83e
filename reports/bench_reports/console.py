"""The leaderboard on the terminal: tables where there is one, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.terminal.tables import Column, Table, plain_lines, show
from bench_core.terminal.wording import cost, count, quality, times
from bench_reports.board import SHARE, Board, Failure, Row, notice, remarks

if TYPE_CHECKING:
    from rich.console import Console

    from bench_core.results.store import RunInfo

PERCENT = f"{SHARE:.0%}"


def show_boards(
    info: RunInfo, boards: Sequence[Board], to: Console, *, verbose: bool = False, claims: str = ""
) -> None:
    """Write all leaderboards of a run; ``claims`` sums up what became of the papers' claims."""
    if not to.is_terminal:
        to.out(text_boards(info, boards, verbose=verbose, claims=claims), highlight=False, end="")
        return
    from rich.text import Text

    for line in heading(info):
        to.print(Text(line, style="bold"))
    for index, board in enumerate(boards):
        to.print()
        to.print(Text(board_title(board), style="bold"))
        if board.stand_in:
            to.print(Text(notice(board), style="yellow"))
        if board.rows:
            show(table(board), to)
        for line in (*failure_lines(board), *(setting_lines(board) if verbose else ())):
            to.print(Text(line, style="red" if line.startswith("failed") else ""))
        for line in (*note_lines(board), *_legend_due(boards, index)):
            to.print(Text(line, style="dim"))
    for line in claims_lines(info, claims):
        to.print(Text(line))


def text_boards(
    info: RunInfo, boards: Sequence[Board], *, verbose: bool = False, claims: str = ""
) -> str:
    """All leaderboards as plain text: one row a line, never cut."""
    lines = heading(info)
    for index, board in enumerate(boards):
        lines += ["", board_title(board)]
        lines += [f"notice: {notice(board)}"] if board.stand_in else []
        lines += plain_lines(table(board, named=True)) if board.rows else []
        lines += [*failure_lines(board), *(setting_lines(board) if verbose else ())]
        lines += [*note_lines(board), *_legend_due(boards, index)]
    lines += claims_lines(info, claims)
    return "".join(f"{line}\n" for line in lines)


def heading(info: RunInfo) -> list[str]:
    """What was run, and which run it is."""
    return [one_line(info.title), run_line(info)] if info.title else [run_line(info)]


def run_line(info: RunInfo) -> str:
    """Its number and name, when it began, and whether it is finished."""
    begun = info.created_at[:16].replace("T", " ")
    state = "" if info.state == "finished" else f", {info.state}"
    return one_line(f"run {info.number}, {info.run}, of {begun} UTC{state}")


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
        Column("marks", fold=True),
    ]
    rows = [
        [one_line(row.learner), *_numbers(row), row.audit, ", ".join(board.marks_of(row)) or "-"]
        for row in board.rows
    ]
    if named:
        columns.insert(0, Column("data set"))
        rows = [[board.dataset, *row] for row in rows]
    return Table("", columns, rows, ["dim" if row.rung else "" for row in board.rows])


def _numbers(row: Row) -> list[str]:
    best = row.best
    cheap = ["-", "-", "-"]
    if row.cheap is not None:
        cheap = [quality(row.cheap.quality), cost(row.cheap.cost), times(row.saving)]
    return [quality(best.quality), quality(best.spread), cost(best.cost), *cheap]


def failure_lines(board: Board) -> list[str]:
    """What has no place in the ranking, and why."""
    nothing = [] if board.rows else [f"{board.dataset}: no learner has a result"]
    return nothing + [_failure(f) for f in board.failures]


def _failure(f: Failure) -> str:
    """A trial that its data do not suit was skipped and did not fail."""
    what = f"skipped: {f.learner}" if f.status == "skipped" else f"failed: {f.learner}: {f.status}"
    return one_line(f"{what} ({count(f.trials, 'trial')}; {f.params}): {f.error}")


def setting_lines(board: Board) -> list[str]:
    """The settings behind each row."""
    lines = []
    for row in board.rows:
        lines += [f"{row.learner}: best at {setting.full}" for setting in row.best.settings]
        if row.cheap is not None:
            lines += [f"{row.learner}: {PERCENT} at {s.full}" for s in row.cheap.settings]
    return [one_line(line) for line in lines]


def note_lines(board: Board) -> list[str]:
    """Remarks of the data set."""
    return [f"note: {one_line(note)}" for note in remarks(board)]


def claims_lines(info: RunInfo, claims: str) -> list[str]:
    """What became of the papers' claims, and where they are listed."""
    return ["", f"claims: {claims}; 'bench claims {info.suite}' lists them"] if claims else []


def _legend_due(boards: Sequence[Board], index: int) -> list[str]:
    """The legend below the last of the boards in a row that share it."""
    if not any(board.rows for board in boards):
        return []
    own = legend(boards[index])
    last = index + 1 == len(boards) or legend(boards[index + 1]) != own
    return [own] if last else []


def legend(board: Board) -> str:
    """What the columns mean, in one line."""
    over = f" over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    means = f"chosen on validation, shown on test{over and f', mean and ±{over}'}"
    costs = f"cost: mean per row{in_unit(board)}, accounting {board.accounting}"
    below = "; rungs: what needs no method" if any(row.rung for row in board.rows) else ""
    if not board.reference:
        return f"{means}; {costs}; no reference learner here, so no saving{below}"
    reference = one_line(board.reference)
    return (
        f"{means}; {costs}; {PERCENT}: the cheapest point that keeps {PERCENT} of {reference}'s "
        f"best {board.metric}; saving: what {reference} costs at its best over what that costs"
        f"{below}"
    )


def in_unit(board: Board) -> str:
    """`` in seconds``, or nothing where prices have no unit of their own."""
    return "" if board.unit in ("", "cost") else f" in {one_line(board.unit)}"
