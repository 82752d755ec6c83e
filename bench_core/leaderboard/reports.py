"""Reports on a run, each a format that plugins add: which one writes a file, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import BenchError, UsageError, one_line
from bench_core.execution.failures import fault_of
from bench_core.protocols import Section
from bench_core.results.store import Store
from bench_core.terminal.tables import check_output

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.plugins import Registry
    from bench_core.protocols import Report
    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo


def finished(store: Store | str | Path, run: str) -> tuple[RunInfo, pd.DataFrame]:
    """A run and its finished rows, of which there must be some."""
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
    check_output(output)
    suffix = output.suffix.lower() if output is not None else ""
    reports = reversed([*registry.reports.values()])  # of a suffix the first wins
    known = {s: report for report in reports for s in report.suffixes}
    if suffix not in known or (output is not None and not suffix and str(output) != "-"):
        words = ", ".join(sorted(filter(None, known))) or "none: no report is installed"
        raise UsageError(
            f"{output or 'the terminal'}: no report has the suffix {suffix!r}; known: {words} "
            "('bench export' writes tables)"
        )
    return known[suffix]


def write_report(
    registry: Registry,
    store: str | Path,
    run: str,
    output: Path | None,
    *,
    verbose: bool = False,
    budgets: Sequence[Budget] = (),
    warn: Callable[[str], None] = lambda line: None,
) -> RunInfo:
    """Write the report of a run to a file, or show it on the terminal; ``budgets`` take the place
    of those of its suite. ``warn`` gets a line for each section of a plugin that fails."""
    report = report_for(registry, output)
    kept = Store(store)
    with kept.held():
        info, frame = finished(kept, run)
        if budgets:  # as if the suite had named them
            named = {"budgets": tuple(map(str, budgets))}
            info = replace(info, datasets=tuple({**use, **named} for use in info.datasets))
        sections = list(_sections(registry, info, frame, kept, warn))
        given = {"sections": sections, "verbose": verbose, "store": kept, "registry": registry}
        report.write(info, frame, output, **accepted(report.write, given))
    return info


def accepted(of: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that a report or section takes: it may leave out what it does not
    need."""
    takes = signature(of).parameters
    every = any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())
    return {name: value for name, value in given.items() if every or name in takes}


def _sections(
    registry: Registry,
    info: RunInfo,
    frame: pd.DataFrame,
    store: Store,
    warn: Callable[[str], None],
) -> Iterator[Section]:
    """The sections of plugins; one that fails is a warning and takes nothing else with it."""
    for name, section_of in registry.sections.items():
        try:
            section = section_of(info, frame, **accepted(section_of, {"store": store}))
            if not isinstance(section, Section | None):
                raise TypeError(f"a section is a Section or None, not {section!r}")
        except BenchError:
            raise
        except Exception as error:
            fault = fault_of(error) or f"{type(error).__name__}: {error}"
            # the board is worth more than what stands below it
            warn(f"warning: no section {name!r}: {one_line(fault)}; --debug shows more")
        else:
            if section is not None:
                yield section
