"""``bench publish site/``: runs as a static site, with changes since the last publication."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError, UsageError, one_line
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import cost, count, counted, quality

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo

STATE = "published.json"
FILES = {"page": "index.html", "CSV": "board.csv", "JSON": "board.json"}

Figures = dict[str, list[float]]
"""Quality and cost of a learner's best point, by ``DATA SET / LEARNER``."""


@click.command(
    "publish",
    short_help="Write a static site of several runs.",
    epilog="""\b
Examples:
  bench publish site/               all finished runs of the store
  bench publish site/ 3 7 letters   three runs
  bench publish site/ --title "Tests of the clinic"

\b
The site consists of plain files and needs no server: an index with the changes since the last
publication, and for each run its page and its boards as CSV and JSON. Runs that are not named are
removed from the site.""",
)
@click.argument(
    "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", required=True
)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--title", default="Benchmark runs", metavar="TEXT", help="Name of the site.")
@options.store_option
@options.few_options
def command(
    folder: Path, runs: tuple[str, ...], title: str, store: Path, plugins: Sequence[str]
) -> int:
    """Write a static site of RUNs (default: all that have results) to the folder DIR."""
    from bench_core.leaderboard.reports import ReportRequest, finished, write_report
    from bench_core.results.store import Store

    # read before writing: a folder with other content is refused
    registry = options.registry(plugins)
    before = read_state(folder)
    runs_store = Store(store)
    # a run without a result has no page
    run_names = [info.run for info in runs_store.runs() if info.counts.get("ok")]
    names = dict.fromkeys(map(runs_store.resolve, runs) if runs else run_names)
    if not names:
        raise UsageError(f"{store}: no run has results yet; use `bench run` first")
    results = [finished(runs_store, name) for name in names]
    state: dict[str, Figures] = {}
    entries = []
    if before is None:  # a site from now on, so that a failure does not block the next call
        write_text(folder / STATE, "{}\n")
    for info, frame in results:
        for name in FILES.values():
            file = folder / place(info.run) / name
            write_report(registry, ReportRequest(store, info.run, file), options.warn)
        boards = json.loads((folder / place(info.run) / FILES["JSON"]).read_text("utf-8"))
        state[info.run] = figures(boards)
        entries.append(entry(info, boards, sorted(set(frame["seed"].dropna().astype(int)))))
    changed = [*changes(before, state)] if before else None  # nothing to compare at first
    write_text(folder / "index.html", index(title, entries, changed))
    write_text(folder / STATE, json.dumps(state, indent=1, sort_keys=True) + "\n")
    for gone in set(before or {}) - set(state):
        for name in FILES.values():
            (folder / place(gone) / name).unlink(missing_ok=True)
        with suppress(OSError):  # keep a folder that has other files
            (folder / place(gone)).rmdir()
    options.note(f"published {count(len(results), 'run')} in {folder}")
    for line in changed or ():
        options.note(line)
    return 0


def place(run: str) -> str:
    """Return the folder of a run in the site."""
    return "runs/" + re.sub(r"[^\w.+-]", "_", run)


def read_state(folder: Path) -> dict[str, Figures] | None:
    """Return the figures of the last publication, None before the first one.

    Raises InputError for a folder with other content, so that nothing is lost.
    """
    path = folder / STATE
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(
                f"{folder}: not empty, and not a site of `bench publish`; name another"
            )
        return None
    try:
        return {run: {**found} for run, found in json.loads(path.read_text("utf-8")).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: damaged ({error}); remove it to publish again") from error


def figures(boards: Mapping[str, Any]) -> Figures:
    """Return the figures to compare with the next publication, of boards as JSON."""
    # as displayed: invisible changes are not changes
    return {
        f"{board['dataset']} / {row['learner']}": [float(quality(best)), float(cost(paid))]
        for board in boards["datasets"]
        for row in board["learners"]
        for best, paid in [(row["best quality"], row["best cost"])]
        if best is not None
    }


def changes(before: Mapping[str, Figures], now: Mapping[str, Figures]) -> Iterator[str]:
    """Yield a line for each changed run, learner and figure."""
    for run in sorted({*before, *now}):
        if run not in before or run not in now:
            yield f"{run}: {'new' if run in now else 'taken off'}"
            continue
        for key in sorted({*before[run], *now[run]}):
            old, new = before[run].get(key), now[run].get(key)
            if old is None or new is None:
                yield f"{run}: {key}: {'new' if new else 'no longer there'}"
            elif old != new:
                yield f"{run}: {key}: {old[0]:g} at cost {old[1]:g}, now {new[0]:g} at {new[1]:g}"


def entry(info: RunInfo, written: Mapping[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """Return a run's line in the index, from its boards as JSON: conclusion, picture, contents, and
    what tells it from other runs."""
    from bench_core.terminal.wording import run_line

    boards = written["datasets"]
    answer = written["conclusion"] or boards[0]["conclusion"]
    if len(boards) > 1 and not written["conclusion"]:  # no common ranking
        answer = [f"{boards[0]['dataset']}:", *answer]
    datasets = _names(use.name for use in info.datasets)
    profile = [f"profile {one_line(info.profile)}"] if info.profile else []
    trained = f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
    return {
        "name": one_line(info.title) or datasets,
        "begun": info.created_at,
        "about": [run_line(info), *profile, trained],
        "answer": " ".join(answer),
        "picture": lines_of(boards[0]),
        "pictured": one_line(boards[0]["dataset"]),
        "datasets": datasets,
        "learners": _names(row["learner"] for board in boards for row in board["learners"]),
        "state": f"{info.state}, {counted(info.counts) or 'nothing'}",
        "stand_in": info.stand_in,
        "files": {word: f"{place(info.run)}/{file}" for word, file in FILES.items()},
    }


def lines_of(board: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a board's curves as (class, corners) of SVG lines in steps over the logarithm of the
    budget, best on top: ``k3`` is the learner's colour; baselines have none."""
    from bench_reports.palette import look

    sign = 1 if board["higher_is_better"] else -1
    drawn = [row for row in board["learners"] if len(row["curve"]) > 1]
    curves = [[(p["budget"], sign * p["quality"]) for p in row["curve"]] for row in drawn]
    corners = [corner for curve in curves for corner in curve] or [(0, 0)]
    widest = max(x for x, _ in corners) or 1
    least = min((x for x, _ in corners if x > 0), default=widest)
    decades = math.log(widest / least) or 1
    low, high = (end(y for _, y in corners) for end in (min, max))
    room = (high - low) or 1
    lines = []
    for place, (row, curve) in enumerate(zip(drawn, curves, strict=True)):
        colour = "" if row["baseline"] else f"k{look(row['learner']).colour}"
        # each quality holds up to the next budget
        ends = [*(x for x, _ in curve[1:]), widest]
        steps = [(x, y) for (start, y), end in zip(curve, ends, strict=True) for x in (start, end)]
        across = (math.log(max(x, least) / least) / decades for x, _ in steps)
        down = ((y - low) / room for _, y in steps)
        both = zip(across, down, strict=True)
        at = (f"{3 + 154 * x:.1f},{57 - 54 * y:.1f}" for x, y in both)
        lines.append((f"{colour} {'first' * (place == 0)}".strip(), " ".join(at)))
    return lines[::-1]


STYLE = """
th[scope=row] { max-width: 20rem; min-width: 12rem; white-space: normal; overflow-wrap: anywhere; }
th small { font-weight: 400; } .answer { min-width: 16rem; white-space: normal; }
svg { width: 160px; height: 60px; } svg polyline { fill: none; stroke: var(--line); }
svg polyline[class*=k] { stroke: var(--k); } svg polyline { stroke-width: 1.5; }
svg .first { stroke-width: 3; } [type=search] { font: inherit; padding: .25rem .5rem; }
"""


def index(
    title: str, runs: Sequence[Mapping[str, Any]], changed: Sequence[str] | None = None
) -> str:
    """Return the first page of the site: one line for each run, which can be sorted and searched,
    and the changes since the last publication, None before the first."""
    from bench_reports.page import policy_hash, rendered, source
    from bench_reports.palette import css

    style, script = source("page.css") + css() + STYLE, source("tables.js", "search.js")
    return rendered(
        "publish.html",
        title=one_line(title),
        runs=runs,
        changed=None if changed is None else [*map(one_line, changed)],
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
    )


def _names(names: Iterable[str]) -> str:
    return one_line(", ".join(dict.fromkeys(names)))
