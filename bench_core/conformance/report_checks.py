"""Promises of reports, given the report."""

from typing import Any

from bench_core.conformance.cases import expect
from bench_core.contracts import check
from bench_core.protocols import Report


def check_members(report: Any) -> None:
    """A report is an instance with ``name``, ``suffixes`` and ``write``; suffixes begin with a dot,
    or are "" for the terminal.

    Remedy: write ``suffixes = (".txt",)``, a tuple.
    """
    check(report, Report, type(report).__name__)
    for suffix in report.suffixes:
        expect(suffix[:1] in ("", "."), f"suffix {suffix!r} does not begin with a dot")
