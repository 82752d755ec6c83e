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
    from bench_reports import exports, figure_files, page, plot, terminal

    return [
        Format("text", ("", ".txt"), terminal.write),
        Format("html", (".html", ".htm"), page.write),
        Format("markdown", (".md",), exports.markdown),
        Format("latex", (".tex",), exports.latex),
        Format("csv", (".csv",), exports.write_csv),
        Format("json", (".json",), exports.write_json),
        Format("curves", figure_files.SUFFIXES, plot.write),
    ]
