"""Results in one SQLite file: many readers, one writer (``writer.py``).

The tables are defined in ``tables.py``; docs/reference/scale.md documents them for other
programs. Fitted models and cost models are files next to the store (``store_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from bench_core.errors import InputError, UsageError
from bench_core.results.records import (
    INTERNAL,
    TRIAL_DIGITS,
    Attempt,
    OperatingPoint,
    RunInfo,
    Trial,
    TrialSpec,
    TrialValues,
    record_of,
    with_tuples,
)
from bench_core.results.store_files import (
    DAMAGE,
    being_written,
    check_store,
    damaged,
    store_path,
)
from bench_core.results.tables import (
    POINT_NUMBERS,
    json_value,
    lacking_columns,
    points_of,
    quoted,
    select,
    trial_of,
    unpacked,
)
from bench_core.sequential import ROUNDING
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd

_ATTEMPTS = """
SELECT *, row_number() OVER (PARTITION BY kind, key ORDER BY rowid) AS attempt
FROM attempt
WHERE run = ?1 OR key IN (
  SELECT trial FROM run_trial WHERE run = ?1
  UNION SELECT fit FROM run_trial JOIN trial ON trial.key = run_trial.trial
  WHERE run_trial.run = ?1)
ORDER BY rowid
"""
_STATUSES = """
SELECT status, count(*) FROM run_trial LEFT JOIN trial ON trial.key = run_trial.trial
WHERE run_trial.run = ? GROUP BY status ORDER BY status
"""
_TRIALS = """
SELECT record, {} AS arrays, names, price
FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
CROSS JOIN sensor ON list = sensors WHERE run = ? AND {} ORDER BY position
"""
_OF_VALUES = "{} IS NOT NULL AND status = 'ok' AND ? IN ('', dataset) AND ? IN ('', learner)"
_TRIAL = """
SELECT record, valid, test, names, price FROM trial CROSS JOIN sensor ON list = sensors
WHERE key BETWEEN ?1 AND ?1 || '~' AND status = 'ok'
"""
_FRAME_TRIALS = """
SELECT position, substr(key, 1, {}) AS trial, {} FROM run_trial
CROSS JOIN trial ON trial.key = run_trial.trial WHERE run = ?
"""
_FRAME_POINTS = """
SELECT position, {} FROM run_trial LEFT JOIN point ON point.trial = run_trial.trial
WHERE run = ? AND run_trial.trial IN (SELECT key FROM trial)
ORDER BY position, instr('{}', split), number
"""
_CHOSEN = "SELECT number, point FROM point WHERE trial = ? AND split = 'valid' AND {}"
_UNDER_CAP = """
(cap = ? OR cap IS NULL AND NOT EXISTS (
  SELECT 1 FROM point AS o
  WHERE o.trial = point.trial AND o.number = point.number AND o.cost_max > ?))
"""
_REQUEST = """
SELECT about FROM run WHERE run IN (SELECT run FROM run_trial WHERE trial = ?)
ORDER BY begun DESC LIMIT 1
"""
_RUNS = """
SELECT run, number, created_at, state, about FROM run ORDER BY begun DESC
"""
"""The last run is the one that began, or was resumed or merged, last: clocks may be wrong."""
# the trials that points name, one seek for each, that do not exist
_POINTS_OF_NONE = """
WITH RECURSIVE named(trial) AS (
  SELECT min(trial) FROM point
  UNION ALL SELECT (SELECT min(trial) FROM point WHERE trial > named.trial)
  FROM named WHERE trial IS NOT NULL)
SELECT trial FROM named
WHERE trial IS NOT NULL AND trial NOT IN (SELECT key FROM trial) LIMIT 1
"""
_DURATIONS = """
SELECT dataset, learner, coalesce(f.seconds, fit_seconds, 0.0), coalesce(t.seconds, trial.seconds)
FROM trial
LEFT JOIN attempt AS f ON f.kind = 'fit' AND f.status = 'ok' AND f.key = fit
LEFT JOIN attempt AS t ON t.kind = 'score' AND t.status = 'ok' AND t.key = trial.key
WHERE trial.status = 'ok' GROUP BY trial.rowid
"""
RUN = ("run", "suite", "profile")
_FIRST = (
    *(*RUN, "trial", "dataset", "fold", "fingerprint", "stand_in"),
    *("learner", "learner_version", "params", "seed", "point", "split", "status", "error"),
)
_NUMBERS = {int: "int64", bool: "bool", float: "float64", float | None: "float64"}
_COUNTS = ("features_used", "threads", "workers")  # integers that may be missing in a row
_AT_ONCE = 50_000  # rows per batch, to limit memory
_CHECKED = 1 << 30  # bytes of a store that is checked whole, which takes 2 s


class Store:
    """A results store opened for reading. Raises InputError if the file is not a store."""

    def __init__(self, path: str | Path = "") -> None:
        self.path = store_path(path)
        if not check_store(self.path):
            raise InputError(f"{self.path}: no results there yet; `bench run` makes them")
        self._held: sqlite3.Connection | None = None
        about = self.path.stat()
        if fault := _fault(self.path.resolve(), about.st_size, about.st_mtime_ns):
            raise damaged(self.path, fault)

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
        with _snapshot(self.path) as db:
            yield db

    def runs(self) -> list[RunInfo]:
        """Return all runs, the most recent first."""
        with self._read() as db:
            return [self._info(db, row) for row in [*select(db, _RUNS)]]

    def resolve(self, run: str | int = "last") -> str:
        """Return the id of a run given as ``last``, a number, an id or its unambiguous prefix."""
        run = str(run)
        with self._read() as db:
            runs = [(str(row["run"]), str(row["number"])) for row in select(db, _RUNS)]
        if not runs:
            raise InputError(f"{self.path}: no run there yet; `bench run` makes one")
        if run == "last":
            return runs[0][0]
        exact = [name for name, number in runs if run in (name, number)]
        matches = exact or [name for name, _ in runs if name.startswith(run)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UsageError(f"run {run!r} may be {' or '.join(matches[:3])}: write more of it")
        near = get_close_matches(run, ["last", *(name for name, _ in runs)])
        hint = f"did you mean {' or '.join(near)}?" if near else "'bench list runs' shows all"
        raise UsageError(f"unknown run {run!r} in {self.path}: {hint}")

    def info(self, run: str | int = "last") -> RunInfo:
        """Return one run."""
        run = self.resolve(run)
        with self._read() as db:
            (row,) = (row for row in select(db, _RUNS) if row["run"] == run)
            return self._info(db, row)

    def _info(self, db: sqlite3.Connection, row: Mapping[str, Any]) -> RunInfo:
        counts = dict(db.execute(_STATUSES, [row["run"]]).fetchall())
        planned = sum(counts.values())
        counts.pop(None, None)  # unfinished trials
        about = record_of(json.loads(row["about"]))
        columns = {name: row[name] for name in row if name != "about"}
        info = RunInfo(**columns, **about, planned=planned, counts=counts)
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
        cap: float | None = None,
        capped: bool = False,
    ) -> Iterator[TrialValues]:
        """Yield stored values per query or row, by trial in order. They are read one at a time, as
        the values of a large run may not fit into memory.

        Points under caps are included only with ``capped``. With a ``cap``, only points under it
        and points at which no row of any split costs more are included. Trials without such points
        are omitted.
        """
        where, limits = "TRUE" if capped else "cap IS NULL", []
        if cap is not None:
            where, limits = _UNDER_CAP, [cap, cap * (1 + ROUNDING)]
        query = _TRIALS.format(split, _OF_VALUES.format(split))
        run = self.resolve(run)
        with self._read() as db:
            for row in select(db, query, run, dataset, learner):
                trial = trial_of(row)
                points = db.execute(_CHOSEN.format(where), [trial.key, *limits])
                inside = dict(points.fetchall())
                values = unpacked(split, row["arrays"])
                kept = [k for k, number in enumerate(values.points) if number in inside]
                if not kept:
                    continue
                arrays: dict[str, Any] = values.arrays  # by point, but for two
                arrays |= {n: a[kept] for n, a in arrays.items() if n not in ("weights", "rows")}
                numbers = tuple(values.points[k] for k in kept)
                arrays["settings"] = tuple(json_value(inside[number]) for number in numbers)
                yield TrialValues(split=split, points=numbers, trial=trial, **arrays)

    def trials(self, run: str = "last") -> list[Trial]:
        """Return the finished trials of a run in order, without points and values."""
        run = self.resolve(run)
        with self._read() as db:
            return [trial_of(row) for row in select(db, _TRIALS.format("NULL", "TRUE"), run)]

    def specs(self, run: str = "last") -> list[TrialSpec]:
        """Return the specifications of a run's ``ok`` trials."""
        ended = (trial for trial in self.trials(run) if trial.status == "ok")
        return [TrialSpec(**{f.name: getattr(t, f.name) for f in fields(TrialSpec)}) for t in ended]

    def trial(self, name: str) -> Trial:
        """Return the finished trial with this key prefix, with its points and values. Raises
        UsageError unless exactly one matches."""
        with self._read() as db:
            rows = [*select(db, _TRIAL, name)] if name else []
            if len(rows) != 1:
                several = f"several trials begin with {name}"
                fault = several if rows else f"no finished trial {name!r}"
                raise UsageError(
                    f"{self.path}: {fault}; see trial in 'bench export' or 'bench log'"
                )
            (row,) = rows
            blocks = [(split, row[split]) for split in ("valid", "test") if row[split]]
            values = tuple(unpacked(*block) for block in blocks)
            trial = trial_of(row)
            return replace(trial, points=points_of(db, trial), values=values)

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
        return with_tuples(json.loads(row[0])["request"]) if row else {}

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
        with self._read() as db:
            return db.execute(_DURATIONS).fetchall()


@contextmanager
def _snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        uri = readable(path)
        with closing(sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)) as db:
            db.execute("BEGIN")  # consistent snapshot
            yield db
    except DAMAGE as error:
        raise damaged(path, str(error)) from error


@lru_cache(maxsize=64)  # a command opens its store several times
def _fault(path: Path, size: int, changed: int) -> str:
    """Return the first fault that SQLite finds in a store, "" for none. Of large stores it checks
    the tables without values, a sixth of the bytes."""
    whole = size <= _CHECKED
    with _snapshot(path) as db:
        for table in ("1",) if whole else ("run", "run_trial", "point"):
            # quick_check is hardly faster, and does not see rows that are out of order
            ((found, *_), *_) = db.execute(f"PRAGMA integrity_check({table})").fetchall()
            if found != "ok":
                return str(found)
        if missing := lacking_columns(db):  # to SQLite a name may be any
            return f"no column {missing[0]}"
        if db.execute(_POINTS_OF_NONE).fetchone():  # and a key, too
            return "points of a trial that it does not have"
    return ""


def readable(path: Path) -> str:
    """Return the URI by which SQLite opens a store for reading."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=30)) as db:
        try:
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:  # read-only folder: the write-ahead log cannot be opened
            return f"{uri}&immutable=1"
    return uri


def _shown(record: type) -> dict[str, Any]:
    """Types of the fields of a record that are columns of the data frame."""
    hints = get_type_hints(record)
    return {f.name: hints[f.name] for f in fields(record) if f.name not in INTERNAL}


def _frame(db: sqlite3.Connection, info: RunInfo, compact: bool = False) -> pd.DataFrame:
    """Build the frame of a run: ``RUN``, the short name of the trial, and the fields of ``Trial``
    and ``OperatingPoint`` that are not ``INTERNAL``."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    of_trial, kinds = [*_shown(Trial)], _shown(Trial) | _shown(OperatingPoint)
    types = {name: _NUMBERS[kind] for name, kind in kinds.items() if kind in _NUMBERS}
    query = _FRAME_TRIALS.format(TRIAL_DIGITS, ", ".join(of_trial))
    trials = pd.read_sql_query(query, db, "position", params=[info.run])
    trials = trials.assign(**{name: str(getattr(info, name)) for name in RUN})
    # share equal texts between the rows of a trial
    texts = [name for name in trials if name not in types]
    trials[texts] = trials[texts].astype("category")
    numbers = [*info.metrics, *POINT_NUMBERS]
    names = ", ".join(map(quoted, ("point", "split", *numbers)))
    dtypes = dict.fromkeys(numbers, "float64") | {"point": "category", "split": "category"}
    query = _FRAME_POINTS.format(names, " ".join(SPLITS))
    batches = [*pd.read_sql_query(query, db, params=[info.run], dtype=dtypes, chunksize=_AT_ONCE)]
    points = pd.concat([batch[["position", *numbers]] for batch in batches], ignore_index=True)
    for name in ("point", "split"):
        columns = [batch.pop(name).cat.add_categories("") for batch in batches]
        points[name] = union_categoricals(columns).fillna("")
    as_text = {} if compact else dict.fromkeys((*texts, "point", "split"), "str")
    frame = points.join(trials, on="position")
    frame = frame.astype(types | dict.fromkeys(_COUNTS, "Int64") | as_text)
    return frame[[*dict.fromkeys((*_FIRST, *numbers, *of_trial))]]
