"""Tables of a store, generated from the fields of its records.

A field is a column of the same name: text, an integer, a real number, compressed float32, or other
types as JSON text. NaN and None are NULL.

    run           request of a run                            ``RunInfo``
    run_trial     trials of a run, in order
    trial         outcome of each trial                       ``Trial``
    point         a row for each operating point and split    ``OperatingPoint``
    unit_values   values per query or row, by split           ``StoredValues``
    sensor        available sensors: name and price
    fit           outcome of each fit
    attempt       every attempt of a job                      ``Attempt``
"""

from __future__ import annotations

import json
import sqlite3
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from bench_core.results.records import Attempt, OperatingPoint, RunInfo, StoredValues, Trial

APPLICATION = 0x62_6E_63_68  # "bnch" in SQLite's application_id
SCHEMA = 8  # increases with each change of columns; older stores are rejected

_Record = TypeVar("_Record")
_SQL = {str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL", np.ndarray: "BLOB"}


json_value = lru_cache(4096)(json.loads)
"""Value from JSON, cached because trials of a run share values; must not be modified."""


class Column(NamedTuple):
    """A field as a column: name, Python type and metadata."""

    name: str
    kind: Any
    about: Mapping[str, Any]

    @property
    def spread(self) -> bool:
        """True for a mapping whose keys are columns of real numbers."""
        return bool(self.about.get("spread"))

    @property
    def sql(self) -> str:
        """SQL type of the column; JSON is text."""
        return _SQL.get(self.kind, "TEXT")

    def cell(self, value: Any) -> Any:
        """Convert a value to a cell."""
        if self.kind is np.ndarray:
            return zlib.compress(np.asarray(value, "<f4").tobytes(), 1)
        if "to_text" in self.about:
            value = self.about["to_text"](value)
        elif self.kind not in _SQL:
            value = json.dumps(value)
        if isinstance(value, str):  # a file's name may not be UTF-8
            return value.encode("utf-8", "backslashreplace").decode()
        return value

    def value(self, cell: Any) -> Any:
        """Convert a cell to a value; arrays are flat."""
        if "of_text" in self.about:
            return self.about["of_text"](cell)
        if self.kind is np.ndarray:
            return np.frombuffer(zlib.decompress(cell), "<f4").astype(np.float32, copy=False)
        if self.kind is bool:
            return bool(cell)
        if self.kind in _SQL:
            return cell
        found = json_value(cell)
        return tuple(found) if isinstance(found, list) else found


def _columns_of(record: type) -> tuple[Column, ...]:
    """Columns of a record, in the order of its fields."""
    hints = get_type_hints(record)
    return tuple(
        Column(field.name, _kind(hints[field.name]), field.metadata)
        for field in fields(record)
        if field.metadata.get("column", True)
    )


columns_of: Callable[[type], tuple[Column, ...]] = cache(_columns_of)


def _kind(hint: Any) -> Any:
    """Type of an annotation: float for ``float | None``, ndarray for an array."""
    if isinstance(hint, types.UnionType):
        hint = get_args(hint)[0]
    return get_origin(hint) or hint


def _columns(record: type) -> str:
    return ", ".join(f'"{one.name}" {one.sql}' for one in columns_of(record) if not one.spread)


# points are clustered by trial, as reports read all points of a trial together
TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
CREATE TABLE run ({_columns(RunInfo)}, PRIMARY KEY (run));
CREATE TABLE run_trial (
  run TEXT, position INTEGER, trial TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID;
CREATE TABLE trial ({_columns(Trial)}, PRIMARY KEY (key));
CREATE TABLE point (
  trial TEXT, {_columns(OperatingPoint)}, PRIMARY KEY (trial, split, number)) WITHOUT ROWID;
CREATE TABLE unit_values (
  trial TEXT, {_columns(StoredValues)}, PRIMARY KEY (trial, split));
CREATE TABLE sensor (
  list TEXT, number INTEGER, name TEXT, price REAL, PRIMARY KEY (list, number)) WITHOUT ROWID;
CREATE TABLE fit (key TEXT PRIMARY KEY, status TEXT, seconds REAL, peak_rss_mb REAL);
CREATE TABLE attempt ({_columns(Attempt)});
"""

OF_TRIAL = ("point", "unit_values")
"""Tables whose rows belong to a trial and contain its key."""


def quoted(name: str) -> str:
    """Quote a column's name for SQL: names of metrics contain symbols."""
    return '"' + name.replace('"', '""') + '"'


def row_of(record: Any) -> dict[str, Any]:
    """Convert a record to cells by column."""
    row: dict[str, Any] = {}
    for column in columns_of(type(record)):
        value = getattr(record, column.name)
        if column.spread:
            row |= {name: float(number) for name, number in value.items()}
        else:
            row[column.name] = column.cell(value)
    return row


def record_of(record: type[_Record], row: Mapping[str, Any], **more: Any) -> _Record:
    """Create a record from a row and the fields in ``more``, which must include spread fields."""
    made = {c.name: c.value(row[c.name]) for c in columns_of(record) if c.name not in more}
    return record(**made, **more)


def put(db: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """Insert a row, or replace the row with the same key."""
    names, marks = ", ".join(map(quoted, row)), ", ".join("?" * len(row))
    db.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", [*row.values()])


def names_of(db: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """Names of a table's columns."""
    return [row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")]


def add_metrics(db: sqlite3.Connection, metrics: Sequence[str]) -> None:
    """Add a column for each of these metrics to the table of points."""
    # runs of one store may have different metrics; a point has NULL for other runs' metrics
    known = names_of(db, "point") if metrics else ()
    for name in dict.fromkeys(metrics):
        if name not in known:
            db.execute(f"ALTER TABLE point ADD COLUMN {quoted(name)} REAL")


def select(db: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query, by column."""
    cursor = db.execute(query, values)
    names = [about[0] for about in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)
