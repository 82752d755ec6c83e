"""Tables: CSV with a header line, Parquet, and the bare number files of older publishers.

Missing cells (empty, ``NA``, ``nan``, ``?``) are NaN. Columns of text are refused where numbers are
wanted. Line numbers count lines as an editor does, provided no quoted cell holds a line break.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import read_bytes, read_text
from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_core.errors import InputError, option

if TYPE_CHECKING:
    import pandas as pd

# Python's strings, "" for a missing cell.
TextArray = NDArray[np.object_]

# words of pandas.api.types.infer_dtype
NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
TEXTS = ("string", "mixed-integer", "categorical")
# A column of more different texts is no category, nor one where fewer than two rows share a text,
# unless there are at most so few.
MOST_TEXTS, FEW_TEXTS = 100, 12
SHOWN = 20  # columns whose fault is in one message
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


@dataclass(frozen=True, slots=True, eq=False)
class DataColumn:
    """A column of a table, or a list of labels, ids or splits (``name`` "" then).

    ``source`` is the table in messages, ``place`` turns a row number into "FILE, line N".
    ``typed``: cells have types, so text stays text even if it reads as a number.
    """

    values: pd.Series[Any]  # (n,)
    name: str
    source: str
    place: Callable[[int], str]
    typed: bool = True

    @property
    def kind(self) -> str:
        """The kind of its cells: one of ``NUMBERS``, of ``TEXTS``, or of what cannot be used."""
        import pandas as pd

        if isinstance(self.values.dtype, pd.CategoricalDtype):
            return "categorical"
        kind = str(pd.api.types.infer_dtype(self.values, skipna=True))
        untyped = not self.typed and getattr(self.values.dtype, "kind", "") not in "biuf"
        return "string" if untyped else kind

    @property
    def is_text(self) -> bool:
        """Whether the cells are text; of an untyped column, whether most are no numbers."""
        if self.kind in NUMBERS:
            return False
        return self.typed or bool(_numeric(self._cells()).sum() * 2 < len(self.values))

    def numbers(self, dtype: Any = np.float64, missing: bool = True) -> Any:
        """The cells (n,) as numbers.

        Raises InputError for text, for infinite values and, unless ``missing``, for empty cells.
        """
        if self.kind not in NUMBERS:
            raise self._no_numbers()
        with np.errstate(over="ignore"):
            values = self.values.to_numpy(dtype=np.float64, na_value=np.nan).astype(dtype)
        wrong = np.isinf(values) if missing else ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            what = "missing" if np.isnan(values[row]) else "infinite, or too large for float32"
            raise InputError(f"{self._at(row)}: the value is {what}; correct it")
        return values

    def texts(self) -> TextArray:
        """The cells (n,) as text. Raises InputError where one is empty."""
        texts = self._cells()
        if (texts == "").any():
            row = int(np.argmax(texts == ""))
            raise InputError(f"{self._at(row)}: the cell is empty; fill it in")
        return texts

    def labels(self) -> NDArray[Any]:
        """The cells (n,) as float64 or as text, none of them missing."""
        return self.texts() if self.is_text else np.asarray(self.numbers(missing=False))

    def categories(self) -> TextArray:
        """The cells (n,) as few short texts, "" where one is missing.

        Raises InputError for dates, for numbers written as text, and for what is too different
        from row to row to be categories.
        """
        texts = self._cells()
        counts = different_texts(texts)
        numbers = self.kind != "categorical" and _numeric(texts, commas=True).sum()
        if numbers * 2 > (texts != "").sum():
            raise self._no_numbers()
        first, what = next(iter(counts), ""), ""
        if counts and all(map(_DATE.match, counts)):
            what = f"dates ({first!r}): give them as numbers, such as days"
        elif len(counts) > MOST_TEXTS or len(counts) * 2 > max(len(texts), 2 * FEW_TEXTS):
            what = f"{len(counts)} different texts, as {first!r:.40}: too many for categories"
        if what:
            raise InputError(f"{self._whole} holds {what}")
        return texts

    def _cells(self) -> TextArray:
        """The cells (n,) as text, "" where one is missing."""
        if self.kind not in (*NUMBERS, *TEXTS):
            raise InputError(
                f"{self._whole} holds values of type {self.kind}: give numbers, text or categories"
            )
        texts = self.values.astype("str").to_numpy(dtype=object)
        return np.where(self.values.isna().to_numpy(bool), "", texts)

    @property
    def _whole(self) -> str:
        return f"{self.source}, column {self.name!r}" if self.name else self.source

    def _at(self, row: int) -> str:
        return f"{self.place(row)}, column {self.name!r}" if self.name else self.place(row)

    def _no_numbers(self) -> InputError:
        """Why the column holds no numbers."""
        texts = self._cells()
        wrong = ~_numeric(texts) & (texts != "")
        row = int(np.argmax(wrong))
        if not wrong.any():
            what = f"numbers as text ({texts[row]!r:.60}): pandas.to_numeric reads them"
            return InputError(f"{self._whole} holds {what}")
        remedy = "correct it, encode the column as numbers, or remove it"
        if _numeric(texts[row : row + 1], commas=True).any():
            remedy = "write decimal points instead of commas, and nothing between thousands"
        return InputError(f"{self._at(row)} holds text ({texts[row]!r:.60}): {remedy}")


def different_texts(texts: TextArray) -> dict[str, int]:
    """How often each text occurs, the most frequent first, without the missing ones."""
    return dict(Counter(sorted(text for text in texts if text)).most_common())


def _numeric(texts: TextArray, commas: bool = False) -> BoolArray:
    """Which cells (n,) read as numbers; ``commas``: also those with a decimal comma."""
    import pandas as pd

    cells = pd.Series(texts, dtype="str")
    cells = cells.str.replace(",", ".", n=1) if commas else cells
    return np.asarray(pd.to_numeric(cells, errors="coerce").notna(), dtype=bool)


def is_number(text: str) -> bool:
    """Whether a cell is a number with a decimal point, or a whole one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """Columns by name. ``path`` is a file, or the name of an argument of Python."""

    path: Path
    frame: pd.DataFrame  # (n, columns)
    place: Callable[[int], str]
    typed: bool = True
    # The remedy that leaves out columns.
    drop: Callable[[Sequence[str]], str] = lambda names: option("drop", ",".join(names))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in file order."""
        return tuple(str(name) for name in self.frame.columns)

    def column(self, name: str) -> DataColumn:
        """One column."""
        return DataColumn(self.frame[name], name, str(self.path), self.place, self.typed)

    def numbers(self, name: str, dtype: Any = np.float64, missing: bool = True) -> Any:
        """One column (n,) as numbers. Raises InputError as ``DataColumn.numbers``."""
        return self.column(name).numbers(dtype, missing)

    def codes(self, name: str, known: Collection[float]) -> FloatArray:
        """A publisher's column (n,) of labels. Raises InputError for one that is not known."""
        values: FloatArray = self.numbers(name, missing=False)
        for row in np.flatnonzero(~np.isin(values, [*known])).tolist():
            raise InputError(
                f"{self.place(row)}: label {values[row]:g} is not one of {[*known]}; "
                "get the file again"
            )
        return values

    def matrix(self, names: Sequence[str]) -> Float32Array:
        """Several columns as float32 (n, d). Raises InputError for one that is not there."""
        if lost := [name for name in names if name not in self.names]:
            raise InputError(f"{self.path}, line 1: no column {lost[0]!r}; get the file again")
        return np.column_stack([self.numbers(name, np.float32) for name in names])

    def features(self, names: Sequence[str]) -> pd.DataFrame:
        """Several columns as float32, or as text where they hold text.

        Raises InputError naming all columns that cannot be used, and why of the first ``SHOWN``.
        """
        import pandas as pd

        made: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name in names:
            column = self.column(name)
            try:
                made[name] = column.categories() if column.is_text else column.numbers(np.float32)
            except InputError as error:
                faults[name] = str(error)
        if faults:
            first, *others = [*faults.values()][:SHOWN]
            others = [other.removeprefix(f"{self.path}, ") for other in others]
            others += [f"{len(faults) - SHOWN} more columns"] if len(faults) > SHOWN else []
            all_faults = "; ".join([first, *others])
            raise InputError(f"{all_faults}; or leave them out: {self.drop([*faults])}")
        return pd.DataFrame(made)


def read_table(path: str | Path, format: str = "") -> DataTable:
    """A CSV file with a header (separator comma, semicolon or tab), or a Parquet file.

    ``format`` ("csv", "parquet") or else the suffix decides. A CSV file takes up to 20 times its
    size in memory, and 2 KiB for each column.
    """
    path = Path(path)
    if format == "parquet" or (not format and path.suffix.lower() in (".parquet", ".pq")):
        frame = _parquet(path)
        _refuse_header(path, list(frame.columns))
        return DataTable(path, frame, lambda row: f"{path}, row {row + 1}")
    raw = _unix_lines(path)
    line = next(line for line in raw.split(b"\n") if line.strip(b" \t"))
    first = line.decode("utf-8-sig", "replace")
    separator = max(",;\t", key=first.count)
    try:
        names = next(csv.reader([first], delimiter=separator, strict=True))
    except csv.Error as error:
        raise InputError(f"{path}, line 1: not a header ({error}); save it as CSV again") from error
    names = [cell.strip() for cell in names]
    _refuse_header(path, names)
    frame = _csv(path, raw, sep=separator, header=0)
    if not len(frame):
        raise InputError(f"{path}: no rows below the header; get the file again or name another")
    if frame.shape[1] != len(names):
        raise InputError(f"{path}, line 1: not the header of what is below; save it as CSV again")
    frame.columns = names
    if b'"' not in raw:  # the reader fills rows up; in quotes a separator is no end of a cell
        for number, line in enumerate(BytesIO(raw), start=1):
            cells = line.count(separator.encode()) + 1
            if cells < len(names) and line.strip(b" \t\n"):
                raise InputError(
                    f"{path}, line {number}: {cells} cells where the header has "
                    f"{len(names)}; complete the line"
                )
    return DataTable(path, frame, _lines_of_rows(path, raw, 1, separator), typed=False)


def read_matrix(
    path: str | Path,
    columns: int,
    *,
    rows: int = 0,
    skip: int = 0,
    separator: str = ",",
    text: Sequence[int] = (),
    missing: bool = False,
) -> DataTable:
    """A publisher's file of ``columns`` cells a line without a header, columns named "1", "2", ...

    ``rows``: how many there are, where that is known; the first ``skip`` lines are none.
    ``separator`` "" means white space. The columns in ``text`` (from 0) may hold text,
    and with ``missing`` cells may be missing. Raises InputError where the file is another.
    """
    path = Path(path)
    raw = _unix_lines(path)
    frame = _csv(path, raw, sep=separator or r"\s+", header=None, skiprows=skip)
    shapes = ((frame.shape[1], columns, "cells a line"), (len(frame), rows or len(frame), "rows"))
    for found, wanted, what in shapes:
        if found != wanted:
            raise InputError(
                f"{path}: {found} {what} where the publisher's file has {wanted}; "
                "get the file again"
            )
    frame.columns = [str(j + 1) for j in range(columns)]
    table = DataTable(path, frame, _lines_of_rows(path, raw, skip, ","), typed=False)
    for j, name in enumerate(table.names):
        if j not in text and not missing and bool(frame[name].isna().any()):
            table.numbers(name, missing=False)
    return table


def _parquet(path: Path) -> pd.DataFrame:
    """The columns of a file, without those that pandas kept an index in."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the name")
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; pip install 'budget-bench[parquet]'"
        ) from error
    try:
        found = pq.ParquetFile(path).read()
        for field in found.schema:
            if pa.types.is_nested(field.type):
                raise InputError(
                    f"{path}, column {field.name!r} holds {field.type}, not one value for each "
                    "row; write the file without it"
                )
        frame: pd.DataFrame = found.to_pandas(ignore_metadata=True)
        # pandas writes an index that is no range as a column, and says so in its notes
        index = (found.schema.pandas_metadata or {}).get("index_columns", [])
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0][:200]
        raise InputError(f"{path}: not a Parquet file ({reason}); get the file again") from error
    if not len(frame):
        raise InputError(f"{path}: the file is empty; get it again or name another")
    frame.columns = [str(name) for name in frame.columns]
    return frame[[name for name in frame.columns if name not in index]]


def _unix_lines(path: Path) -> bytes:
    """Content with bare carriage returns, as old spreadsheets end lines, replaced."""
    return read_bytes(path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _lines_of_rows(path: Path, raw: bytes, header: int, separator: str) -> Callable[[int], str]:
    """The function from a row (from 0) to its file and line."""

    @cache
    def lines() -> list[int]:
        mark = separator.encode()
        numbered = enumerate(raw.split(b"\n"), start=1)
        return [number for number, line in numbered if line.strip() or mark in line][header:]

    return lambda row: f"{path}, line {lines()[row]}" if row < len(lines()) else str(path)


def exact_floats() -> dict[str, str]:
    """The option by which pandas rounds to the nearest number; newer ones do, and refuse it."""
    import pandas as pd

    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _csv(path: Path, raw: bytes, **options: Any) -> pd.DataFrame:
    import pandas as pd

    try:
        with warnings.catch_warnings():  # a line of more cells than the header would lose them
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                BytesIO(raw),
                encoding="utf-8-sig",
                na_values=["?"],
                low_memory=False,
                index_col=False,
                **exact_floats(),
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
