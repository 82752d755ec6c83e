"""Results in one SQLite file: many readers, one writer (``writer.py``).

The tables are those of ``tables.py``; docs/store.md describes them for other programs. Fitted
models and cost models are files next to the store (``store_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import InputError, UsageError
from bench_core.results.budgets import Budget
from bench_core.results.frame import TRIAL_DIGITS, export_frame
from bench_core.results.records import (
    Attempt,
    Bought,
    Ended,
    RunInfo,
    Sensors,
    Stages,
    Trial,
    TrialSpec,
    with_tuples,
)
from bench_core.results.store_files import (
    DAMAGE,
    being_written,
    check_store,
    damaged,
    store_path,
)
from bench_core.results.tables import record_of, select
from bench_core.results.values import (
    TrialValues,
    ValuedTrial,
    points_of,
    sensors_of,
    stored_values,
    trial_of,
    valued_trials,
    values_of,
)

if TYPE_CHECKING:
    import pandas as pd

_ATTEMPTS = """
SELECT *, row_number() OVER (PARTITION BY kind, key ORDER BY created_at, rowid) AS attempt
FROM attempt
WHERE run = :run OR key IN (
  SELECT trial FROM run_trial WHERE run = :run
  UNION SELECT fit FROM run_trial JOIN trial ON trial.key = run_trial.trial
  WHERE run_trial.run = :run)
ORDER BY created_at, rowid
"""
_OF_RUN = """
SELECT {} FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
WHERE run_trial.run = ? ORDER BY run_trial.position
"""
_BOUGHT = """
SELECT trial.* FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
JOIN unit_values ON unit_values.trial = trial.key AND unit_values.split = 'test'
WHERE run_trial.run = ? AND dataset = ? AND ? IN ('', learner) AND status = 'ok'
ORDER BY run_trial.position
"""


class Store:
    """A results store opened for reading. Raises InputError where the file is not one."""

    def __init__(self, path: str | Path = "") -> None:
        self.path = store_path(path)
        if not check_store(self.path):
            raise InputError(f"{self.path}: no results there yet; `bench run` makes them")
        self._held: sqlite3.Connection | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """All that is read in the body is of one moment."""
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
            with closing(_connect(self.path)) as db:
                db.execute("BEGIN")  # all that is read is of one moment
                yield db
        except DAMAGE as error:
            raise damaged(self.path, error) from error

    def runs(self) -> list[RunInfo]:
        """All runs, the most recent first."""
        with self._read() as db:
            found = select(db, "SELECT * FROM run ORDER BY updated_at DESC, number DESC")
            return [self._info(db, row) for row in [*found]]

    def resolve(self, run: str = "last") -> str:
        """The id of a run given as ``last``, a number, an id or its unambiguous beginning."""
        with self._read() as db:
            found = db.execute("SELECT run, number FROM run ORDER BY updated_at DESC, number DESC")
            known = [(name, str(number)) for name, number in found]
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
            (row,) = select(db, "SELECT * FROM run WHERE run = ?", run)
            return self._info(db, row)

    def _info(self, db: sqlite3.Connection, row: Mapping[str, Any]) -> RunInfo:
        statuses = (
            "SELECT status, count(*) FROM run_trial LEFT JOIN trial ON trial.key = run_trial.trial "
            "WHERE run_trial.run = ? GROUP BY status ORDER BY status"
        )
        counts = dict(db.execute(statuses, [row["run"]]).fetchall())
        planned = sum(counts.values())
        counts.pop(None, None)  # trials that have not ended
        info = record_of(RunInfo, row, planned=planned, counts=counts)
        if info.state == "running" and not being_written(self.path):
            return replace(info, state="interrupted")
        return info

    def frame(self, run: str = "last", *, compact: bool = False) -> pd.DataFrame:
        """One row per trial, point and split, with the export columns in order.

        ``cap`` is what no row may cost where that was enforced, NaN at a path's own points. A trial
        that is not ``ok`` is one row whose point and split are empty. Where the replay
        audit refused a trial, ``error`` says why. ``compact``: columns of text are categorical
        and integers small, which for many trials takes a fraction of the memory.
        """
        info = self.info(run)
        with self._read() as db:
            return export_frame(db, info, compact)

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
        found = self.valued(run, split, dataset, learner, within)
        return [*self.values_of(found, split, within)]

    def valued(
        self,
        run: str,
        split: str,
        dataset: str = "",
        learner: str = "",
        within: Budget | None = None,
    ) -> list[ValuedTrial]:
        """The trials that ``values`` are of, in order, without the values: those of a
        large run do not fit into memory together."""
        run = self.resolve(run)
        with self._read() as db:
            return valued_trials(db, run, split, dataset, learner, within)

    def values_of(
        self, trials: Sequence[ValuedTrial], split: str, within: Budget | None = None
    ) -> Iterator[TrialValues]:
        """The values of trials that ``valued`` lists, one at a time."""
        with self._read() as db:
            for trial in trials:
                yield values_of(db, trial, split, within)

    def bought(self, run: str = "last", *, dataset: str, learner: str = "") -> list[Bought]:
        """Purchases of each trial on test at its kept operating points, those under caps too."""
        run = self.resolve(run)
        found: list[Bought] = []
        sensors: dict[str, Sensors] = {}
        with self._read() as db:
            for row in [*select(db, _BOUGHT, run, dataset, learner)]:
                key = row["sensors"]
                sensors[key] = sensors.get(key) or sensors_of(db, key)
                trial = record_of(Trial, row)
                points = points_of(db, trial)
                settings = {one.number: one.point for one in points if one.split == "test"}
                values = stored_values(db, trial.key, "test")
                found.append(
                    Bought(
                        trial=trial.key[:TRIAL_DIGITS],
                        learner=trial.learner,
                        params=trial.params,
                        fold=trial.fold,
                        seed=trial.seed,
                        settings=tuple(settings[number] for number in values.points),
                        share=values.bought.astype(np.float64),
                        sensors=sensors[key],
                        stages=_stages(trial, values.points),
                    )
                )
        return found

    def ended(self, run: str = "last") -> list[Ended]:
        """Status of the trials of a run that have ended, in order."""
        run = self.resolve(run)
        with self._read() as db:
            names = ", ".join(field.name for field in fields(Ended))
            return [Ended(**row) for row in select(db, _OF_RUN.format(names), run)]

    def attempts(self, run: str = "last") -> list[Attempt]:
        """The attempts of a run's fits, trials and audits in order, also those of earlier runs
        whose fits and trials it uses."""
        run = self.resolve(run)
        with self._read() as db:
            found = db.execute(_ATTEMPTS, {"run": run})
            names = [about[0] for about in found.description]
            return [Attempt(**dict(zip(names, row, strict=True))) for row in found]

    def specs(self, run: str = "last") -> list[TrialSpec]:
        """The specifications of a run's trials that are ``ok``."""
        run = self.resolve(run)
        with self._read() as db:
            found = [*select(db, _OF_RUN.format("trial.*"), run)]
        return [record_of(TrialSpec, row) for row in found if row["status"] == "ok"]

    def trial(self, name: str) -> Trial:
        """The finished trial whose key begins so, with its points and values. Raises UsageError
        where there is not just one."""
        with self._read() as db:
            keys = "SELECT key FROM trial WHERE substr(key, 1, ?) = ? AND status = 'ok'"
            found = [key for (key,) in db.execute(keys, [len(name), name])] if name else []
            if len(found) != 1:
                fault = (
                    f"several trials begin with {name}" if found else f"no finished trial {name!r}"
                )
                raise UsageError(
                    f"{self.path}: {fault}; see trial in 'bench export' or 'bench log'"
                )
            return trial_of(db, found[0])

    def request_for(self, trial: str) -> Mapping[str, Any]:
        """The request of the last run that asked for a trial; empty without one."""
        with self._read() as db:
            asked = (
                "SELECT request FROM run WHERE run IN (SELECT run FROM run_trial WHERE trial = ?) "
                "ORDER BY updated_at DESC LIMIT 1"
            )
            row = db.execute(asked, [trial]).fetchone()
        return with_tuples(json.loads(row[0])) if row else {}

    def finished(self) -> tuple[frozenset[str], frozenset[str]]:
        """The ScoreKeys and FitKeys that are ``ok``."""
        with self._read() as db:
            trials, fits = (
                frozenset(k for (k,) in db.execute(f"SELECT key FROM {of} WHERE status = 'ok'"))
                for of in ("trial", "fit")
            )
            return trials, fits

    def contents(self) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, set[str]]]:
        """Fit, fingerprint and fold of trials by key; by run the keys of its trials, and of the
        fits that it trained."""
        with self._read() as db:
            asked = select(db, "SELECT key, fit, fingerprint, fold FROM trial")
            specs = {row["key"]: row for row in asked}
            runs: dict[str, list[str]] = {run: [] for (run,) in db.execute("SELECT run FROM run")}
            for run, trial in db.execute("SELECT run, trial FROM run_trial ORDER BY run, position"):
                runs[run].append(trial)
            fits: dict[str, set[str]] = defaultdict(set)
            for run, key in db.execute("SELECT run, key FROM attempt WHERE kind = 'fit'"):
                fits[run].add(key)
        return specs, runs, fits

    def durations(
        self,
    ) -> tuple[dict[tuple[str, str, str], list[tuple[float, float, float]]], dict[str, Any]]:
        """Seconds of finished trials' fits and of the trials, and their peaks of memory in MiB, by
        data set, learner and its parameters as JSON; and what runs say of data sets, by name.
        Times are of whole jobs, imports included and waits for a processor not, where logged."""
        taken = defaultdict(list)
        with self._read() as db:
            logged = "SELECT key, seconds FROM attempt WHERE kind != 'audit'"
            whole = dict(db.execute(f"{logged} AND status = 'ok'").fetchall())
            for row in select(db, "SELECT * FROM trial WHERE status = 'ok'"):
                fit, trial = row["fit_seconds"] or 0.0, row["seconds"]
                spent = whole.get(row["fit"], fit), whole.get(row["key"], trial)
                kind = row["dataset"], row["learner"], row["params"]
                taken[kind].append((*spent, row["peak_rss_mb"] or 0.0))
            uses = [json.loads(text) for (text,) in db.execute("SELECT datasets FROM run")]
        return dict(taken), {use["name"]: use for run in uses for use in run}


def _connect(path: Path) -> sqlite3.Connection:
    uri = path.resolve().as_uri()
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        db = sqlite3.connect(f"{uri}?{mode}", uri=True, timeout=30, isolation_level=None)
        try:
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:  # no write-ahead log can be opened in a locked folder
            db.close()
            if "immutable" in mode:
                raise
        except BaseException:
            db.close()
            raise
        else:
            return db
    raise AssertionError


def _stages(trial: Trial, kept: tuple[int, ...]) -> Stages | None:
    """The stages of a trial, ``reached`` by place among the points ``kept``."""
    if not trial.stages:
        return None
    found = Stages(**with_tuples(trial.stages))
    by_place = {k: found.reached[str(p)] for k, p in enumerate(kept) if str(p) in found.reached}
    return found._replace(reached=by_place)
