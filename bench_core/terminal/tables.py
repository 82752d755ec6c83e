"""Tables for people: framed on a terminal, records on a narrow one, plain lines elsewhere.

Without a terminal each row is one line, never cut, with two or more blanks between columns, for
``grep``, ``sort`` and ``awk``.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

from bench_core.errors import UsageError, no_formula, one_line

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 1_000_000  # without a terminal: rows are never broken
TEXT_WIDTH = 100  # of sentences without a terminal
GAP = 2  # blanks between columns
PROSE = 18  # least width of a column that may wrap


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain text. ``bold``, ``right`` and ``fold`` (may wrap) are columns by title.
    A line is shown above the row ``rule``. ``row_styles`` are rich styles for terminals, which show
    ``bold_cells`` (row, column) in bold."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    bold: str = ""
    right: Sequence[str] = ()
    fold: Sequence[str] = ()
    title: str = ""
    row_styles: Sequence[str] = ()
    footer: Sequence[str] = ()
    rule: int | None = None
    bold_cells: frozenset[tuple[int, int]] = frozenset()

    def styled_rows(self) -> Iterable[tuple[Sequence[str], str]]:
        """Yield each row with its style."""
        return zip(self.rows, self.row_styles or [""] * len(self.rows), strict=True)


def on_terminal(stream: Any) -> bool:
    """True for a terminal; False also for a stream that is closed, None, or lacks ``isatty``."""
    with suppress(AttributeError, ValueError):
        return bool(stream.isatty())
    return False


def console(stderr: bool = False) -> Console:
    """Return a rich console that raises on a broken pipe and never wraps without a terminal."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    width = None if on_terminal(sys.stderr if stderr else sys.stdout) else PLAIN_WIDTH
    return Plain(stderr=stderr, width=width, highlight=False, emoji=False, soft_wrap=False)


def show(table: Table, to: Console) -> None:
    """Write the table in the form that suits the console."""
    if not to.is_terminal:
        for line in plain_lines(table):
            to.out(line, highlight=False)
        return
    from rich.text import Text

    if table.title:
        to.print(Text(one_line(table.title), style="bold"))
    if fits(table, to.width):
        _show_framed(table, to, _widths(table, _room(table, to.width)))
    else:
        _show_records(table, to)
    for line in table.footer:
        to.print(Text(one_line(line), style="dim"))


def fits(table: Table, width: int) -> bool:
    """True if a table can be framed on a terminal of this width."""
    return sum(_widths(table, 0)) <= _room(table, width)


def _room(table: Table, width: int) -> int:
    return width - GAP * (len(table.titles) - 1)


def plain_lines(table: Table) -> list[str]:
    """Return title, headings, one line per row, a line above the row ``rule``, and footer."""
    cells = [[one_line(c) for c in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.titles, *cells, strict=True)]
    lines = [one_line(table.title)] if table.title else []
    for row in [table.titles, *cells]:
        parts = [
            cell.rjust(width) if title in table.right else cell.ljust(width)
            for cell, width, title in zip(row, widths, table.titles, strict=True)
        ]
        lines.append((" " * GAP).join(parts).rstrip())
    if table.rule is not None:
        lines.insert(
            len(lines) - len(cells) + table.rule, (" " * GAP).join("─" * w for w in widths)
        )
    return [*lines, *map(one_line, table.footer)]


def _widths(table: Table, room: int) -> list[int]:
    """Return column widths: at least the longest word and ``PROSE`` for text; remaining room goes
    to the columns that lack most."""
    widths, full = [], []
    for j, title in enumerate(table.titles):
        heading, cells = _heading(table, title).split("\n"), [row[j] for row in table.rows]
        full.append(max(map(len, cells), default=0))
        fold = title in table.fold
        words = [word for cell in cells for word in (cell.split() if fold else [cell])]
        widths.append(max(map(len, [*heading, *words])))
        if fold:
            widths[j] = max(widths[j], min(PROSE, full[j]))
    # one character at a time to the column that lacks the largest share
    for _ in range(room - sum(widths)):
        j = min(range(len(full)), key=lambda j: widths[j] / max(1, full[j]))
        widths[j] += widths[j] < full[j]
    return widths


def _heading(table: Table, title: str) -> str:
    """Return a heading. Above numbers it has one word per line; formulas are not split."""
    breaks = title in table.right and " - " not in title
    return re.sub("(?<!<=) ", "\n", title) if breaks else title


def _show_framed(table: Table, to: Console, widths: Sequence[int]) -> None:
    from rich import box
    from rich.table import Table as Framed
    from rich.text import Text

    framed = Framed(
        box=box.SIMPLE_HEAD,
        padding=(0, GAP - 1, 0, 0),  # the box itself adds one
        pad_edge=False,
        show_edge=False,
    )
    for title, width in zip(table.titles, widths, strict=True):
        framed.add_column(
            Text(_heading(table, title)),
            justify="right" if title in table.right else "left",
            style="bold" if title == table.bold else "",
            no_wrap=title not in table.fold,
            overflow="fold",
            width=width,
        )
    for i, (row, style) in enumerate(table.styled_rows()):
        if i == table.rule:
            framed.add_row(*("─" * width for width in widths), style="dim")
        cells = (
            Text(one_line(cell), style="bold" if (i, j) in table.bold_cells else "")
            for j, cell in enumerate(row)
        )
        framed.add_row(*cells, style=style or None)
    to.print(framed)


def _show_records(table: Table, to: Console) -> None:
    """Write each row as a paragraph: its first cell, then a line per other cell with its title."""
    from rich.padding import Padding
    from rich.text import Text

    for row, style in table.styled_rows():
        to.print(Text(one_line(row[0]), style=style or "bold"))
        for title, cell in zip(table.titles[1:], row[1:], strict=True):
            if cell:
                text = Text(f"{title}: {one_line(cell)}", overflow="fold")
                to.print(Padding(text, (0, 0, 0, GAP), expand=False))


def wrapped(text: str, width: int = TEXT_WIDTH) -> str:
    """Break a text at words into lines of at most ``TEXT_WIDTH``, or of a narrower terminal."""
    return TextWrapper(min(width, TEXT_WIDTH), break_long_words=False, break_on_hyphens=False).fill(
        text
    )


def check_text(output: Path | None, csv: bool = False) -> None:
    """Raise UsageError if a file's suffix is not plain text, or CSV if that is written."""
    known = ("", ".txt", ".log", ".csv" if csv else "")
    if output is not None and output.suffix.lower() not in known and str(output) != "-":
        shown = "CSV (.csv) or plain text (.txt)" if csv else "plain text (.txt)"
        raise UsageError(f"{output}: the output is {shown}; use that suffix")


def deliver(table: Table, output: Path | None) -> None:
    """Write to the named file (``.csv``: headings and rows as CSV), else to stdout."""
    check_text(output, csv=True)
    if output is None:
        show(table, console())
        return
    if output.suffix.lower() == ".csv":
        lines = StringIO()
        rows = ([no_formula(one_line(cell)) for cell in row] for row in table.rows)
        csv.writer(lines, lineterminator="\n").writerows([table.titles, *rows])
        write_text(output, lines.getvalue())
    else:
        write_text(output, "\n".join(plain_lines(table)) + "\n")
    written(output)


def complain(message: str) -> None:
    """Print a message as one line on stderr, above a progress bar if there is one."""
    to_stderr(one_line(message))


def to_stderr(*lines: str) -> None:
    """Print lines on stderr; a terminal breaks them at words."""
    if getattr(sys.stderr, "closed", sys.stderr is None):  # for None, print would use stdout
        return
    if on_terminal(sys.stderr):
        width = console(stderr=True).width
        wrap = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        lines = tuple(map(wrap.fill, lines))
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def written(output: Path) -> None:
    """Report on stderr that a file was written."""
    if str(output) != "-":
        console(stderr=True).out(f"wrote {output}", highlight=False)


def check_output(output: Path | None, inputs: Iterable[object] = ()) -> None:
    """Raise UsageError for a file that cannot be written, or is one of the command's ``inputs``,
    before hours of work on its content."""
    if output is None or str(output) == "-":
        return
    if output.is_dir():
        raise UsageError(f"cannot write {output}: it is a folder; name a file in it")
    short = [text for text in map(str, inputs) if len(text) < 256]  # others are costs as JSON
    read = [file for file in map(Path, short) if file.exists()]
    if output.exists() and any(map(output.samefile, read)):
        raise UsageError(f"cannot write {output}: this command reads it; name another file")
    folder = next(parent for parent in output.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {output}: choose another place or check permissions")


def write_text(output: Path, text: str) -> None:
    """Write a text file atomically; ``-`` is stdout."""
    write_bytes(output, text.encode())


def write_bytes(output: Path, content: bytes) -> None:
    """Write a file atomically (under a temporary name, then renamed); ``-`` is stdout."""
    from bench_core._io.files import atomic_file

    if str(output) == "-":
        sys.stdout.flush()  # printed text comes first
        sys.stdout.buffer.write(content)
        return
    try:
        if output.exists() and not output.is_file():  # a pipe or a device is never replaced
            output.write_bytes(content)
        else:
            with atomic_file(output.resolve()) as new:
                new.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"cannot write {output}: {error.strerror}; choose another place or check permissions"
        ) from error
