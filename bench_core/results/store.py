"""Results in one SQLite file: many readers, one writer (``writer.py``).

run        a named set of trials: what was asked for, and how it went
run_trial  which trials, in which order; a trial may belong to many runs
trial      by ScoreKey: specification, status, error, audit, timings
point      one row per trial, split and operating point
unit       values per query, row or block of rows, by trial and split (``records.StoredValues``)
fit        by FitKey: status and timings
attempt    every attempt of a fit, trial or audit, with traceback and output (``attempts.py``)

Fitted models and cost models are files beside the store (``model_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import InputError, UsageError
from bench_core.results.attempts import Attempt, attempts_of
from bench_core.results.export import export_frame
from bench_core.results.records import RunInfo, StoredValues
from bench_core.results.schema import being_written, check_store, store_path
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class TrialValues(StoredValues):
    """The stored values of one trial on one split, with what names them.

    ``settings`` (p,) are the operating points. Units stand in the same order for all trials on
    one data set, fold, seed and split.
    """

    trial: str
    learner: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    settings: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial of a run ended."""

    title: str
    status: str
    error: str
    audit: str


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a finished trial took, for estimates."""

    dataset: str
    learner: str
    fit_seconds: float
    score_seconds: float


class Store:
    """A results store opened for reading. Raises InputError where the file is not one."""

    def __init__(self, path: str | Path = "") -> None:
        self.path = store_path(path)
        if not check_store(self.path):
            raise InputError(f"{self.path}: no results there yet; `bench run` makes them")

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        uri = self.path.resolve().as_uri()
        try:
            try:
                connection = _connect(f"{uri}?mode=ro")
            except sqlite3.OperationalError:  # no write-ahead log can be opened in a locked folder
                connection = _connect(f"{uri}?mode=ro&immutable=1")
            with closing(connection):
                connection.execute("BEGIN")  # all that is read is of one moment
                yield connection
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{self.path}: the store is damaged ({error}); put a copy in its place, or name "
                "another with --store"
            ) from error

    def runs(self) -> list[RunInfo]:
        """All runs, the most recent first."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM run ORDER BY updated_at DESC, number DESC").fetchall()
            return [self._info(db, row) for row in rows]

    def resolve(self, run: str = "last") -> str:
        """The id of a run given as ``last``, a number, an id or its unambiguous beginning."""
        with self._read() as db:
            found = db.execute("SELECT id, number FROM run ORDER BY updated_at DESC, number DESC")
            known = [(row["id"], str(row["number"])) for row in found]
        if not known:
            raise InputError(f"{self.path}: no run there yet; `bench run` makes one")
        if run == "last":
            return str(known[0][0])
        exact = [name for name, number in known if run in (name, number)]
        begun = exact or [name for name, _ in known if name.startswith(run)]
        if len(begun) == 1:
            return str(begun[0])
        if begun:
            raise UsageError(f"run {run!r} may be {' or '.join(begun[:3])}: write more of it")
        near = get_close_matches(run, [name for name, _ in known])
        hint = f"did you mean {' or '.join(near)}?" if near else "'bench list runs' shows all"
        raise UsageError(f"unknown run {run!r} in {self.path}: {hint}")

    def info(self, run: str = "last") -> RunInfo:
        """One run."""
        run = self.resolve(run)
        with self._read() as db:
            return self._info(db, db.execute("SELECT * FROM run WHERE id = ?", [run]).fetchone())

    def _info(self, db: sqlite3.Connection, row: sqlite3.Row) -> RunInfo:
        about = json.loads(row["about"])
        ended = db.execute(
            "SELECT status, count(*) FROM run_trial JOIN trial ON trial.key = run_trial.trial "
            "WHERE run_trial.run = ? GROUP BY status ORDER BY status",
            [row["id"]],
        ).fetchall()
        planned = db.execute("SELECT count(*) FROM run_trial WHERE run = ?", [row["id"]])
        state = row["state"]
        if state == "running" and not being_written(self.path):
            state = "interrupted"
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in about.items()
        }
        return RunInfo(
            run=row["id"],
            number=row["number"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            state=state,
            planned=int(planned.fetchone()[0]),
            counts=dict(ended),
            **values,
        )

    def frame(self, run: str = "last") -> pd.DataFrame:
        """One row per trial, point and split, with the export columns in order.

        A trial that is not ``ok`` is one row whose point and split are empty. Where the replay
        audit refused a trial, ``error`` says why.
        """
        info = self.info(run)
        with self._read() as db:
            trials = [(trial, _points(db, trial)) for trial in _trials(db, info.run)]
        return export_frame(info, trials)

    def values(
        self, run: str = "last", *, split: str = "test", dataset: str = "", learner: str = ""
    ) -> list[TrialValues]:
        """Stored values per query or row, by trial in order."""
        run = self.resolve(run)
        found: list[TrialValues] = []
        with self._read() as db:
            for trial in _trials(db, run):
                spec = json.loads(trial["spec"])
                if dataset not in ("", spec["dataset"]) or learner not in ("", spec["learner"]):
                    continue
                found.extend(_values(db, trial["key"], spec, split))
        return found

    def ended(self, run: str = "last") -> list[Ended]:
        """How the trials of a run that have ended did so, in order."""
        run = self.resolve(run)
        with self._read() as db:
            return [
                Ended(
                    json.loads(row["spec"])["title"],
                    row["status"],
                    row["error"] or row["audit_error"],
                    row["audit"],
                )
                for row in _trials(db, run)
            ]

    def attempts(self, run: str = "last") -> list[Attempt]:
        """The attempts of a run's fits, trials and audits, in order."""
        run = self.resolve(run)
        with self._read() as db:
            return attempts_of(db, run)

    def specs(self, run: str = "last") -> list[dict[str, Any]]:
        """The specifications of a run's trials that are ``ok``, as JSON."""
        run = self.resolve(run)
        with self._read() as db:
            trials = [t for t in _trials(db, run) if t["status"] == "ok"]
            return [json.loads(trial["spec"]) for trial in trials]

    def finished(self) -> tuple[frozenset[str], frozenset[str]]:
        """The ScoreKeys and FitKeys that are ``ok``."""
        with self._read() as db:
            trials = db.execute("SELECT key FROM trial WHERE status = 'ok'").fetchall()
            fits = db.execute("SELECT key FROM fit WHERE status = 'ok'").fetchall()
        return frozenset(r["key"] for r in trials), frozenset(r["key"] for r in fits)

    def timings(self) -> list[Timing]:
        """How long finished trials took."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM trial WHERE status = 'ok'").fetchall()
        made = []
        for row in rows:
            spec = json.loads(row["spec"])
            made.append(
                Timing(
                    spec["dataset"],
                    spec["learner"],
                    row["fit_seconds"] or 0.0,
                    row["seconds"] or 0.0,
                )
            )
        return made


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _trials(db: sqlite3.Connection, run: str) -> list[sqlite3.Row]:
    return db.execute(
        "SELECT trial.* FROM run_trial JOIN trial ON trial.key = run_trial.trial "
        "WHERE run_trial.run = ? ORDER BY run_trial.position",
        [run],
    ).fetchall()


def _points(db: sqlite3.Connection, trial: sqlite3.Row) -> list[sqlite3.Row]:
    if trial["status"] != "ok":
        return []
    rows = db.execute("SELECT * FROM point WHERE trial = ? ORDER BY position", [trial["key"]])
    return sorted(rows.fetchall(), key=lambda row: SPLITS.index(row["split"]))


def _values(
    db: sqlite3.Connection, trial: str, spec: Mapping[str, Any], split: str
) -> Iterator[TrialValues]:
    units = "SELECT points, metric, cost, weights, rows FROM unit WHERE trial = ? AND split = ?"
    points = "SELECT position, point FROM point WHERE trial = ? AND split = ?"
    settings = {r["position"]: json.loads(r["point"]) for r in db.execute(points, [trial, split])}
    for row in db.execute(units, [trial, split]):
        kept = tuple(json.loads(row["points"]))
        arrays = {
            name: np.frombuffer(zlib.decompress(row[name]), "<f4").astype(np.float32, copy=False)
            for name in ("metric", "cost", "weights", "rows")
        }
        shape = (len(kept), -1)
        yield TrialValues(
            split,
            kept,
            arrays["metric"].reshape(shape),
            arrays["cost"].reshape(shape),
            arrays["weights"],
            arrays["rows"],
            trial=trial,
            settings=tuple(settings[p] for p in kept),
            **{name: spec[name] for name in ("learner", "params", "dataset", "fold", "seed")},
        )
