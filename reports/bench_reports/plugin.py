"""The reports that come with the benchmark: the terminal with plain text, and an HTML page."""

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
    """Text and HTML."""
    from bench_reports import console, html

    text = Format("text", ("", ".txt"), console.write)
    return [text, Format("html", (".html", ".htm"), html.write)]
