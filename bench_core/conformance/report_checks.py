"""The promises of reports, one function each, given the report, a small finished run and a folder.

The run is of a learner that buys columns from left to right, on generated data.
"""

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from bench_core import api
from bench_core.conformance.case import ConformanceError
from bench_core.conformance.tasks import FEATURES, task_splits
from bench_core.contracts import check
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.model import SensorPrices, price_list
from bench_core.data import Examples, Features, Task
from bench_core.errors import BenchError
from bench_core.protocols import FitContext, Report
from bench_core.results.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run as reports are given it."""

    info: Any
    frame: Any
    store: Store


def check_members(report: Any, run: Run, folder: Path) -> None:
    """A report is an instance with ``name``, ``suffixes`` and ``write``; suffixes begin with a dot,
    or are "" for the terminal.

    Remedy: write ``suffixes = (".txt",)``, a tuple.
    """
    check(report, Report, type(report).__name__)
    if wrong := [s for s in report.suffixes if s and not s.startswith(".")]:
        raise ConformanceError(f"suffix {wrong[0]!r} begins with no dot")


def check_written(report: Any, run: Run, folder: Path) -> None:
    """``write`` makes the file that it is given, with the same bytes each time, and for "" shows
    something on the terminal.

    Remedy: write to ``output``, a Path; where it is None print. Leave out the time of day, random
    names and the order of sets.
    """
    for suffix in report.suffixes:
        one, two = (_write(report, run, folder / f"{n}" / f"a{suffix}", suffix) for n in (1, 2))
        if not one:
            raise ConformanceError(f"for suffix {suffix!r} nothing was written")
        if suffix and one != two:
            raise ConformanceError(f"two files {suffix} of one run differ")


def check_frame(report: Any, run: Run, folder: Path) -> None:
    """The rows that it is given stay as they are: other reports are written from them.

    Remedy: change a copy (``frame = frame.copy()``).
    """
    before = run.frame.copy()
    for suffix in report.suffixes:
        _write(report, run, folder / f"b{suffix}", suffix)
    if not before.equals(run.frame):
        raise ConformanceError("it changes the frame")


@dataclass(frozen=True)
class Columns:
    """Buys columns from left to right and adds them up: a learner that is its own model."""

    name: ClassVar[str] = "columns"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})

    def fit(
        self, train: Examples, valid: Examples, prices: SensorPrices, context: FitContext
    ) -> "Columns":
        """Learns nothing."""
        return self

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """A point for each column."""
        X = np.nan_to_num(features.X).astype(np.float64)
        for k in range(1, FEATURES + 1):
            bought = Acquired.pack(np.arange(FEATURES)[None, :] < k)
            yield Prediction({"features": k}, X[:, :k].sum(axis=1), {"path": Bill(bought)})

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Columns":
        """The inverse of ``state``."""
        return cls()


@cache
def finished_run() -> tuple[Run, Path]:
    """A run of that learner, in a folder that lasts as long as this process."""
    folder = TemporaryDirectory(ignore_cleanup_errors=True)
    _KEPT.append(folder)
    path = f"{folder.name}/bench.db"
    data = replace(task_splits(Task.BINARY), prices=price_list(np.arange(1.0, FEATURES + 1)))
    api.run(data, learners=[Columns()], store=path, executor="inline", progress=False, workers=1)
    store = Store(path)
    return Run(store.info("last"), store.frame("last"), store), Path(folder.name)


_KEPT: list[TemporaryDirectory[str]] = []


def _write(report: Any, run: Run, path: Path, suffix: str) -> bytes:
    """The text that a report writes to a file or shows; "refused" where it says why."""
    output = path if suffix else None
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    more = {"sections": (), "verbose": False, "store": run.store}
    takes = signature(report.write).parameters
    every = any(p.kind is Parameter.VAR_KEYWORD for p in takes.values())
    given = {name: value for name, value in more.items() if every or name in takes}
    try:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            report.write(run.info, run.frame, output, **given)
    except BenchError:  # a library that it needs is not there
        return b"refused"
    if output is None:
        return shown.getvalue().encode()
    return output.read_bytes() if output.is_file() else b""
