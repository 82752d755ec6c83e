"""``bench report``: the leaderboard of a run, on the terminal or as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import BenchError, UsageError, one_line
from bench_core.terminal.tables import check_output

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.plugins import Registry
    from bench_core.protocols import Report, Section
    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

CURVES = "curves"
"""The report that ``--plot`` writes."""


@click.command(
    "report",
    short_help="Show a run's leaderboard, or write it as a page, tables for papers, or a figure.",
    epilog="""\b
Examples:
  bench report                      the last run, on the terminal
  bench report -o board.html        one self-contained page with the cost-quality curves
  bench report 3 -o board.tex       or .md, .csv, .json, .txt: tables of quality at budgets
  bench report --budget 10,20,40    what learners reach at these costs
  bench report --plot curve.pdf     or .svg, .png: the curves as a figure
  bench report --methods            a paragraph on how the run was carried out
  bench report | grep miser         without a terminal: one row a line, never cut

\b
Points are selected on validation, figures are from test. Costs are means per row, in the unit of
the data set's prices. The suffix of FILE chooses the format; plugins may add formats.""",
)
@options.run_argument
@options.budget_options()
@options.output_option
@click.option(
    "--plot", type=options.FILE, metavar="FILE", help="Draw the curves in this file: .svg .pdf .png"
)
@click.option("--methods", is_flag=True, help="Show a paragraph on how the run was carried out.")
@options.store_option
@options.common_options
def command(
    run: str,
    budget: str | None,
    budget_kind: str,
    output: Path | None,
    plot: Path | None,
    methods: bool,
    store: Path,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
) -> int:
    """Show the leaderboard of RUN ('last', its number, its name or the beginning of it)."""
    from bench_core.plugins import load_registry

    budgets = () if budget is None else options.budgets(budget, budget_kind)
    options.find_plugins_here(plugins)
    registry = load_registry(plugins)
    figures = registry.reports[CURVES].suffixes if CURVES in registry.reports else ()
    if plot is not None and plot.suffix.lower() not in figures:
        raise UsageError(f"--plot {plot}: a figure's name ends in {', '.join(figures)}")
    files: list[Path | None] = [one for one in (output, plot) if one is not None]
    for file in files:  # all are refused before one is written
        report_for(registry, file)
    if methods:
        from bench_core.leaderboard.methods import paragraph

        click.echo(paragraph(*finished(store, run)))
    for file in files or ([] if methods else [None]):
        write_report(registry, store, run, file, verbose=verbose, budgets=budgets)
        if file is not None and str(file) != "-":
            options.note(f"wrote {file}", quiet)
    return 0


def finished(store: Store | str | Path, run: str) -> tuple[RunInfo, pd.DataFrame]:
    """A run and its finished rows, of which there must be some."""
    from bench_core.results.store import Store

    kept = store if isinstance(store, Store) else Store(store)
    info = kept.info(run)
    frame = kept.frame(run, compact=True)
    if frame.empty:
        raise UsageError(f"run {info.run} in {kept.path} has no finished trials yet: run it again")
    return info, frame


def report_for(registry: Registry, output: Path | None) -> Report:
    """The report that writes files like ``output``, or shows boards on the terminal.

    Raises UsageError for a file that cannot be written, and for a suffix that no report has.
    """
    suffix = output.suffix.lower() if output is not None else ""
    reports = reversed([*registry.reports.values()])  # of a suffix the first wins
    known = {s: report for report in reports for s in report.suffixes}
    if suffix not in known or (output is not None and not suffix and str(output) != "-"):
        words = ", ".join(sorted(filter(None, known))) or "none: no report is installed"
        raise UsageError(
            f"{output or 'the terminal'}: no report has the suffix {suffix!r}; known: {words} "
            "('bench export' writes tables)"
        )
    check_output(output)
    return known[suffix]


def write_report(
    registry: Registry,
    store: str | Path,
    run: str,
    output: Path | None,
    *,
    verbose: bool,
    budgets: Sequence[Budget] = (),
) -> RunInfo:
    """Write the report of a run to a file, or show it on the terminal; ``budgets`` take the place
    of those of its suite."""
    from bench_core.results.store import Store
    from bench_core.statistics.bootstrap_data import one_thread

    report = report_for(registry, output)
    kept = Store(store)
    with kept.held(), one_thread():
        info, frame = finished(kept, run)
        if budgets:
            named = {"budgets": tuple(map(str, budgets))}
            info = replace(info, datasets=tuple({**use, **named} for use in info.datasets))
        sections = list(_sections(registry, info, frame, kept))
        given = {"sections": sections, "verbose": verbose, "store": kept, "registry": registry}
        report.write(info, frame, output, **_accepted(report.write, given))
    return info


def _accepted(of: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that a report or section takes; it may leave out what it does not
    need."""
    takes = signature(of).parameters
    every = any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())
    return {name: value for name, value in given.items() if every or name in takes}


def _sections(
    registry: Registry, info: RunInfo, frame: pd.DataFrame, store: Store
) -> Iterator[Section]:
    """The sections of plugins; one that fails is a warning and takes nothing else with it."""
    from bench_core.execution.failures import fault_of
    from bench_core.protocols import Section

    for name, section_of in registry.sections.items():
        try:
            section = section_of(info, frame, **_accepted(section_of, {"store": store}))
            if not isinstance(section, Section | None):
                raise TypeError(f"a section is a Section or None, not {section!r}")
        except BenchError:
            raise
        except Exception as error:
            if options.debugging():
                raise
            fault = fault_of(error) or f"{type(error).__name__}: {error}"
            options.note(f"warning: no section {name!r}: {one_line(fault)}; --debug shows more")
        else:
            if section is not None:
                yield section
