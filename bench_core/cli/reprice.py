"""``bench reprice``: bill a finished run anew under other costs, without training."""

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.report import report_for
from bench_core.cli.run import GO_ON, doing_again, show_result


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
@click.option(
    "--costs", required=True, metavar="FILE", help="A cost file, or the name of a cost model."
)
@options.names_option("-d", "--data", help="The run's data sets to bill; default: all of them.")
@options.caps_option("Costs that no row may exceed, in the unit of the new costs.")
@options.stored_run_options
def command(run: str, output: Path | None, **given: Any) -> int:
    """Bill RUN anew under other costs and show the leaderboard."""
    from bench_core import api

    with doing_again(GO_ON, run=run, **given) as asked:
        registry = options.registry(asked["plugins"])
        report_for(registry, output)  # refused before any work
        result = api.reprice(run, **asked)
    return show_result(registry, result, output, given["quiet"], given["verbose"])
