"""``bench report``: the leaderboard of a run, on the terminal or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
Everything is selected on validation and reported on test. Costs are means per row, in the unit
of the data set's prices.""",
)
@options.run_argument
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str, output: Path | None, store: Path, quiet: bool, verbose: bool, **_: Any
) -> int:
    """Show the leaderboard of RUN ('last', its number, its name or the beginning of it)."""
    from bench_core.cli.boards import check_board, deliver_board

    check_board(output)
    deliver_board(store, run, output, verbose=verbose)
    if output is not None and not quiet:
        options.note(f"wrote {output}")
    return 0
