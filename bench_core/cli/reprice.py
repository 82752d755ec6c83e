"""``bench reprice``: bill a finished run anew under other costs, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.cli.request import EXECUTORS

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    "reprice",
    short_help="Bill a run anew under other costs, without training.",
    epilog="""\b
Examples:
  bench reprice --costs mine.csv                the last run
  bench reprice 3 --costs per-query.json -o board.html

\b
The stored models answer again and are audited; metrics stay as they are, costs are new. Learners
trained on the old costs: run anew with --costs to see what they make of the new ones.""",
)
@options.run_argument
@click.option(
    "--costs", required=True, metavar="FILE", help="A cost file, or the name of a cost model."
)
@options.names_option("-d", "--data", help="The run's data sets to bill; default: all of them.")
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
    costs: str,
    data: Sequence[str],
    output: Path | None,
    workers: int | None,
    executor: str,
    no_progress: bool,
    store: Path,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
) -> int:
    """Bill RUN anew under other costs and show the leaderboard."""
    from bench_core import api
    from bench_core.cli.boards import report_for, write_report
    from bench_core.cli.run import next_steps, summary
    from bench_core.results.store import Store
    from bench_core.terminal.progress import progress
    from bench_core.terminal.wording import notices

    needed = Store(store).info(run).request.get("plugins", ())
    modules = tuple(dict.fromkeys([*needed, *plugins]))
    registry = options.registry(modules)
    report_for(registry, output)  # refused before any work
    try:
        with progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show:
            result = api.reprice(
                run,
                costs=costs,
                data=data,
                store=str(store),
                workers=workers or 0,
                executor=executor,
                plugins=plugins,
                on_event=show,
            )
    except api.Interrupted as stop:
        options.note(f"interrupted: {summary(stop.result)}; the same command goes on from there")
        return stop.result.exit_status
    info = write_report(registry, result.store, result.run, output, verbose=verbose)
    if not quiet:
        for line in ("", *notices(info), summary(result), *next_steps(result)):
            options.note(line)
    return result.exit_status
