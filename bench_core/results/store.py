"""Results in one SQLite file: many readers, one writer (``writer.py``).

run        a named set of trials: what was asked for, and how it went
run_trial  which trials, in which order; a trial may belong to many runs
trial      by ScoreKey: specification, status, error, audit, timings
point      metrics and costs of all operating points, by trial and split
unit       values per query, row or block of rows, by trial and split (``records.StoredValues``)
block      their means over few random blocks (``blocks``), where there are more of them
fit        by FitKey: status and timings
attempt    every attempt of a fit, trial or audit, with traceback, output and machine

Every row has a checksum (``rows.py``). Fitted models and cost models are files beside the store
(``store_files.py``).
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core._io.second_process import in_order
from bench_core.errors import InputError, UsageError
from bench_core.results import rows
from bench_core.results.blocks import FEW
from bench_core.results.budgets import Budget
from bench_core.results.frame import Part, export_frame
from bench_core.results.provenance import TRIAL_DIGITS, StoredTrial, find_trial
from bench_core.results.records import (
    Attempt,
    Bought,
    Ended,
    RunInfo,
    Sensors,
    StoredValues,
    with_tuples,
)
from bench_core.results.store_files import being_written, check_store, store_path
from bench_core.results.trial_values import Framed, TrialValues, ValuedTrial, valued, values_of

if TYPE_CHECKING:
    import pandas as pd

_ATTEMPTS = """
SELECT *, row_number() OVER (PARTITION BY kind, key ORDER BY created_at, number) AS attempt
FROM attempt
WHERE run = :run OR key IN (
  SELECT trial FROM run_trial WHERE run = :run
  UNION SELECT json_extract(spec, '$.fit') FROM run_trial JOIN trial ON trial.key = trial
  WHERE run = :run)
ORDER BY created_at, number
"""


_AT_ONCE = 50  # trials
_IN_PART = 1000  # trials that are read together
_SLOW = ("pandas", "scipy.special")
"""What a report imports sooner or later, which takes as long as reading half of the trials."""
MANY = 2000
"""Trials of a run from which on a second process is worth its start."""


def _changed(db: sqlite3.Connection) -> list[Any]:
    return [tuple(row) for row in db.execute("SELECT id, updated_at, state FROM run ORDER BY id")]


class Store:
    """A results store opened for reading. Raises InputError where the file is not one."""

    def __init__(self, path: str | Path = "") -> None:
        self.path = store_path(path)
        if not check_store(self.path):
            raise InputError(f"{self.path}: no results there yet; `bench run` makes them")
        self._held: sqlite3.Connection | None = None
        self._kept: tuple[Any, ...] = ()
        self._runs: list[Any] = []  # when each was changed last, while held
        self._framed: dict[str, Framed] = {}  # runs whose frame was read, while held

    @contextmanager
    def held(self) -> Iterator[None]:
        """All that is read in the body is of one moment; what a frame was made of is known to
        ``valued`` without being read again."""
        with self._read() as db:
            self._held, self._runs = db, _changed(db)
            try:
                yield
            finally:
                self._held = None
                self._framed.clear()

    def reopen(self) -> None:
        """In a copy of a process that holds the store: hold it on a connection of the copy's own,
        as SQLite's cannot be copied. Raises RuntimeError where what is read would be of another
        moment."""
        if self._held is None:
            return
        # neither is ever closed: one is the other process's, one lasts as long as the copy
        self._kept = self._held, (opened := self._read())
        self._held = None
        self._held = opened.__enter__()
        if being_written(self.path) or _changed(self._held) != self._runs:
            raise RuntimeError(f"{self.path} is being written")

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        uri = self.path.resolve().as_uri()
        try:
            if self._held is not None:
                yield self._held
                return
            try:
                connection = rows.connect(f"{uri}?mode=ro")
            except sqlite3.OperationalError:  # no write-ahead log can be opened in a locked folder
                connection = rows.connect(f"{uri}?mode=ro&immutable=1")
            with closing(connection):
                connection.execute("BEGIN")  # all that is read is of one moment
                yield connection
        except rows.DAMAGE as error:
            raise rows.damaged(self.path, error) from error

    def runs(self) -> list[RunInfo]:
        """All runs, the most recent first."""
        with self._read() as db:
            found = rows.select(db, "run", "true ORDER BY updated_at DESC, number DESC")
            return [self._info(db, row) for row in found]

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
            return self._info(db, rows.run(db, run))

    def _info(self, db: sqlite3.Connection, row: Mapping[str, Any]) -> RunInfo:
        ended = db.execute(
            "SELECT status, count(*) FROM run_trial JOIN trial ON trial.key = run_trial.trial "
            "WHERE run_trial.run = ? GROUP BY status ORDER BY status",
            [row["id"]],
        ).fetchall()
        listed = db.execute("SELECT count(*) FROM run_trial WHERE run = ?", [row["id"]])
        planned = int(listed.fetchone()[0])
        if planned > sum(dict(ended).values()):
            rows.check_unfinished(db, row["id"])
        state = row["state"]
        if state == "running" and not being_written(self.path):
            state = "interrupted"
        return RunInfo(
            run=row["id"],
            number=row["number"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            state=state,
            planned=planned,
            counts=dict(ended),
            **with_tuples(json.loads(row["about"])),
        )

    def frame(self, run: str = "last", *, compact: bool = False) -> pd.DataFrame:
        """One row per trial, point and split, with the export columns in order.

        ``cap`` is what no row may cost where that was enforced, NaN at a path's own points. A trial
        that is not ``ok`` is one row whose point and split are empty. Where the replay
        audit refused a trial, ``error`` says why. ``compact``: columns of text are categorical
        and integers small, which for many trials takes a fraction of the memory.
        """
        if self._held is None:
            with self.held():
                return self.frame(run, compact=compact)
        info = self.info(run)
        with self._read() as db:
            rows.keys_of(db, rows.run(db, info.run))
        count = sum(info.counts.values())
        places = [range(k, k + _IN_PART) for k in range(0, max(1, info.planned), _IN_PART)]
        parts = in_order(
            partial(self._part, info),
            places,
            large=count >= MANY,
            begin=self.reopen,
            meanwhile=lambda: [import_module(name) for name in _SLOW],
        )
        frame = export_frame(info, parts, compact=compact)
        self._framed[info.run] = Framed.of(
            frame,
            [key for part in parts for key in part.keys],
            [has for part in parts for has in part.have],
            [length for part in parts for length in part.lengths],
        )
        return frame

    def _part(self, info: RunInfo, places: range) -> Part:
        """What the trials at these places have in the export."""
        with self._read() as db:
            kept = rows.valued_points(db, info.run, "valid", places)
            found = rows.trials_with_points(db, rows.run(db, info.run), places=places)
            return Part(info, found, kept)

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
        return [*self.values_of(found, split)]

    def valued(
        self,
        run: str,
        split: str,
        dataset: str,
        learner: str = "",
        within: Budget | None = None,
    ) -> list[ValuedTrial]:
        """The trials that ``values`` are of, in order, without the values: those of a large run do
        not fit into memory together."""
        run = self.resolve(run)
        if run in self._framed and split == "valid" and within is None:
            return self._framed[run].valued(dataset, learner)
        with self._read() as db:
            kept = rows.valued_points(db, run, split)
            found = rows.trials_with_points(db, rows.run(db, run), dataset, learner)
            return [
                one
                for trial, points in found
                for one in valued(trial, points, kept.get(trial["key"], ()), split, within)
            ]

    def values_of(
        self, trials: Sequence[ValuedTrial], split: str, blocks: int | None = None
    ) -> Iterator[TrialValues]:
        """The values of these trials, one at a time. Of more units than so many ``blocks``, if
        given, they may be the means over these."""
        with self._read() as db:
            for start in range(0, len(trials), _AT_ONCE):
                some = trials[start : start + _AT_ONCE]
                kept = rows.blocks(db, [t.trial for t in some], split) if blocks == FEW else {}
                for one in some:
                    stored = kept.get(one.trial) or next(rows.values(db, one.trial, split), None)
                    if stored is None:  # the writer keeps both splits or none
                        raise rows.DamageError(f"a row of table unit is gone (split {split})")
                    yield values_of(one, stored)

    def of_trial(self, trial: str) -> tuple[list[rows.Points], dict[str, StoredValues]]:
        """The points of a trial by split, and its stored values by split."""
        with self._read() as db:
            for row in rows.select(db, "trial", "key = ?", trial):
                row["spec"] = json.loads(row["spec"])
                splits = row["spec"]["splits"]
                values = {
                    one.split: one for split in splits for one in rows.values(db, trial, split)
                }
                rows.check_blocks(db, trial, values)
                return rows.points(db, row), values
        raise InputError(f"{self.path}: there is no trial {trial}")

    def sensors(self, run: str = "last") -> dict[str, Sensors]:
        """What could be bought, by trial."""
        run = self.resolve(run)
        known: dict[str, Sensors] = {}
        with self._read() as db:
            keys = {t["key"]: t["sensors"] for t in rows.trials(db, rows.run(db, run))}
            for key in {*keys.values()} - {""}:
                known[key] = rows.sensors(db, key)
        return {trial: known[key] for trial, key in keys.items() if key}

    def bought(self, run: str = "last", *, dataset: str, learner: str = "") -> list[Bought]:
        """What the kept operating points of each trial buy on test, those under caps too."""
        run = self.resolve(run)
        found: list[Bought] = []
        known: dict[str, Sensors] = {}
        with self._read() as db:
            for trial, points in rows.trials_with_points(db, rows.run(db, run), dataset, learner):
                if trial["status"] != "ok":
                    continue
                key = trial["sensors"]
                settings = next(one.points for one in points if one.split == "test")
                known[key] = known.get(key) or rows.sensors(db, key)
                for kept, share in rows.shares(db, trial["key"]):
                    found.append(
                        Bought(
                            trial=trial["key"][:TRIAL_DIGITS],
                            params=trial["spec"]["params"],
                            fold=trial["spec"]["fold"],
                            seed=trial["spec"]["seed"],
                            learner=trial["learner"],
                            settings=tuple(json.loads(settings[p]) for p in kept),
                            share=share,
                            sensors=known[key],
                            stages=rows.stages(trial, kept),
                        )
                    )
        return found

    def ended(self, run: str = "last") -> list[Ended]:
        """How the trials of a run that have ended did so, in order."""
        run = self.resolve(run)
        with self._read() as db:
            return [
                Ended(t["spec"]["title"], t["status"], t["error"] or t["audit_error"], t["audit"])
                for t in rows.trials(db, rows.run(db, run))
            ]

    def attempts(self, run: str = "last") -> list[Attempt]:
        """The attempts of a run's fits, trials and audits in order, also those of earlier runs
        whose fits and trials it uses."""
        run = self.resolve(run)
        with self._read() as db:
            for row in db.execute("SELECT * FROM attempt"):  # a damaged one may name no run
                rows.checked(row, "a row of table attempt")
            found = db.execute(_ATTEMPTS, {"run": run}).fetchall()
        return [Attempt(**{name: row[name] for name in Attempt.__slots__}) for row in found]

    def specs(self, run: str = "last") -> list[dict[str, Any]]:
        """The specifications of a run's trials that are ``ok``, as JSON."""
        run = self.resolve(run)
        with self._read() as db:
            found = rows.trials(db, rows.run(db, run))
            specs = [trial["spec"] for trial in found if trial["status"] == "ok"]
        return [{k: v for k, v in spec.items() if k != "installed"} for spec in specs]

    def trial(self, name: str) -> StoredTrial:
        """The finished trial whose key begins so. Raises UsageError where there is not just one."""
        with self._read() as db:
            return find_trial(db, self.path, name)

    def finished(self) -> tuple[frozenset[str], frozenset[str]]:
        """The ScoreKeys and FitKeys that are ``ok``."""
        with self._read() as db:
            trials, fits = (rows.select(db, of, "status = 'ok'") for of in ("trial", "fit"))
            return frozenset(r["key"] for r in trials), frozenset(r["key"] for r in fits)

    def contents(self) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, set[str]]]:
        """The specifications of trials by key; by run the keys of its trials, and of the fits that
        it trained."""
        with self._read() as db:
            specs = {t["key"]: json.loads(t["spec"]) for t in rows.select(db, "trial", "true")}
            runs = {run["id"]: rows.keys_of(db, run) for run in rows.select(db, "run", "true")}
            fits: dict[str, set[str]] = defaultdict(set)
            for row in db.execute("SELECT * FROM attempt"):
                attempt = rows.checked(row, "a row of table attempt")
                if attempt["kind"] == "fit":
                    fits[attempt["run"]].add(attempt["key"])
        return specs, runs, fits

    def durations(
        self,
    ) -> tuple[dict[tuple[str, str, str], list[tuple[float, float, float]]], dict[str, Any]]:
        """Seconds of finished trials' fits and of the trials, and their peaks of memory in MiB, by
        data set, learner and its parameters as JSON; and what runs say of data sets, by name.
        Times are of whole jobs, imports included and waits for a processor not, where logged."""
        taken = defaultdict(list)
        with self._read() as db:
            logged = rows.select(db, "attempt", "kind != 'audit' AND status = 'ok'")
            whole = {row["key"]: row["seconds"] - row["waited"] for row in logged}
            for row in rows.select(db, "trial", "status = 'ok'"):
                spec = json.loads(row["spec"])
                fit, trial = row["fit_seconds"] or 0.0, row["seconds"]
                spent = whole.get(spec["fit"], fit), whole.get(row["key"], trial)
                kind = spec["dataset"], spec["learner"], json.dumps(spec["params"])
                taken[kind].append((*spent, row["peak_rss_mb"] or 0.0))
            about = [json.loads(row["about"]) for row in rows.select(db, "run", "true")]
        return dict(taken), {use["name"]: use for run in about for use in run["datasets"]}
