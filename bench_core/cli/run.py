"""``bench run``: the main job, from data to leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.request import request, request_options
from bench_core.errors import one_line

if TYPE_CHECKING:
    from bench_core.api import RunResult


@click.command(
    "run",
    short_help="Run learners on data and show the leaderboard.",
    epilog="""\b
Examples:
  bench run --suite quickstart
  bench run --suite yahoo --learners miser,cronus,cegb --data-dir ~/data
  bench run --data train.svm --test test.svm --costs mine.csv --learners all
  bench run --data visits.csv --label ill --task binary --metric auc
  bench run -s letters --set miser.trees=300 --set miser.tradeoff=[0.1,1,10] --seeds 0-2
  bench run -s quickstart -p my_module -l mine      a learner of the current folder

\b
Units: --timeout 90s, 10m or 2h; --memory 500MiB or 4GiB; costs are in the unit of the cost file.
Interrupt at any time: finished work is kept, and the same command does the rest.""",
)
@request_options
@options.output_option
@options.common_options
def command(no_progress: bool, output: Any, quiet: bool, verbose: bool, **given: Any) -> int:
    """Run learners on data and show the leaderboard.

    What to run is a suite, or data sets or files of your own. Results are kept in the store;
    what it already holds is not done again.
    """
    from bench_core import api
    from bench_core.cli.boards import report_for, write_report
    from bench_core.terminal.progress import progress
    from bench_core.terminal.wording import notices

    asked = request(**given)
    registry = options.registry(asked.plugins)
    report_for(registry, output)  # refused before hours are spent
    try:
        with progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show:
            result = api.run(request=asked, on_event=show)
    except api.Interrupted as stop:
        options.note(f"interrupted: {summary(stop.result)}; the same command goes on from there")
        return stop.result.exit_status
    info = write_report(registry, result.store, result.run, output, verbose=verbose)
    if not quiet:
        for line in ("", *notices(info), summary(result), *next_steps(result)):
            options.note(line)
    return result.exit_status


def summary(result: RunResult) -> str:
    """Counts by status, reused trials, duration, and the store."""
    from bench_core.terminal.wording import duration

    counts = [f"{n} {status}" for status, n in result.counts.items() if n] or ["no trials"]
    counts += [f"{n} refused by the audit" for n in [len(result.audit_failures)] if n]
    reused = f" ({result.reused} of them from before)" if result.reused else ""
    spent = f"in {duration(result.seconds)}, kept in {result.store}"
    return f"run {result.run}: {', '.join(counts)}{reused} {spent}"


def failures(result: RunResult) -> list[str]:
    """One line for each trial that failed, and for each that the audit refused."""
    lines = [f"{status}: {title}: {one_line(error)}" for title, status, error in result.failures]
    named = {title for title, _, _ in result.failures}
    return lines + [f"audit failed: {t}" for t in result.audit_failures if t not in named]


def next_steps(result: RunResult) -> list[str]:
    """Commands worth typing now."""
    store = "" if result.store == options.STORE else f" --store {result.store}"
    failed = any(status != "skipped" for _, status, _ in result.failures)
    lines = [f"why trials failed: bench log{store} --failed"] if failed else []
    return [*lines, f"next: bench report{store} -o board.html; bench best{store} --budget COST"]
