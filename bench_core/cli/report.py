"""``bench report``: the leaderboard of a run, on the terminal or as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError

if TYPE_CHECKING:
    from bench_core.plugins import Registry
    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo

CURVES = "curves"  # the report that --plot writes


@click.command("report")
@options.run_argument
@options.budget_options()
@options.output_option
@click.option(
    "--plot", type=options.FILE, metavar="FILE", help="Draw the curves in this file: .svg .pdf .png"
)
@click.option("--methods", is_flag=True, help="Show a paragraph on how the run was carried out.")
@options.store_option
@options.common_options
def report_command(
    run: str,
    budgets: Sequence[Budget],
    output: Path | None,
    plot: Path | None,
    methods: bool,
    store: Path,
    plugins: Sequence[str],
) -> int:
    """Show the leaderboard of RUN, or write it as a page, tables for papers, or a figure.

    RUN is 'last', its number, its name or the beginning of it.

    Examples:
      bench report                      the last run, on the terminal
      bench report -o board.html        one self-contained page with the cost-quality curves
      bench report 3 -o board.tex       or .md, .csv, .json, .txt: tables of quality at budgets
      bench report --budget 10,20,40    what learners reach at these costs
      bench report --plot curve.pdf     or .svg, .png: the curves as a figure
      bench report --methods            a paragraph on how the run was carried out
      bench report | grep miser         without a terminal: one row a line, never cut

    Points are selected on validation, figures are from test. Costs are means per row, in the unit
    of the data set's prices. The suffix of FILE chooses the format; plugins may add formats.
    """
    from bench_core.leaderboard.methods import paragraph
    from bench_core.leaderboard.reports import finished, report_for
    from bench_core.plugins import load_registry

    registry = load_registry(plugins)
    figures = registry.reports[CURVES].suffixes if CURVES in registry.reports else ()
    if plot is not None and plot.suffix.lower() not in figures:
        raise UsageError(f"--plot {plot}: a figure's name ends in {', '.join(figures)}")
    files: list[Path | None] = [one for one in (output, plot) if one is not None]
    for file in files:  # all are refused before one is written
        report_for(registry, file)
    if methods:
        click.echo(paragraph(*finished(store, run)))
    for file in files or ([] if methods else [None]):
        write_report(registry, store, run, file, budgets)
        if file is not None and str(file) != "-":
            options.note(f"wrote {file}")
    return 0


def write_report(
    registry: Registry,
    store: Path,
    run: str,
    output: Path | None,
    budgets: Sequence[Budget] = (),
) -> RunInfo:
    """Write a report as the options of the running verb ask; with --debug a section that fails
    ends the command."""
    from bench_core.leaderboard import reports

    def warn(line: str) -> None:
        if options.flag("debug"):
            raise  # the exception of the section
        options.complain(line)

    verbose = options.flag("verbose")
    return reports.write_report(
        registry, store, run, output, verbose=verbose, budgets=budgets, warn=warn
    )
