"""``bench reprice``: bill a finished run again under other costs, without training."""

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import GO_ON, doing_again, show_result


@click.command(
    "reprice",
    short_help="Bill a run again under other costs, without training.",
    epilog="""\b
Examples:
  bench reprice --costs mine.csv                the last run
  bench reprice 3 --costs per-query.json -o board.html

\b
The stored models answer again and are audited; metrics stay as they are, costs are new. Learners
trained on the old costs: run again with --costs to see what they do with the new ones.""",
)
@options.request_option(
    "costs", required=True, type=str, help="A cost file, or the name of a cost model."
)
@options.names_option("-d", "--data", help="The run's data sets to bill; default: all of them.")
@options.request_option("caps", help="Costs that no row may exceed, in the unit of the new costs.")
@options.stored_run_options
def command(run: str, data: tuple[str, ...], output: Path | None, **given: Any) -> int:
    """Bill RUN again under other costs and show the leaderboard."""
    from bench_core.api.orchestration import registry_of, repriced
    from bench_core.leaderboard.reports import report_for

    with doing_again(GO_ON, run, **given) as (asked, show):
        registry = registry_of(asked)
        report_for(registry, output)  # refused before any work
        result = repriced(run, data, asked, registry, show)
    return show_result(registry, result, output)
