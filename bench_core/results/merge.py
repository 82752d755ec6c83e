"""Merge results stores row by row, by content keys.

For two rows of one key, the finished one is kept. Two finished rows must agree to 1e-9; the
target's row is kept with the weaker of the two audit verdicts, as other stores cannot verify it. Of
two failures the later one is kept. Attempts are merged as a set. Numbers and order of runs are
separate for each store: new runs follow its own.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench_core._io.files import atomic_file
from bench_core.errors import InputError
from bench_core.results.records import AUDITS, TOLERANCE, Verdict, differences
from bench_core.results.store import Store, readable
from bench_core.results.store_files import DAMAGE, check_store, models_in, states_folder
from bench_core.results.tables import add_metrics, columns_of, copy, select
from bench_core.results.writer import Writer, open_writer

_BOTH_FINISHED = """
SELECT key FROM other.trial AS b CROSS JOIN main.trial AS a USING (key)
WHERE a.status = 'ok' AND b.status = 'ok' AND (a.created_at, a.audit) IS NOT (b.created_at, b.audit)
"""
_FITS = "WHERE key NOT IN (SELECT key FROM main.fit WHERE status = 'ok')"
_TRIALS = """
WHERE key NOT IN (
  SELECT key FROM main.trial AS a CROSS JOIN other.trial AS b USING (key)
  WHERE a.status = 'ok' OR b.status <> 'ok' AND b.created_at <= a.created_at)
"""
_ATTEMPTS = """
INSERT INTO attempt SELECT * FROM (SELECT * FROM other.attempt
EXCEPT SELECT * FROM main.attempt) ORDER BY created_at
"""
_NEW_RUNS = """
SELECT run, number, created_at, state, about FROM other.run
WHERE run NOT IN (SELECT run FROM main.run) ORDER BY begun
"""
_STATES = """
UPDATE run SET state = iif(EXISTS (
  SELECT 1 FROM run_trial WHERE run = run.run AND trial NOT IN (SELECT key FROM trial)),
  'interrupted', 'finished')
"""


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge: numbers of new finished trials and fits, and names of the merged runs."""

    trials: int
    fits: int
    runs: tuple[str, ...]


def merge(target: Path, sources: Sequence[Path]) -> Merged:
    """Merge the results of ``sources`` into the store at ``target``, which is created if missing.

    Raises InputError for a source that is not a store, before any change. Also raises it for a
    source with a different result of a trial: that source is skipped, earlier ones are merged.
    """
    for source in sources:
        if not check_store(source):
            raise InputError(f"{source}: no results there; check the name")
    runs: dict[str, None] = {}
    with open_writer(target) as writer:
        before = Store(target).finished()
        for source in sources:
            if source.resolve() != target.resolve():
                with _attached(writer.db, source), writer.transaction():
                    _join(writer, source)
                    runs |= dict.fromkeys(_join_runs(writer))
        trials, fits = map(len, Store(target).finished())
    return Merged(trials - len(before[0]), fits - len(before[1]), tuple(runs))


def take(writer: Writer, shard: Path) -> None:
    """Merge the fits, trials and attempts of a shard into the store of ``writer``, which has its
    run. The cost does not grow with the store's trials. Raises as ``merge``."""
    with _attached(writer.db, shard), writer.transaction():
        _join(writer, shard)


def copy_fits(target: Path, source: Path, keys: Sequence[str]) -> None:
    """Copy finished fits from another store to ``target``, which is created if missing."""
    with open_writer(target) as writer, _attached(writer.db, source):
        for key in keys:
            _copy(states_folder(source), states_folder(target), f"{key[:2]}/{key}.npz")
        copied = "INSERT OR IGNORE INTO fit SELECT * FROM other.fit WHERE key = ?"
        with writer.transaction() as db:
            db.executemany(copied, [[key] for key in keys])


@contextmanager
def _attached(db: sqlite3.Connection, source: Path) -> Iterator[None]:
    try:
        db.execute("ATTACH ? AS other", [readable(source)])
        yield
    except DAMAGE as error:
        remedy = "put an intact copy in its place"
        raise InputError(f"{source}: cannot be merged ({error}); {remedy}") from error
    finally:
        if any(row[1] == "other" for row in db.execute("PRAGMA database_list")):
            db.execute("DETACH other")


def _copy(source: Path, target: Path, name: str) -> None:
    """Copy one file to another folder, unless it exists."""
    if not (target / name).exists():
        with atomic_file(target / name) as new:
            shutil.copyfile(source / name, new)


def _join(writer: Writer, source: Path) -> None:
    """Merge everything except runs from the attached store ``source``."""
    db, target = writer.db, writer.path
    for row in [*select(db, _BOTH_FINISHED)]:
        ours, theirs = (Store(path).trial(row["key"]) for path in (target, source))
        for unlike in differences(ours, theirs, TOLERANCE):
            raise InputError(
                f"{source}: {unlike.what} ({unlike.where}) of {ours.title} (trial {ours.key}) "
                f"differs from that in {target} under the same key, so one of them was not "
                "computed by the code that the key names: leave one out"
            )
        if AUDITS.index(theirs.audit) < AUDITS.index(ours.audit):
            writer.audit(ours.key, Verdict(theirs.audit, theirs.error))
    # models first: rows must never refer to a missing file
    for path in models_in(source):
        name = str(path.relative_to(states_folder(source)))
        _copy(states_folder(source), states_folder(target), name)
    copy(db, "fit", _FITS)
    copy(db, "sensor")
    # points before trials, which decide what is copied; a replaced trial has failed, without points
    add_metrics(db, columns_of(db, "point", "other"))
    copy(db, "point", _TRIALS.replace("key NOT", "trial NOT", 1))
    copy(db, "trial", _TRIALS)
    db.execute(_ATTEMPTS)


def _join_runs(writer: Writer) -> list[str]:
    """Add new runs with their lists of trials, in the order in which they began, and return the
    names of all runs in the source. A run of the same name has the same trials."""
    db = writer.db
    for row in [*select(db, _NEW_RUNS)]:
        listed = "SELECT trial FROM other.run_trial WHERE run = ? ORDER BY position"
        writer.put_run(row, [trial for (trial,) in db.execute(listed, [row["run"]])])
    db.execute(_STATES)
    return [run for (run,) in db.execute("SELECT run FROM other.run ORDER BY begun")]
