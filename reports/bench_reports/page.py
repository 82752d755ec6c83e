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
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.contracts import dataset_of
from bench_core.errors import one_line, printable
from bench_core.leaderboard.board import RANK, SHARE, Board, Row, notice
from bench_core.leaderboard.columns import (
    Column,
    columns,
    explained,
    order_words,
)
from bench_core.leaderboard.conclusion import conclusion, over_datasets, overall_conclusion
from bench_core.planning.request import command
from bench_core.statistics import CONFIDENCE
from bench_core.statistics.comparison import Interval
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import CHEAPER, cost, count, counted, interval, quality, run_line
from bench_reports.page_data import json_text, page_data
from bench_reports.palette import css
from bench_reports.terminal import heading, mark_lines, own_marks, selection_line

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

CHEAPER_95 = f"{CHEAPER} {CONFIDENCE}"

MOVING = ("rank", "quality", "range", "cost")
"""Columns whose cells change with the budget; others are sorted by a key."""

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
    parts = [
        (
            board,
            table_columns(board, registry),
            [*(row for row in board.rows if row.learner in learners), *board.sources],
        )
        if board.rows and views[board.dataset]
        else (board, [], [])
        for board in boards
    ]
    return rendered(
        "page.html",
        info=info,
        title=" - ".join(heading(info)),
        subtitle=run_line(info),
        description=f"{count(len(learners), 'learner')} on {', '.join(sets)}",
        parts=parts,
        moving=MOVING,
        learners=learners,
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
    environment.filters |= {"notice": notice, "linked": linked, "line": one_line}
    environment.filters |= {
        "key": sort_key,
        "legend": legend,
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


def table_columns(board: Board, registry: Registry | None = None) -> list[tuple[str, Column]]:
    """Return the columns of the page that are not empty, by the names that the script knows: first
    those of the best point, which it fills for each budget."""
    every = columns(board, registry)
    named = {column.title: column for column in every}
    sign = -1 if board.higher_is_better else 1
    order = sorted(board.rows, key=lambda row: (sign * row.best.quality, row.best.cost))
    places = {row.learner: str(k) for k, row in enumerate(order, 1)}
    best, title = named[f"best {board.metric}"], f"{CONFIDENCE} interval"

    def rank(row: Row) -> str:
        return row.standing.rank.replace("-", "–") or places.get(row.learner, "-")

    def ends(row: Row) -> str:
        return interval(row.standing.interval, quality)

    def sure_cost(row: Row) -> str:
        return cost(row.cheap.cost)

    def marks(row: Row) -> str:
        return ", ".join(map(one_line, own_marks(board, row))) or "-"

    shown = {
        "rank": replace(named[RANK], text=rank),
        "quality": replace(best, title=board.metric),
        "range": replace(named["best ±"], title=title, text=ends),
        "cost": replace(named["best cost"], title="cost"),
        "cheap": replace(named["cost"], title=f"{SHARE:.0%} cost", text=sure_cost),
        **{name: named[name] for name in (CHEAPER, CHEAPER_95, "settings", "seconds")},
        "marks": replace(named["marks"], text=marks),
        **{column.title: column for column in every[len(columns(board)) :]},
    }
    return [item for item in shown.items() if any(item[1].text(r) != "-" for r in board.rows)]


def sort_key(column: Column, row: Row) -> str:
    """Return the value by which the script sorts a cell, "" if it has none; an interval by its
    lower end."""
    value = column.value(row)
    at = value.low if isinstance(value, Interval) else value
    if isinstance(at, str):
        return at
    return "" if math.isnan(at) else "Infinity" if math.isinf(at) else f"{at:.6g}"


def legend(board: Board, shown: Sequence[tuple[str, Column]]) -> list[str]:
    """Return the source of figures, explanations of the table's columns, and its marks."""
    words = explained(column for _, column in shown)
    return [selection_line(board), words, *(f"{line}." for line in mark_lines(board))]


def overview(
    boards: Sequence[Board], learners: Sequence[str], baselines: Sequence[str]
) -> list[dict[str, Any]]:
    """Return all learners without a limit, ranked as on a terminal (``over_datasets``); then
    baselines, then learners that ``lack`` a result on some data set and thus have no ``mean``. A
    cell has a text, and True if the learner is first there."""
    names, ranking = over_datasets(boards)
    ranked = {one.learner: one for one in ranking}
    least = [min(ranks) for ranks in zip(*(one.by_dataset for one in ranking), strict=True)]
    there = {board.dataset: {row.learner for row in board.rows} for board in boards}
    counted = [there[board.dataset] for board in boards if board.rows and not board.same_as]
    rows = []
    for place, learner in enumerate(learners):
        cells = {name: ("✓" if learner in have else "-", False) for name, have in there.items()}
        results, mean, lacks = sum(learner in have for have in counted), 0.0, learner not in ranked
        words = f"on {results} of {len(counted)}"
        if not lacks:
            mean, by_dataset = ranked[learner].mean, ranked[learner].by_dataset
            firsts = [rank == first for rank, first in zip(by_dataset, least, strict=True)]
            cells |= {n: (f"{r:g}", f) for n, r, f in zip(names, by_dataset, firsts, strict=True)}
            words = f"{sum(firsts)} of {len(names)}"
        rows.append(
            {
                "place": place,
                "learner": one_line(learner),
                "baseline": learner in baselines,
                "lacks": lacks,
                "mean": "-" if lacks else f"{mean:.2f}",
                "firsts": words,
                "cells": [*cells.values()],
                "order": (lacks, learner in baselines, mean, one_line(learner)),
            }
        )
    return sorted(rows, key=itemgetter("order"))
