"""Merge results stores: row by row, under the keys that name what was computed.

The same store comes of any order and any number of times. Of two rows of one key the finished one
stays; of two finished ones, which must have the same bits, the earlier; of two failures the later.
Attempts are a set, of two verdicts of an audit the stricter one stays, models are compared by what
they hold. The numbers of runs are each store's own.
"""

from __future__ import annotations

import filecmp
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core._io.files import atomic_file
from bench_core.errors import InputError
from bench_core.results.records import MORE_THREADS, VALUE_ARRAYS
from bench_core.results.rows import DAMAGE, OF_TRIAL, DamageError, checked, of_trials
from bench_core.results.shards import check_seal
from bench_core.results.store_files import check_store, models_in, same_model, states_folder
from bench_core.results.writer import Writer, open_writer, put_row

_TABLES = ("run", "trial", *OF_TRIAL, "sensors", "fit", "attempt")
"""Those whose rows have a checksum."""

_AUDITS = ("", "declared", "sampled", "verified", "failed")
"""Verdicts, each stricter than those before it."""

_BOTH_OK = (
    "SELECT key FROM other.trial AS theirs CROSS JOIN main.trial AS mine USING (key) "
    "WHERE mine.status = 'ok' AND theirs.status = 'ok'"
)
_STATES = """
UPDATE run SET state = iif(EXISTS (
  SELECT 1 FROM run_trial WHERE run = run.id AND trial NOT IN (SELECT key FROM trial)),
  'interrupted', 'finished')
"""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge brought: finished trials and fits that the store did not have, and its runs."""

    trials: int
    fits: int
    runs: tuple[str, ...]


def merge(target: Path, sources: Sequence[Path]) -> Merged:
    """Bring the results of ``sources`` into the store at ``target``, made where there is none.

    Raises InputError for a source that is no store, or was damaged since it was sealed, before
    anything is done; and for one with a row whose result differs: it is left out whole, what
    stands before it is in.
    """
    for source in sources:
        if not check_store(source):
            raise InputError(f"{source}: no results there; check the name")
        check_seal(source)
    runs: dict[str, None] = {}
    with open_writer(target) as writer:
        before = _finished(writer.db)
        for source in sources:
            if source.resolve() != target.resolve():
                with _joined(writer, source) as pair:
                    runs |= dict.fromkeys(pair.runs())
        after = _finished(writer.db)
    return Merged(after[0] - before[0], after[1] - before[1], tuple(runs))


def take(writer: Writer, shard: Path) -> None:
    """Bring the fits, trials and attempts of a shard into the store of ``writer``, where its run
    is known. What that takes does not grow with the store's trials. Raises as ``merge``."""
    with _joined(writer, shard):
        pass


def copy_fits(target: Path, source: Path, keys: Sequence[str]) -> None:
    """Give the store at ``target``, made where there is none, finished fits of another, with what
    was said of each when it was last tried, which marks its trials."""
    marks = ", ".join("?" * len(keys))
    with open_writer(target) as writer, _attached(writer.db, source):
        for row in writer.db.execute(f"SELECT * FROM other.fit WHERE key IN ({marks})", keys):
            checked(row, "a row of table fit")
        for key in keys:
            _copy(states_folder(source), states_folder(target), f"{key[:2]}/{key}.npz")
        with writer.transaction() as db:
            db.execute(
                f"INSERT OR IGNORE INTO fit SELECT * FROM other.fit WHERE key IN ({marks})", keys
            )
            last = "SELECT max(number) FROM other.attempt WHERE kind = 'fit' GROUP BY key"
            _copy_attempts(db, f"WHERE number IN ({last}) AND key IN ({marks})", keys)


def _finished(db: sqlite3.Connection) -> list[int]:
    """How many trials and fits are."""
    count = "SELECT count(*) FROM main.{} WHERE status = 'ok'"
    return [db.execute(count.format(table)).fetchone()[0] for table in ("trial", "fit")]


def _copy_attempts(db: sqlite3.Connection, where: str = "", keys: Sequence[str] = ()) -> None:
    """Bring in attempts that are not there."""
    about = db.execute("PRAGMA main.table_info(attempt)")
    columns = ", ".join(column["name"] for column in about if column["name"] != "number")
    db.execute(
        f"INSERT INTO attempt ({columns}) SELECT * FROM (SELECT {columns} FROM other.attempt "
        f"{where} EXCEPT SELECT {columns} FROM main.attempt) ORDER BY created_at",
        keys,
    )


@contextmanager
def _joined(writer: Writer, source: Path) -> Iterator[_Pair]:
    """All of a source in the store but its runs; all or nothing, with the body."""
    with _attached(writer.db, source), writer.transaction() as db:
        pair = _Pair(db, writer.path, source)
        pair.join()
        yield pair


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
        remedy = "put a whole copy in its place"
        raise InputError(f"{source}: cannot be merged ({error}); {remedy}") from error
    finally:
        if any(row["name"] == "other" for row in db.execute("PRAGMA database_list")):
            db.execute("DETACH other")


def _copy(source: Path, target: Path, name: str) -> None:
    """One file of a folder into another, unless it is there."""
    if not (target / name).exists():
        with atomic_file(target / name) as new:
            shutil.copyfile(source / name, new)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A store that is written, and one that is read, attached to it as ``other``."""

    db: sqlite3.Connection
    target: Path
    source: Path

    def join(self) -> None:
        """Bring in everything but runs."""
        self.check()
        self.refuse(self.other_result())
        self.models()
        self.db.execute("INSERT OR IGNORE INTO sensors SELECT * FROM other.sensors")
        self.fits()
        self.trials()
        self.attempts()

    def check(self) -> None:
        """Raise DamageError where a row of the source is not as it was written: what is written
        anew here has a checksum of its own."""
        for table in _TABLES:
            for row in self.db.execute(f"SELECT * FROM other.{table}"):
                checked(row, f"a row of table {table}")

    def refuse(self, row: str) -> None:
        """Raise InputError where there is a row that differs."""
        if row:
            raise InputError(
                f"{self.source}: {row} differs from that in {self.target} under the same key, so "
                "one of them was not computed by the code that the key names: leave one out"
            )

    def other_result(self) -> str:
        """A finished trial that has another result there, in words, or nothing."""
        both = "SELECT key, a.marks, b.marks AS others, a.sensors IS NOT b.sensors AS differ "
        both += "FROM main.trial AS a JOIN other.trial AS b USING (key) "
        for row in self.db.execute(f"{both} WHERE key IN ({_BOTH_OK})"):
            if row["differ"] or _lasting(row["marks"]) != _lasting(row["others"]):
                return self.title(row["key"])
        for table in OF_TRIAL:
            for one, two in (("main", "other"), ("other", "main")):
                for mine, theirs in self.unlike(table, one, two):
                    if theirs is None or _plain(mine) != _plain(theirs):
                        return f"a {table} ({mine['split']}) of {self.title(mine['trial'])}"
        return ""

    def unlike(
        self, table: str, one: str, two: str
    ) -> Iterator[tuple[sqlite3.Row, sqlite3.Row | None]]:
        """The rows of finished trials in one store that the other has not, or otherwise."""
        about = self.db.execute(f"PRAGMA main.table_info({table})").fetchall()
        differs = " OR ".join(f"a.{column['name']} IS NOT b.{column['name']}" for column in about)
        key = [column["name"] for column in about if column["pk"]]
        pairs = f"{one}.{table} AS a LEFT JOIN {two}.{table} AS b USING ({', '.join(key)})"
        where = " AND ".join(f"{name} = ?" for name in key)
        for row in self.db.execute(
            f"SELECT a.* FROM {pairs} WHERE a.trial IN ({_BOTH_OK}) AND ({differs})"
        ).fetchall():
            same = f"SELECT * FROM {two}.{table} WHERE {where}"
            yield row, self.db.execute(same, [row[name] for name in key]).fetchone()

    def title(self, key: str) -> str:
        """A trial's name for people, and its key."""
        query = "SELECT json_extract(spec, '$.title') FROM main.trial WHERE key = ?"
        return f"{self.db.execute(query, [key]).fetchone()[0]} (trial {key})"

    def models(self) -> None:
        """Copy fitted models and cost models, ahead of the rows that speak of them."""
        here, there = states_folder(self.target), states_folder(self.source)
        for path in models_in(self.source):
            name = path.relative_to(there)
            mine = here / name
            if mine.is_file() and not (filecmp.cmp(path, mine, False) or same_model(path, mine)):
                self.refuse(f"the fitted model {name}")
            _copy(there, here, str(name))

    def fits(self) -> None:
        """Bring in fits."""
        for mine, theirs in self.in_both("fit"):
            self.put("fit", _stays(mine, theirs))
        self.db.execute("INSERT OR IGNORE INTO fit SELECT * FROM other.fit")

    def trials(self) -> None:
        """Bring in trials with their points and values."""
        for mine, theirs in self.in_both("trial"):
            row = _stays(mine, theirs)
            if row is theirs and mine["status"] != "ok" == theirs["status"]:
                self.db.execute("DELETE FROM main.trial WHERE key = ?", [mine["key"]])
                continue  # comes with all its rows below
            audit, reason = max(_verdict(mine), _verdict(theirs))
            self.put("trial", row, audit=_AUDITS[audit], audit_error=reason)
        new = "trial NOT IN (SELECT key FROM main.trial)"
        for table in OF_TRIAL:
            self.db.execute(f"INSERT INTO {table} SELECT * FROM other.{table} WHERE {new}")
        self.db.execute("INSERT OR IGNORE INTO trial SELECT * FROM other.trial")

    def in_both(self, table: str) -> list[tuple[sqlite3.Row, sqlite3.Row]]:
        """The rows of a table that have one key, those that are equal left out."""
        found = []
        for row in self.db.execute(f"SELECT * FROM other.{table}"):
            query = f"SELECT * FROM main.{table} WHERE key = ?"
            mine = self.db.execute(query, [row["key"]]).fetchone()
            if mine is not None and tuple(mine) != tuple(row):
                found.append((mine, row))
        return found

    def put(self, table: str, row: sqlite3.Row, **more: object) -> None:
        """Write a row in the place of the one of its key."""
        put_row(self.db, table, **{**checked(row, f"a row of table {table}"), **more})

    def attempts(self) -> None:
        """Bring in attempts, each once."""
        _copy_attempts(self.db)

    def runs(self) -> list[str]:
        """Bring in runs, each with its list of trials; their names."""
        query = "SELECT id FROM other.run ORDER BY created_at, id"
        names = [row["id"] for row in self.db.execute(query)]
        for name in names:
            self.run(name)
        self.db.execute(_STATES)
        return names

    def run(self, name: str) -> None:
        """What was said last about a run holds; it began when it first did."""
        said = []
        for place in ("main", "other"):
            query = f"SELECT trial FROM {place}.run_trial WHERE run = ? ORDER BY position"
            trials = [row["trial"] for row in self.db.execute(query, [name])]
            for row in self.db.execute(f"SELECT * FROM {place}.run WHERE id = ?", [name]):
                said.append((row["updated_at"], row["about"], trials, place == "main", row))
        *_, trials, _, row = max(said)
        if of_trials(trials) != row["trials"]:
            raise DamageError(f"the list of trials of {name} is not as it was written")
        number = next((row["number"] for *_, mine, row in said if mine), None)
        begun = min(row["created_at"] for *_, row in said)
        self.put("run", row, number=number, created_at=begun)
        self.db.execute("DELETE FROM run_trial WHERE run = ?", [name])
        rows = [(name, position, trial) for position, trial in enumerate(trials)]
        self.db.executemany("INSERT INTO run_trial (run, position, trial) VALUES (?, ?, ?)", rows)


def _stays(mine: sqlite3.Row, theirs: sqlite3.Row) -> sqlite3.Row:
    """Of two rows of one key the one that is kept: a choice that knows no order."""
    first, last = sorted((mine, theirs), key=_moment)
    if mine["status"] == "ok" or theirs["status"] == "ok":
        return first if first["status"] == "ok" else last
    return last


def _moment(row: sqlite3.Row) -> tuple[Any, ...]:
    """When a row was made; what else it holds, but its audit, decides where that is equal."""
    rest = dict(row)
    for name in ("audit", "audit_error", "checksum"):
        rest.pop(name, None)
    return rest.get("created_at", ""), repr(rest)


def _lasting(marks: str) -> list[str]:
    """The marks that doing a trial again would give."""
    return [mark for mark in marks.split(", ") if mark not in ("", MORE_THREADS)]


def _verdict(row: sqlite3.Row) -> tuple[int, str]:
    return _AUDITS.index(row["audit"]), row["audit_error"]


def _plain(row: sqlite3.Row) -> dict[str, Any]:
    """A row with its arrays unpacked: the same values may have been compressed otherwise."""
    plain = checked(row, f"the row ({row['split']}) of trial {row['trial']}")
    del plain["checksum"]
    return {k: zlib.decompress(v) if k in VALUE_ARRAYS else v for k, v in plain.items()}
