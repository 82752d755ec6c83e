"""The curves of a run as a figure file (SVG, PDF, PNG), drawn by matplotlib.

A curve is a learner's test quality within a budget, a mean cost per row on validation: a step at
each of its points. The same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.errors import UsageError, one_line, require
from bench_core.leaderboard.board import UNKNOWN, Board
from bench_core.leaderboard.conclusion import over_datasets
from bench_core.leaderboard.draws import Draws
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import write_bytes
from bench_core.terminal.wording import listed
from bench_reports.page_data import mean_view, places, unit_of
from bench_reports.palette import COLOURS, look
from bench_reports.terminal import marked

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes  # not installed everywhere
    from matplotlib.figure import Figure

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

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

DASHES = ("-", "--", "-.", ":")
GREY = "#8a8a8a"

WIDE = 10.0
"""Ratio of costs above which the axis is logarithmic."""

MANY_DECADES = 1000.0
"""Ratio of costs above which ticks stand at powers of ten alone; of narrow panels a tenth."""

TALL, LOW = 3.6, 2.8
"""Heights in inches of a panel alone, and of narrow panels, two in a row."""

MOST_BANDS = 3
"""With more learners only some have bands: the leader and the reference, as on the page, and the
learner of ``--against``; the same on all panels."""

MOST_STEPS = 200
"""Most budgets at which bands change."""

MARGIN = 0.05
"""Part of the range of curves that is free below and above them."""


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    store: Any = None,
    against: str = "",
) -> None:
    """Draw a panel for each data set that has curves; the learner ``against`` always has a band.
    Raises UsageError without matplotlib."""
    from bench_core.leaderboard.assembly import boards

    if against:
        require(
            f"learner of run {run.number}", [against], dict.fromkeys(map(str, frame["learner"]))
        )
    run_boards = boards(run, frame, store)  # in the order of the tables
    run_boards = [board for board in run_boards if any(row.curve for row in board.rows)]
    if not run_boards:
        raise UsageError(f"run {run.run} has no curves to draw")
    banded = _banded(run_boards, against)
    with figure_file(output, run.run) as figure:
        narrow, rows = len(run_boards) > 1, (len(run_boards) + 1) // 2
        figure.set_size_inches(6.6, LOW * rows if narrow else TALL)
        panels = figure.subplots(rows, 1 + narrow, squeeze=False).ravel()
        for axes, board in zip(panels, run_boards, strict=False):
            _panel(axes, board, *_bands(run, store, board, frame, banded), narrow)
        for axes in panels[len(run_boards) :]:
            axes.set_axis_off()
        if run.title:
            figure.suptitle(safe(one_line(run.title)), fontsize=9)


Bands = dict[str, FloatArray]
"""Ends (budgets, 2) of the intervals by learner, NaN where there is none."""


def _banded(boards: Sequence[Board], against: str = "") -> set[str]:
    """Return the learners with bands, baselines excluded. The leader of several data sets is the
    first by mean rank."""
    rows = [row for board in boards for row in board.rows if not row.baseline]
    methods = list(dict.fromkeys(row.learner for row in rows))
    if len(methods) <= MOST_BANDS:
        return {*methods}
    ranked = [one.learner for one in over_datasets(boards)[1] if one.learner in methods]
    references = (row.learner for row in rows if row.reference)
    return {*[*ranked, *methods][:1], *references, *({against} & {*methods})}


def _bands(
    run: RunInfo, store: Store | None, board: Board, frame: pd.DataFrame, banded: set[str]
) -> tuple[FloatArray, Bands]:
    """Return 0 and budgets at which some of these curves rises, and the learners' intervals
    there."""
    with_bands = [row for row in board.rows if row.learner in banded]
    rising = places((point.budget for row in with_bands for point in row.curve), count=MOST_STEPS)
    budgets = np.array([0.0, *rising])
    if store is None or not len(rising):
        return budgets, {}
    draws = Draws(run, store, frame, board.dataset, resamples=1000)
    curves = mean_view(board, draws, budgets).curves
    return budgets, {
        curve.learner: np.array([at.interval if at else UNKNOWN for at in curve.sure[:-1]])
        for curve in curves
        if curve.learner in banded and any(curve.sure)
    }


def _panel(
    axes: Axes, board: Board, budgets: FloatArray, bands: Bands, narrow: bool = False
) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    axes.ticklabel_format(style="plain", useOffset=False)
    least, end = (float(budgets[1]), float(budgets[-1])) if len(budgets) > 1 else (1.0, 1.0)
    first = 0.0
    # costs of cascades span decades
    if end > WIDE * least:
        first = least
        axes.set_xscale("log")
        many = end > MANY_DECADES * least / (10 if narrow else 1)
        subs = (1.0,) if many else (1.0, 2.0, 5.0)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
        axes.xaxis.set_major_formatter("{x:.10g}")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0)
    labels = []
    heights: list[float] = []
    for row in board.rows:
        if row.curve:
            colour, dash = GREY, DASHES[look(row.learner).dash]
            if not row.baseline:
                colour = COLOURS[look(row.learner).colour][0]
            name = safe(one_line(row.learner))
            rises = np.array([point.budget for point in row.curve])
            quality = np.array([point.pick.quality for point in row.curve])
            x = np.unique([*rises, *budgets])
            x = x[x >= max(first, rises[0])]
            y = quality[np.searchsorted(rises, x, "right") - 1]
            if row.learner in bands:
                low, high = bands[row.learner].T
                axes.fill_between(budgets, low, high, color=colour, alpha=0.13, lw=0, step="post")
            axes.plot(x, y, dash, color=colour, lw=1.2, drawstyle="steps-post")
            labels.append((float(y[-1]), name, colour))
            heights += [float(y.min()), float(y.max())]
    # a wide band of one learner must not squeeze all curves
    margin = MARGIN * (max(heights) - min(heights) or 1.0)
    axes.set_ylim(min(heights) - margin, max(heights) + margin)
    better = "higher" if board.higher_is_better else "lower"
    unit = f" in {unit_of(board)}" if unit_of(board) else ""
    line = "\n" if narrow else " "
    scale = f"{line}({'logarithmic' if first else 'linear'})"
    axes.set_xlabel(safe(f"budget: mean cost per row{unit}") + scale)
    axes.set_ylabel(safe(f"{board.metric} on test ({better} is better)"))
    axes.set_title(safe(one_line(f"{board.dataset}{marked(board)}")), loc="left", fontsize=9)
    if bands:
        few = len(bands) == sum(bool(row.curve) and not row.baseline for row in board.rows)
        whose = f"{CONFIDENCE} interval{'' if few else f' of {listed([*bands], len(bands))}'}"
        axes.fill_between([], [], [], color=GREY, alpha=0.3, lw=0, label=whose)
    if any(row.baseline for row in board.rows):
        axes.plot([], [], ":", color=GREY, label="baselines")
    below: Any = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.24 if narrow else -0.16)}
    if bands or any(row.baseline for row in board.rows):
        axes.legend(fontsize=6.5, frameon=False, ncols=1 if narrow else 2, **below)
    _label_ends(axes, sorted(labels), LOW if narrow else TALL)


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]], height: float) -> None:
    """Write names at the right ends of the lines, moved apart to avoid overlap. ``height``: of the
    panel in inches."""
    low, high = axes.get_ylim()
    gap = (high - low) * 0.15 / height  # about the height of a line of text
    at = np.array([y for y, _, _ in labels])
    for k in range(1, len(at)):  # from the bottom, each at least a gap above the one before
        at[k] = max(at[k], at[k - 1] + gap)
    for k in reversed(range(len(at))):  # none above the axis
        at[k] = min(at[k], high - gap * (len(at) - 1 - k))
    for place, (y, name, colour) in zip(at, labels, strict=True):
        axes.annotate(
            name,
            xy=(1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(1.03, place),
            textcoords=("axes fraction", "data"),
            color=colour,
            fontsize=7,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4, "relpos": (0, 0.5)},
            annotation_clip=False,
        )


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
