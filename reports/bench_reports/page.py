"""The leaderboard as one self-contained page, without other files, requests or libraries.

Tables without a limit are part of its HTML. Its script draws charts, and tables at budgets, from
the JSON in the page (``page_data``).
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.contracts import dataset_of
from bench_core.errors import one_line, printable
from bench_core.leaderboard.board import RANK, SHARE, Board, Row, notice
from bench_core.leaderboard.columns import (
    CHEAPER,
    QUALITY,
    Column,
    columns,
    explained,
    order_words,
)
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.leaderboard.ranks import over_datasets
from bench_core.planning.invocation import command
from bench_core.statistics import CONFIDENCE
from bench_core.statistics.comparison import Interval
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import cost, count, counted, quality
from bench_reports.page_data import json_text, page_data
from bench_reports.palette import css
from bench_reports.terminal import heading, mark_lines, run_line, selection_line

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    *("chart.js", "board.js", "tables.js", "purchases.js"),
    *("address.js", "overview.js", "save.js", "page.js"),
)

NO_BREAK = "\xa0"
"""A blank at which a cell of a narrow table is not broken."""

BILLED = {
    "path": "what each row bought and evaluated",
    "model": "everything that the stages reached could use (accounting: model)",
}
"""Meaning of the accountings."""

UNSETTLED = ("not run", "not measured")
"""Verdicts of a section's rows that are internal notes, not results."""


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    store: Store | None = None,
    registry: Registry | None = None,
) -> None:
    """Write the page, to stdout if no file is named."""
    from bench_core.leaderboard.assembly import boards

    text = page(run, boards(run, frame, store), frame, sections, store, registry)
    write_text(output or Path("-"), text)


def page(
    info: RunInfo,
    boards: Sequence[Board],
    frame: pd.DataFrame,
    sections: Sequence[Section] = (),
    store: Store | None = None,
    registry: Registry | None = None,
) -> str:
    """Return the page. Without a store it has no intervals.

    Names, errors and notes come from outside and are escaped.
    """
    views, learners, data = page_data(info, boards, frame, store)
    # the policy allows only these two by their hashes, so a name with markup cannot run a script
    style, script = css() + source("page.css"), source(*SCRIPTS)
    # one of each data, whatever the accounting
    sets = [board.dataset for board in boards if not board.same_as]
    parts = []
    for board in boards:
        there = board.rows and views[board.dataset]
        rows = table_rows(board, learners) if there else []
        parts.append((board, table_columns(board, registry) if there else [], rows))
    text: str = (
        environment()
        .get_template("page.html")
        .render(
            info=info,
            title=" - ".join(heading(info)),
            subtitle=run_line(info),
            description=f"{count(len(learners), 'learner')} on {', '.join(sets)}",
            parts=parts,
            conclusion=overall_conclusion(boards),
            overview=overview(boards, learners, info.baselines),
            several=len(sets) if len(sets) > 1 else 0,
            by_area=any(not math.isnan(row.area.value) for b in boards for row in b.rows),
            sections=[public(section) for section in sections],
            warnings=[w for w in info.warnings if "generated data (" not in w],
            level=CONFIDENCE,
            facts=facts(info, frame, registry),
            command=command(info.request),
            data=json_text(data),
            style=style,
            script=script,
            style_hash=policy_hash(style),
            script_hash=policy_hash(script),
        )
    )
    return text


def environment() -> Any:
    """Return a Jinja environment that escapes everything, including control characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # escape in all templates, whatever their suffix
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: type(value)(printable(value)) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"notice": notice, "linked": linked}
    made.filters |= {
        "line": one_line,
        "legend": legend,
        "conclusion": conclusion,
        "order": order_words,
    }
    return made


def source(*names: str) -> str:
    """Return files of the page, without indentation and comment lines."""
    texts = ((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
    lines = (line.strip() for text in texts for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


def policy_hash(text: str) -> str:
    """Return the hash that names an inline script or style in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def linked(text: str) -> Markup:
    """Return the text with web addresses, DOIs and arXiv numbers as links."""
    from markupsafe import Markup, escape

    parts = re.split(r"(https?://[^\s<>\"']*[\w/]|doi:10\.[^\s<>\"']*\w|arXiv:[\w./-]*\w)", text)
    sites = {"doi": "https://doi.org/", "arXiv": "https://arxiv.org/abs/"}
    # text at even places, addresses at odd ones
    linked = []
    for k, part in enumerate(parts):
        site, _, rest = part.partition(":")
        address = sites[site] + rest if site in sites else part
        link = Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, part)
        linked.append(link if k % 2 else escape(part))
    return Markup("").join(linked)


def public(section: Section) -> Section:
    """Return the section without unsettled rows; its summary counts them."""
    if section.marked < 0:
        return section
    # unsettled rows are internal notes
    kept = tuple(row for row in section.rows if row[1][section.marked] not in UNSETTLED)
    return replace(section, rows=kept)


def facts(info: RunInfo, frame: pd.DataFrame, registry: Registry | None) -> list[tuple[str, str]]:
    """Return facts of the run as pairs of a term and a description."""
    from bench_core import __version__

    # a trial has a row for each point and split
    trials = frame.drop_duplicates(["dataset", "fold", "learner", "params", "seed"])
    # a store may hold trials of several versions
    versions = frame[["learner", "learner_version"]].drop_duplicates().astype(str)
    ended = counted(info.counts) or "nothing"
    prints = {f"{use.name} {use.fingerprint[:12]}" for use in info.datasets}
    pairs = [
        ("Run", info.run),
        ("Begun", info.created_at),
        ("State", f"{info.state}, {ended} of {count(info.planned, 'trial')}"),
        ("Suite", info.suite),
        ("Profile", info.profile),
        ("Paper", info.paper),
        ("Seeds", ", ".join(map(str, sorted(set(frame["seed"].dropna().astype(int)))))),
        ("Billed", "; ".join(BILLED[word] for word in info.accounting.split(", "))),
        ("Metrics", ", ".join(info.metrics)),
        ("Learners", ", ".join(f"{a} {b}".strip() for a, b in versions.itertuples(index=False))),
        ("Machine", "; ".join(sorted(set(map(str, frame["machine"].dropna().unique()))))),
        ("Fitting", f"{trials['fit_seconds'].fillna(0.0).sum():.0f} s in all"),
        ("Data", "; ".join(sorted(prints))),
        ("Data from", "; ".join(_sources(info, registry))),
        ("Written by", f"budget-bench {__version__}"),
    ]
    return [(term, one_line(text)) for term, text in pairs if text]


def _sources(info: RunInfo, registry: Registry | None) -> list[str]:
    """Return the addresses of data sets whose installed plugins name one."""
    names = sorted({use.name.partition("(")[0] for use in info.datasets})
    known = registry.datasets if registry else {}
    there = {name: dataset_of(known[name]).homepage for name in names if name in known}
    return [f"{name} {where}" for name, where in there.items() if where]


class TableRow(NamedTuple):
    """A row of the table: the learner's position among all, and its CSS classes."""

    row: Row
    place: int
    css: str


LIVE = {"rank": RANK, "quality": f"best {QUALITY}", "range": "best", "cost": "best cost"}
"""Columns that the script fills for each budget, by the name that it knows."""

STATIC = ("cost", CHEAPER, f"{CHEAPER} {CONFIDENCE}", "settings", "seconds", "marks")
"""Columns of the model that the board shows."""


def table_columns(board: Board, registry: Registry | None = None) -> list[tuple[str, Column]]:
    """Return the columns of the page that are not empty, by the names that the script knows."""
    every = columns(board, registry)
    known = {column.name or column.title: column for column in every}
    known |= {column.title: column for column in every}
    places = {row.learner: str(k) for k, row in enumerate(_by_quality(board), 1)}
    texts: dict[str, Callable[[Row], str]] = {
        "rank": lambda row: row.standing.rank.replace("-", "–") or places[row.learner],
        "range": lambda row: _range(row.standing.interval),
        "cheap": lambda row: cost(row.cheap.cost),
        "marks": lambda row: ", ".join(_marks(board, row)) or "-",
    }
    titles = {
        "quality": board.metric,
        "range": f"{CONFIDENCE} interval",
        "cost": "cost",
        "cheap": f"{SHARE:.0%} cost",
    }
    static = [*STATIC, *(column.title for column in every[len(columns(board)) :])]
    named = [*LIVE.items(), *((name if name != "cost" else "cheap", name) for name in static)]
    shown = [
        (
            name,
            replace(
                column := known[key],
                text=texts.get(name, column.text),
                title=titles.get(name, column.title),
            ),
        )
        for name, key in named
    ]
    return [
        (name, column) for name, column in shown if any(column.text(r) != "-" for r in board.rows)
    ]


def table_rows(board: Board, learners: Sequence[str]) -> list[TableRow]:
    """Return the rows of a board with their positions among all learners."""
    return [
        TableRow(
            row,
            learners.index(row.learner),
            " ".join(["baseline"] * row.baseline + ["lead"] * (row.standing.tier == 1)),
        )
        for row in board.rows
        if row.learner in learners
    ]


def _by_quality(board: Board) -> list[Row]:
    sign = -1 if board.higher_is_better else 1
    return sorted(board.rows, key=lambda row: (sign * row.best.quality, row.best.cost))


def _range(interval: Interval) -> str:
    return "-" if math.isnan(interval.low) else f"{NO_BREAK}to ".join(map(quality, interval))


def _marks(board: Board, row: Row) -> list[str]:
    """Return the marks of the row only. The board's marks are in its heading, an audit shared by
    all rows is in its legend."""
    same = {*board.marks, "baseline"}  # baselines are listed below the others
    marks = [one_line(mark) for mark in board.marks_of(row) if mark not in same]
    several = len({other.audit for other in board.rows}) > 1
    return marks + ([f"audit {row.audit}"] if several else [])


def legend(board: Board, shown: Sequence[tuple[str, Column]]) -> list[str]:
    """Return the source of figures, explanations of the table's columns, and its marks."""
    words = explained(column for _, column in shown)
    return [selection_line(board), words, *(f"{line}." for line in mark_lines(board))]


class Overall(NamedTuple):
    """A learner over all data sets. ``lacks``: it has no result on some data set and thus no
    ``mean``. A cell has a text, and True if the learner is first there."""

    place: int
    learner: str
    baseline: bool
    lacks: bool
    mean: str
    firsts: str
    cells: tuple[tuple[str, bool], ...]


def overview(
    boards: Sequence[Board], learners: Sequence[str], baselines: Sequence[str]
) -> list[Overall]:
    """Return all learners without a limit, ranked as on a terminal (``over_datasets``); then
    baselines, then learners that lack a result on some data set."""
    names, found = over_datasets(boards)
    # rank by learner and data set, as on a terminal
    ranked = {one.learner: dict(zip(names, one.by_dataset, strict=True)) for one in found}
    first = {name: min(own[name] for own in ranked.values()) for name in names}
    means = {one.learner: one.mean for one in found}
    there = {board.dataset: {row.learner for row in board.rows} for board in boards}
    counted = [there[board.dataset] for board in boards if board.rows and not board.same_as]
    rows = []
    for place, learner in enumerate(learners):
        own = ranked.get(learner, {})
        cells = tuple(
            (f"{own[name]:g}", own[name] == first[name])
            if name in own
            else ("✓" if learner in have else "-", False)
            for name, have in there.items()
        )
        results, firsts = sum(learner in have for have in counted), sum(lead for _, lead in cells)
        mean = f"{means[learner]:.2f}" if own else "-"
        words = f"{firsts} of {len(names)}" if own else f"on {results} of {len(counted)}"
        name = one_line(learner)
        rows.append(Overall(place, name, learner in baselines, not own, mean, words, cells))
    return sorted(
        rows, key=lambda r: (r.lacks, r.baseline, means.get(learners[r.place], 0.0), r.learner)
    )
