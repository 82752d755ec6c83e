"""Decimal commas and dates in the cells of a table, as numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.datasets.readers.tables import DATES, TEXTS, DataTable, dates_in, is_number
from bench_core.encoding import COMMA, YEAR_FIRST, date_format, days_of, number_of, with_point
from bench_core.errors import InputError, option

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.datasets.readers.tables import TextArray

EPOCH = "1970-01-01"


def with_decimal_commas(table: DataTable, but: Collection[str] = ()) -> DataTable:
    """Read numbers such as ``1,5`` and ``1.234,50`` in a table's text columns, except columns
    ``but``.

    Raises InputError for a column that also has decimal points.
    """
    frame, before, formats = table.frame.copy(), table.written, dict[str, str]()
    for name in table.names:
        column = table.column(name)
        if name in but or column.kind not in TEXTS or column.kind == "categorical":
            continue
        texts = column.cells()
        numbers = _with_points(texts)
        points = [k for k, t in enumerate(texts) if "." in t and numbers[k] == t and is_number(t)]
        if points and (numbers != texts).any():
            where, comma = table.place(points[0]), int(np.argmax(numbers != texts))
            raise InputError(
                f"{where}, column {name!r}: {texts[points[0]]!r} has a decimal point, but "
                f"{texts[comma]!r} ({table.place(comma)}) would be read as {numbers[comma]}; "
                f"use one decimal mark, or {option('decimal', '.')}"
            )
        formats[name] = "" if points else COMMA
        frame[name] = _read(numbers, typed=before is None, otherwise=frame[name])
    return replace(
        table,
        frame=frame,
        written=None if before is None else lambda name: _with_points(before(name)),
        formats=formats,
    )


def _with_points(texts: TextArray) -> TextArray:
    """Return the cells (n,) with decimal points and without group separators."""
    return np.array([with_point(t) if isinstance(t, str) else t for t in texts], dtype=object)


def _read(texts: TextArray, typed: bool, otherwise: pd.Series[Any]) -> Any:
    """Return cells as numbers if all are numbers. Otherwise a typed column keeps ``otherwise``."""
    import pandas as pd

    filled = texts != ""
    if filled.any() and all(map(is_number, texts[filled])):
        return np.array([float(text or "nan") for text in texts])
    return otherwise if typed else pd.Series([text or None for text in texts], dtype="str")


def with_days(
    table: DataTable, but: Collection[str] = (), texts: bool = True
) -> tuple[DataTable, list[str]]:
    """Read dates as days since ``EPOCH``, with fractions for times, except in columns ``but``.
    Returns the table and a note for each column of dates.

    A column holds dates by its type, or, with ``texts``, if most of its cells are written as dates
    (``encoding.is_date``). Where days and months are numbers, a cell must distinguish them. Raises
    InputError for other cells, and for days that do not exist.
    """
    import pandas as pd

    frame, formats, notes = table.frame.copy(deep=False), dict[str, str](), list[str]()
    for name in table.names:
        column, values, format = table.column(name), table.frame[name], YEAR_FIRST
        if name in but:
            continue
        if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind == "M":
            days = _since(pd.to_datetime(values, utc=True))
        elif column.kind in DATES:
            days = np.array([number_of(cell) for cell in values])
        elif texts and column.kind in TEXTS and (dates := dates_in(cells := column.cells())):
            if not (format := date_format(dates)):
                row = int(np.argmax(cells != ""))
                what = f"{cells[row]!r} is an ambiguous date; write 2024-02-01"
                raise InputError(f"{table.place(row)}, column {name!r}: {what}")
            days = _days(cells, format, table, name)
        else:
            continue
        frame[name], formats[name] = days, format
        notes.append(f"column {name!r} holds dates: read as days since {EPOCH}")
    before = table.written

    def written(name: str) -> TextArray:
        assert before is not None
        cells: Any = frame[name].astype("str") if name in formats else before(name)
        return np.array(cells, dtype=object)

    raw = None if before is None else written
    return replace(table, frame=frame, written=raw, formats={**table.formats, **formats}), notes


def _since(dates: pd.Series[Any]) -> FloatArray:
    """Return times (n,) as days."""
    import pandas as pd

    days = (dates - pd.Timestamp(EPOCH, tz="UTC")) / pd.Timedelta(days=1)
    return np.array(days, dtype=np.float64)


def _days(texts: TextArray, format: str, table: DataTable, name: str) -> FloatArray:
    """Return dates (n,) as days, by pandas where it can read them, which is faster."""
    import pandas as pd

    days = _since(pd.to_datetime(pd.Series(texts), format="ISO8601", utc=True, errors="coerce"))
    days[~np.isin(texts, [*dates_in(texts)])] = np.nan  # other forms of pandas
    days_by_text = {"": np.nan}
    for row in np.flatnonzero(np.isnan(days)).tolist():
        if (text := texts[row]) not in days_by_text:
            try:
                days_by_text[text] = days_of(text, format)
            except ValueError:
                where = f"{table.place(row)}, column {name!r}"
                raise InputError(f"{where}: {text!r} is not a date; correct it") from None
        days[row] = days_by_text[text]
    return days
