"""The one writer of a results store."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.digests import digest
from bench_core._io.files import atomic_file, locked, remove_strays
from bench_core._io.machine import Place, installed, this_place
from bench_core.costs.model import CostModel
from bench_core.errors import InputError
from bench_core.results.packed_rows import packed_blocks, packed_points, packed_values
from bench_core.results.records import (
    MORE_THREADS,
    Outcome,
    Sensors,
    TrialResult,
    TrialSpec,
    Verdict,
)
from bench_core.results.rows import (
    OF_TRIAL,
    DamageError,
    checksum,
    damaged,
    is_whole,
    of_trials,
    select,
)
from bench_core.results.store_files import (
    APPLICATION,
    SCHEMA,
    being_written,
    check_store,
    costs_path,
    lock_path,
    save_model,
    states_folder,
)

_TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
CREATE TABLE run (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL, state TEXT NOT NULL, about TEXT NOT NULL, trials INTEGER NOT NULL,
  checksum INTEGER NOT NULL);
CREATE TABLE trial (
  key TEXT PRIMARY KEY, dataset TEXT NOT NULL, learner TEXT NOT NULL, spec TEXT NOT NULL,
  status TEXT NOT NULL, error TEXT NOT NULL,
  audit TEXT NOT NULL, audit_error TEXT NOT NULL, marks TEXT NOT NULL, sensors TEXT NOT NULL,
  stages TEXT NOT NULL, fit_seconds REAL,
  predict_seconds REAL, seconds REAL, peak_rss_mb REAL, machine TEXT NOT NULL,
  created_at TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE run_trial (
  run TEXT NOT NULL REFERENCES run(id), position INTEGER NOT NULL, trial TEXT NOT NULL,
  PRIMARY KEY (run, position)) WITHOUT ROWID;
CREATE TABLE point (
  trial TEXT NOT NULL REFERENCES trial(key), split TEXT NOT NULL, points TEXT NOT NULL,
  columns TEXT NOT NULL, cells BLOB NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (trial, split));
CREATE TABLE unit (
  trial TEXT NOT NULL REFERENCES trial(key), split TEXT NOT NULL, points TEXT NOT NULL,
  metric BLOB NOT NULL, cost BLOB NOT NULL, weights BLOB NOT NULL, rows BLOB NOT NULL,
  bought BLOB NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (trial, split));
CREATE TABLE block (
  trial TEXT NOT NULL REFERENCES trial(key), split TEXT NOT NULL, points TEXT NOT NULL,
  cells BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (trial, split));
CREATE TABLE sensors (key TEXT PRIMARY KEY, names BLOB NOT NULL, price BLOB NOT NULL,
  checksum INTEGER NOT NULL);
CREATE TABLE fit (
  key TEXT PRIMARY KEY, status TEXT NOT NULL, seconds REAL, peak_rss_mb REAL,
  checksum INTEGER NOT NULL);
CREATE TABLE attempt (
  number INTEGER PRIMARY KEY, run TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  title TEXT NOT NULL, status TEXT NOT NULL, error TEXT NOT NULL, trace TEXT NOT NULL,
  output TEXT NOT NULL, seconds REAL NOT NULL, waited REAL NOT NULL, machine TEXT NOT NULL,
  created_at TEXT NOT NULL, checksum INTEGER NOT NULL);
"""
_FORGET = """
DELETE FROM attempt WHERE run = ? AND key NOT IN (SELECT key FROM trial)
  AND key NOT IN (SELECT json_extract(spec, '$.fit') FROM trial)
"""
"""Attempts of a run that no trial left has need of."""
_CHANGED = "another program wrote to the store during the run"
_LOCK_SECONDS = 1.0


@contextmanager
def open_writer(path: Path) -> Iterator[Writer]:
    """The writer of the store at ``path``, made where there is none.

    Raises InputError where the folder cannot be written, the file is no store, or another run
    is writing to it; the file is then left as it was.
    """
    check_store(path)
    if fault := _second_name(path):
        raise InputError(f"{path}: {fault}")
    with _alone(path):
        try:
            if not check_store(path):
                _create(path)
            place = path.resolve().as_uri()  # so that others can be attached by theirs
            opened = sqlite3.connect(place, uri=True, timeout=30, isolation_level=None)
            with closing(opened) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.row_factory = sqlite3.Row
                remove_strays(states_folder(path))
                connection.execute("UPDATE run SET state = 'interrupted' WHERE state = 'running'")
                yield Writer(path, connection)
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
            remedy = "; make room and run again: finished trials are kept" if full else ""
            raise InputError(f"{path}: cannot write to the store ({error}){remedy}") from error
        except DamageError as error:
            raise damaged(path, error) from error


def _second_name(path: Path) -> str:
    """What is wrong with a file that another program may know by a name in another folder, where
    it would find neither SQLite's log nor the lock."""
    if not path.exists():
        return ""
    if path.stat().st_nlink > 1:
        return "the file has a second name (a hard link); write to a copy of it"
    mounts = Path("/proc/self/mountinfo")  # Linux; spaces are written so there
    known = mounts.read_text().splitlines() if mounts.exists() else []
    if str(path.resolve()).replace(" ", "\\040") in [line.split()[4] for line in known]:
        return "the file is mounted by itself; mount its folder, where the log and the lock are"
    return ""


def check_writable(path: Path) -> None:
    """Refuse a store that cannot be written, is none or is being written by another run, without
    touching anything."""
    check_store(path)
    if being_written(path):
        raise InputError(_occupied(path))
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if (place != path and not place.is_dir()) or not os.access(place, os.W_OK):
        raise InputError(f"{path}: cannot write there ({place}); name another with --store")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    until = time.monotonic() + _LOCK_SECONDS  # a reader may be looking at the lock just now
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    stack.enter_context(locked(lock_path(path), wait=False))
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise InputError(_occupied(path)) from None
                    time.sleep(0.05)
        except OSError as error:
            fault = f"cannot write there ({error.strerror})"
            raise InputError(f"{path}: {fault}; name another store with --store") from error
        yield


def _occupied(path: Path) -> str:
    return (
        f"{path}: another run is writing to this store; wait for it, or name another with --store"
    )


def _create(path: Path) -> None:
    """Make an empty store.

    What a killed run left beside a store that was deleted since would be read into the new one.
    """
    for left_over in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + left_over).unlink(missing_ok=True)
    with atomic_file(path) as new, closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.executescript(_TABLES)


def now() -> str:
    """This moment in UTC, to the microsecond (runs are ordered by it)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Writer:
    """Writes runs, fits and trials; each call is one transaction, or part of ``transaction``."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.db = connection
        self._here, self._installed = this_place(), installed()
        self._run = ""
        self._version = self._data_version()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What is written in the body is written together, or not at all where it fails."""
        if self.db.in_transaction:
            yield self.db
            return
        with self.db:  # commits, or rolls back
            self.db.execute("BEGIN IMMEDIATE")
            changed, self._version = self._version, self._data_version()
            if changed == self._version:
                yield self.db
            else:
                self._distrust()
        if changed != self._version:
            fault = f"{_CHANGED}; run again --fresh, with learners you trust"
            raise InputError(f"{self.path}: {fault}")
        self.db.execute(
            "PRAGMA main.wal_checkpoint(PASSIVE)"
        )  # all is in the one file, to be copied

    def _distrust(self) -> None:
        """No number of this run is known to be its own any more. A row without its checksum stays
        as it is: nobody will read it."""
        trials = "SELECT * FROM trial WHERE key IN (SELECT trial FROM run_trial WHERE run = ?)"
        for row in map(dict, self.db.execute(trials, [self._run]).fetchall()):
            if is_whole(row):
                put_row(self.db, "trial", **row | {"audit": "failed", "audit_error": _CHANGED})

    def _data_version(self) -> int:
        """Changes whenever another program has written to the store."""
        return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def begin(self, run: str, about: Mapping[str, Any], trials: Sequence[str]) -> None:
        """Register a run, or take up one with the same id again."""
        moment, self._run = now(), run
        with self.transaction() as db:
            known = db.execute("SELECT number, created_at FROM run WHERE id = ?", [run]).fetchone()
            number, begun = known or (None, moment)
            values = {"created_at": begun, "about": json.dumps(about), "trials": of_trials(trials)}
            put_row(db, "run", number=number, id=run, updated_at=moment, state="running", **values)
            db.execute("DELETE FROM run_trial WHERE run = ?", [run])
            db.executemany(
                "INSERT INTO run_trial (run, position, trial) VALUES (?, ?, ?)",
                [(run, position, trial) for position, trial in enumerate(trials)],
            )

    def end(self, run: str, state: str) -> None:
        """Say how a run ended: finished or interrupted."""
        with self.transaction() as db:
            db.execute("UPDATE run SET state = ?, updated_at = ? WHERE id = ?", [state, now(), run])

    def attempt(self, run: str, outcome: Outcome, at: Place | None = None) -> None:
        """Log how one attempt of a job ended, here or ``at`` another place."""
        job, where = outcome.job, ": ".join(at or self._here)
        about = {"kind": job.kind, "key": job.spec.key, "title": job.spec.title}
        texts = {k: str(getattr(outcome, k)) for k in ("status", "error", "trace", "output")}
        with self.transaction() as db:
            ended = {"seconds": outcome.seconds, "waited": outcome.waited, "created_at": now()}
            put_row(db, "attempt", run=run, **about, **texts, **ended, machine=where)

    def costs(self, models: Mapping[str, CostModel]) -> None:
        """Keep cost models by their keys, each once, beside the fitted models."""
        for key, model in models.items():
            path = costs_path(states_folder(self.path), key)
            if not path.is_file():
                save_model(path, model)

    def fit(self, outcome: Outcome) -> None:
        """Keep how a fit ended."""
        result = outcome.result
        with self.transaction() as db:
            put_row(
                db,
                "fit",
                key=outcome.job.spec.key,
                status=str(outcome.status),
                seconds=result.seconds if result else outcome.seconds,
                peak_rss_mb=result.peak_rss_mb if result else None,
            )

    def trial(self, spec: TrialSpec, outcome: Outcome, at: Place | None = None) -> None:
        """Keep how a trial ended, here or ``at`` another place, with all its rows; what was there
        before is replaced."""
        result: TrialResult | None = outcome.result
        with self.transaction() as db:
            fit = db.execute("SELECT seconds, peak_rss_mb FROM fit WHERE key = ?", [spec.fit])
            fit_seconds, fit_peak = fit.fetchone() or (None, None)
            peak = max((p for p in (fit_peak, result and result.peak_rss_mb) if p), default=None)
            for table in OF_TRIAL:
                db.execute(f"DELETE FROM {table} WHERE trial = ?", [spec.key])
            put_row(
                db,
                "trial",
                key=spec.key,
                dataset=spec.dataset,
                learner=spec.learner,
                spec=json.dumps({**asdict(spec), "installed": self._installed}),
                status=str(outcome.status),
                error=outcome.error,
                audit=result.audit if result else "",
                audit_error=result.audit_error if result else "",
                marks=_marks(db, spec.fit, result) if result else "",
                sensors=_put_sensors(db, result.sensors) if result else "",
                stages=json.dumps(result.stages) if result and result.stages else "",
                fit_seconds=fit_seconds,
                predict_seconds=result.predict_seconds if result else None,
                seconds=outcome.seconds,
                peak_rss_mb=peak,
                machine=(at or self._here).machine,
                created_at=now(),
            )
            for points in packed_points(result.rows) if result else ():
                put_row(db, "point", trial=spec.key, **points)
            for stored in result.values if result else ():
                put_row(db, "unit", trial=spec.key, **packed_values(stored))
                if blocks := packed_blocks(stored):
                    put_row(db, "block", trial=spec.key, **blocks)

    def remove(self, runs: Iterable[str], trials: Iterable[str], fits: Iterable[str]) -> None:
        """Forget runs, trials with all that is kept of them, and fits."""
        with self.transaction() as db:
            for key in trials:
                for table in OF_TRIAL:
                    db.execute(f"DELETE FROM {table} WHERE trial = ?", [key])
                db.execute("DELETE FROM trial WHERE key = ?", [key])
            for run in runs:
                db.execute("DELETE FROM run WHERE id = ?", [run])
                db.execute("DELETE FROM run_trial WHERE run = ?", [run])
                db.execute(_FORGET, [run])
            db.executemany("DELETE FROM fit WHERE key = ?", [[key] for key in fits])
            db.execute("DELETE FROM sensors WHERE key NOT IN (SELECT sensors FROM trial)")
        self.db.execute("VACUUM")

    def audit(self, key: str, verdict: Verdict, marks: Sequence[str] = ()) -> Verdict:
        """Keep the verdict of a trial's audit, and return the one that holds: what was refused
        once stays so. ``marks`` of the audit join those of the row."""
        with self.transaction() as db:
            for row in select(db, "trial", "key = ?", key):
                if row["audit"] == "failed":
                    return Verdict(row["audit"], row["audit_error"])
                joined = dict.fromkeys([*filter(None, row["marks"].split(", ")), *marks])
                said = {"audit": verdict.word, "audit_error": verdict.reason}
                put_row(db, "trial", **row | said | {"marks": ", ".join(joined)})
        return verdict


def put_row(db: sqlite3.Connection, table: str, **values: Any) -> None:
    """Insert one row with its checksum, or replace the one of the same key."""
    for name, value in values.items():
        if isinstance(value, str):  # a file's name that is no UTF-8
            values[name] = value.encode("utf-8", "backslashreplace").decode()
    values["checksum"] = checksum(values)
    marks = ", ".join("?" * len(values))
    columns = ", ".join(values)
    db.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", [*values.values()])


def _marks(db: sqlite3.Connection, fit: str, result: TrialResult) -> str:
    """The marks of a trial, with that of its fit."""
    last = "SELECT error FROM attempt WHERE kind = 'fit' AND key = ? ORDER BY number DESC LIMIT 1"
    row = db.execute(last, [fit]).fetchone()
    own = (MORE_THREADS,) if row and row["error"] else ()
    return ", ".join(dict.fromkeys((*result.marks, *own)))


def _put_sensors(db: sqlite3.Connection, sensors: Sensors) -> str:
    """Keep what could be bought, once for all trials that have the same; the key of its row."""
    names = zlib.compress(json.dumps(sensors.names).encode(), 6)
    price = np.asarray(sensors.price, "<f8").tobytes()
    key = digest([sensors.names, sensors.price])
    put_row(db, "sensors", key=key, names=names, price=price)
    return key
