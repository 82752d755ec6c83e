"""Results in one SQLite file: many readers, one writer (``writer.py``).

The tables are defined in ``tables.py``; docs/scale.md documents them for other programs. Fitted
models and cost models are files next to the store (``store_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import InputError, UsageError
from bench_core.results.budgets import CAP, Budget
from bench_core.results.records import (
    TRIAL_DIGITS,
    Attempt,
    OperatingPoint,
    RunInfo,
    Sensors,
    StoredValues,
    Trial,
    TrialSpec,
    TrialValues,
    with_tuples,
)
from bench_core.results.store_files import (
    DAMAGE,
    being_written,
    check_store,
    damaged,
    store_path,
)
from bench_core.results.tables import columns_of, json_value, quoted, record_of, select
from bench_core.sequential import ROUNDING
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd

_ATTEMPTS = """
SELECT *, row_number() OVER (PARTITION BY kind, key ORDER BY created_at, rowid) AS attempt
FROM attempt
WHERE run = ?1 OR key IN (
  SELECT trial FROM run_trial WHERE run = ?1
  UNION SELECT fit FROM run_trial JOIN trial ON trial.key = run_trial.trial
  WHERE run_trial.run = ?1)
ORDER BY created_at, rowid
"""
_STATUSES = """
SELECT status, count(*) FROM run_trial LEFT JOIN trial ON trial.key = run_trial.trial
WHERE run_trial.run = ? GROUP BY status ORDER BY status
"""
_TRIALS = """
SELECT trial.* FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
WHERE run_trial.run = ? ORDER BY run_trial.position
"""
_VALUES = """
SELECT trial.*, unit_values.* FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
CROSS JOIN unit_values ON unit_values.trial = trial.key
WHERE run_trial.run = ? AND unit_values.split = ? AND status = 'ok'
  AND ? IN ('', dataset) AND ? IN ('', learner)
ORDER BY run_trial.position
"""
_UNDER_CAP = """
(cap = ? OR cap IS NULL AND NOT EXISTS (
  SELECT 1 FROM point AS o
  WHERE o.trial = point.trial AND o.number = point.number AND o.cost_max > ?))
"""
_REQUEST = """
SELECT request FROM run WHERE run IN (SELECT run FROM run_trial WHERE trial = ?)
ORDER BY updated_at DESC LIMIT 1
"""
_RUNS = "SELECT * FROM run ORDER BY updated_at DESC, number DESC"
RUN = ("run", "suite", "profile")
_FIRST = (
    *(*RUN, "trial", "dataset", "fold", "fingerprint", "stand_in"),
    *("learner", "learner_version", "params", "seed", "point", "split", "status", "error"),
)
_COUNTS = ("features_used", "threads", "workers")  # integers that may be missing in a row
_AT_ONCE = 50_000  # rows per batch, to limit memory

_FRAME_TRIALS = """
SELECT position, substr(key, 1, {}) AS trial, {} FROM run_trial
CROSS JOIN trial ON trial.key = run_trial.trial WHERE run_trial.run = ?
"""
_FRAME_POINTS = """
SELECT position, {} FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
LEFT JOIN point ON point.trial = trial.key WHERE run_trial.run = ?
ORDER BY position, instr('{}', split), number
"""


class Store:
    """A results store opened for reading. Raises InputError if the file is not a store."""

    def __init__(self, path: str | Path = "") -> None:
        self.path = store_path(path)
        if not check_store(self.path):
            raise InputError(f"{self.path}: no results there yet; `bench run` makes them")
        self._held: sqlite3.Connection | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Read a consistent snapshot in the body."""
        with self._read() as db:
            self._held = db
            try:
                yield
            finally:
                self._held = None

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        if self._held is not None:
            yield self._held
            return
        try:
            found = sqlite3.connect(readable(self.path), uri=True, timeout=30, isolation_level=None)
            with closing(found) as db:
                db.execute("BEGIN")  # consistent snapshot
                yield db
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def runs(self) -> list[RunInfo]:
        """Return all runs, the most recent first."""
        with self._read() as db:
            return [self._info(db, row) for row in [*select(db, _RUNS)]]

    def resolve(self, run: str = "last") -> str:
        """Return the id of a run given as ``last``, a number, an id or its unambiguous prefix."""
        with self._read() as db:
            known = [(str(row["run"]), str(row["number"])) for row in select(db, _RUNS)]
        if not known:
            raise InputError(f"{self.path}: no run there yet; `bench run` makes one")
        if run == "last":
            return known[0][0]
        exact = [name for name, number in known if run in (name, number)]
        begun = exact or [name for name, _ in known if name.startswith(run)]
        if len(begun) == 1:
            return begun[0]
        if begun:
            raise UsageError(f"run {run!r} may be {' or '.join(begun[:3])}: write more of it")
        near = get_close_matches(run, ["last", *(name for name, _ in known)])
        hint = f"did you mean {' or '.join(near)}?" if near else "'bench list runs' shows all"
        raise UsageError(f"unknown run {run!r} in {self.path}: {hint}")

    def info(self, run: str = "last") -> RunInfo:
        """Return one run."""
        run = self.resolve(run)
        with self._read() as db:
            (row,) = (row for row in select(db, _RUNS) if row["run"] == run)
            return self._info(db, row)

    def _info(self, db: sqlite3.Connection, row: Mapping[str, Any]) -> RunInfo:
        counts = dict(db.execute(_STATUSES, [row["run"]]).fetchall())
        planned = sum(counts.values())
        counts.pop(None, None)  # unfinished trials
        info = record_of(RunInfo, row, planned=planned, counts=counts)
        if info.state == "running" and not being_written(self.path):
            return replace(info, state="interrupted")
        return info

    def frame(self, run: str = "last", *, compact: bool = False) -> pd.DataFrame:
        """Return one row per trial, point and split, with the export columns in order.

        ``cap`` is the maximum cost per row if enforced, NaN at a path's own points. A trial that is
        not ``ok`` is one row with empty point and split. If the replay audit failed, ``error``
        gives the reason. ``compact``: text columns are categorical, which saves most of the memory
        for many trials.
        """
        info = self.info(run)
        with self._read() as db:
            return _frame(db, info, compact)

    def values(
        self,
        run: str = "last",
        *,
        split: str = "test",
        dataset: str = "",
        learner: str = "",
        within: Budget | None = None,
        capped: bool = False,
    ) -> Iterator[TrialValues]:
        """Yield stored values per query or row, by trial in order. They are read one at a time, as
        the values of a large run may not fit into memory.

        Points under caps are included only with ``capped``. With ``within`` a cap, only points
        under it and points at which no row of any split costs more are included. Trials without
        such points are omitted.
        """
        where, limits = "TRUE" if capped else "cap IS NULL", []
        if within is not None and within.kind == CAP:
            where, limits = _UNDER_CAP, [within.amount, within.amount * (1 + ROUNDING)]
        query = "SELECT number, point FROM point WHERE trial = ? AND split = 'valid' AND "
        sensors: dict[str, Sensors] = {}
        run = self.resolve(run)
        with self._read() as db:
            for row in select(db, _VALUES, run, split, dataset, learner):
                inside = dict(db.execute(query + where, [row["key"], *limits]).fetchall())
                stored = _stored_values(row)
                kept = [k for k, number in enumerate(stored.points) if number in inside]
                if not kept:
                    continue
                numbers = tuple(stored.points[k] for k in kept)
                if (key := row["sensors"]) not in sensors:
                    sensors[key] = _sensors(db, key)
                bought = stored.bought[kept]
                s = len(sensors[key].names) or bought.shape[1]
                # steps follow the fractions of rows
                steps = bought[:, s:].reshape(len(kept), -1, s) if bought.shape[1] > s else None
                yield TrialValues(
                    split=split,
                    points=numbers,
                    metric=stored.metric[kept],
                    cost=stored.cost[kept],
                    weights=stored.weights,
                    rows=stored.rows,
                    bought=bought[:, :s],
                    steps=steps,
                    trial=record_of(Trial, row, sensors=sensors[key], points=(), values=()),
                    settings=tuple(json_value(inside[number]) for number in numbers),
                )

    def trials(self, run: str = "last") -> list[Trial]:
        """Return the finished trials of a run in order, without points, values and sensors."""
        run = self.resolve(run)
        with self._read() as db:
            return [record_of(Trial, row) for row in select(db, _TRIALS, run)]

    def specs(self, run: str = "last") -> list[TrialSpec]:
        """Return the specifications of a run's ``ok`` trials."""
        run = self.resolve(run)
        with self._read() as db:
            found = select(db, _TRIALS, run)
            return [record_of(TrialSpec, row) for row in found if row["status"] == "ok"]

    def trial(self, name: str) -> Trial:
        """Return the finished trial with this key prefix, with its points and values. Raises
        UsageError unless exactly one matches."""
        begins = "SELECT * FROM trial WHERE key BETWEEN ? AND ? || '~' AND status = 'ok'"
        with self._read() as db:
            found = [*select(db, begins, name, name)] if name else []
            if len(found) != 1:
                several = f"several trials begin with {name}"
                fault = several if found else f"no finished trial {name!r}"
                raise UsageError(
                    f"{self.path}: {fault}; see trial in 'bench export' or 'bench log'"
                )
            (row,) = found
            trial = record_of(Trial, row, sensors=_sensors(db, row["sensors"]))
            of_trial = "SELECT * FROM {} WHERE trial = ? ORDER BY split"
            points = [
                record_of(OperatingPoint, point, metrics=_metrics(point, trial))
                for point in select(db, of_trial.format("point") + ", number", trial.key)
            ]
            values = select(db, of_trial.format("unit_values"), trial.key)
            return replace(
                trial,
                points=tuple(sorted(points, key=lambda point: SPLITS.index(point.split))),
                values=tuple(map(_stored_values, values)),
            )

    def attempts(self, run: str = "last") -> list[Attempt]:
        """Return the attempts of a run's fits, trials and audits in order, including attempts by
        earlier runs whose results it uses."""
        run = self.resolve(run)
        with self._read() as db:
            return [Attempt(**row) for row in select(db, _ATTEMPTS, run)]

    def request_for(self, trial: str) -> Mapping[str, Any]:
        """Return the request of the last run with this trial; empty without one."""
        with self._read() as db:
            row = db.execute(_REQUEST, [trial]).fetchone()
        return with_tuples(json.loads(row[0])) if row else {}

    def finished(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the ScoreKeys and FitKeys that are ``ok``."""
        with self._read() as db:
            trials, fits = (
                frozenset(k for (k,) in db.execute(f"SELECT key FROM {of} WHERE status = 'ok'"))
                for of in ("trial", "fit")
            )
            return trials, fits

    def durations(self) -> list[tuple[str, str, float, float]]:
        """Return data set, learner, fit seconds and trial seconds of each finished trial. These are
        times of complete jobs, imports included, if they were logged."""
        logged = "SELECT key, seconds FROM attempt WHERE kind != 'audit' AND status = 'ok'"
        timed = "SELECT dataset, learner, fit, fit_seconds, key, seconds FROM trial"
        with self._read() as db:
            whole = dict(db.execute(logged).fetchall())
            return [
                (dataset, learner, whole.get(fit, fitted or 0.0), whole.get(key, seconds))
                for dataset, learner, fit, fitted, key, seconds in db.execute(
                    f"{timed} WHERE status = 'ok'"
                )
            ]


def readable(path: Path) -> str:
    """Return the URI by which SQLite opens a store for reading."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=30)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:  # read-only folder: the write-ahead log cannot be opened
            return f"{uri}&immutable=1"
    return uri


def _stored_values(row: Mapping[str, Any]) -> StoredValues:
    flat = record_of(StoredValues, row)
    by_point = {k: getattr(flat, k) for k in ("metric", "cost", "bought")}
    count = len(flat.points)
    return replace(flat, **{k: array.reshape(count, -1) for k, array in by_point.items()})


def _metrics(point: Mapping[str, Any], trial: Trial) -> dict[str, float]:
    """The trial's metrics at a point; the table also has columns of other runs' metrics."""
    return {k: np.nan if point[k] is None else point[k] for k in trial.metrics}


def _sensors(db: sqlite3.Connection, key: str) -> Sensors:
    found = db.execute("SELECT name, price FROM sensor WHERE list = ? ORDER BY number", [key])
    return Sensors(*map(tuple, zip(*found, strict=True)))


def _frame(db: sqlite3.Connection, info: RunInfo, compact: bool = False) -> pd.DataFrame:
    """Build the frame of a run: ``RUN``, the short name of the trial, and the fields of ``Trial``
    and ``OperatingPoint`` without ``frame=False`` in their metadata."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    of_trial, of_point = (
        {c.name: c.kind for c in columns_of(record) if c.about.get("frame", True)}
        for record in (Trial, OperatingPoint)
    )
    del of_point["metrics"]
    numbers = [*info.metrics, *(name for name, kind in of_point.items() if kind in (int, float))]
    names = ", ".join(f"trial.{name}" for name in of_trial)
    trials = pd.read_sql_query(
        _FRAME_TRIALS.format(TRIAL_DIGITS, names), db, "position", params=[info.run]
    )
    trials = trials.assign(**{name: str(getattr(info, name)) for name in RUN})
    # share equal texts between the rows of a trial
    texts = [name for name in trials if of_trial.get(name) not in (int, bool, float)]
    trials[texts] = trials[texts].astype(object).fillna("").astype("category")
    names = ", ".join(f"point.{quoted(name)}" for name in ("point", "split", *numbers))
    query = _FRAME_POINTS.format(names, " ".join(SPLITS))
    types = dict.fromkeys(numbers, "float64") | {"point": "category", "split": "category"}
    parts = [*pd.read_sql_query(query, db, params=[info.run], dtype=types, chunksize=_AT_ONCE)]
    points = pd.concat([part[["position", *numbers]] for part in parts], ignore_index=True)
    for name in ("point", "split"):
        whole = union_categoricals([part.pop(name).cat.add_categories("") for part in parts])
        points[name] = whole.fillna("")
    frame = points.join(trials, on="position")
    kinds = of_trial | of_point
    frame = frame.astype(
        {
            name: "Int64" if name in _COUNTS else kinds[name]
            for name in kinds
            if kinds[name] in (int, bool, float)
        }
        | ({} if compact else dict.fromkeys((*texts, "point", "split"), "str"))
    )
    return frame[[*dict.fromkeys((*_FIRST, *numbers, *of_trial))]]
