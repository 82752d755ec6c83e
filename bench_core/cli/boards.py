"""From the store to a report, for the verbs that show one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.plugins import Registry
    from bench_core.protocols import Report, Section
    from bench_core.results.records import RunInfo


def finished(store: str | Path, run: str) -> tuple[RunInfo, pd.DataFrame]:
    """A run and its finished rows, of which there must be some."""
    from bench_core.results.store import Store

    kept = Store(store)
    info = kept.info(run)
    frame = kept.frame(run)
    if frame.empty:
        raise UsageError(f"run {info.run} in {store} has no finished trials yet: run it again")
    return info, frame


def report_for(registry: Registry, output: Path | None) -> Report:
    """The report that writes files like ``output``, or shows boards on the terminal.

    Raises UsageError for a file that cannot be written, and for a suffix that no report has.
    """
    from bench_core.terminal.tables import check_output

    suffix = output.suffix.lower() if output is not None else ""
    reports = reversed([*registry.reports.values()])  # of a suffix the first wins
    known = {s: report for report in reports for s in report.suffixes}
    if suffix not in known:
        words = ", ".join(sorted(filter(None, known))) or "none: no report is installed"
        raise UsageError(
            f"{output or 'the terminal'}: no report has the suffix {suffix!r}; known: {words} "
            "('bench export' writes tables)"
        )
    check_output(output)
    return known[suffix]


def write_report(
    registry: Registry, store: str | Path, run: str, output: Path | None, *, verbose: bool
) -> RunInfo:
    """Write the report of a run to a file, or show it on the terminal."""
    report = report_for(registry, output)
    info, frame = finished(store, run)
    made = [section_of(info, frame) for section_of in registry.sections.values()]
    sections: list[Section] = [section for section in made if section is not None]
    report.write(info, frame, output, sections=sections, verbose=verbose)
    return info
