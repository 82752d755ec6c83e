"""The leaderboard as one self-contained page, without other files, requests or libraries.

Tables without a limit are part of its HTML. Its script draws charts, and tables at budgets, from
the JSON in the page (``page_data``).
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.contracts import dataset_of
from bench_core.errors import one_line, printable
from bench_core.leaderboard.board import Board, Row, notice
from bench_core.leaderboard.columns import (
    FEATURES,
    QUALITY,
    Column,
    explained,
    order_words,
    row_names,
)
from bench_core.leaderboard.conclusion import (
    conclusion,
    over_datasets,
    overall_conclusion,
    ranked_by,
)
from bench_core.planning.request import command
from bench_core.statistics import CONFIDENCE
from bench_core.statistics.comparison import Interval
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import (
    CHEAPER,
    cost,
    count,
    counted,
    listed,
    percent,
    quality,
    run_line,
)
from bench_reports.page_data import by_chance, json_text, lost_rows, page_data, unit_of
from bench_reports.palette import css
from bench_reports.panels import Panel, Panels
from bench_reports.terminal import mark_lines, screen_table, selection_line

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = (
    *("chart.js", "board.js", "tables.js", "purchases.js", "address.js", "save.js", "page.js"),
)

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
    panels = Panels(info, frame, store, boards, registry=registry)
    parts = [
        (board, panels.of(board)[0] if board.rows else None, bool(views[board.dataset]))
        for board in boards
    ]
    return rendered(
        "page.html",
        info=info,
        title=info.title or listed(sets),
        subtitle=run_line(info),
        description=f"{count(len(learners), 'learner')} on {', '.join(sets)}",
        parts=parts,
        learners=learners,
        conclusion=overall_conclusion(boards),
        overviews=overviews(boards),
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


def rendered(template: str, **content: Any) -> str:
    """Return a template filled in by Jinja; everything is escaped, including control characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # escape in all templates, whatever their suffix
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: type(value)(printable(value)) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"notice": notice, "linked": linked, "unbroken": unbroken}
    environment.filters |= {
        "cells": cells,
        "key": sort_key,
        "line": one_line,
        "legend": legend,
        "marks": mark_lines,
        "headline": headline,
        "names": row_names,
        "conclusion": conclusion,
        "order": order_words,
    }
    text: str = environment.get_template(template).render(content)
    return text


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
    for k, piece in enumerate(parts):
        site, _, rest = piece.partition(":")
        address = sites[site] + rest if site in sites else piece
        link = Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, piece)
        linked.append(link if k % 2 else escape(piece))
    return Markup("").join(linked)


def unbroken(text: str) -> Markup:
    """Return the text with options such as ``--metric`` in elements that no line break divides."""
    from markupsafe import Markup, escape

    # text at even places, options at odd ones
    parts = re.split(r"(--[a-z][a-z-]*)", text)
    option = Markup("<span>{}</span>")
    return Markup("").join(option.format(p) if k % 2 else escape(p) for k, p in enumerate(parts))


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
    plugins = registry.datasets if registry else {}
    names = sorted({use.name.partition("(")[0] for use in info.datasets} & {*plugins})
    homes = {name: dataset_of(plugins[name]).homepage for name in names}
    described = {
        "Run": info.run,
        "Begun": info.created_at,
        "State": f"{info.state}, {ended} of {count(info.planned, 'trial')}",
        "Suite": info.suite,
        "Profile": info.profile,
        "Paper": info.paper,
        "Seeds": ", ".join(map(str, sorted(set(frame["seed"].dropna().astype(int))))),
        "Billed": "; ".join(BILLED[word] for word in info.accounting.split(", ")),
        "Metrics": ", ".join(info.metrics),
        "Learners": ", ".join(f"{a} {b}".strip() for a, b in versions.itertuples(index=False)),
        "Machine": "; ".join(sorted(set(map(str, frame["machine"].dropna().unique())))),
        "Fitting": f"{trials['fit_seconds'].fillna(0.0).sum():.0f} s in all",
        "Data": "; ".join(sorted(prints)),
        "Data from": "; ".join(f"{name} {home}" for name, home in homes.items() if home),
        "Written by": f"budget-bench {__version__}",
    }
    return [(term, one_line(text)) for term, text in described.items() if text]


class Headline(NamedTuple):
    """The cost per row of the answer, and the one that it replaces, in words."""

    now: str
    before: str
    chance: bool  # it may save nothing


def headline(board: Board) -> Headline | None:
    """Return the figure above the conclusion, None where no learner costs less. Of total costs it
    is next to buying everything or nothing, whichever costs less."""
    row, reference = board.answer, board.reference_row
    if row is None or board.nothing_pays:
        return None
    paid, before, chance = row.best.quality, min(board.extremes or (0.0,)), False
    if not board.totals:
        if reference is None or row is reference:
            return None
        paid, before, chance = row.cheap.cost, reference.cheap.cost, by_chance(row)
    if float(cost(paid)) >= float(cost(before)):
        return None
    return Headline(f"{cost(paid)} {unit_of(board)}".rstrip(), cost(before), chance)


class Head(NamedTuple):
    """A column of the page's table; ``small`` ones are also on the cards of a phone."""

    title: str
    column: Column
    small: bool


def cells(panel: Panel, board: Board) -> list[Head]:
    """Return the columns of a table with the titles that they have on a terminal."""
    titles = screen_table(panel, board.metric).titles[1:]
    lost = next((c for c in panel.columns if c.title == "wrong"), None)
    return [
        Head(title, column, column.title in ("cost", FEATURES, CHEAPER)
             or (column is lost if lost else column.name == QUALITY))
        for title, column in zip(titles, panel.columns, strict=True)
    ]  # fmt: skip


def sort_key(column: Column, row: Row) -> str:
    """Return the value by which the script sorts a cell, "" if it has none; an interval by its
    lower end."""
    value = column.value(row)
    at = value.low if isinstance(value, Interval) else value
    if isinstance(at, str):
        return at
    return "" if math.isnan(at) else "Infinity" if math.isinf(at) else f"{at:.6g}"


def legend(board: Board, panel: Panel) -> str:
    """Return the source of figures, and explanations of the table's columns."""
    return f"{selection_line(board)} {explained(panel.columns)}".strip()


class Overview(NamedTuple):
    """The table over several data sets."""

    datasets: Sequence[str]
    rows: Sequence[OverviewRow]
    caption: str


class OverviewRow(NamedTuple):
    """A learner on all data sets: a text for each, and True if it is the answer there."""

    learner: str
    baseline: bool
    lacks: bool  # a result on some data set, and thus a mean rank
    mean: str
    cells: Sequence[tuple[str, bool]]


def overviews(boards: Sequence[Board]) -> dict[str, Overview]:
    """Return the tables by title: over all data sets and, if these have several tasks, over those
    of each task; none of a single data set."""
    shown = [board for board in boards if board.rows and not board.same_as]
    by_task: dict[str, list[Board]] = {}
    for board in shown:
        by_task.setdefault(board.use.task, []).append(board)
    of_tasks = {f"{task.capitalize()} data sets": subset for task, subset in by_task.items()}
    subsets = {"All data sets": shown} | (of_tasks if len(by_task) > 1 else {})
    return {title: overview(subset) for title, subset in subsets.items() if len(subset) > 1}


def overview(boards: Sequence[Board]) -> Overview:
    """Return the cost of each learner's model on each data set, with what it loses, and the mean
    ranks of the conclusion (``over_datasets``); learners without one are last, then baselines."""
    shown = [board for board in boards if board.rows and not board.same_as]
    means = {one.learner: one.mean for one in over_datasets(boards)[1]}
    of_board = [{row.learner: row for row in board.rows} for board in shown]
    rows = []
    for name, some in {name: row for own in of_board for name, row in own.items()}.items():
        pairs = [(board, own.get(name)) for board, own in zip(shown, of_board, strict=True)]
        texts = [_cell(board, row) for board, row in pairs]
        leads = [row is not None and row is board.answer for board, row in pairs]
        mean = f"{means[name]:.2f}" if name in means else "-"
        both = [*zip(texts, leads, strict=True)]
        rows.append(OverviewRow(one_line(name), some.baseline, name not in means, mean, both))
    rows.sort(key=lambda r: (r.lacks, r.baseline, means.get(r.learner, 0.0), r.learner))
    lost = ["wrong test rows"] * any(board.tested for board in shown)
    lost += ["test quality"] * any(not board.tested for board in shown)
    caption = f"Cost per row of each learner's model, in brackets its {' or '.join(lost)}."
    caption += " Bold: the answer of each data set."
    if any(text.endswith("?") for row in rows for text, _ in row.cells):
        caption += f" ?: not sure to keep {percent(shown[0].keep)}."
    if means:
        caption += f" Mean rank: by {ranked_by(boards)}."
    return Overview([one_line(board.dataset) for board in shown], rows, caption)


def _cell(board: Board, row: Row | None) -> str:
    if row is None:
        return "-"
    of = row.model.quality
    lost = (lost_rows(board, of) if board.tested else quality(of)) or "-"
    return f"{cost(row.model.cost)} ({lost}){'?' * (board.saves and not row.cheap)}"
