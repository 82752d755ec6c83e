"""Results in one SQLite file: many readers, one writer (``writer.py``).

run        a named set of trials: what was asked for, and how it went
run_trial  which trials, in which order; a trial may belong to many runs
trial      by ScoreKey: specification, status, error, audit, timings
point      one row per trial, split and operating point
unit       values per query, row or block of rows, by trial and split (``records.StoredValues``)
fit        by FitKey: status and timings
attempt    every attempt of a fit, trial or audit, with traceback and output

Fitted models and cost models are files beside the store (``store_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import InputError, UsageError
from bench_core.results.budgets import CAP, Budget
from bench_core.results.records import VALUE_ARRAYS, RunInfo, Sensors, StoredValues, with_tuples
from bench_core.results.store_files import being_written, check_store, store_path
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd

# the columns of the export frame; metrics and costs stand between point and accounting
_RUN = ("run", "suite", "profile")
_DATA = ("dataset", "fold", "fingerprint", "stand_in")
_LEARNER = ("learner", "learner_version", "params", "seed")
_COSTS = ("feature_cost", "evaluation_cost", "total_cost", "cost_p95", "cost_max")
_BILLING = ("accounting", "unit", "cost_model", "surrogate")
_NAMES = ("learner", "params", "dataset", "fold", "seed", "fingerprint")
_MEASURED = ("fit_seconds", "predict_seconds", "peak_rss_mb")
_HOW = ("threads", "workers", "cpu", "machine", "created_at")
_COUNTS = ("features_used", "threads", "workers")

_ATTEMPTS = """
SELECT kind, title, status, error, trace, output, seconds, created_at,
  row_number() OVER (PARTITION BY kind, key ORDER BY number) AS attempt
FROM attempt
WHERE run = :run OR key IN (
  SELECT trial FROM run_trial WHERE run = :run
  UNION SELECT json_extract(spec, '$.fit') FROM run_trial JOIN trial ON trial.key = trial
  WHERE run = :run)
ORDER BY number
"""


@dataclass(frozen=True, slots=True, eq=False)
class TrialValues(StoredValues):
    """The stored values of one trial on one split, with what names them.

    ``settings`` (p,) are the operating points. Units stand in the same order for all trials on
    one data set, fold, seed and split; ``fingerprint`` is that of the data.
    """

    trial: str
    learner: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    fingerprint: str
    settings: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial of a run ended."""

    title: str
    status: str
    error: str
    audit: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the ``attempt``-th of its fit, trial (``score``) or audit.

    ``error`` is one line, ``trace`` a traceback that begins with the plugin's frames, ``output``
    the end of what was written to stdout and stderr; each is empty where there is none.
    """

    kind: str
    title: str
    status: str
    error: str
    trace: str
    output: str
    seconds: float
    created_at: str
    attempt: int


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
        near = get_close_matches(run, ["last", *(name for name, _ in known)])
        hint = f"did you mean {' or '.join(near)}?" if near else "'bench list runs' shows all"
        raise UsageError(f"unknown run {run!r} in {self.path}: {hint}")

    def info(self, run: str = "last") -> RunInfo:
        """One run."""
        run = self.resolve(run)
        with self._read() as db:
            return self._info(db, db.execute("SELECT * FROM run WHERE id = ?", [run]).fetchone())

    def _info(self, db: sqlite3.Connection, row: sqlite3.Row) -> RunInfo:
        ended = db.execute(
            "SELECT status, count(*) FROM run_trial JOIN trial ON trial.key = run_trial.trial "
            "WHERE run_trial.run = ? GROUP BY status ORDER BY status",
            [row["id"]],
        ).fetchall()
        planned = db.execute("SELECT count(*) FROM run_trial WHERE run = ?", [row["id"]])
        state = row["state"]
        if state == "running" and not being_written(self.path):
            state = "interrupted"
        return RunInfo(
            run=row["id"],
            number=row["number"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            state=state,
            planned=int(planned.fetchone()[0]),
            counts=dict(ended),
            **with_tuples(json.loads(row["about"])),
        )

    def frame(self, run: str = "last") -> pd.DataFrame:
        """One row per trial, point and split, with the export columns in order.

        ``cap`` is what no row may cost where that was enforced, NaN at a path's own points. A trial
        that is not ``ok`` is one row whose point and split are empty. Where the replay
        audit refused a trial, ``error`` says why.
        """
        import pandas as pd

        info = self.info(run)
        with self._read() as db:
            rows = [row for trial in _trials(db, info.run) for row in _exported(db, trial, info)]
        before = (*_RUN, *_DATA, *_LEARNER, "point", "split", "status", "error", *info.metrics)
        after = (
            *_COSTS,
            CAP,
            "features_used",
            *_BILLING,
            "audit",
            "marks",
            *_MEASURED,
            *_HOW,
        )
        frame = pd.DataFrame(rows, columns=[*before, *after])
        numbers = dict.fromkeys((*info.metrics, *_COSTS, CAP, *_MEASURED), "float64")
        others = {"fold": "int64", "seed": "int64", "stand_in": "bool", "surrogate": "bool"}
        return frame.astype({**numbers, **others, **dict.fromkeys(_COUNTS, "Int64")})

    def values(
        self,
        run: str = "last",
        *,
        split: str = "test",
        dataset: str = "",
        learner: str = "",
        within: Budget | None = None,
    ) -> list[TrialValues]:
        """Stored values per query or row, by trial in order, without those under caps.

        ``within`` a cap there are only those under it; within a cost for 95% of rows only the
        points whose rows keep to it on validation. Trials without such points are left out.
        """
        run = self.resolve(run)
        found: list[TrialValues] = []
        with self._read() as db:
            for trial in _trials(db, run):
                spec = json.loads(trial["spec"])
                if dataset not in ("", spec["dataset"]) or learner not in ("", spec["learner"]):
                    continue
                found.extend(_values(db, trial["key"], spec, split, within))
        return found

    def of_trial(self, trial: str) -> tuple[list[sqlite3.Row], dict[str, StoredValues]]:
        """The rows of a trial's points, and its stored values by split."""
        with self._read() as db:
            rows = db.execute("SELECT * FROM point WHERE trial = ?", [trial]).fetchall()
            units = db.execute("SELECT * FROM unit WHERE trial = ?", [trial]).fetchall()
        values = {}
        for row in units:
            points = tuple(json.loads(row["points"]))
            values[row["split"]] = StoredValues(row["split"], points, **_arrays(row, points))
        return rows, values

    def sensors(self, run: str = "last") -> dict[str, Sensors]:
        """What could be bought, by trial."""
        run = self.resolve(run)
        known: dict[str, Sensors] = {}
        with self._read() as db:
            keys = {trial["key"]: trial["sensors"] for trial in _trials(db, run)}
            for key in {*keys.values()} - {""}:
                known[key] = _sensors(db, key)
        return {trial: known[key] for trial, key in keys.items() if key}

    def ended(self, run: str = "last") -> list[Ended]:
        """How the trials of a run that have ended did so, in order."""
        run = self.resolve(run)
        with self._read() as db:
            trials = [(json.loads(row["spec"])["title"], row) for row in _trials(db, run)]
        return [
            Ended(title, row["status"], row["error"] or row["audit_error"], row["audit"])
            for title, row in trials
        ]

    def attempts(self, run: str = "last") -> list[Attempt]:
        """The attempts of a run's fits, trials and audits in order, also those of earlier runs
        whose fits and trials it uses."""
        run = self.resolve(run)
        with self._read() as db:
            return [Attempt(**dict(row)) for row in db.execute(_ATTEMPTS, {"run": run})]

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

    def typical_seconds(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Median seconds of finished trials' fits and of the trials, by data set and learner."""
        taken = defaultdict(list)
        with self._read() as db:
            for row in db.execute("SELECT * FROM trial WHERE status = 'ok'"):
                spec = json.loads(row["spec"])
                seconds = row["fit_seconds"] or 0.0, row["seconds"] or 0.0
                taken[spec["dataset"], spec["learner"]].append(seconds)
        return {
            place: (median(fit for fit, _ in pairs), median(score for _, score in pairs))
            for place, pairs in taken.items()
        }


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


def _exported(
    db: sqlite3.Connection, trial: sqlite3.Row, info: RunInfo
) -> Iterator[dict[str, Any]]:
    """One row per split and point; one without them for a trial that is not ``ok``."""
    spec = json.loads(trial["spec"])
    same = {
        **{k: getattr(info, k) for k in _RUN},
        **{k: spec[k] for k in (*_DATA, *_LEARNER, *_BILLING)},
        "params": json.dumps(spec["params"], sort_keys=True),
        "error": trial["error"] or trial["audit_error"],
        **{k: spec.get(k) for k in ("threads", "workers")},
        "cpu": trial["machine"].rsplit(", ", 4)[0],
        **{k: trial[k] for k in ("status", "audit", "marks", "machine", "created_at", *_MEASURED)},
    }
    if trial["status"] != "ok":
        yield {**same, "point": "", "split": ""}
        return
    points = db.execute("SELECT * FROM point WHERE trial = ? ORDER BY position", [trial["key"]])
    for point in sorted(points, key=lambda row: SPLITS.index(row["split"])):
        kept = {k: point[k] for k in ("point", "split", *_COSTS, "features_used")}
        cap = json.loads(point["point"]).get(CAP)
        yield {**same, **json.loads(point["metrics"]), **kept, CAP: cap}


def _sensors(db: sqlite3.Connection, key: str) -> Sensors:
    row = db.execute("SELECT names, price FROM sensors WHERE key = ?", [key]).fetchone()
    names = json.loads(zlib.decompress(row["names"]))
    return Sensors(tuple(names), tuple(np.frombuffer(row["price"], "<f8").tolist()))


def _values(
    db: sqlite3.Connection,
    trial: str,
    spec: Mapping[str, Any],
    split: str,
    within: Budget | None,
) -> Iterator[TrialValues]:
    units = f"SELECT points, {', '.join(VALUE_ARRAYS)} FROM unit WHERE trial = ? AND split = ?"
    points = "SELECT position, point, cost_p95 FROM point WHERE trial = ? AND split = ?"
    settings = {r["position"]: json.loads(r["point"]) for r in db.execute(points, [trial, split])}
    p95 = {r["position"]: r["cost_p95"] for r in db.execute(points, [trial, "valid"])}
    wanted = {p for p, point in settings.items() if _is_within(point, p95.get(p, np.inf), within)}
    for row in db.execute(units, [trial, split]):
        kept = tuple(json.loads(row["points"]))
        arrays = _arrays(row, kept)
        for name in ("metric", "cost", "bought"):
            arrays[name] = arrays[name][[p in wanted for p in kept]]
        kept = tuple(p for p in kept if p in wanted)
        if not kept:
            continue
        yield TrialValues(
            split=split,
            points=kept,
            trial=trial,
            settings=tuple(settings[p] for p in kept),
            **arrays,
            **{name: spec[name] for name in _NAMES},
        )


def _arrays(row: sqlite3.Row, points: Sequence[int]) -> dict[str, Any]:
    """The arrays of ``StoredValues`` in a row of the table ``unit``."""
    arrays: dict[str, Any] = {
        name: np.frombuffer(zlib.decompress(row[name]), "<f4").astype(np.float32, copy=False)
        for name in VALUE_ARRAYS
    }
    return arrays | {k: arrays[k].reshape(len(points), -1) for k in ("metric", "cost", "bought")}


def _is_within(point: Mapping[str, float], p95: float, budget: Budget | None) -> bool:
    """Whether a point takes part under a budget, by its kind; its mean cost is not looked at."""
    kind, amount = ("mean", np.inf) if budget is None else (budget.kind, budget.amount)
    if kind == "cap":
        return point.get(CAP) == amount
    return CAP not in point and (kind == "mean" or p95 <= amount)
