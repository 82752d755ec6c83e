"""The reports that come with the benchmark: the terminal with plain text, and an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core import hookimpl

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.protocols import Report, Section
    from bench_core.results.records import RunInfo


class Text:
    """Tables on a terminal; in a file, or without a terminal, one row a line."""

    name = "text"
    suffixes: tuple[str, ...] = ("", ".txt")

    def write(
        self,
        run: RunInfo,
        frame: pd.DataFrame,
        output: Path | None,
        *,
        sections: Sequence[Section],
        verbose: bool,
    ) -> None:
        """Write all boards."""
        from bench_core.terminal.tables import console, write_text
        from bench_reports.assembly import boards
        from bench_reports.console import show_boards, text_boards

        made = boards(run, frame)
        if output is None:
            show_boards(run, made, console(), sections=sections, verbose=verbose)
        else:
            write_text(output, text_boards(run, made, sections=sections, verbose=verbose))


class Html:
    """One self-contained page with the cost-quality curves."""

    name = "html"
    suffixes: tuple[str, ...] = (".html", ".htm")

    def write(
        self,
        run: RunInfo,
        frame: pd.DataFrame,
        output: Path | None,
        *,
        sections: Sequence[Section],
        verbose: bool,
    ) -> None:
        """Write the page, to stdout where no file is named."""
        from bench_core.terminal.tables import write_text
        from bench_reports.assembly import boards
        from bench_reports.html import page

        write_text(output or Path("-"), page(run, boards(run, frame), frame, sections))


@hookimpl
def bench_reports() -> list[Report]:
    """Text and HTML."""
    return [Text(), Html()]
