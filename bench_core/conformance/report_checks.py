"""Promises of reports, one function each, given the report, a small finished run of baselines on
generated data, and a folder."""

import contextlib
import io
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench_core import api
from bench_core.conformance.case import expect
from bench_core.conformance.tasks import FEATURES, task_splits
from bench_core.contracts import check
from bench_core.costs.model import price_list
from bench_core.data import Task
from bench_core.errors import BenchError
from bench_core.leaderboard.reports import accepted
from bench_core.plugins import Registry
from bench_core.protocols import Report
from bench_core.results.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run as passed to reports."""

    info: Any
    frame: Any
    store: Store


def check_members(report: Any, run: Run, folder: Path) -> None:
    """A report is an instance with ``name``, ``suffixes`` and ``write``; suffixes begin with a dot,
    or are "" for the terminal.

    Remedy: write ``suffixes = (".txt",)``, a tuple.
    """
    check(report, Report, type(report).__name__)
    for suffix in report.suffixes:
        expect(suffix[:1] in ("", "."), f"suffix {suffix!r} does not begin with a dot")


def check_written(report: Any, run: Run, folder: Path) -> None:
    """``write`` creates the given file, with the same bytes each time, or prints for "".

    Remedy: write to ``output``, a Path; print if it is None. Omit times of day, random names and
    the order of sets.
    """
    for suffix in report.suffixes:
        one, two = (_write(report, run, folder / f"{n}" / f"a{suffix}", suffix) for n in (1, 2))
        expect(one, f"for suffix {suffix!r} nothing was written")
        expect(not suffix or one == two, f"two files {suffix} of one run differ")


def check_frame(report: Any, run: Run, folder: Path) -> None:
    """The given rows are not modified, as other reports use them.

    Remedy: change a copy (``frame = frame.copy()``).
    """
    before = run.frame.copy()
    for suffix in report.suffixes:
        _write(report, run, folder / f"b{suffix}", suffix)
    expect(before.equals(run.frame), "it changes the frame")


@cache
def finished_run() -> tuple[Run, Path]:
    """Return a run of baselines, in a folder kept until this process ends."""
    folder = TemporaryDirectory(ignore_cleanup_errors=True)
    _KEPT.append(folder)
    path = f"{folder.name}/bench.db"
    data = replace(task_splits(Task.BINARY), prices=price_list(np.arange(1.0, FEATURES + 1)))
    learners = ["constant", "cheapest-first"]
    api.run(data, learners=learners, store=path, executor="inline", progress=False, workers=1)
    store = Store(path)
    return Run(store.info("last"), store.frame("last"), store), Path(folder.name)


# removed when the process ends
_KEPT: list[TemporaryDirectory[str]] = []


def _write(report: Any, run: Run, path: Path, suffix: str) -> bytes:
    """Return the text that a report writes to a file or prints; "refused" if it raises an error."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    given = {"sections": (), "verbose": False, "store": run.store, "registry": Registry()}
    try:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            output = path if suffix else None
            report.write(run.info, run.frame, output, **accepted(report.write, given))
    except BenchError:  # a required library is missing
        return b"refused"
    if not suffix:
        return shown.getvalue().encode()
    return path.read_bytes() if path.is_file() else b""
