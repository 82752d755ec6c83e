"""The built-in reports: terminal and text, a page, papers, tables, figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_core import hookimpl

if TYPE_CHECKING:
    from bench_core.protocols import Report


@dataclass
class Format:
    """A report whose ``write`` is a function."""

    name: str
    suffixes: tuple[str, ...]
    write: Callable[..., None]


@hookimpl
def bench_reports() -> Sequence[Report]:
    """Return a report for each format."""
    from bench_reports import page, papers, plot, records, terminal

    return [
        Format("text", ("", ".txt"), terminal.write),
        Format("html", (".html", ".htm"), page.write),
        Format("markdown", (".md",), papers.markdown),
        Format("latex", (".tex",), papers.latex),
        Format("csv", (".csv",), records.write_csv),
        Format("json", (".json",), records.write_json),
        Format("curves", plot.SUFFIXES, plot.write),
    ]
