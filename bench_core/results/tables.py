"""Tables of a store, generated from the fields of its records.

A field is a column of the same name: text, an integer, a real number, compressed float32, or JSON
in text for what is none of these. NaN and None are NULL.

    run           what was asked for                          ``RunInfo``
    run_trial     which trials a run has, in order
    trial         how each trial ended                        ``Trial``
    point         a row for each operating point and split    ``OperatingPoint``
    unit_values   values per query or row, by split           ``StoredValues``
    sensor        what could be bought: name and price
    fit           how each fit ended
    attempt       every attempt of a job                      ``Attempt``
"""

from __future__ import annotations

import json
import sqlite3
import types
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from bench_core.arrays import Float32Array
from bench_core.results.records import (
    Attempt,
    OperatingPoint,
    RunInfo,
    StoredValues,
    Trial,
)

APPLICATION = 0x62_6E_63_68  # "bnch" in SQLite's application_id
SCHEMA = 8  # rises with each change of columns: older stores are refused, never converted

_Record = TypeVar("_Record")
_SQL = {str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL", np.ndarray: "BLOB"}
_WORTH = 0.75  # float32 noise shrinks by a tenth: not worth the time to unpack it


class Column(NamedTuple):
    """A field as a column: its name, type in Python and metadata. ``spread``: each key of its
    mapping is a column of real numbers."""

    name: str
    kind: Any
    spread: bool
    frame: bool
    to_text: Any
    of_text: Any

    @property
    def sql(self) -> str:
        """The column's type in SQL; JSON is text."""
        return _SQL.get(self.kind, "TEXT")

    def cell(self, value: Any) -> Any:
        """The cell that stands for a value."""
        if self.to_text:
            value = self.to_text(value)
        elif self.kind is np.ndarray:
            return _packed(value)
        elif self.kind not in _SQL:
            value = json.dumps(value)
        if isinstance(value, str):  # a file's name may be no UTF-8
            return value.encode("utf-8", "backslashreplace").decode()
        return value

    def value(self, cell: Any) -> Any:
        """The value that a cell stands for; arrays are flat."""
        if self.of_text:
            return self.of_text(cell)
        if self.kind is np.ndarray:
            return np.frombuffer(zlib.decompress(cell), "<f4").astype(np.float32, copy=False)
        if self.kind is bool:
            return bool(cell)
        if self.kind not in _SQL:
            found = json.loads(cell)
            return tuple(found) if isinstance(found, list) else found
        return cell


def _packed(values: Float32Array) -> bytes:
    """Values as zlib's stream of little-endian float32. What hardly shrinks is framed as it is,
    which is read ten times as fast."""
    raw = np.asarray(values, "<f4").tobytes()
    packed = zlib.compress(raw, 6)
    return packed if len(packed) < _WORTH * len(raw) else zlib.compress(raw, 0)


_known: dict[type, tuple[Column, ...]] = {}


def columns_of(record: type) -> tuple[Column, ...]:
    """The columns of a record, in the order of its fields."""
    if record not in _known:
        hints = get_type_hints(record)
        _known[record] = tuple(
            Column(
                field.name,
                _kind(hints[field.name]),
                bool(field.metadata.get("spread")),
                bool(field.metadata.get("frame", True)),
                field.metadata.get("to_text"),
                field.metadata.get("of_text"),
            )
            for field in fields(record)
            if field.metadata.get("column", True)
        )
    return _known[record]


def _kind(hint: Any) -> Any:
    """The type behind an annotation: that of ``float | None`` is float, of an array ndarray."""
    if isinstance(hint, types.UnionType) or get_origin(hint) is Union:
        (hint,) = {*get_args(hint)} - {type(None)}
    return get_origin(hint) or hint


def table(name: str, record: type, key: str, *before: str) -> str:
    """The statement that makes the table of a record, with columns ``before`` those of its fields
    and a primary ``key``, if any."""
    named = [f'"{one.name}" {one.sql}' for one in columns_of(record) if not one.spread]
    listed = ", ".join([*before, *named, *([f"PRIMARY KEY ({key})"] if key else [])])
    return f"CREATE TABLE {name} ({listed})"


# points are clustered by trial, since reports read all points of a trial together
TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
{table("run", RunInfo, "run")};
CREATE TABLE run_trial (
  run TEXT, position INTEGER, trial TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID;
{table("trial", Trial, "key")};
{table("point", OperatingPoint, "trial, split, number", "trial TEXT")} WITHOUT ROWID;
{table("unit_values", StoredValues, "trial, split", "trial TEXT")};
CREATE TABLE sensor (
  list TEXT, number INTEGER, name TEXT, price REAL, PRIMARY KEY (list, number)) WITHOUT ROWID;
CREATE TABLE fit (key TEXT PRIMARY KEY, status TEXT, seconds REAL, peak_rss_mb REAL);
{table("attempt", Attempt, "")};
"""

OF_TRIAL = ("point", "unit_values")
"""Tables whose rows belong to a trial, and are named by it."""


def quoted(name: str) -> str:
    """A column's name in SQL: metrics have signs in theirs."""
    return '"' + name.replace('"', '""') + '"'


def row_of(record: Any) -> dict[str, Any]:
    """The cells of a record by column."""
    row: dict[str, Any] = {}
    for column in columns_of(type(record)):
        value = getattr(record, column.name)
        if column.spread:
            row |= {name: float(number) for name, number in value.items()}
        else:
            row[column.name] = column.cell(value)
    return row


def record_of(record: type[_Record], row: Mapping[str, Any], **more: Any) -> _Record:
    """The record of a row, with fields that have no column; numbers that were NaN are NaN.

    A column of the row that no field has belongs to what is spread.
    """
    known = {column.name for column in columns_of(record)}
    made = {}
    for column in columns_of(record):
        if column.spread:
            others = {k: v for k, v in row.items() if k not in known and k != "trial"}
            made[column.name] = {k: np.nan if v is None else v for k, v in others.items()}
        else:
            made[column.name] = column.value(row[column.name])
    return record(**made, **more)


def put(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert one row, or replace the one of the same key."""
    names, marks = ", ".join(map(quoted, row)), ", ".join("?" * len(row))
    db.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", [*row.values()])


def names_of(db: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """The columns that a table has."""
    return [row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")]


def add_metrics(db: sqlite3.Connection, metrics: Sequence[str]) -> None:
    """Give the table of points a column for each of these metrics."""
    # runs of one store may have different metrics; a point has NULL for those of other runs
    known = names_of(db, "point") if metrics else ()
    for name in dict.fromkeys(metrics):
        if name not in known:
            db.execute(f"ALTER TABLE point ADD COLUMN {quoted(name)} REAL")


def select(db: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """The rows of a query, by column."""
    cursor = db.execute(query, values)
    names = [about[0] for about in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))
