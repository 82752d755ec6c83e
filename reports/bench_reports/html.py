"""The leaderboard as one self-contained page: no file beside it, no network."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, CurvePoint, Row, notes_of, notice
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import cost, count, counted, duration, quality, settings, times
from bench_reports.console import heading, in_unit, legend, run_line

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

TEMPLATES = Path(__file__).parent / "templates"
COLOURS = 8
SPREADS_SHOWN = 12
MANY = 25
SETTINGS_SHOWN = 3
HOVER_WIDTH = 70
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")
_GLYPHS = dict(zip(_SYMBOLS, "●■◆▲✚✖★▼", strict=True))


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    verbose: bool,
) -> None:
    """Write the page, to stdout where no file is named."""
    from bench_core.leaderboard.assembly import boards

    write_text(output or Path("-"), page(run, boards(run, frame), frame, sections))


def page(
    info: RunInfo,
    boards: Sequence[Board],
    frame: pd.DataFrame,
    sections: Sequence[Section] = (),
) -> str:
    """The whole page. Names, errors and notes come from outside and are escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"quality": quality, "cost": cost, "times": times, "duration": duration}
    environment.filters |= {"notice": notice, "legend": legend, "notes": notes_of}
    environment.filters["glyph"] = _GLYPHS.__getitem__
    learners = list(dict.fromkeys(row.learner for board in boards for row in board.rows))
    figures = [figure(board, f"chart{i}", learners) for i, board in enumerate(boards)]
    return environment.get_template("report.html").render(
        info=info,
        title=" - ".join(heading(info)),
        subtitle=run_line(info),
        boards=list(zip(boards, figures, strict=True)),
        share=f"{SHARE:.0%}",
        sections=sections,
        figures=script_json(figures),
        warnings=[w for w in info.warnings if not w.startswith("STAND-IN")],
        facts=facts(info, frame),
        css=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        js=(TEMPLATES / "report.js").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
    )


def script_json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def facts(info: RunInfo, frame: pd.DataFrame) -> list[tuple[str, str]]:
    """How it was run, as pairs of a term and a description."""
    from bench_core import __version__

    given = {name: value for name, value in info.request.items() if value}
    trials = frame.drop_duplicates(["dataset", "fold", "learner", "params", "seed"])
    versions = frame[["learner", "learner_version"]].drop_duplicates().astype(str)
    ended = counted(info.counts) or "nothing"
    pairs = [
        ("Run", info.run),
        ("Begun", info.created_at),
        ("State", f"{info.state}, {ended} of {count(info.planned, 'trial')}"),
        ("Suite", " ".join(filter(None, (info.suite, info.profile)))),
        ("Paper", info.paper),
        ("Request", settings(given)),
        ("Seeds", ", ".join(map(str, sorted(set(frame["seed"].dropna().astype(int)))))),
        ("Accounting", info.accounting),
        ("Metrics", ", ".join(info.metrics)),
        ("Learners", ", ".join(f"{a} {b}".strip() for a, b in versions.itertuples(index=False))),
        ("Machine", "; ".join(sorted(set(frame["machine"].dropna().astype(str))))),
        ("Fitting", f"{trials['fit_seconds'].fillna(0.0).sum():.0f} s in all"),
        ("Written by", f"budget-bench {__version__}"),
    ]
    return [(term, text) for term, text in pairs if text]


def figure(board: Board, name: str, learners: Sequence[str]) -> dict[str, Any]:
    """One figure: a trace per learner, axes in words, a watermark on stand-ins.

    The place of a learner in ``learners`` decides its colour, the same in all figures.
    Texts are escaped, because plotly reads some HTML in them.
    """
    better = "higher" if board.higher_is_better else "lower"
    return {
        "id": name,
        "x": escape(f"cost per row on test{in_unit(board)}"),
        "y": escape(f"{board.metric} on test ({better} is better)"),
        "watermark": "stand-in data" if board.stand_in else "",
        "traces": [_trace(board, row, learners.index(row.learner)) for row in board.rows],
    }


def _trace(board: Board, row: Row, index: int) -> dict[str, Any]:
    picks = [point.pick for point in row.curve]
    step = math.ceil(len(picks) / SPREADS_SHOWN)
    spread = [
        p.spread if p.spread > 0 and (len(picks) - 1 - i) % step == 0 else None
        for i, p in enumerate(picks)
    ]
    return {
        "name": escape(one_line(row.learner)),
        "x": [p.cost for p in picks],
        "y": [p.quality for p in picks],
        "spread": spread if any(spread) else None,
        "text": [_hover(board, row, point) for point in row.curve],
        "size": 7 if len(picks) <= MANY else 5,
        "colour": index % COLOURS,
        "dash": _DASHES[index // COLOURS % len(_DASHES)],
        "baseline": row.baseline,  # drawn thin and grey
        # colour is never the only difference, and the ninth is not the first in a legend
        "symbol": _SYMBOLS[(index + index // COLOURS) % len(_SYMBOLS)],
    }


def _hover(board: Board, row: Row, point: CurvePoint) -> str:
    pick = point.pick
    spread = "" if math.isnan(pick.spread) else f" ± {quality(pick.spread)}"
    lines = [
        one_line(row.learner),
        f"{board.metric} {quality(pick.quality)}{spread} at cost {cost(pick.cost)}",
        f"within a budget of {cost(point.budget)} on validation",
        *(one_line(f"at {setting.full}") for setting in pick.settings[:SETTINGS_SHOWN]),
    ]
    more = len(pick.settings) - SETTINGS_SHOWN
    lines += [f"and {more} more"] if more > 0 else []
    first, *others = (part for line in lines for part in wrap(line, HOVER_WIDTH))
    return "<br>".join([f"<b>{escape(first)}</b>", *map(escape, others)])
