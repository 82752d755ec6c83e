"""Rows of a store as values: checked against their checksums, unpacked, and packed again.

A checksum (CRC-32) covers all columns of a row but its number and what changes while a run goes on;
that of a run also covers the list of its trials. A row that was changed by anything but the writer
is found when it is read: numbers are shown as they were measured, or not at all.
"""

from __future__ import annotations

import json
import operator
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.arrays import Float32Array, FloatArray
from bench_core.errors import InputError
from bench_core.results.blocks import FEW
from bench_core.results.packed_rows import packed_blocks, unpacked
from bench_core.results.records import (
    VALUE_ARRAYS,
    Sensors,
    Stages,
    StoredValues,
    with_tuples,
)
from bench_core.splits import SPLITS

OF_TRIAL = ("point", "unit", "block")
"""Tables of what a trial gave."""

_UNCHECKED = ("checksum", "number", "state", "updated_at")


class DamageError(Exception):
    """A store whose rows are not what the writer wrote."""


DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError, DamageError)
"""What reading a damaged store raises: SQLite's own messages may quote bytes that are no UTF-8."""


def damaged(path: Path, error: Exception) -> InputError:
    """What is said of a damaged store, in one line: SQLite quotes what it cannot decode."""
    fault = " ".join(str(error).split())
    remedy = "put a copy in its place, or name another with --store"
    return InputError(f"{path}: the store is damaged ({fault:.200}); {remedy}")


def checksum(values: Mapping[str, Any]) -> int:
    """Of a row's columns by name."""
    return _sum_of(tuple(values))(values.values())


@lru_cache(64)
def _sum_of(names: tuple[str, ...]) -> Callable[[Iterable[Any]], int]:
    """What makes the checksum of a row with these columns, from their values in this order."""
    order = [k for k in np.argsort(names).tolist() if names[k] not in _UNCHECKED]
    form = b"".join(b"%b%%b" % names[k].encode() for k in order)
    ordered = order == [*range(len(names))]

    def found(values: Iterable[Any]) -> int:
        parts = [
            value
            if type(value) is bytes
            else (value if type(value) is str else _text(value)).encode("utf-8", "replace")
            for value in values
        ]
        return zlib.crc32(form % (tuple(parts) if ordered else tuple([parts[k] for k in order])))

    return found


def _text(value: Any) -> str:
    if isinstance(value, (int, float)):  # a union would be made at every call
        value = repr(float(value)) if value == value else None  # SQLite keeps no NaN
    return str(value)


def of_trials(keys: Iterable[str]) -> int:
    """The checksum of the list of a run's trials."""
    return zlib.crc32("\n".join(keys).encode())


def is_whole(row: Mapping[str, Any]) -> bool:
    """Whether a row is as it was written."""
    return bool(row["checksum"] == checksum(row))


def checked(row: sqlite3.Row | Mapping[str, Any], what: str) -> dict[str, Any]:
    """A row as a mapping. Raises DamageError where it was changed."""
    values = dict(row)
    if not is_whole(values):
        raise DamageError(f"{what} is not as it was written")
    return values


def select(db: sqlite3.Connection, table: str, where: str, *values: Any) -> list[dict[str, Any]]:
    """Rows of a table, checked."""
    found = db.execute(f"SELECT * FROM {table} WHERE {where}", values)
    return [checked(row, f"a row of table {table}") for row in found]


def _many(
    db: sqlite3.Connection, table: str, joined: str, values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """Rows of a table, checked, as ``_COLUMNS`` names their values: for very many."""
    names = _COLUMNS[table]
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples
    own = ", ".join(f"{table}.{name}" for name in names)
    sum_of = _sum_of_cells if names[0] == "cells" else _sum_of_texts
    form = "".join(f"{name}%s" for name in names if name != "cells")
    for row in cursor.execute(f"SELECT {own}, {table}.checksum {joined}", values):
        *kept, known = row
        if sum_of(form, kept) != known:
            raise DamageError(f"a row of table {table} is not as it was written")
        yield tuple(kept)


def _sum_of_texts(form: str, values: Iterable[Any], begin: int = 0) -> int:
    """The checksum of columns of texts and numbers in the order of their names, in one step."""
    return zlib.crc32((form % tuple(values)).encode("utf-8", "replace"), begin)


def _sum_of_cells(form: str, values: Sequence[Any]) -> int:
    """The same where cells stand first, which are not copied."""
    cells, *others = values
    begin = zlib.crc32(cells, _CELLS) if type(cells) is bytes else -1
    return _sum_of_texts(form, others, begin)


_CELLS = zlib.crc32(b"cells")


_COLUMNS = {
    "trial": (
        *("audit", "audit_error", "created_at", "dataset", "error", "fit_seconds", "key"),
        *("learner", "machine", "marks", "peak_rss_mb", "predict_seconds", "seconds", "sensors"),
        *("spec", "stages", "status"),
    ),
    "point": ("cells", "columns", "points", "split", "trial"),
    "block": ("cells", "points", "split", "trial"),
}
"""The columns that checksums cover, in their order there."""


def connect(uri: str) -> sqlite3.Connection:
    """A connection to a store. Raises what ``DAMAGE`` names where it can be seen at once."""
    connection = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except DAMAGE:
        connection.close()
        raise
    return connection


def run(db: sqlite3.Connection, name: str) -> dict[str, Any]:
    """The row of a run."""
    for row in select(db, "run", "id = ?", name):
        return row
    raise DamageError(f"run {name} is gone")


_OF_RUN = """
FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
"""
_ASKED = """
WHERE run_trial.run = ? AND ? IN ('', trial.dataset) AND ? IN ('', trial.learner)
AND run_trial.position BETWEEN ? AND ? ORDER BY run_trial.position
"""
ALL = range(1 << 62)
"""The places of all trials of a run."""


def keys_of(db: sqlite3.Connection, run: Mapping[str, Any]) -> list[str]:
    """The keys of the trials of a run, in order, also of those that have not ended."""
    listed = db.execute(
        "SELECT trial FROM run_trial WHERE run = ? ORDER BY position", [run["id"]]
    ).fetchall()
    keys = [key for (key,) in listed]
    if of_trials(map(str, keys)) != run["trials"]:
        raise DamageError(f"the list of trials of {run['id']} is not as it was written")
    return keys


def check_unfinished(db: sqlite3.Connection, run: str) -> None:
    """Raise DamageError where trials of a run count as not ended since an index has lost them."""
    listed = "SELECT trial FROM run_trial WHERE run = ? AND trial NOT IN (SELECT key FROM trial)"
    _check_index(db, "trial", f"key IN ({listed})", run)


def _check_index(db: sqlite3.Connection, table: str, where: str, *values: Any) -> None:
    """Raise DamageError where there are rows ``where`` an index says that there are none."""
    if db.execute(f"SELECT 1 FROM {table} NOT INDEXED WHERE {where} LIMIT 1", values).fetchone():
        raise DamageError(f"a row of table {table} is missing from its index")


def trials(
    db: sqlite3.Connection,
    run: Mapping[str, Any],
    dataset: str = "",
    learner: str = "",
    places: range = ALL,
) -> Iterator[dict[str, Any]]:
    """The trials of a run that have ended, in order, of one data set or learner where these are
    named; ``spec`` is parsed. Of some ``places`` in the run's list, which is not checked then."""
    if places is ALL:
        keys_of(db, run)
    names, asked = _COLUMNS["trial"], [run["id"], dataset, learner, places.start, places.stop - 1]
    for row in _many(db, "trial", _OF_RUN + _ASKED, asked):
        found = dict(zip(names, row, strict=True))
        found["spec"] = json.loads(found["spec"])
        yield found


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The operating points of a trial on one split: ``points`` (p,) as canonical JSON, and
    ``cells`` (p, c) of these ``columns``: metrics, then ``CELLS``."""

    split: str
    points: tuple[str, ...]
    columns: tuple[str, ...]
    cells: FloatArray

    def column(self, name: str) -> FloatArray:
        """One column (p,)."""
        return self.cells[:, self.columns.index(name)]


def points(db: sqlite3.Connection, trial: Mapping[str, Any]) -> list[Points]:
    """The points of a trial by split. Raises DamageError where a split of the trial has none."""
    return _by_split(trial, _many(db, "point", "FROM point WHERE trial = ?", [trial["key"]]))


_POINTS = "CROSS JOIN point ON point.trial = trial.key"


def trials_with_points(
    db: sqlite3.Connection,
    run: Mapping[str, Any],
    dataset: str = "",
    learner: str = "",
    places: range = ALL,
) -> Iterator[tuple[dict[str, Any], list[Points]]]:
    """``trials`` with their points, in one pass; none of a trial that is not ``ok``."""
    asked = [run["id"], dataset, learner, places.start, places.stop - 1]
    rows = _many(db, "point", _OF_RUN + _POINTS + _ASKED, asked)
    found = groupby(rows, operator.itemgetter(_COLUMNS["point"].index("trial")))
    key, own = next(found, ("", iter(())))
    for trial in trials(db, run, dataset, learner, places):
        kept = []
        if key == trial["key"]:
            kept = [*own]
            key, own = next(found, ("", iter(())))
        yield trial, _by_split(trial, kept) if trial["status"] == "ok" else []


def _by_split(trial: Mapping[str, Any], rows: Iterable[Sequence[Any]]) -> list[Points]:
    found = sorted(map(_points, rows), key=lambda one: SPLITS.index(one.split))
    if missing := {*trial["spec"]["splits"]} - {one.split for one in found}:
        raise DamageError(f"a row of table point is gone (split {min(missing)})")
    return found


def _points(row: Sequence[Any]) -> Points:
    cells, columns, points, split, _ = row
    points, columns = _texts(points), _texts(columns)
    if len(cells) != 8 * len(points) * len(columns):
        raise DamageError(f"a row of table point has other cells than points ({split})")
    shaped = np.frombuffer(cells, "<f8").reshape(len(points), len(columns))
    return Points(split, points, columns, shaped)


@lru_cache(1024)
def _texts(listed: str) -> tuple[str, ...]:
    """A list of texts from JSON; most trials of a run have the same."""
    return tuple(json.loads(listed))


def sensors(db: sqlite3.Connection, key: str) -> Sensors:
    """What could be bought."""
    for row in select(db, "sensors", "key = ?", key):
        names = json.loads(zlib.decompress(row["names"]))
        return Sensors(tuple(names), tuple(np.frombuffer(row["price"], "<f8").tolist()))
    raise DamageError("a row of table sensors is gone")


def values(db: sqlite3.Connection, trial: str, split: str) -> Iterator[StoredValues]:
    """The values per unit of a trial on one split, if it has any."""
    for row in select(db, "unit", "trial = ? AND split = ?", trial, split):
        kept = _places(row["points"])
        arrays: dict[str, Any] = {
            name: np.frombuffer(unpacked(row[name]), "<f4").astype(np.float32, copy=False)
            for name in VALUE_ARRAYS
        }
        for name in ("metric", "cost", "bought"):
            arrays[name] = arrays[name].reshape(len(kept), -1)
        yield StoredValues(split=split, points=kept, **arrays)


_BLOCKS = """
FROM json_each(?) AS asked CROSS JOIN block ON block.trial = asked.value WHERE block.split = ?
"""


def blocks(db: sqlite3.Connection, trials: Sequence[str], split: str) -> dict[str, StoredValues]:
    """By trial the means of its values over ``FEW`` blocks of units, of those that have
    more units; what is bought is left out."""
    found = _many(db, "block", _BLOCKS, [json.dumps(trials), split])
    return {trial: _of_blocks(*row) for *row, trial in found}


def _of_blocks(blob: bytes, listed: str, split: str) -> StoredValues:
    kept = _places(listed)
    cells = np.frombuffer(blob, "<f4").reshape(-1, FEW)
    n = len(kept)
    if len(cells) != 2 * n + 2:
        raise DamageError(f"a row of table block has other cells than points ({split})")
    return StoredValues(split, kept, cells[:n], cells[n:-2], cells[-2], cells[-1], cells[:n, :0])


def check_blocks(db: sqlite3.Connection, trial: str, of: Mapping[str, StoredValues]) -> None:
    """Raise DamageError where means over blocks are not those of the values."""
    for split, stored in of.items():
        made, kept = packed_blocks(stored), blocks(db, [trial], split)
        known = [np.vstack([b.metric, b.cost, b.weights, b.rows]).ravel() for b in kept.values()]
        same = [np.frombuffer(made["cells"], "<f4")] if made else []
        if len(known) != len(same) or not all(map(_alike, known, same)):
            raise DamageError(f"a row of table block is not of the values ({split})")


def _alike(a: Float32Array, b: Float32Array) -> bool:
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, equal_nan=True)


def valued_points(
    db: sqlite3.Connection, run: str, split: str, places: range = ALL
) -> dict[str, tuple[int, ...]]:
    """By trial of a run the points that ``values`` has: of the rows these alone, which ``values``
    checks with them."""
    asked = (
        "SELECT run_trial.trial, unit.points FROM run_trial "
        "LEFT JOIN unit ON unit.trial = run_trial.trial AND unit.split = ?"
    )
    where = "run_trial.run = ? AND run_trial.position BETWEEN ? AND ?"
    values = [split, run, places.start, places.stop - 1]
    found = db.execute(f"{asked} WHERE {where}", values).fetchall()
    if without := [trial for trial, listed in found if listed is None]:
        _check_without(db, without, split)
    return {trial: _places(listed) for trial, listed in found if listed is not None}


def _check_without(db: sqlite3.Connection, trials: Sequence[str], split: str) -> None:
    """Raise DamageError where trials only seem to have no values."""
    asked = "SELECT value FROM json_each(?)"
    ok = f"SELECT key FROM trial WHERE key IN ({asked}) AND status = 'ok'"
    if keys := [key for (key,) in db.execute(ok, [json.dumps(trials)])]:
        _check_index(db, "unit", f"split = ? AND trial IN ({asked})", split, json.dumps(keys))


@lru_cache(1024)
def _places(listed: str) -> tuple[int, ...]:
    """A list of points from JSON; most trials of a run have the same."""
    try:
        return tuple(map(operator.index, json.loads(listed)))
    except (TypeError, ValueError) as error:
        raise DamageError("a row of table unit has no list of points") from error


def shares(db: sqlite3.Connection, trial: str) -> Iterator[tuple[tuple[int, ...], FloatArray]]:
    """The kept points of a trial and the share of test rows that buy each sensor there (p, s)."""
    for row in select(db, "unit", "trial = ? AND split = 'test'", trial):
        kept = _places(row["points"])
        share = np.frombuffer(unpacked(row["bought"]), "<f4").reshape(len(kept), -1)
        yield kept, share.astype(np.float64)


def stages(trial: Mapping[str, Any], kept: Sequence[int]) -> Stages | None:
    """What a trial's rows go through, ``reached`` by place among the points ``kept``."""
    if not trial["stages"]:
        return None
    found = Stages(**with_tuples(json.loads(trial["stages"])))
    by_place = {k: found.reached[str(p)] for k, p in enumerate(kept) if str(p) in found.reached}
    return found._replace(reached=by_place)
