"""``bench audit``: replay every query at every point, and see whether declared costs are true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.cli.request import EXECUTORS

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    "audit",
    short_help="Check a run's declared costs on every query and point.",
    epilog="""\b
Examples:
  bench audit                 the last run
  bench audit 3 --workers 2

\b
Everything a model did not declare bought is replaced, and it must answer with the same bits.
A learner that fails leaves the ranking. Exit status 1 if one does.""",
)
@options.run_argument
@click.option("-w", "--workers", type=click.IntRange(1), metavar="N", help="Jobs at the same time.")
@click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    default=EXECUTORS[0],
    show_default=True,
    help="Run jobs in processes that can be killed, or inline in this one.",
)
@click.option("--no-progress", is_flag=True, help="Show no progress bars or lines.")
@options.store_option
@options.common_options
def command(
    run: str,
    workers: int | None,
    executor: str,
    no_progress: bool,
    store: Path,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> int:
    """Audit RUN in full: all its trials, every query, every operating point."""
    from bench_core import api
    from bench_core.cli.progress import progress
    from bench_core.cli.run import failures, summary

    options.find_plugins_here(plugins)
    try:
        with progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show:
            result = api.audit(
                run,
                store=str(store),
                workers=workers or 0,
                executor=executor,
                plugins=tuple(plugins),
                on_event=show,
            )
    except api.Interrupted as stop:
        options.note(f"interrupted: {summary(stop.result)}")
        return stop.result.exit_status
    for line in failures(result):
        click.echo(line)
    refused = len(result.audit_failures)
    verdict = f"{refused} failed the audit" if refused else "no model used what it had not bought"
    click.echo(f"run {result.run}: {verdict}")
    return result.exit_status
