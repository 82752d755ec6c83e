"""Writer of a results store; each store has at most one."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_core._io.files import atomic_file, locked, remove_strays
from bench_core._io.machine import installed, this_place
from bench_core.costs.model import CostModel
from bench_core.costs.shipped import to_json
from bench_core.errors import InputError, option
from bench_core.results.records import (
    MEASURED,
    Outcome,
    Trial,
    TrialSpec,
    Verdict,
)
from bench_core.results.store import Store
from bench_core.results.store_files import (
    being_written,
    check_store,
    costs_path,
    damaged,
    lock_path,
    state_path,
    states_folder,
)
from bench_core.results.tables import TABLES, add_metrics, plain, put, put_trial

_FORGET = """
DELETE FROM attempt WHERE run = ? AND key NOT IN (SELECT key FROM trial)
  AND key NOT IN (SELECT fit FROM trial)
"""
"""Attempts of a run that no remaining trial needs."""
_SET_VERDICT = """
UPDATE trial SET record = json_set(record, '$.audit', ?, '$.error', ?) WHERE key = ?
"""
_LOCK_SECONDS = 1.0


@contextmanager
def open_writer(path: Path) -> Iterator[Writer]:
    """Open the writer of the store at ``path``, which is created if missing.

    Raises InputError if the folder is not writable, the file is not a store, or another run is
    writing to it; the file is then unchanged.
    """
    check_store(path)
    with _alone(path):
        try:
            if not check_store(path):
                _create(path)
            place = path.resolve().as_uri()  # allows attaching other stores by URI
            opened = sqlite3.connect(place, uri=True, timeout=30, isolation_level=None)
            with closing(opened) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                # a power failure may lose the last trials, but not the file
                connection.execute("PRAGMA synchronous = NORMAL")
                remove_strays(states_folder(path))
                connection.execute("UPDATE run SET state = 'interrupted' WHERE state = 'running'")
                yield Writer(path, connection)
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise damaged(path, str(error)) from error
            full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
            remedy = "; make room and run again: finished trials are kept" if full else ""
            raise InputError(f"{path}: cannot write to the store ({error}){remedy}") from error


def check_writable(path: Path) -> None:
    """Raise InputError if a store is invalid, not writable or in use by a writer; changes
    nothing."""
    check_store(path)
    if being_written(path):
        raise _occupied(path)
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if (place != path and not place.is_dir()) or not os.access(place, os.W_OK):
        raise _unwritable(path, str(place))


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    until = time.monotonic() + _LOCK_SECONDS  # a reader may be checking the lock
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    stack.enter_context(locked(lock_path(path), wait=False))
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise _occupied(path) from None
                    time.sleep(0.05)
        except OSError as error:
            raise _unwritable(path, error.strerror or "") from error
        yield


def _occupied(path: Path) -> InputError:
    remedy = f"wait for it, or name another with {option('store')}"
    return InputError(f"{path}: another run is writing to this store; {remedy}")


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(f"{path}: cannot write there ({why}); name another with {option('store')}")


def _create(path: Path) -> None:
    """Create an empty store."""
    # a killed run's log next to a deleted store, which the new store would read
    for left_over in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + left_over).unlink(missing_ok=True)
    with atomic_file(path) as new, closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.executescript(TABLES)


def now() -> str:
    """Current time in UTC, to the microsecond."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Removal:
    """Data to remove with some runs: keys ``trials`` not used by other runs, and model files
    ``fits`` that nothing else needs; or only the model files."""

    runs: tuple[str, ...]
    trials: tuple[str, ...]
    fits: tuple[Path, ...]
    fits_alone: bool

    @property
    def size(self) -> int:
        """Size of the fitted models in bytes."""
        return sum(path.stat().st_size for path in self.fits)


def plan_removal(store: Store, runs: Iterable[str], *, fits_alone: bool = False) -> Removal:
    """Plan the removal of these runs; ``fits_alone``: only of their models, keeping results.

    A model is kept if another run's trial uses it. Raises InputError for a damaged store.
    """
    names = tuple(dict.fromkeys(store.resolve(run) for run in runs))
    others = [info.run for info in store.runs() if info.run not in names]
    kept, removed = (
        {trial.key: trial.fit for run in some for trial in store.trials(run)}
        for some in (others, names)
    )
    # models needed by other learners may have no trial
    trained = {job.key for run in names for job in store.attempts(run) if job.kind == "fit"}
    fits = sorted({*removed.values(), *trained} - {*kept.values()})
    paths = [state_path(states_folder(store.path), key) for key in fits]
    trials = () if fits_alone else tuple(sorted(removed.keys() - kept.keys()))
    return Removal(names, trials, tuple(filter(Path.is_file, paths)), fits_alone)


class Writer:
    """Writes runs, fits and trials; each call is one transaction, or part of ``transaction``."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.db = connection
        self._here, self._installed = this_place(), installed()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction; rolled back on error."""
        if self.db.in_transaction:
            yield self.db
            return
        with self.db:  # commits, or rolls back
            self.db.execute("BEGIN IMMEDIATE")
            yield self.db

    def begin(self, run: str, about: Mapping[str, Any], trials: Sequence[str]) -> None:
        """Register a run, or resume one with the same id."""
        row = {"run": run, "state": "running", "about": json.dumps(dict(about))}
        row["created_at"] = now()
        with self.transaction() as db:
            self.put_run(row, trials)
            add_metrics(db, about["metrics"])

    def put_run(self, row: Mapping[str, Any], trials: Sequence[str]) -> None:
        """Store a run and its list of trials. A known run keeps its number and start time."""
        with self.transaction() as db:
            known = "SELECT number, created_at FROM run WHERE run = ?"
            (highest,) = db.execute("SELECT coalesce(max(number), 0) FROM run").fetchone()
            new = highest + 1, row["created_at"]
            number, created_at = db.execute(known, [row["run"]]).fetchone() or new
            # a new row gets a larger ``begun`` than all others
            put(db, "run", {**row, "number": number, "created_at": created_at})
            db.execute("DELETE FROM run_trial WHERE run = ?", [row["run"]])
            listed = [(row["run"], position, trial) for position, trial in enumerate(trials)]
            db.executemany("INSERT INTO run_trial VALUES (?, ?, ?)", listed)

    def end(self, run: str, state: str) -> None:
        """Record the end of a run: finished or interrupted."""
        with self.transaction() as db:
            db.execute("UPDATE run SET state = ? WHERE run = ?", [state, run])

    def attempt(self, run: str, outcome: Outcome) -> None:
        """Record the outcome of one attempt of a job."""
        spec = outcome.job.spec
        row = {
            "run": run,
            "kind": outcome.job.kind,
            "key": spec.key,
            "title": plain(spec.title),
            "status": str(outcome.status),
            "seconds": outcome.seconds,
            "created_at": now(),
            "machine": ": ".join(self._here),
        }
        texts = ("error", "trace", "output")
        with self.transaction() as db:
            put(db, "attempt", row | {name: plain(getattr(outcome, name)) for name in texts})

    def costs(self, models: Mapping[str, CostModel]) -> None:
        """Store cost models by key, once each, with the fitted models."""
        for key, model in models.items():
            path = costs_path(states_folder(self.path), key)
            if not path.is_file():
                with atomic_file(path) as new:
                    new.write_text(json.dumps(to_json(model)), encoding="utf-8")

    def fit(self, outcome: Outcome) -> None:
        """Store the outcome of a fit."""
        result = outcome.result
        row = {
            "key": outcome.job.spec.key,
            "status": str(outcome.status),
            "seconds": result.seconds if result else outcome.seconds,
            "peak_rss_mb": result.peak_rss_mb if result else None,
        }
        with self.transaction() as db:
            put(db, "fit", row)

    def trial(self, outcome: Outcome) -> None:
        """Store the outcome of a trial with its points and values, replacing earlier ones."""
        # use the planned specification: a worker's may have other folders
        spec, result = outcome.job.spec, outcome.result
        assert isinstance(spec, TrialSpec)
        measured = {name: getattr(result, name) for name in MEASURED} if result else {}
        versions = dict.fromkeys([*self._installed.split(", "), *spec.libraries.split(", ")])
        with self.transaction() as db:
            fit = "SELECT seconds, peak_rss_mb FROM fit WHERE key = ?"
            seconds, peak = db.execute(fit, [spec.fit]).fetchone() or (None, None)
            peaks = [peak, measured.get("peak_rss_mb")]
            trial = Trial.of(
                spec,
                **measured
                | {
                    "status": str(outcome.status),
                    "error": outcome.error or measured.get("error", ""),
                    "seconds": outcome.seconds,
                    "fit_seconds": seconds,
                    "peak_rss_mb": max(filter(None, peaks), default=None),
                    "machine": self._here.machine,
                    "cpu": self._here.cpu,
                    "versions": ", ".join(filter(None, versions)),
                    "created_at": now(),
                },
            )
            put_trial(db, trial)

    def remove(self, what: Removal) -> None:
        """Carry out a removal: rows in one transaction, then files."""
        with self.transaction() as db:
            db.executemany("DELETE FROM trial WHERE key = ?", [[key] for key in what.trials])
            db.executemany("DELETE FROM point WHERE trial = ?", [[key] for key in what.trials])
            for run in () if what.fits_alone else what.runs:
                db.execute("DELETE FROM run WHERE run = ?", [run])
                db.execute("DELETE FROM run_trial WHERE run = ?", [run])
                db.execute(_FORGET, [run])
            db.executemany("DELETE FROM fit WHERE key = ?", [[path.stem] for path in what.fits])
            db.execute("DELETE FROM sensor WHERE list NOT IN (SELECT sensors FROM trial)")
        self.db.execute("VACUUM")
        for path in what.fits:
            path.unlink(missing_ok=True)

    def audit(self, key: str, verdict: Verdict) -> Verdict:
        """Store a verdict of an audit, and return the valid one: failed audits remain failed."""
        with self.transaction() as db:
            known = db.execute("SELECT audit, error FROM trial WHERE key = ?", [key]).fetchone()
            if known and known[0] == "failed":
                return Verdict(*known)
            db.execute(_SET_VERDICT, [verdict.word, plain(verdict.reason), key])
        return verdict
