"""The leaderboard as one self-contained page: no second file, no request, no library.

Tables without a limit stand in its HTML; its script draws charts, and tables at budgets, from the
JSON in the page (``page_data``).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.contracts import dataset_of
from bench_core.errors import one_line, printable
from bench_core.leaderboard.board import Board, notes_of, notice
from bench_core.planning.invocation import command
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import count, counted
from bench_reports import page_tables
from bench_reports.page_data import json_text, page_data
from bench_reports.terminal import heading, run_line

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

UNSETTLED = ("not run", "not measured")
"""Verdicts of a section's rows that are notes to the project, not results."""


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    store: Store | None = None,
    registry: Registry | None = None,
) -> None:
    """Write the page, to stdout where no file is named."""
    from bench_core.leaderboard.assembly import boards

    text = page(run, boards(run, frame), frame, sections, store, registry)
    write_text(output or Path("-"), text)


def page(
    info: RunInfo,
    boards: Sequence[Board],
    frame: pd.DataFrame,
    sections: Sequence[Section] = (),
    store: Store | None = None,
    registry: Registry | None = None,
) -> str:
    """The whole page. Without a store it does not show how sure anything is.

    Names, errors and notes come from outside and are escaped.
    """
    boards, views, learners, data = page_data(info, boards, frame, store)
    # the policy allows just these two by their hashes, so a name with markup can run nothing
    style, script = source("page.css"), source(*SCRIPTS)
    sets = [board.dataset for board in boards if not board.same_as]
    parts = []
    for board in boards:
        own = views[board.dataset]
        columns, rows = page_tables.table(board, own[0], learners) if own else ([], [])
        parts.append((board, columns, rows))
    text: str = (
        environment()
        .get_template("page.html")
        .render(
            info=info,
            title=" - ".join(heading(info)),
            subtitle=run_line(info),
            description=f"{count(len(learners), 'learner')} on {', '.join(sets)}",
            parts=parts,
            overview=page_tables.overview(boards, learners, info.baselines),
            several=len(sets) if len(sets) > 1 else 0,
            by_area=any(row.area for board in boards for row in board.rows),
            sections=[public(section) for section in sections],
            warnings=[w for w in info.warnings if not w.startswith("STAND-IN")],
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
    """Jinja with everything escaped, control characters too."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # escaping is on for all templates, not by suffix
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: type(value)(printable(value)) if isinstance(value, str) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"notice": notice, "notes": notes_of, "linked": linked}
    made.filters |= {"legend": page_tables.legend, "savings": page_tables.saving_sentences}
    return made


def source(*names: str) -> str:
    """Files of the page without indentation and lines of comment alone."""
    texts = ((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
    lines = (line.strip() for text in texts for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


def policy_hash(text: str) -> str:
    """The name of an inline script or style in a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def linked(text: str) -> Markup:
    """The text with its web addresses, DOIs and numbers of arXiv as links."""
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
    """The section without rows that settle nothing; its summary counts them."""
    if section.marked < 0:
        return section
    kept = tuple(row for row in section.rows if row[1][section.marked] not in UNSETTLED)
    return replace(section, rows=kept)


def facts(info: RunInfo, frame: pd.DataFrame, registry: Registry | None) -> list[tuple[str, str]]:
    """Facts of the run, as pairs of a term and a description."""
    from bench_core import __version__

    # a trial has a row for each point and split
    trials = frame.drop_duplicates(["dataset", "fold", "learner", "params", "seed"])
    versions = frame[["learner", "learner_version"]].drop_duplicates().astype(str)
    ended = counted(info.counts) or "nothing"
    prints = {f"{use['name']} {str(use.get('fingerprint', ''))[:12]}" for use in info.datasets}
    pairs = [
        ("Run", info.run),
        ("Begun", info.created_at),
        ("State", f"{info.state}, {ended} of {count(info.planned, 'trial')}"),
        ("Suite", " ".join(filter(None, (info.suite, info.profile)))),
        ("Paper", info.paper),
        ("Seeds", ", ".join(map(str, sorted(set(frame["seed"].dropna().astype(int)))))),
        ("Accounting", info.accounting),
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
    """The addresses of the data, of the data sets whose plugins are here and name one."""
    names = sorted({str(use["name"]).partition("(")[0] for use in info.datasets})
    known = registry.datasets if registry else {}
    there = {name: dataset_of(known[name]).homepage for name in names if name in known}
    return [f"{name} {where}" for name, where in there.items() if where]
