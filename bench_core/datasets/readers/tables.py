"""Tables: CSV with a header line, Parquet, and the bare number files of older publishers.

Missing cells (empty, ``NA``, ``nan``, ``?``) are NaN. Columns of text are refused where numbers are
wanted. Line numbers count lines as an editor does, provided no quoted cell holds a line break.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.text import read_bytes, read_text
from bench_core.arrays import Float32Array
from bench_core.datasets.readers.parquet import read_parquet
from bench_core.datasets.readers.texts import (
    TextArray,
    cells,
    has_decimal_commas,
    is_decimal_comma,
    is_number,
    no_categories,
    number_shares,
    refuse_long,
)
from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("?",)
NUMBERS = "biuf"  # kinds of column types
SHOWN = 20


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A file's columns by name; ``raw`` is its text, empty for Parquet."""

    path: Path
    frame: pd.DataFrame
    raw: bytes = b""
    header: int = 1
    separator: str = ","
    _lines: list[int] = field(default_factory=list)  # of rows, once one was asked for

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in file order."""
        return tuple(str(name) for name in self.frame.columns)

    def place(self, row: int) -> str:
        """The file and line of a row (from 0)."""
        if not self.raw:
            return f"{self.path}, row {row + 1}"
        if not self._lines:
            lines, mark = enumerate(self.raw.split(b"\n"), start=1), self.separator.encode()
            rows = (number for number, line in lines if line.strip() or mark in line)
            self._lines.extend(rows)
        at = row + self.header
        return f"{self.path}, line {self._lines[at]}" if at < len(self._lines) else str(self.path)

    def numbers(self, name: str, dtype: Any = np.float64, missing: bool = True) -> Any:
        """One column (n,) as numbers.

        Raises InputError for text, for infinite values and, unless ``missing``, for empty cells.
        """
        column = self.frame[name]
        if column.dtype.kind not in NUMBERS:
            self._refuse_text(name, column)
        with np.errstate(over="ignore"):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan).astype(dtype)
        wrong = np.isinf(values) if missing else ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "missing" if np.isnan(values[row]) else "infinite"
            raise InputError(f"{self.place(row)}, column {name!r}: the value is {what}; correct it")
        return values

    def is_text(self, name: str) -> bool:
        """Whether a column holds text; false where most of its cells are numbers."""
        column = self.frame[name]
        if column.dtype.kind in NUMBERS:
            return False
        numbers, _ = number_shares(column)
        return bool(numbers.sum() * 2 < len(column))

    def texts(self, name: str) -> TextArray:
        """One column (n,) as text. Raises InputError for cells that are empty or too long."""
        column = self.frame[name]
        missing = column.isna().to_numpy(bool)
        if missing.any():
            row = int(np.argmax(missing))
            raise InputError(f"{self.place(row)}, column {name!r}: the cell is empty; fill it in")
        texts = cells(column)
        refuse_long(texts, self.place, name)
        return texts

    def _refuse_text(self, name: str, column: pd.Series[Any]) -> None:
        raise InputError(self._text_fault(name, column))

    def _text_fault(self, name: str, column: pd.Series[Any]) -> str:
        _, wrong = number_shares(column)
        row = int(np.argmax(wrong))
        kind = "holds text" if wrong.sum() * 2 > len(column) else "has a cell that is no number"
        cell = str(column.iloc[row])
        remedy = "correct it, encode the column as numbers, or remove it"
        if is_decimal_comma(cell):
            remedy = "write decimal points instead of commas, and nothing between thousands"
        return f"{self.place(row)}, column {name!r} {kind} ({cell!r:.60}): {remedy}"

    def categories(self, name: str) -> TextArray:
        """A column of text (n,) whose cells are few short texts, "" where one is missing.

        Raises InputError for dates, for numbers with decimal commas, for cells that are too long,
        and for what is too different from row to row to be categories.
        """
        column = self.frame[name]
        texts = cells(column)
        if has_decimal_commas(texts):
            self._refuse_text(name, column)
        if what := no_categories(texts):
            raise InputError(f"{self.path}, column {name!r} holds {what}")
        refuse_long(texts, self.place, name)
        return texts

    def features(self, names: Sequence[str]) -> tuple[Float32Array, dict[str, TextArray]]:
        """Several columns as float32 (n, d), NaN in those of text, and these by name.

        Raises InputError naming all columns that cannot be used, and why of the first ``SHOWN``.
        """
        out = np.full((len(self), len(names)), np.nan, dtype=np.float32)
        texts: dict[str, TextArray] = {}
        faults: dict[str, str] = {}
        for j, name in enumerate(names):
            try:
                if self.is_text(name):
                    texts[name] = self.categories(name)
                else:
                    out[:, j] = self.numbers(name, np.float32)
            except InputError as error:
                faults[name] = str(error)
        if faults:
            first, *others = islice(faults.values(), SHOWN)
            more = "".join(f"; {other.removeprefix(f'{self.path}, ')}" for other in others)
            more += f"; {len(faults) - SHOWN} more columns" if len(faults) > SHOWN else ""
            drop = ",".join(faults)
            raise InputError(f"{first}{more}; or leave them out: --drop {drop}")
        return out, texts

    def matrix(self, names: Sequence[str]) -> Float32Array:
        """Several columns as float32 (n, d)."""
        out = np.empty((len(self), len(names)), dtype=np.float32)
        for j, name in enumerate(names):
            out[:, j] = self.numbers(name, np.float32)
        return out


def read_table(path: str | Path, format: str = "") -> Table:
    """A CSV file with a header (separator comma, semicolon or tab), or a Parquet file.

    ``format`` ("csv", "parquet") or else the suffix decides. A CSV file takes up to 20 times its
    size in memory, and 2 KiB for each column.
    """
    path = Path(path)
    if format == "parquet" or (not format and path.suffix.lower() in (".parquet", ".pq")):
        frame = read_parquet(path)
        _refuse_header(path, list(frame.columns))
        return Table(path, frame)
    raw = _unix_lines(read_bytes(path))
    blank = re.match(rb"(?:[ \t]*\n|\xef\xbb\xbf)*", raw)
    above = blank.group() if blank else b""  # lines without a cell, and marks of UTF-8
    empty = above.count(b"\n")
    if len(above) > empty:  # pandas takes a line of tabs for the header where tabs separate cells
        raw = b"\n" * empty + raw[len(above) :]
    line = next(islice(BytesIO(raw), empty, None), b"")
    first = line.rstrip(b"\n").decode("utf-8", "replace")
    separator = max(",;\t", key=first.count)
    try:
        names = next(csv.reader([first], delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}, line 1: not a header ({error}); save it as CSV again") from error
    names = [cell.strip() for cell in names]
    _refuse_header(path, names)
    frame = _parse(path, raw, sep=separator, header=0)
    if not len(frame):
        raise InputError(f"{path}: no rows below the header; get the file again or name another")
    if frame.shape[1] != len(names):
        raise InputError(f"{path}, line 1: not the header of what is below; save it as CSV again")
    frame.columns = names
    table = Table(path, frame, raw, separator=separator)
    _refuse_short_rows(table, separator, len(names))
    return table


def read_matrix(
    path: str | Path,
    columns: int,
    *,
    separator: str = ",",
    text: Sequence[int] = (),
    missing: bool = False,
) -> Table:
    """A file of ``columns`` cells a line without a header; columns are named "1", "2", ...

    ``separator`` "" means white space. The columns in ``text`` (from 0) may hold text,
    and with ``missing`` cells may be missing.
    """
    path = Path(path)
    raw = _unix_lines(read_bytes(path))
    frame = _parse(path, raw, sep=separator or r"\s+", header=None)
    if frame.shape[1] != columns:
        raise InputError(
            f"{path}: {frame.shape[1]} cells a line where the publisher's file has {columns}; "
            "get the file again"
        )
    frame.columns = [str(j + 1) for j in range(columns)]
    table = Table(path, frame, raw, header=0)
    for j, name in enumerate(table.names):
        if j not in text and not missing and bool(frame[name].isna().any()):
            table.numbers(name, missing=False)
    return table


def _unix_lines(raw: bytes) -> bytes:
    """Content with bare carriage returns, as old spreadsheets end lines, replaced."""
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw


def _parse(path: Path, raw: bytes, **options: Any) -> pd.DataFrame:
    import pandas as pd

    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    if (major, minor) < (3, 1):  # newer ones round to the nearest number, and refuse the request
        options["float_precision"] = "round_trip"
    try:
        with warnings.catch_warnings():  # a line of more cells than the header would lose them
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                BytesIO(raw),
                encoding="utf-8-sig",
                na_values=list(MISSING),
                low_memory=False,
                index_col=False,
                **options,
            )
    except UnicodeDecodeError:
        read_text(path)  # refuses it with the line; the table reader counts from inside the file
        raise
    except (ValueError, pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split())
        raise InputError(f"{path}: not a table ({reason}); correct the file") from error


def _refuse_header(path: Path, names: list[str]) -> None:
    if all(is_number(name) for name in names):
        raise InputError(f"{path}, line 1: no header; begin the file with a line of column names")
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if not name:
            raise InputError(f"{path}, line 1: column {position} has no name; give it one")
        if name in seen:
            raise InputError(f"{path}, line 1: two columns are called {name!r}; rename one")
        seen.add(name)


def _refuse_short_rows(table: Table, separator: str, columns: int) -> None:
    if b'"' in table.raw or columns == 1:
        return  # counting separators needs a full parse then; the reader filled with missing
    raw = np.frombuffer(table.raw, dtype=np.uint8)
    ends = np.flatnonzero(raw == ord("\n"))
    ends = ends if len(ends) and ends[-1] == len(raw) - 1 else np.append(ends, len(raw))
    cells = np.flatnonzero(raw == ord(separator))
    per_line = np.diff(np.searchsorted(cells, ends), prepend=0) + 1
    for line in np.flatnonzero(per_line < columns):
        start = ends[line - 1] + 1 if line else 0
        if table.raw[start : ends[line]].strip(b" \t"):  # other lines are rows to the reader
            raise InputError(
                f"{table.path}, line {line + 1}: {per_line[line]} cells where the header has "
                f"{columns}; complete the line"
            )
