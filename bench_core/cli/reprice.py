"""``bench reprice``: bill a finished run anew under other costs, without training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.report import report_for
from bench_core.cli.run import GO_ON, following, needed_plugins, show_result


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
@options.caps_option("Costs that no row may exceed, in the unit of the new costs.")
@options.workers_option
@options.executor_option
@options.no_progress_option
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
    no_progress: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Bill RUN anew under other costs and show the leaderboard."""
    from bench_core import api

    registry = options.registry(needed_plugins(store, run, plugins))
    report_for(registry, output)  # refused before any work
    with following(GO_ON, no_progress, quiet, verbose) as show:
        result = api.reprice(run, store=str(store), plugins=plugins, on_event=show, **given)
    return show_result(registry, result, output, quiet, verbose)
