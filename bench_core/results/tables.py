"""Tables of a store.

===========  =====================================================================
run          a run, with its request as JSON
run_trial    trials of a run, in order
trial        a trial: its record as JSON, whose fields are columns, too, its values
point        a row for each operating point and split, a column for each metric
sensor       lists of available sensors, which most trials share
fit          outcome of each fit
attempt      every attempt of a job
===========  =====================================================================
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, digest
from bench_core._io.files import from_cache, in_cache
from bench_core.results.records import (
    INTERNAL,
    Attempt,
    OperatingPoint,
    Sensors,
    StoredValues,
    Trial,
    with_tuples,
)
from bench_core.splits import SPLITS

APPLICATION = 0x62_6E_63_68  # "bnch" in SQLite's application_id
SCHEMA = 13  # increases with each change of tables or records; older stores are rejected

json_value = lru_cache(4096)(json.loads)
"""Value from JSON, cached because trials of a run share values; must not be modified."""

POINT_NUMBERS = tuple(field.name for field in fields(OperatingPoint))[4:]
"""Numbers of an operating point besides its metrics."""

_RECORD = [f.name for f in fields(Trial) if f.name not in ("sensors", "points", "values")]
_SHOWN = [name for name in _RECORD if name not in INTERNAL or name in ("title", "fit", "seconds")]

# SQL functions rather than the operator ->>, for versions before 3.38
TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
CREATE TABLE run (
  begun INTEGER PRIMARY KEY, run TEXT UNIQUE, number INTEGER, created_at TEXT, state TEXT,
  about TEXT);
CREATE TABLE run_trial (
  run TEXT, position INTEGER, trial TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID;
CREATE TABLE trial (
  key TEXT PRIMARY KEY, sensors TEXT, record TEXT,
  {", ".join(f"{name} AS (json_extract(record, '$.{name}')) STORED" for name in _SHOWN)},
  valid BLOB, test BLOB);
CREATE TABLE point (
  trial TEXT, number INTEGER, point TEXT, split TEXT, {" REAL, ".join(POINT_NUMBERS)} INTEGER,
  PRIMARY KEY (trial, split, number)) WITHOUT ROWID;
CREATE TABLE sensor (list TEXT PRIMARY KEY, names TEXT, price TEXT);
CREATE TABLE fit (
  key TEXT PRIMARY KEY, status TEXT, seconds REAL, peak_rss_mb REAL);
CREATE TABLE attempt ({", ".join(f.name for f in fields(Attempt) if f.name != "attempt")});
"""


def plain(text: str) -> str:
    """Replace what cannot be encoded as UTF-8: a file's name may hold any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def put_trial(db: sqlite3.Connection, trial: Trial) -> None:
    """Insert a trial with its points, values and sensors, or replace it."""
    record = {name: getattr(trial, name) for name in _RECORD}
    record |= {name: plain(text) for name, text in record.items() if isinstance(text, str)}
    # as text, since parameters may be infinite, which SQL refuses
    record["params"] = json.dumps(trial.params, sort_keys=True)
    record |= {"marks": ", ".join(trial.marks), "data": in_cache(trial.data), "states": ""}
    values = {values.split: packed(values) for values in trial.values}
    sensors = {name: json.dumps(items) for name, items in trial.sensors._asdict().items()}
    list_key = digest(trial.sensors)
    put(db, "sensor", {"list": list_key, **sensors})
    row = {"key": trial.key, "sensors": list_key, "record": json.dumps(record), **values}
    put(db, "trial", row)
    db.execute("DELETE FROM point WHERE trial = ?", [trial.key])
    add_metrics(db, [*trial.points[0].metrics] if trial.points else ())
    for point in trial.points:
        setting = {"number": point.number, "point": canonical(point.point), "split": point.split}
        numbers = {name: getattr(point, name) for name in POINT_NUMBERS} | {**point.metrics}
        put(db, "point", {"trial": trial.key, **setting, **numbers})


def trial_of(row: Mapping[str, Any]) -> Trial:
    """Trial of a row joined with its sensors, without points and values."""
    record = with_tuples(json.loads(row["record"]))
    record["params"] = json_value(record["params"])
    record["marks"] = tuple(record["marks"].split(", ")) if record["marks"] else ()
    record["data"] = from_cache(record["data"])
    return Trial(**record, sensors=_sensors(row["names"], row["price"]))


@lru_cache(64)
def _sensors(names: str, price: str) -> Sensors:
    return Sensors(tuple(json.loads(names)), tuple(json.loads(price)))


def points_of(db: sqlite3.Connection, trial: Trial) -> tuple[OperatingPoint, ...]:
    """Operating points of a trial, by split and number."""
    points = []
    query = "SELECT * FROM point WHERE trial = ? ORDER BY instr(?, split), number"
    for row in select(db, query, trial.key, " ".join(SPLITS)):
        # the table has columns for the metrics of other runs, too
        metrics = {name: np.nan if row[name] is None else row[name] for name in trial.metrics}
        numbers = (row[name] for name in POINT_NUMBERS)
        setting = json_value(row["point"])
        points.append(OperatingPoint(row["number"], setting, row["split"], metrics, *numbers))
    return tuple(points)


def packed(values: StoredValues) -> bytes:
    """Compress the points and the arrays of values, as a file ``.npz``."""
    file = BytesIO()
    arrays: dict[str, Any] = {"points": np.array(values.points, dtype=np.int64), **values.arrays}
    np.savez(file, **arrays)
    return zlib.compress(file.getvalue(), 1)  # numpy's own compression is slower


def unpacked(split: str, block: bytes) -> StoredValues:
    """Invert ``packed``."""
    with np.load(BytesIO(zlib.decompress(block)), allow_pickle=False) as file:
        arrays = dict(file)
    return StoredValues(split, tuple(arrays.pop("points").tolist()), **arrays)


def quoted(name: str) -> str:
    """Quote a column's name for SQL: names of metrics contain symbols."""
    return '"' + name.replace('"', '""') + '"'


def put(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row, or replace the row with the same key."""
    names, marks = ", ".join(map(quoted, row)), ", ".join("?" * len(row))
    db.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", [*row.values()])


def columns_of(db: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """Names of a table's columns, without those computed from its record."""
    return [row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")]


def lacking_columns(db: sqlite3.Connection) -> list[str]:
    """Columns of ``TABLES`` that a store does not have, as ``TABLE.COLUMN``."""

    def names(of: sqlite3.Connection) -> list[str]:
        query = "SELECT m.name || '.' || x.name FROM sqlite_master m, pragma_table_xinfo(m.name) x"
        return [name for (name,) in of.execute(query)]

    with closing(sqlite3.connect(":memory:")) as new:
        new.executescript(TABLES)
        return sorted({*names(new)} - {*names(db)})


def copy(db: sqlite3.Connection, table: str, where: str = "") -> None:
    """Copy rows from the attached store ``other``, and replace those with the same key."""
    names = ", ".join(map(quoted, columns_of(db, table, "other")))
    rows = f"SELECT {names} FROM other.{table} {where}"
    db.execute(f"INSERT OR REPLACE INTO {table} ({names}) {rows}")


def add_metrics(db: sqlite3.Connection, metrics: Iterable[str]) -> None:
    """Add a column for each of these metrics to the table of points."""
    # runs of one store may have different metrics; a point has NULL for other runs' metrics
    columns = columns_of(db, "point")
    for name in dict.fromkeys(metrics):
        if name not in columns:
            db.execute(f"ALTER TABLE point ADD COLUMN {quoted(name)} REAL")


def select(db: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query, by column."""
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)
