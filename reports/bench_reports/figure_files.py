"""A figure of matplotlib as a file (SVG, PDF, PNG): the same content gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import UsageError
from bench_core.terminal.tables import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # not installed everywhere

SUFFIXES = (".svg", ".pdf", ".png")
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}
_NO_DATES: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "Budget Bench"},
    "pdf": {"CreationDate": None, "Creator": "Budget Bench", "Producer": None},
    "png": {"Software": None},
}


@contextmanager
def figure_file(output: Path | None, salt: str) -> Iterator[Figure]:
    """Yield a figure to draw on, then write it (to stdout without a file). ``salt`` seeds the ids
    in an SVG. Raises UsageError without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            "drawing curves needs matplotlib; pip install 'budget-bench[plot]'"
        ) from error
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(layout="constrained")
        yield figure
        suffix = (output or Path("-.svg")).suffix.lower().removeprefix(".")
        content = BytesIO()
        figure.savefig(content, format=suffix, metadata=_NO_DATES[suffix])
    write_bytes(output or Path("-"), content.getvalue())


def safe(text: str) -> str:
    """Return text that matplotlib does not read as a formula and that a legend does not omit."""
    return text.replace("$", r"\$").lstrip("_") or "-"
