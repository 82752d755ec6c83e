"""``bench audit``: replay every query at every point to check the declared costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.cli.request import EXECUTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench_core.execution.runner import RunResult


@click.command(
    "audit",
    short_help="Check a run's declared costs on every query and point.",
    epilog="""\b
Examples:
  bench audit                 the last run
  bench audit 3 --workers 2

\b
Cells that a model did not declare as bought are replaced; its answer must stay the same, bit by
bit. A learner that fails leaves the ranking, and the exit status is then 1.""",
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
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str,
    output: Path | None,
    workers: int | None,
    executor: str,
    no_progress: bool,
    store: Path,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
) -> int:
    """Audit RUN in full: all its trials, every query, every operating point."""
    from bench_core import api
    from bench_core.cli.run import failures, summary
    from bench_core.results.store import Store
    from bench_core.terminal.progress import progress
    from bench_core.terminal.tables import check_output, write_text

    check_output(output)

    needed = Store(store).info(run).request.get("plugins", ())
    modules = tuple(dict.fromkeys([*needed, *plugins]))
    options.find_plugins_here(modules)
    try:
        with progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show:
            result = api.audit(
                run,
                store=str(store),
                workers=workers or 0,
                executor=executor,
                plugins=modules,
                on_event=show,
            )
    except api.Interrupted as stop:
        options.note(f"interrupted: {summary(stop.result)}")
        return stop.result.exit_status
    lines = [*failures(result), f"run {result.run}: {verdict(result)}"]
    write_text(output or Path("-"), "\n".join(lines) + "\n")
    return result.exit_status


def verdict(result: RunResult) -> str:
    """The result of the audit in one line."""
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    broken = sum(result.counts.values()) - replayed
    parts = [f"{replayed - refused} verified"] if replayed > refused else []
    parts += [f"{refused} failed the audit"] if refused else []
    parts += [f"{broken} could not be audited"] if broken else []
    return ", ".join(parts) or "there is nothing to audit"
