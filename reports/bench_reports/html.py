"""The leaderboard as one self-contained page: no file beside it, no request, no library."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import one_line, visible
from bench_core.leaderboard.board import Board, notes_of, notice
from bench_core.planning.invocation import command
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import cost, count, counted, quality
from bench_reports import payload, rows, svg, views
from bench_reports.console import heading, in_unit, run_line
from bench_reports.payload import Content
from bench_reports.views import View

if TYPE_CHECKING:
    import pandas as pd
    from markupsafe import Markup

    from bench_core.plugins import PluginInfo, Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

TEMPLATES = Path(__file__).parent / "templates"
LOADER = ("files.js", "loader.js")
CODE = (
    *("data.js", "chart.js", "board.js", "tables.js", "pictures.js"),
    *("address.js", "overview.js", "save.js", "page.js"),
)
"""Scripts that are packed, as they are a fifth of the page; the loader runs them."""

UNSETTLED = ("not run", "not measured")
"""Verdicts of a section's rows that are notes to the project, not results."""


def write(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section],
    verbose: bool,
    store: Store | None = None,
) -> None:
    """Write the page, to stdout where no file is named."""
    from bench_core.leaderboard.assembly import boards

    write_text(output or Path("-"), page(run, boards(run, frame), frame, sections, store))


def page(
    info: RunInfo,
    boards: Sequence[Board],
    frame: pd.DataFrame,
    sections: Sequence[Section] = (),
    store: Store | None = None,
) -> str:
    """The whole page. Names, errors and notes come from outside and are escaped."""
    sure, found = content(info, boards, frame, store)
    return render(info, sure, found, frame, sections)


def content(
    info: RunInfo, boards: Sequence[Board], frame: pd.DataFrame, store: Store | None
) -> tuple[list[Board], Content]:
    """The boards with their certainty, and what the page draws; without a store it does not know
    how sure anything is."""
    from bench_reports.differences import differences
    from bench_reports.pictures import followed, pictures

    of = {board.dataset: views.views(info, board, frame) for board in boards}
    firsts = [found[0] for found in of.values() if found]
    grid = views.places(firsts, [view for found in of.values() for view in found[1:]])
    learners = payload.learner_order(of)
    fine = Content(of, grid, {}, {}).fine
    sure, pairs, shown = list(boards), {}, {}
    for k, board in enumerate(boards):
        own = of[board.dataset]
        if store is None or not own:
            continue
        sure[k] = views.certify(info, store, board, frame, own, grid)
        pairs[board.dataset] = differences(info, store, board, own[0], learners, grid)
        whole = learners if fine else followed(own[0], board.reference, grid)
        shown[board.dataset] = pictures(
            store, info.run, board.dataset, own[0], learners, grid, whole
        )
    return sure, Content(of, grid, pairs, shown)


def render(
    info: RunInfo,
    boards: Sequence[Board],
    found: Content,
    frame: pd.DataFrame,
    sections: Sequence[Section] = (),
) -> str:
    """The text of the page."""
    learners = payload.learner_order(found.views)
    css, js, code = source("page.css"), source(*LOADER), source(*CODE)
    sets = sum(not board.same_as for board in boards)
    overview = rows.overview(boards, learners, info.baselines)
    template = _environment(info, learners, found.fine).get_template("page.html")
    text: str = template.render(
        info=info,
        title=" - ".join(heading(info)),
        subtitle=run_line(info),
        headline=headline(boards, found.views),
        parts=[(board, found.views[board.dataset]) for board in boards],
        overview=overview,
        several=sets if sets > 1 else 0,
        by_area=rows.by_area(boards),
        fine=found.fine,
        sections=[public(section) for section in sections],
        warnings=[w for w in info.warnings if not w.startswith("STAND-IN")],
        facts=facts(info, frame),
        command=command(info.request),
        data=packed(json_text(payload.payload(info, boards, found))),
        code=packed(code),
        css=css,
        js=js,
        style_hash=policy_hash(css),
        script_hash=policy_hash(js),
        code_hash=policy_hash(code),
    )
    return text


def _environment(info: RunInfo, learners: Sequence[str], fine: bool) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def chart(view: View, board: Board) -> str:
        title = f"{board.metric} against cost on {board.dataset}"
        return svg.chart(view, learners, info.baselines, title, in_unit(board), fine=fine)

    environment.filters |= {"quality": quality, "cost": cost, "notice": notice, "notes": notes_of}
    environment.filters |= {"story": rows.story, "heads": rows.heads, "chart": chart}
    environment.filters |= {"legend": rows.legend}
    most = svg.MOST if not fine else len(learners)
    environment.filters |= {"split_rows": partial(rows.split_rows, learners=learners, most=most)}
    environment.globals |= {"static": most}
    environment.filters |= {"linked": linked}
    return environment


def _shown(value: object) -> object:
    """What an expression of a template gives, as readers may see it."""
    return type(value)(visible(value)) if isinstance(value, str) else value


def headline(boards: Sequence[Board], of: Mapping[str, Sequence[View]]) -> str:
    """The page in a sentence or two."""
    shown = [board for board in boards if of[board.dataset] and not board.same_as]
    if not shown:
        return "No learner finished."
    if len(shown) == 1:
        return rows.story(shown[0], of[shown[0].dataset][0])
    return rows.overall_sentence(boards)


def source(*names: str) -> str:
    """Files of the page without indentation and lines of comment alone."""
    texts = ((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
    lines = (line.strip() for text in texts for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


def json_text(value: object) -> str:
    """The value as JSON without spaces."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def packed(text: str) -> str:
    """Gzip in base 85, with a comma for its "<": it cannot end the script element it stands in, and
    the same text gives the same bytes."""
    return base64.b85encode(gzip.compress(text.encode(), 9, mtime=0)).decode().replace("<", ",")


def policy_hash(text: str) -> str:
    """What a Content-Security-Policy calls an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def linked(text: str) -> Markup:
    """The text with its web addresses, DOIs and numbers of arXiv as links."""
    from markupsafe import Markup, escape

    parts = re.split(r"(https?://[^\s<>\"']*[\w/]|doi:10\.[^\s<>\"']*\w|arXiv:[\w./-]*\w)", text)
    sites = {"doi": "https://doi.org/", "arXiv": "https://arxiv.org/abs/"}
    linked = []
    for k, part in enumerate(parts):
        site, _, rest = part.partition(":")
        address = sites[site] + rest if site in sites else part
        link = Markup('<a href="{}" rel="noreferrer">{}</a>').format(address, part)
        linked.append(link if k % 2 else escape(part))
    return Markup("").join(linked)


def public(section: Section) -> Section:
    """The section without rows that settle nothing; its summary counts them."""
    from dataclasses import replace

    if section.marked < 0:
        return section
    kept = tuple(row for row in section.rows if row[1][section.marked] not in UNSETTLED)
    return replace(section, rows=kept)


def facts(info: RunInfo, frame: pd.DataFrame) -> list[tuple[str, str]]:
    """How it was run, as pairs of a term and a description."""
    from bench_core import __version__

    trials = frame.drop_duplicates(["dataset", "fold", "learner", "params", "seed"])
    versions = frame[["learner", "learner_version"]].drop_duplicates().astype(str)
    ended = counted(info.counts) or "nothing"
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
        ("Data", "; ".join(_fingerprints(info))),
        ("Data from", "; ".join(_sources(info))),
        ("Written by", " ".join((f"budget-bench {__version__}", *_project()))),
    ]
    return [(term, one_line(text)) for term, text in pairs if text]


def _sources(info: RunInfo) -> list[str]:
    """Where a person gets the data, of the data sets whose plugins are here and say so. No plugin
    of others is imported for that, and no learner."""
    from bench_core.plugins import load_registry

    def absent(it: PluginInfo, _: Registry) -> bool:
        return it.module.partition(":")[0] not in sys.modules

    known = load_registry((), absent, without=["bench_methods"]).datasets
    names = sorted({str(use["name"]).partition("(")[0] for use in info.datasets})
    there = ((name, known[name].homepage) for name in names if name in known)
    return [f"{name} {where}" for name, where in there if where]


def _project() -> list[str]:
    """The addresses that the installed package declares."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        declared = metadata("budget-bench").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a folder
        return []
    return [line.rpartition(" ")[2] for line in declared]


def _fingerprints(info: RunInfo) -> list[str]:
    found = {f"{use['name']} {str(use.get('fingerprint', ''))[:12]}" for use in info.datasets}
    return sorted(found)
