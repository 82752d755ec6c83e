"""``bench reprice``: bill a finished run anew under other costs, without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.cli.report import report_for
from bench_core.cli.run import GO_ON, following, needed_plugins, show_result

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
@options.workers_option
@options.executor_option
@options.no_progress_option
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str,
    costs: str,
    data: Sequence[str],
    output: Path | None,
    store: Path,
    workers: int,
    executor: str,
    plugins: Sequence[str],
    **display: bool,
) -> int:
    """Bill RUN anew under other costs and show the leaderboard."""
    from bench_core import api

    registry = options.registry(needed_plugins(store, run, plugins))
    report_for(registry, output)  # refused before any work
    with following(GO_ON, **display) as show:
        result = api.reprice(
            run,
            costs=costs,
            data=data,
            store=str(store),
            workers=workers,
            executor=executor,
            plugins=plugins,
            on_event=show,
        )
    return show_result(registry, result, output, display["quiet"], display["verbose"])
