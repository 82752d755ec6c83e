"""The leaderboard on the terminal: tables where there is one, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Row, notes_of, notice
from bench_core.protocols import DIVERGED
from bench_core.terminal.tables import Table, console, plain_lines, show, write_text
from bench_core.terminal.wording import cost, count, duration, quality, times

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

PERCENT = f"{SHARE:.0%}"


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    verbose: bool,
) -> None:
    """Write all boards, in a file or without a terminal one row a line."""
    from bench_core.leaderboard.assembly import boards

    made = boards(run, frame)
    if output is None:
        show_boards(run, made, console(), sections=sections, verbose=verbose)
    else:
        write_text(output, text_boards(run, made, sections=sections, verbose=verbose))


def show_boards(
    info: RunInfo,
    boards: Sequence[Board],
    to: Console,
    *,
    sections: Sequence[Section] = (),
    verbose: bool = False,
) -> None:
    """Write all leaderboards of a run, and the summary of each section below them."""
    if not to.is_terminal:
        text = text_boards(info, boards, sections=sections, verbose=verbose)
        to.out(text, highlight=False, end="")
        return
    from rich.text import Text

    for part in _parts(info, boards, sections, verbose, plain=False):
        if isinstance(part, Table):
            show(part, to)
        else:
            to.print(Text(part[0], style=part[1]))


def text_boards(
    info: RunInfo,
    boards: Sequence[Board],
    *,
    sections: Sequence[Section] = (),
    verbose: bool = False,
) -> str:
    """All leaderboards as plain text: one row a line, never cut."""
    parts = _parts(info, boards, sections, verbose, plain=True)
    lines = (plain_lines(part) if isinstance(part, Table) else part[:1] for part in parts)
    return "".join(f"{line}\n" for line in chain.from_iterable(lines))


def _parts(
    info: RunInfo,
    boards: Sequence[Board],
    sections: Sequence[Section],
    verbose: bool,
    plain: bool,
) -> Iterator[tuple[str, str] | Table]:
    """Tables, and lines with their styles; ``plain``: each says by itself what it is about."""
    yield from ((line, "bold") for line in heading(info))
    for index, board in enumerate(boards):
        yield "", ""
        yield board_title(board), "bold"
        if board.stand_in:
            yield f"notice: {notice(board)}" if plain else notice(board), "yellow"
        if board.rows:
            yield table(board, named=plain)
            yield from budget_tables(board, named=plain)
            yield from ((line, "dim") for line in search_lines(board))
        for line in failure_lines(board):
            yield line, "red" if line.startswith("failed") else ""
        if verbose:
            yield from ((line, "") for line in setting_lines(board))
        yield from ((f"note: {one_line(note)}", "dim") for note in notes_of(board))
        yield from ((line, "dim") for line in _legend_due(boards, index))
    yield from ((line, "") for line in section_lines(sections))


def heading(info: RunInfo) -> list[str]:
    """The title of the run, if it has one, and ``run_line``."""
    return [one_line(info.title), run_line(info)] if info.title else [run_line(info)]


def run_line(info: RunInfo) -> str:
    """Number and name of the run, when it began, and its state if it is not finished."""
    begun = info.created_at[:16].replace("T", " ")
    state = "" if info.state == "finished" else f", {info.state}"
    return one_line(f"run {info.number}, {info.run}, of {begun} UTC{state}")


def board_title(board: Board) -> str:
    """The data set, what it is, and the marks that go with its numbers."""
    marks = "".join(f" [{mark}]" for mark in board.marks)
    return one_line(f"{board.dataset}{marks}: {', '.join(board.facts)}")


def table(board: Board, *, named: bool = False) -> Table:
    """The rows; ``named`` puts the data set in front of each."""
    kept = (f"{PERCENT} {board.metric}", f"{PERCENT} cost", "saving")
    numbers = (board.metric, "±", "cost", *kept)
    titles = ["learner", *numbers, "audit", "marks"]
    rows = [
        [one_line(row.learner), *_numbers(row), row.audit, ", ".join(board.marks_of(row)) or "-"]
        for row in board.rows
    ]
    if named:
        titles, rows = ["data set", *titles], [[board.dataset, *row] for row in rows]
    styles = ["dim" if row.baseline else "" for row in board.rows]
    return Table(titles, rows, "learner", numbers, ("marks",), row_styles=styles)


def _numbers(row: Row) -> list[str]:
    cheap = ["-", "-", "-"]
    if row.cheap is not None:
        cheap = [quality(row.cheap.quality), cost(row.cheap.cost), times(row.saving)]
    best = row.best
    return [quality(best.quality), quality(best.spread), cost(best.cost), *cheap]


def budget_tables(board: Board, *, named: bool = False) -> Iterator[Table]:
    """What each learner reaches within the board's budgets, if there are any: where learners differ
    most, and their best points say nothing."""
    if not board.budgets:
        return
    numbers = [f"<= {budget}" if budget.kind == "mean" else str(budget) for budget in board.budgets]
    rows = [
        [one_line(row.learner), *(quality(pick.quality) if pick else "-" for pick in row.within)]
        for row in board.rows
    ]
    titles = ["learner", *numbers]
    if named:
        titles, rows = ["data set", *titles], [[board.dataset, *row] for row in rows]
    about = f"{board.metric} within a cost per row of:"
    styles = ["dim" if row.baseline else "" for row in board.rows]
    yield Table(titles, rows, "learner", numbers, title=about, row_styles=styles)


def search_lines(board: Board) -> list[str]:
    """A line that tells how many settings of each learner, but of the baselines, were tried, how
    many differ where some gave the same path, and how long they took to train."""
    rows = [row for row in board.rows if row.fits and not row.baseline]
    different = {row.learner: f" ({row.fits - row.alike} different)" for row in rows if row.alike}
    tried = ", ".join(
        f"{row.learner} {row.fits}{different.get(row.learner, '')} in {duration(row.seconds)}"
        for row in rows
    )
    return [one_line(f"settings tried, and their training: {tried}")] if tried else []


def failure_lines(board: Board) -> list[str]:
    """Trials that are not in the ranking, with their errors; one that does not suit the data is
    skipped, not failed."""
    lines = [] if board.rows else [f"{board.dataset}: no learner has a result"]
    for f in board.failures:
        skipped = f.status == "skipped"
        what = f"skipped: {f.learner}" if skipped else f"failed: {f.learner}: {f.status}"
        lines.append(one_line(f"{what} ({count(f.trials, 'trial')}; {f.params}): {f.error}"))
    return lines


def setting_lines(board: Board) -> list[str]:
    """The settings behind each row."""
    lines = []
    for row in board.rows:
        lines += [f"{row.learner}: best at {setting.full}" for setting in row.best.settings]
        if row.cheap is not None:
            lines += [f"{row.learner}: {PERCENT} at {s.full}" for s in row.cheap.settings]
    return [one_line(line) for line in lines]


def section_lines(sections: Sequence[Section]) -> list[str]:
    """A line for each section: its summary, and the command that shows more."""
    lines = [f"{s.name}: {s.summary}{s.hint and f'; {s.hint}'}" for s in sections]
    return ["", *map(one_line, lines)] if lines else []


def _legend_due(boards: Sequence[Board], index: int) -> list[str]:
    """The legend below the last of the boards in a row that share it."""
    if not any(board.rows for board in boards):
        return []
    own = legend(boards[index])
    last = index + 1 == len(boards) or legend(boards[index + 1]) != own
    return own if last else []


def legend(board: Board) -> list[str]:
    """The columns explained, one line each for selection, savings and baselines."""
    over = f", mean and ± over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    lines = [
        f"Points are selected on validation, figures are from test{over}; cost: mean per "
        f"row{in_unit(board)}, accounting {board.accounting}."
    ]
    if board.reference:
        best = f"{one_line(board.reference)}'s best"
        lines.append(
            f"{PERCENT}: cheapest point with at least {PERCENT} of {best} {board.metric}; "
            f"saving = cost of {best} point / cost of that point."
        )
    else:
        lines.append("saving: none, as the run has no reference learner here (--reference NAME).")
    if any(row.reference and DIVERGED in row.marks for row in board.rows):
        lines.append(
            f"{DIVERGED}: the training loss rose above the constant's, so training was stopped; no "
            f"saving is measured against {one_line(board.reference)} where it {DIVERGED}."
        )
    if any(row.baseline for row in board.rows):
        lines.append("baseline: trivial methods, listed for comparison.")
    return lines


def in_unit(board: Board) -> str:
    """`` in seconds``, or nothing where prices have no unit of their own."""
    return "" if board.unit in ("", "cost") else f" in {one_line(board.unit)}"
