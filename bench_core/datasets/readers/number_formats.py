"""Decimal commas and dates in the cells of a table, as numbers."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.datasets.readers.tables import DATES, TEXTS, DataTable, are_dates, is_number
from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.datasets.readers.tables import TextArray

_SPACES = "\u00a0\u202f '"  # group separators, besides the points of 1.234,50
COMMA = re.compile(rf"[+-]?(\d{{1,3}}([.{_SPACES}]\d{{3}})+|\d+)(,\d+)?([eE][+-]?\d+)?")
"""A number with a decimal comma, or with digits in groups."""

_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
_FIRST_YEAR = re.compile(rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}{_TIME}")
_FIRST_DAY = re.compile(r"(\d{1,2})([./])(\d{1,2})[./]\d{4}")
EPOCH = "1970-01-01"


def with_decimal_commas(table: DataTable, but: Collection[str] = ()) -> DataTable:
    """Read numbers such as ``1,5`` and ``1.234,50`` in a table's text columns, except columns
    ``but``.

    Raises InputError for a column that also has decimal points.
    """
    frame, before = table.frame.copy(), table.written
    for name in table.names:
        column = table.column(name)
        if name in but or column.kind not in TEXTS or column.kind == "categorical":
            continue
        texts = column.cells()
        made = _with_points(texts)
        if (made != texts).any():
            for row, text in enumerate(texts):
                if "." in text and made[row] == text and is_number(text):
                    where = f"{table.place(row)}, column {name!r}"
                    raise InputError(
                        f"{where}: {text!r} has a decimal point, other cells have commas; "
                        "use one decimal mark"
                    )
        frame[name] = _read(made, typed=before is None, otherwise=frame[name])
    return replace(
        table,
        frame=frame,
        written=None if before is None else lambda name: _with_points(before(name)),
    )


def _with_points(texts: TextArray) -> TextArray:
    """Return the cells (n,) with decimal points and without group separators."""
    table = str.maketrans({",": ".", **dict.fromkeys(f".{_SPACES}")})
    return np.array(
        [str(t).strip().translate(table) if COMMA.fullmatch(str(t).strip()) else t for t in texts],
        dtype=object,
    )


def _read(texts: TextArray, typed: bool, otherwise: pd.Series[Any]) -> Any:
    """Return cells as numbers if all are numbers. Otherwise a typed column keeps ``otherwise``."""
    import pandas as pd

    filled = texts != ""
    if filled.any() and all(map(is_number, texts[filled])):
        return np.array([float(text or "nan") for text in texts])
    return otherwise if typed else pd.Series([text or None for text in texts], dtype="str")


def with_days(table: DataTable, but: Collection[str]) -> tuple[DataTable, list[str]]:
    """Read dates as days since ``EPOCH``, with fractions for times, except in columns ``but``.
    Returns the table and a note for each column of dates.

    A column holds dates by its type, or if all its cells are written as ``2024-02-01`` (a time may
    follow), ``1.2.2024`` or ``1/2/2024``. For the last form, a cell must distinguish day and month.
    Raises InputError for days that do not exist.
    """
    import pandas as pd

    frame, made, notes = table.frame.copy(), set[str](), list[str]()
    for name in table.names:
        column, values = table.column(name), table.frame[name]
        if name in but:
            continue
        if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind == "M":
            dates = pd.to_datetime(values, utc=True)
        elif column.kind in DATES:
            dates = pd.to_datetime(values.astype("str").where(values.notna()), utc=True)
        elif column.kind in TEXTS and are_dates(cells := column.cells()):
            dates = _dates(cells, table, name)
        else:
            continue
        days = (dates - pd.Timestamp(EPOCH, tz="UTC")) / pd.Timedelta(days=1)
        frame[name] = days.to_numpy(dtype=np.float64)
        made.add(name)
        notes.append(f"column {name!r} holds dates: read as days since {EPOCH}")
    before = table.written

    def written(name: str) -> TextArray:
        assert before is not None
        cells: Any = frame[name].astype("str") if name in made else before(name)
        return np.array(cells, dtype=object)

    return replace(table, frame=frame, written=None if before is None else written), notes


def _form(cells: Collection[str]) -> str | None:
    """Return the date format of all cells, None if there is none."""
    if all(map(_FIRST_YEAR.fullmatch, cells)):
        return "ISO8601"
    found = [match for match in map(_FIRST_DAY.fullmatch, cells) if match is not None]
    marks = {match[2] for match in found}
    if len(found) < len(cells) or len(marks) > 1:
        return None
    if marks == {"."}:
        return "%d.%m.%Y"
    first, second = (max(int(match[k]) for match in found) for k in (1, 3))
    if (first > 12) == (second > 12):
        return None
    return "%d/%m/%Y" if first > 12 else "%m/%d/%Y"


def _dates(texts: TextArray, table: DataTable, name: str) -> pd.Series[Any]:
    import pandas as pd

    if (form := _form(dict.fromkeys(filter(None, texts)))) is None:
        row = int(np.argmax(texts != ""))
        what = f"{texts[row]!r} is an ambiguous date; write 2024-02-01"
        raise InputError(f"{table.place(row)}, column {name!r}: {what}")
    cells = pd.Series([text or None for text in texts], dtype="object")
    dates = pd.to_datetime(cells, format=form, utc=True, errors="coerce")
    wrong = (dates.isna() & cells.notna()).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f"{table.place(row)}, column {name!r}"
        raise InputError(f"{where}: {texts[row]!r} is not a date; correct it")
    return dates
