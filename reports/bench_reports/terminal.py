"""The leaderboard on the terminal: tables where there is one, plain lines elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import LOST, SHARE, Board, notes_of, notice
from bench_core.leaderboard.ranks import over_datasets
from bench_core.protocols import DIVERGED
from bench_core.statistics.bootstrap import FEW_DRAWS
from bench_core.terminal.tables import PLAIN_WIDTH, Table, console, plain_lines, show, write_text
from bench_core.terminal.wording import count, duration
from bench_reports.board_tables import (
    PERCENT,
    budget_table,
    curve_lines,
    main_table,
    plain_tables,
    rank_table,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


RANKS = (
    "mean: over data sets; rank: what Nemenyi's test leaves; *: statistically tied for best. "
    "Only learners with a result on every data set."
)


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    verbose: bool,
    store: Store | None = None,
) -> None:
    """Write all boards, in a file or without a terminal one row a line."""
    from bench_core.leaderboard.certainty import all_certified

    made = all_certified(run, store, frame)
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
    if not to.is_terminal:  # a pipe or a file: nothing is cut or coloured
        text = text_boards(info, boards, sections=sections, verbose=verbose)
        to.out(text, highlight=False, end="")
        return
    from rich.text import Text

    for part in _parts(info, boards, sections, verbose, plain=False, width=to.width):
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
    width: int = PLAIN_WIDTH,
) -> Iterator[tuple[str, str] | Table]:
    """Tables, and lines with their styles; ``plain``: each says by itself what it is about."""
    yield from ((line, "bold") for line in heading(info))
    legends = [legend(board) if any(b.rows for b in boards) else [] for board in boards]
    for board, own, following in zip(boards, legends, [*legends[1:], None], strict=True):
        yield "", ""
        yield one_line(f"{board.dataset}{marked(board)}: {', '.join(board.facts)}"), "bold"
        if board.stand_in:
            yield f"notice: {notice(board)}" if plain else notice(board), "yellow"
        if board.rows:
            yield from plain_tables(board) if plain else _narrow(board, width)
            yield from ((line, "dim") for line in search_lines(board))
        for line in failure_lines(board):
            yield line, "red" if line.startswith("failed") else ""
        if verbose:
            yield from ((line, "") for line in setting_lines(board))
        yield from ((f"note: {one_line(note)}", "dim") for note in notes_of(board))
        if own != following:  # below the last of the boards in a row that share it
            yield from ((line, "dim") for line in own)
    names, ranked = over_datasets(boards)
    if ranked:
        by = "by area (without a reference by best quality)"
        yield "", ""
        yield f"ranks on {len(names)} data sets, {by}", "bold"
        made = rank_table(ranked, names, width)
        yield made
        if made.titles[3] != names[0]:
            yield ", ".join(f"{k + 1}: {name}" for k, name in enumerate(names)), "dim"
        yield RANKS, "dim"
    if sections:
        yield "", ""
    for one in sections:  # a summary, and the command that shows more
        yield one_line(f"{one.name}: {one.summary}{one.hint and f'; {one.hint}'}"), ""


def _narrow(board: Board, width: int) -> Iterator[tuple[str, str] | Table]:
    """A board for a terminal: what does not fit into columns is in lines below."""
    made, short = main_table(board, width)
    yield made
    if short:
        yield f"names: {', '.join(f'{cut} is {name}' for cut, name in short.items())}", "dim"
    yield from ((line, "dim") for line in mark_lines(board))
    if (lines := curve_lines(board, width)) and not os.environ.get("BENCH_NO_CURVE"):
        yield from ((line, "bold" if k == 0 else "") for k, line in enumerate(lines))
    if budgets := budget_table(board, width):
        yield budgets


def mark_lines(board: Board) -> list[str]:
    """A line for each mark with the rows that have it, and audits where they differ."""
    # those are seen by the order of rows, or stand in the title
    known = {"reference", "baseline", *board.marks}
    audits = {row.audit for row in board.rows}
    marked: dict[str, list[str]] = {}
    for row in board.rows:
        own = [mark for mark in board.marks_of(row) if mark not in known]
        for mark in own + ([f"audit {row.audit}"] if len(audits) > 1 else []):
            marked.setdefault(mark, []).append(row.learner)
    return [one_line(f"{mark}: {', '.join(names)}") for mark, names in marked.items()]


def heading(info: RunInfo) -> list[str]:
    """The title of the run, if it has one, and ``run_line``."""
    return [one_line(info.title), run_line(info)] if info.title else [run_line(info)]


def run_line(info: RunInfo) -> str:
    """Number and name of the run, when it began, and its state if it is not finished."""
    begun = info.created_at[:16].replace("T", " ")
    state = "" if info.state == "finished" else f", {info.state}"
    return one_line(f"run {info.number}, {info.run}, of {begun} UTC{state}")


def marked(board: Board) -> str:
    """The marks that go with a board's numbers, behind its name."""
    return "".join(f" [{mark}]" for mark in board.marks)


def search_lines(board: Board) -> list[str]:
    """A line that tells how many settings of each learner, but of the baselines, were tried, how
    many differ where some gave the same path, and how long they took to train."""
    # baselines have nothing to tune
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


def legend(board: Board) -> list[str]:
    """The columns and the order explained, a line for each subject."""
    return [
        selection_line(board),
        *_saving_lines(board),
        *_certainty_lines(board),
        *explained_marks(board),
    ]


def selection_line(board: Board) -> str:
    """The source of points and figures, and the unit of costs."""
    over = f", means over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    audits = {row.audit for row in board.rows}
    audit = f"; audit: {one_line(audits.pop())}" if len(audits) == 1 else ""
    unit = "" if board.unit in ("", "cost") else f" in {one_line(board.unit)}"
    return (
        f"Points are selected on validation, figures are from test{over}; cost: mean per "
        f"row{unit}, accounting {board.accounting}{audit}."
    )


def explained_marks(board: Board) -> list[str]:
    """Marks explained that say that something is not measured alike."""
    lines = {
        f"{DIVERGED}: the training loss rose above the constant's, so training was stopped; no "
        f"saving is measured against {one_line(board.reference)} where it {DIVERGED}.": any(
            row.reference and DIVERGED in row.marks for row in board.rows
        ),
        "baseline: trivial methods, listed last for comparison.": any(
            row.baseline for row in board.rows
        ),
    }
    return [line for line, there in lines.items() if there]


def target(board: Board) -> str:
    """The quality at which savings are measured, in words."""
    best = f"{one_line(board.reference)}'s best {board.metric}"
    return (
        f"at least {PERCENT} of {best}" if board.higher_is_better else f"at most {best} / {SHARE}"
    )


def _saving_lines(board: Board) -> list[str]:
    if not board.reference:
        return ["saving: none, as the run has no reference learner here (--reference NAME)."]
    name = one_line(board.reference)
    share = f"its {board.metric} on test as a share of {name}'s"
    if not board.higher_is_better:
        share = f"{name}'s best {board.metric} on test as a share of its"
    mean = ", the mean of repeats" if board.repeats > 1 else ""
    lines = [
        f"{PERCENT}: cheapest point with {target(board)}; "
        f"kept: {share}; saving: what {name} pays for {PERCENT} over what the learner pays for it, "
        f"between two points in proportion{mean}.",
    ]
    if any(row.saved and row.saved.lost for row in board.rows):
        lines.append(
            f"!, below {LOST:.0%}: on test that point is certainly below {LOST:.0%} of {name}'s "
            f"best {board.metric}; validation was lucky, so it leads nothing."
        )
    return lines


def _certainty_lines(board: Board) -> list[str]:
    notes = {one.note for one in board.standings if one.note}
    if notes:
        return [f"order: by cost where {PERCENT} is kept, then by quality; {notes.pop()}."]
    if not any(row.standing for row in board.rows):
        return []
    first = (
        f"those that keep {PERCENT} by tiers of the saving, ties by the lower end of its interval;"
    )
    return [
        f"±: half the 95% interval{of_few_draws(board)}; rank: the ranks that the data leave a "
        "learner; *: statistically tied for best; 95%: interval of the saving, 1.0 where a draw "
        "misses the quality.",
        f"order: {f'{first} others ' if board.reference else ''}by tiers of {board.metric}.",
    ]


def of_few_draws(board: Board) -> str:
    """The number of draws behind intervals, where it is lower than usual."""
    return f" of {board.draws} draws" if 0 < board.draws <= FEW_DRAWS else ""
