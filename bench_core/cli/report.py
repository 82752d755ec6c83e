"""``bench report``: the leaderboard of a run, on the terminal or as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from bench_core.cli import options


@click.command(
    "report",
    short_help="Show a run's leaderboard, or write it as an HTML page.",
    epilog="""\b
Examples:
  bench report                      the last run, on the terminal
  bench report -o board.html        one self-contained page with the cost-quality curves
  bench report 3 -o board.txt
  bench report | grep miser         without a terminal: one row a line, never cut

\b
Points are selected on validation, figures are from test. Costs are means per row, in the unit of
the data set's prices. The suffix of FILE chooses the format; plugins may add formats.""",
)
@options.run_argument
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
) -> int:
    """Show the leaderboard of RUN ('last', its number, its name or the beginning of it)."""
    from bench_core.cli.boards import write_report

    write_report(options.registry(plugins), store, run, output, verbose=verbose)
    if output is not None and str(output) != "-" and not quiet:
        options.note(f"wrote {output}")
    return 0
