"""The leaderboard as text: narrow tables on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import (
    FALLS,
    LOST,
    OVER,
    Board,
    Row,
    Saved,
    Standing,
    notes_of,
    notice,
)
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.leaderboard.ranks import over_datasets, ranked_by
from bench_core.protocols import DIVERGED
from bench_core.results.marks import AT_EDGE, NOT_CONVERGED
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import (
    GAP,
    PLAIN_WIDTH,
    Table,
    console,
    plain_lines,
    show,
    write_text,
)
from bench_core.terminal.wording import (
    TINY,
    count,
    duration,
    quality,
    rank_range,
    times,
)
from bench_reports.columns import (
    PERCENT,
    USUAL,
    Asked,
    Columns,
    budget_columns,
    certainty_columns,
    columns_of,
    ends_of,
    explained,
    half_width,
    main_columns,
    missing_words,
    on_screen,
    order_words,
    saving_columns,
    shown_rows,
    small,
    standings_at,
    target,
    within_words,
)

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


LEAST_NAME = 8
_TITLE = 8  # a metric with a longer name is headed "quality"


RANKS = (
    f"rank: {CONFIDENCE} range (Nemenyi test); *: not significantly worse than the best. "
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
    columns: Sequence[str] = (),
    against: str = "",
    noted: bool = False,
) -> None:
    """Write all boards; in a file or without a terminal with one line per row. ``noted``: without
    the notes that the run has shown."""
    from bench_core.leaderboard.assembly import boards
    from bench_reports.asked_columns import asked_columns

    made = boards(run, frame, store)
    if noted:
        seen = {str(note) for use in run.datasets for note in use.get("notes", ())}
        kept = [tuple(note for note in board.notes if note not in seen) for board in made]
        made = [replace(b, notes=notes) for b, notes in zip(made, kept, strict=True)]
    asked = asked_columns(run, frame, store, made, columns, against, on_screen)
    if output is None:
        show_boards(run, made, console(), sections=sections, verbose=verbose, asked=asked)
    else:
        text = text_boards(run, made, sections=sections, verbose=verbose, asked=asked)
        write_text(output, text)


def show_boards(
    info: RunInfo,
    boards: Sequence[Board],
    to: Console,
    *,
    sections: Sequence[Section] = (),
    verbose: bool = False,
    asked: Asked = USUAL,
) -> None:
    """Write all leaderboards of a run, followed by the summary of each section."""
    if not to.is_terminal:  # a pipe or a file: nothing is cut or coloured
        text = text_boards(info, boards, sections=sections, verbose=verbose, asked=asked)
        to.out(text, highlight=False, end="")
        return
    from rich.text import Text

    for part in _parts(info, boards, sections, verbose, asked, plain=False, width=to.width):
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
    asked: Asked = USUAL,
) -> str:
    """Return all leaderboards as plain text: one line per row, never cut."""
    parts = _parts(info, boards, sections, verbose, asked, plain=True)
    lines = (plain_lines(part) if isinstance(part, Table) else part[:1] for part in parts)
    return "".join(f"{line}\n" for line in chain.from_iterable(lines))


def _parts(
    info: RunInfo,
    boards: Sequence[Board],
    sections: Sequence[Section],
    verbose: bool,
    asked: Asked,
    plain: bool,
    width: int = PLAIN_WIDTH,
) -> Iterator[tuple[str, str] | Table]:
    """Yield tables, and lines with their styles; if ``plain``, each names its data set."""
    yield from ((line, "bold") for line in heading(info))
    if overall := overall_conclusion(boards):
        yield " ".join(overall), "bold"
    columns = [asked.columns.get(b.dataset) or (main_columns(b) if plain else {}) for b in boards]
    tests = [asked.tests.get(board.dataset, {}) for board in boards]
    legends = [
        legend(*given) if any(b.rows for b in boards) else []
        for given in zip(boards, columns, tests, strict=True)
    ]
    for board, own, following in zip(boards, legends, [*legends[1:], None], strict=True):
        yield "", ""
        yield one_line(f"{board.dataset}{marked(board)}: {', '.join(board.facts)}"), "bold"
        if board.rows:
            yield str(conclusion(board)), ""
        if board.stand_in:
            yield f"notice: {notice(board)}.", "yellow"
        if board.rows:
            yield from plain_tables(board, asked) if plain else _on_screen(board, width, asked)
            yield from ((line, "dim") for line in search_lines(board))
        for line in failure_lines(board):
            yield line, "red" if line.startswith("failed") else ""
        if verbose:
            yield from ((line, "") for line in setting_lines(board))
        yield from ((f"note: {one_line(note)}", "dim") for note in notes_of(board))
        if own != following:  # below the last of consecutive boards that share it
            yield from ((line, "dim") for line in own)
    if made := rank_table(boards, width):
        yield "", ""
        yield made
        if made.titles[3] == "1":
            names = over_datasets(boards)[0]
            yield ", ".join(f"{k + 1}: {name}" for k, name in enumerate(names)), "dim"
        yield RANKS, "dim"
    if sections:
        yield "", ""
    for one in sections:  # a summary, and the command that shows more
        yield one_line(f"{one.name}: {one.summary}{one.hint and f'; {one.hint}'}"), ""


def _on_screen(board: Board, width: int, asked: Asked) -> Iterator[tuple[str, str] | Table]:
    """Yield a board for a terminal; text that does not fit into columns is below."""
    made, short = main_table(board, width, asked.columns.get(board.dataset))
    yield made
    if short:
        yield f"names: {', '.join(f'{cut} is {name}' for cut, name in short.items())}", "dim"
    yield from ((line, "dim") for line in mark_lines(board))
    within = asked.within.get(board.dataset)
    for budgets in (budget_table(board, width, within), optimum_table(board, width)):
        if budgets and not asked.named:
            yield budgets


def mark_lines(board: Board) -> list[str]:
    """Return a line for each mark with the rows that have it, and for audits if they differ."""
    # these are seen from the order of rows, or are in the title
    known = {"reference", "baseline", *board.marks}
    audits = {row.audit for row in board.rows}
    marked: dict[str, list[str]] = {}
    for row in board.rows:
        own = [mark for mark in board.marks_of(row) if mark not in known]
        for mark in own + ([f"audit {row.audit}"] if len(audits) > 1 else []):
            marked.setdefault(mark, []).append(row.learner)
    return [one_line(_mark_line(mark, ", ".join(names))) for mark, names in marked.items()]


MEANINGS = {
    NOT_CONVERGED: "more trees would still help",
    AT_EDGE: "the best value ends the range that was tried: try values beyond",
}
"""Of marks that are explained where they stand."""


def _mark_line(mark: str, names: str) -> str:
    what = MEANINGS.get(mark.partition(":")[0])
    return f"{mark}: {names}; {what}" if what else f"{mark}: {names}"


def heading(info: RunInfo) -> list[str]:
    """Return the title of the run, if it has one, and ``run_line``."""
    return [one_line(info.title), run_line(info)] if info.title else [run_line(info)]


def run_line(info: RunInfo) -> str:
    """Return number, name and start of the run, and its state if it is not finished."""
    begun = info.created_at[:16].replace("T", " ")
    done = f"{sum(info.counts.values())} of {count(info.planned, 'trial')} done"
    state = "" if info.state == "finished" else f", {info.state}: {done}"
    return one_line(f"run {info.number}, {info.run}, of {begun} UTC{state}")


def marked(board: Board) -> str:
    """Return a board's marks, to follow its name."""
    return "".join(f" [{mark}]" for mark in board.marks)


def search_lines(board: Board) -> list[str]:
    """Return a line on each learner's settings, baselines excluded: their number, the number of
    distinct paths if lower, and the time of training."""
    # baselines have nothing to tune
    rows = [row for row in board.rows if row.fits and not row.baseline]
    different = {row.learner: f"{row.fits - row.alike} different, " for row in rows if row.alike}
    tried = ", ".join(
        f"{row.learner} {row.fits} ({different.get(row.learner, '')}{duration(row.seconds)})"
        for row in rows
    )
    return [one_line(f"settings tried (and their training): {tried}")] if tried else []


def failure_lines(board: Board) -> list[str]:
    """Return trials that are not ranked, with their errors. A trial that does not suit the data is
    skipped, not failed."""
    lines = [] if board.rows else [f"{board.dataset}: no learner has a result"]
    for f in board.failures:
        skipped = f.status == "skipped"
        what = f"skipped: {f.learner}" if skipped else f"failed: {f.learner}: {f.status}"
        lines.append(one_line(f"{what} ({count(f.trials, 'trial')}; {f.params}): {f.error}"))
    return lines


def setting_lines(board: Board) -> list[str]:
    """Return the settings behind each row."""
    lines = []
    for row in board.rows:
        lines += [f"{row.learner}: best at {setting.full}" for setting in row.best.settings]
        lines += [f"{row.learner}: {PERCENT} at {s.full}" for s in row.cheap.settings]
    return [one_line(line) for line in lines]


def legend(board: Board, titles: Collection[str] = (), tests: Mapping[str, str] = {}) -> list[str]:
    """Return explanations of the columns ``titles`` (without: of a terminal's), of p-values and of
    the order, a line for each subject."""
    starred = not titles
    titles = titles or on_screen(board)
    return [
        selection_line(board),
        *_saving_lines(board, titles),
        *_certainty_lines(board, [*titles, *tests], tests, starred),
        *explained_marks(board),
    ]


def selection_line(board: Board) -> str:
    """Return the source of points and figures, and the unit of costs."""
    over = f", means over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    audits = {row.audit for row in board.rows}
    audit = f"; audit: {one_line(audits.pop())}" if len(audits) == 1 else ""
    unit = f" in {one_line(board.unit)}" if board.unit else ""
    billed = "" if board.accounting == "path" else f"; accounting: {board.accounting}"
    return (
        f"Points are chosen on validation; figures are from test{over}. "
        f"cost: mean per row{unit}{paid_words(board)}{billed}{audit}."
    )


def paid_words(board: Board) -> str:
    """Return what costs are paid for, to follow their unit."""
    return f", for features {'and trees' if board.trees_paid else 'only'}"


def explained_marks(board: Board) -> list[str]:
    """Return explanations of marks that limit comparisons."""
    lines = {
        f"{DIVERGED}: the training loss rose above the constant's, so training was stopped; no "
        f"saving is measured against {one_line(board.reference)} where it {DIVERGED}.": any(
            row.reference and DIVERGED in row.marks for row in board.rows
        ),
        f"{OVER}: mean cost on test above a budget by more than its {CONFIDENCE} interval; "
        "points are chosen by validation costs.": any(row.over for row in board.rows),
        f"{FALLS}: its {board.metric} is worse on test than on validation by more than chance "
        "(p <= .001): test rows differ from the others, or validation rows were trained on.": any(
            FALLS in row.marks for row in board.rows
        ),
        "baseline: trivial methods, listed last for comparison.": any(
            row.baseline for row in board.rows
        ),
    }
    return [line for line, there in lines.items() if there]


def _saving_lines(board: Board, titles: Collection[str]) -> list[str]:
    if not board.reference:
        return ["saving: none without a reference among the learners (bench run --reference NAME)."]
    name = one_line(board.reference)
    reference = board.reference_row
    if reference and not reference.reached and DIVERGED not in reference.marks:
        return [f"saving: none, as a constant, which costs nothing, has {target(board)}."]
    lines = [explained(saving_columns(board), titles)] if board.saves else []
    if missing := missing_words(board):
        lines.append(missing)
    if any(row.saved.lost for row in board.rows):
        lines.append(f"below {LOST:.0%}: {lost_words(LOST, name, board.metric)}.")
    return [line for line in lines if line]


def lost_words(share: float, reference: str, metric: str) -> str:
    """Return why a saving does not count."""
    return (
        f"on test that point is significantly below {share * 100:.6g}% of {reference}'s best "
        f"{metric}, so the saving does not count"
    )


def _certainty_lines(
    board: Board, titles: Collection[str], tests: Mapping[str, str], starred: bool
) -> list[str]:
    notes = {one.note for one in board.standings if one.note}
    if notes:
        return [order_words(board), f"{notes.pop()}."]
    if not any(row.standing.learner for row in board.rows):
        return []
    known = certainty_columns(board, tests)
    if starred and board.budgets:
        known["*"] = known["tier"].removeprefix("1 is ")
        titles = {*titles, "*"}
    return [*filter(None, [explained(known, titles)]), order_words(board)]


def main_table(
    board: Board, width: int, columns: Columns | None = None
) -> tuple[Table, dict[str, str]]:
    """Return the rows with these or a terminal's columns, and the shortened names."""
    known = columns_of(board)
    columns = columns or {title: known[title] for title in on_screen(board)}
    short = {board.metric: board.metric if len(board.metric) <= _TITLE else "quality"}
    shown = {short.get(title, title): cell for title, cell in columns.items()}
    return _narrow(shown_rows(board), shown, width)


def budget_table(board: Board, width: int, more: Columns | None = None) -> Table | None:
    """Return quality within each budget, with half the width of its interval if there is room, and
    ``more`` columns for it."""
    if not board.budgets:
        return None
    known = [standings_at(board, k) for k in range(len(board.budgets))]
    # intervals if they fit, else only figures
    for with_half in (True, False):
        columns: dict[str, Callable[[Row], str]] = {
            within_words(board, k): partial(_cell, known[k], with_half, not more)
            for k in range(len(known))
        }
        columns = {title: columns.get(title, cell) for title, cell in (more or columns).items()}
        made, _ = _narrow(board.rows, columns, width)
        if sum(_widths(made.titles, made.rows)) + GAP * len(columns) <= width:
            break
    sign = -1 if board.higher_is_better else 1
    bold = set()
    for k, at in enumerate(known):
        there = [one for one in at.values() if one.tier]
        best = min(there, key=lambda one: sign * one.quality, default=None)
        bold |= {
            (i, [*columns].index(within_words(board, k)) + 1)
            for i, row in enumerate(board.rows)
            if best and at.get(row.learner) == best
        }
    title = f"{board.metric} within a cost per row of:"
    return replace(made, title=title, bold_cells=frozenset(bold))


def optimum_table(board: Board, width: int) -> Table | None:
    """Return each learner's distance to the known optimum within each budget, below the optimum."""
    known = {
        within_words(board, k): (k, most)
        for k, budget in enumerate(board.budgets)
        if not math.isnan(most := board.optimum.within(budget))
    }
    if not known:
        return None
    columns = {title: partial(_lacking, board, k) for title, (k, _) in known.items()}
    made, _ = _narrow(board.rows, columns, width)
    best = ["the optimum", *(quality(most) for _, most in known.values())]
    return replace(
        made,
        title=f"{board.metric}: distance to the optimum within a cost per row of:",
        rows=[best, *made.rows],
        row_styles=["", *made.row_styles],
        rule=made.rule and made.rule + 1,
    )


def _lacking(board: Board, k: int, row: Row) -> str:
    return quality(board.lacks(standings_at(board, k)[row.learner].quality, board.budgets[k]))


def plain_tables(board: Board, asked: Asked = USUAL) -> Iterator[Table]:
    """Yield the columns asked for, or every figure of a board, one line per row, starting with the
    data set; then, unless they are named, quality at budgets."""
    names: Columns = {
        "data set": lambda row: board.dataset,
        "learner": lambda row: one_line(row.learner),
    }
    chosen = asked.columns.get(board.dataset) or main_columns(board)
    yield _table({**names, **chosen}, shown_rows(board))
    if asked.named:
        return
    if board.budgets:
        title = f"{board.metric} within a cost per row of:"
        within = {**budget_columns(board), **asked.within.get(board.dataset, {})}
        yield replace(_table({**names, **within}, board.rows), title=title)
    if lacking := optimum_table(board, sys.maxsize):
        titles = ["data set", *lacking.titles]
        yield replace(lacking, titles=titles, rows=[[board.dataset, *row] for row in lacking.rows])


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
            one_line(one.learner),
            f"{one.mean:.2f}{'*' if one.tier == 1 else ' '}",
            rank_range(one.ranks),
            *(f"{rank:g}" for rank in one.by_dataset),
        ]
        for one in sorted(ranked, key=lambda one: one.learner in baselines)
    ]
    title = f"Mean rank over {len(names)} data sets (by {ranked_by(boards)})"
    return _shortened(Table(titles, rows, "learner", titles[1:], title=title), width)[0]


def shortened(names: Sequence[str], room: int) -> dict[str, str]:
    """Shorten each name to ``room`` characters by leaving out the middle."""
    found: dict[str, str] = {}
    for name in names:
        short = name
        if len(name) > room:
            tail = (room - 1) // 2
            short = f"{name[: room - 1 - tail]}~{name[len(name) - tail :]}"
            if short in found.values():  # two long names differ only in the middle
                number = str(len(found) + 1)
                short = f"{name[: room - 1 - len(number)]}~{number}"
        found[name] = short
    return found


def _shortened(table: Table, width: int) -> tuple[Table, dict[str, str]]:
    """Return the table with names shortened to the available width, and the shortened names."""
    room = max(LEAST_NAME, width - sum(GAP + w for w in _widths(table.titles, table.rows)[1:]))
    short = shortened([row[0] for row in table.rows], room)
    rows = [[short[row[0]], *row[1:]] for row in table.rows]
    return replace(table, rows=rows), {s: name for name, s in short.items() if s != name}


def _widths(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    columns = zip(titles, zip(*rows, strict=True), strict=True)
    return [max(map(len, [*title.split(), *cells])) for title, cells in columns]


def _table(columns: Columns, rows: Sequence[Row]) -> Table:
    words = {"data set", "learner", "audit", "marks"}  # other columns are figures
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return Table([*columns], cells, "learner", [title for title in columns if title not in words])


def _narrow(rows: Sequence[Row], columns: Columns, width: int) -> tuple[Table, dict[str, str]]:
    made = _table({"learner": lambda row: one_line(row.learner), **columns}, rows)
    # baselines come last, below a rule
    methods = sum(not row.baseline for row in rows)
    rule = methods if 0 < methods < len(rows) else None
    styles = ["dim" if row.baseline else "" for row in rows]
    return _shortened(replace(made, row_styles=styles, rule=rule), width)


def _cell(known: Mapping[str, Standing], with_half: bool, stars: bool, row: Row) -> str:
    """Return the quality within a budget, with half its interval if requested and known."""
    mark = starred if stars else lambda text, standing: text
    standing = known[row.learner]
    value, half = standing.quality, half_width(standing)
    if math.isnan(value):
        return "-"
    if not with_half or math.isnan(half):
        return mark(quality(value), standing)
    if abs(value) < TINY:
        return mark(f"{quality(value)}±{small(half)}", standing)
    # one digit less than elsewhere, as ± takes room: .799±.012
    digits = 3 if abs(value) >= 0.1 else 4
    edge = f"{half:.{digits}f}".removeprefix("0") if half < 1 else f"{half:.2g}"
    shown = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.4g}"
    return mark(f"{shown}±{edge}", standing)


def starred(text: str, standing: Standing) -> str:
    """Return a figure with * if its learner is in tier 1."""
    if math.isnan(standing.interval.low):
        return text
    return f"{text}{'*' if standing.tier == 1 else ' '}"


def saving_cells(saving: float, saved: Saved) -> list[str]:
    """Return a saving with its mark, and its 95% interval."""
    mark = "!" if saved.lost else "*" if saved.tier == 1 else " "
    return [times(saving) + mark, ends_of(saved.interval)]
