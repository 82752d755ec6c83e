"""Merge results stores: row by row, under the keys that name what was computed.

The same store comes of any order and any number of times. Of two rows of one key the finished one
stays; of two finished ones, which must be equal to 1e-9, the earlier; of two failures the later.
Attempts are a set, of two verdicts of an audit the stricter one stays, models are compared by what
they hold. The numbers of runs are each store's own.
"""

from __future__ import annotations

import filecmp
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core._io.files import atomic_file
from bench_core.errors import InputError
from bench_core.results.differences import TOLERANCE, differences
from bench_core.results.store_files import (
    DAMAGE,
    check_store,
    models_in,
    same_model,
    states_folder,
)
from bench_core.results.tables import OF_TRIAL, add_metrics, names_of, put, quoted, select
from bench_core.results.values import trial_of
from bench_core.results.writer import Writer, list_trials, open_writer

_AUDITS = ("", "declared", "sampled", "verified", "failed")
"""Verdicts, each stricter than those before it."""

_IN_BOTH = """
SELECT key, a.title, a.status = 'ok' AS ok, b.status = 'ok' AS other_ok,
  a.created_at AS moment, b.created_at AS other_moment,
  a.audit, a.error, b.audit AS other_audit, b.error AS other_error
FROM other.trial AS b CROSS JOIN main.trial AS a USING (key)
WHERE (a.created_at, a.audit) IS NOT (b.created_at, b.audit)
"""
_FITS = """
INSERT INTO fit SELECT * FROM other.fit WHERE true
ON CONFLICT (key) DO UPDATE
SET status = excluded.status, seconds = excluded.seconds, peak_rss_mb = excluded.peak_rss_mb
WHERE (excluded.status = 'ok', excluded.seconds) > (fit.status = 'ok', fit.seconds)
"""
_STATES = """
UPDATE run SET state = iif(EXISTS (
  SELECT 1 FROM run_trial WHERE run = run.run AND trial NOT IN (SELECT key FROM trial)),
  'interrupted', 'finished')
"""


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge: the number of new finished trials and fits, and the names of its runs."""

    trials: int
    fits: int
    runs: tuple[str, ...]


def merge(target: Path, sources: Sequence[Path]) -> Merged:
    """Bring the results of ``sources`` into the store at ``target``, made where there is none.

    Raises InputError for a source that is no store, before anything is done; and for one with a
    trial whose result differs: that store is left out, those before it are in.
    """
    for source in sources:
        if not check_store(source):
            raise InputError(f"{source}: no results there; check the name")
    runs: dict[str, None] = {}
    with open_writer(target) as writer:
        before = _finished(writer.db)
        for source in sources:
            if source.resolve() != target.resolve():
                with _attached(writer.db, source), writer.transaction() as db:
                    _join(db, writer.path, source)
                    runs |= dict.fromkeys(_join_runs(db))
        after = _finished(writer.db)
    return Merged(after[0] - before[0], after[1] - before[1], tuple(runs))


def take(writer: Writer, shard: Path) -> None:
    """Bring the fits, trials and attempts of a shard into the store of ``writer``, where its run
    is known. What that takes does not grow with the store's trials. Raises as ``merge``."""
    with _attached(writer.db, shard), writer.transaction() as db:
        _join(db, writer.path, shard)


def copy_fits(target: Path, source: Path, keys: Sequence[str]) -> None:
    """Give the store at ``target``, made where there is none, finished fits of another, with the
    last attempt at each, which marks its trials."""
    listed = ", ".join("?" * len(keys))
    with open_writer(target) as writer, _attached(writer.db, source):
        for key in keys:
            _copy(states_folder(source), states_folder(target), f"{key[:2]}/{key}.npz")
        with writer.transaction() as db:
            db.execute(
                f"INSERT OR IGNORE INTO fit SELECT * FROM other.fit WHERE key IN ({listed})", keys
            )
            db.execute(
                "INSERT INTO attempt SELECT * FROM other.attempt WHERE rowid IN ("
                f"SELECT max(rowid) FROM other.attempt WHERE kind = 'fit' AND key IN ({listed}) "
                "GROUP BY key) EXCEPT SELECT * FROM main.attempt",
                keys,
            )


def _finished(db: sqlite3.Connection) -> list[int]:
    """Number of finished trials and fits."""
    count = "SELECT count(*) FROM main.{} WHERE status = 'ok'"
    return [db.execute(count.format(table)).fetchone()[0] for table in ("trial", "fit")]


@contextmanager
def _attached(db: sqlite3.Connection, source: Path) -> Iterator[None]:
    uri = f"{source.resolve().as_uri()}?mode=ro"
    try:
        db.execute("ATTACH ? AS other", [uri])
        try:
            db.execute("SELECT count(*) FROM other.trial")
        except sqlite3.OperationalError:  # no write-ahead log can be opened in a locked folder
            db.execute("DETACH other")
            db.execute("ATTACH ? AS other", [f"{uri}&immutable=1"])
        yield
    except DAMAGE as error:
        remedy = "put an intact copy in its place"
        raise InputError(f"{source}: cannot be merged ({error}); {remedy}") from error
    finally:
        if any(row[1] == "other" for row in db.execute("PRAGMA database_list")):
            db.execute("DETACH other")


def _copy(source: Path, target: Path, name: str) -> None:
    """One file of a folder into another, unless it is there."""
    if not (target / name).exists():
        with atomic_file(target / name) as new:
            shutil.copyfile(source / name, new)


def _join(db: sqlite3.Connection, target: Path, source: Path) -> None:
    """Bring in everything but runs from the attached store ``source``."""
    both = [*select(db, _IN_BOTH)]
    for row in both:
        if row["ok"] and row["other_ok"]:
            one, two = (trial_of(db, row["key"], schema) for schema in ("main", "other"))
            for unlike in differences(one, two, TOLERANCE):
                what = f"{unlike.what} ({unlike.where}) of {row['title']} (trial {row['key']})"
                raise _conflict(target, source, what)
    # models first: a row must never refer to a file that is not there
    _join_models(target, source)
    db.execute(_FITS)
    for row in both:
        _give_way(db, row)
    db.execute("INSERT OR IGNORE INTO sensor SELECT * FROM other.sensor")
    add_metrics(db, names_of(db, "point", "other"))
    # points and values before trials: "new" means that the trial is not here yet
    new = "NOT IN (SELECT key FROM main.trial)"
    for table in OF_TRIAL:
        names = ", ".join(map(quoted, names_of(db, table, "other")))
        rows = f"SELECT {names} FROM other.{table} WHERE trial {new}"
        db.execute(f"INSERT INTO {table} ({names}) {rows}")
    db.execute(f"INSERT INTO trial SELECT * FROM other.trial WHERE key {new}")
    for row in both:
        if row["ok"] and row["other_ok"]:
            verdict = max(_verdict(row, ""), _verdict(row, "other_"))
            values = [_AUDITS[verdict[0]], verdict[1], row["key"]]
            db.execute("UPDATE main.trial SET audit = ?, error = ? WHERE key = ?", values)
    db.execute(
        "INSERT INTO attempt SELECT * FROM (SELECT * FROM other.attempt "
        "EXCEPT SELECT * FROM main.attempt) ORDER BY created_at"
    )


def _conflict(target: Path, source: Path, what: str) -> InputError:
    return InputError(
        f"{source}: {what} differs from that in {target} under the same key, so one of them was "
        "not computed by the code that the key names: leave one out"
    )


def _give_way(db: sqlite3.Connection, row: Mapping[str, Any]) -> None:
    """Delete a trial that is in both stores from this one, where the other's result is to stay."""
    ok, other_ok, earlier = row["ok"], row["other_ok"], row["other_moment"] < row["moment"]
    if (other_ok and (not ok or earlier)) or not (ok or other_ok or earlier):
        for table in OF_TRIAL:
            db.execute(f"DELETE FROM main.{table} WHERE trial = ?", [row["key"]])
        db.execute("DELETE FROM main.trial WHERE key = ?", [row["key"]])


def _verdict(row: Mapping[str, Any], of: str) -> tuple[int, str]:
    return _AUDITS.index(row[f"{of}audit"]), row[f"{of}error"]


def _join_models(target: Path, source: Path) -> None:
    """Copy fitted models and cost models, ahead of the rows that refer to them."""
    here, there = states_folder(target), states_folder(source)
    for path in models_in(source):
        name = path.relative_to(there)
        mine = here / name
        if mine.is_file() and not (filecmp.cmp(path, mine, False) or same_model(path, mine)):
            raise _conflict(target, source, f"the fitted model {name}")
        _copy(there, here, str(name))


def _join_runs(db: sqlite3.Connection) -> list[str]:
    """Bring in runs, each with its list of trials; their names.

    The later record of a run holds; it began when it first did.
    """
    names = [run for (run,) in db.execute("SELECT run FROM other.run ORDER BY created_at, run")]
    for name in names:
        known = {
            schema: row
            for schema in ("main", "other")
            for row in select(db, f"SELECT * FROM {schema}.run WHERE run = ?", name)
        }
        last = max(known, key=lambda schema: (known[schema]["updated_at"], schema))
        query = f"SELECT trial FROM {last}.run_trial WHERE run = ? ORDER BY position"
        trials = [trial for (trial,) in db.execute(query, [name])]
        count = db.execute("SELECT coalesce(max(number), 0) FROM main.run").fetchone()[0]
        number = known["main"]["number"] if "main" in known else count + 1
        begun = min(row["created_at"] for row in known.values())
        put(db, "run", {**known[last], "number": number, "created_at": begun})
        list_trials(db, name, trials)
    db.execute(_STATES)
    return names
