"""Tables: CSV with a header, Parquet, and the bare number files of older publishers.

Lines above a header that begin with ``#`` are comments. Missing cells (empty, ``NA``, ``nan``,
``?``) are NaN. A column of text is an error if numbers are expected. All rows have as many cells as
the header. Columns without name and cells, as after a separator at the end of each line, are left
out. Line numbers match an editor's.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import opened, read_beginning, read_text
from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_core.encoding import MISSING, NONE, TRUTH, is_date, number_of, with_point
from bench_core.errors import InputError, check_memory, option

if TYPE_CHECKING:
    import pandas as pd

# Python's strings, "" for a missing cell.
TextArray = NDArray[np.object_]

# words of pandas.api.types.infer_dtype
NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")
TEXTS = ("string", "mixed-integer", "categorical")
DATES = ("datetime64", "datetime", "date")
EXACT = 2**53  # float64 is not exact for larger integers
# A column is not categorical with more than MOST_TEXTS different texts, nor with fewer than two
# rows per text, unless it has at most FEW_TEXTS.
MOST_TEXTS, FEW_TEXTS = 1000, 12
UNNAMED = "Unnamed: 0"  # first column without a name, as pandas calls an index that it saved
SHOWN = 20  # faulty columns in one message
SAMPLE = 20  # lines used to find the separator
_SEPARATOR = re.compile(rb'"?sep=([,;\t|])"?\n')
_COMMENTS = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*")  # and blank lines
# The digits of a number, which may be grouped: 1,234.5 or 1'234 or 1.5e-3 or 0x1F.
_DIGITS = re.compile(r"0x[\da-f]+|(?:\d{1,3}(?:[.,'_ \u00a0\u2009\u202f]\d{3})+|\d+)(?:[.,]\d+)?"
                     r"(?:[ed][+-]?\d+)?", re.IGNORECASE)  # fmt: skip
# Signs around the digits of a number: currencies, percent, other minus signs, quotes, brackets.
_SIGNED = re.compile(r"[^\w+<>~≤≥*#&@!?/\\|.,:;_]*0[^\w+<>~≤≥*#&@!?/\\|.,:;_]*")
# Digits before any letter, but not 1.2.3, or a duration of ISO 8601, as PT5M; and EUR 0.
_MEASURED = re.compile(r"\W*0(?!\.0).*|P(?=[0T])(?:0[YMWD])*(?:T(?:0[HMS])+)?")
_CURRENCY = re.compile(r"[^\W\d_]{2,4}\.? ?0")

# 1,5 and 0,184 and 1.234,500, but not 1,234, which may have a thousands separator.
_COMMA = re.compile(r"[+-]?(?![1-9]\d{0,2},\d{3}$)[\d.' ]+,\d+")


@dataclass(frozen=True, slots=True, eq=False)
class DataColumn:
    """A column of a table, or a list of labels, ids or splits (``name`` "" then).

    ``source`` names the table in messages; ``place`` turns a row number into "FILE, line N".
    ``written`` reads the raw cells (n,) of a file without types again. It is None if cells have
    types; text then stays text even if it reads as a number.
    """

    values: pd.Series[Any]  # (n,)
    name: str
    source: str
    place: Callable[[int], str]
    written: Callable[[], TextArray] | None = None

    @property
    def kind(self) -> str:
        """Kind of its cells: one of ``NUMBERS``, one of ``TEXTS``, or an unusable kind."""
        import pandas as pd

        if isinstance(self.values.dtype, pd.CategoricalDtype):
            return "categorical"
        return str(pd.api.types.infer_dtype(self.values, skipna=True))

    def numbers(self, dtype: Any = np.float64, missing: bool = True) -> Any:
        """Return the cells (n,) as numbers.

        Raises InputError for text, for infinite values and, unless ``missing``, for empty cells.
        """
        if self.kind in NUMBERS:
            try:
                values = self.values.to_numpy(dtype=np.float64, na_value=np.nan)
            except OverflowError:  # integers of any size
                what = "integers beyond float64: give them as text, or scale them"
                raise InputError(f"{self._whole} holds {what}") from None
        else:
            texts = self.cells()
            texts[texts == NONE] = ""
            if self.written is None or not _numeric(texts[texts != ""]).all():
                raise self._no_numbers(texts)
            values = np.array([number_of(text) for text in texts])
        with np.errstate(over="ignore"):
            values = values.astype(dtype)
        wrong = np.isinf(values) if missing else ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            if np.isnan(values[row]):
                raise self._missing(row)
            what = "the value is infinite, or too large for float32; correct it"
            empty = "leave the cell empty" if self.written is not None else "write nan"
            empty = f", or {empty} for a missing value" if missing else ""
            raise InputError(f"{self._at(row)}: {what}{empty}")
        return values

    def texts(self) -> TextArray:
        """Return the cells (n,) as text. Raises InputError if one is empty."""
        texts = self.cells()
        if (texts == "").any():
            raise self._missing(int(np.argmax(texts == "")))
        return texts

    def cells(self) -> TextArray:
        """Return the cells (n,) as text without surrounding blanks, "" if missing."""
        kind = self.kind
        if kind in DATES:
            remedy = f"{option('dates', True)} reads them as days" if self.name else "give numbers"
            raise InputError(f"{self._whole} holds dates: {remedy}")
        if kind not in (*NUMBERS, *TEXTS):
            if kind == "mixed":
                kind = " and ".join(sorted({type(cell).__name__ for cell in self.values.dropna()}))
            raise InputError(
                f"{self._whole} holds values of type {kind}: give numbers, text or categories"
            )
        if self.written is not None and kind in NUMBERS:
            texts = self.written()
        elif kind == "categorical":  # not cell by cell: 7 would be 7.0 beside missing cells
            names = self.values.cat.categories.astype("str").to_numpy(dtype=object)
            texts = np.append(names, "")[self.values.cat.codes]
        else:
            texts = self.values.astype("str").to_numpy(dtype=object)
        gone = frozenset(MISSING if self.written is not None else ())
        plain = (str(text).strip() for text in texts)
        texts = np.array(["" if text in gone else text for text in plain], dtype=object)
        return np.where(self.values.isna().to_numpy(bool), "", texts)

    @property
    def _whole(self) -> str:
        return f"{self.source}, column {self.name!r}" if self.name else self.source

    def _at(self, row: int) -> str:
        return f"{self.place(row)}, column {self.name!r}" if self.name else self.place(row)

    def _missing(self, row: int) -> InputError:
        text = str(self.written()[row]).strip() if self.written is not None else ""
        what = f"{text!r} counts as a missing value" if text else "the value is missing"
        return InputError(f"{self._at(row)}: {what}; fill it in or remove the row")

    def _no_numbers(self, texts: TextArray) -> InputError:
        """Return the error for a column of text where numbers are expected."""
        wrong = ~_numeric(texts) & (texts != "")
        row = int(np.argmax(wrong))
        if not wrong.any():
            what = f"numbers as text ({texts[row]!r:.60}): pandas.to_numeric reads them"
            return InputError(f"{self._whole} holds {what}")
        remedy, form = "correct it, encode the column as numbers, or remove it", _form(texts[row])
        if _SIGNED.fullmatch(form) or _MEASURED.fullmatch(form):
            remedy = "write plain numbers such as -1.5"
            signs = form.replace("0", " ").strip()
            if any(map(_COMMA.fullmatch, texts[wrong])):
                remedy = f"{option('decimal', ',')} reads decimal commas"
            elif all(is_number(with_point(text)) for text in texts[wrong]):
                comma = any("," in text for text in texts[wrong])
                remedy = f"give {option('decimal', ',')} if the comma is decimal, else remove it"
                plain = f"write {with_point(texts[row])}, or give {option('decimal', ',')}"
                remedy = remedy if comma else plain
            elif signs:
                code = "" if signs.isascii() or len(signs) > 1 else f" (U+{ord(signs):04X})"
                remedy += f", without {signs!r:.20}{code}"
        return InputError(f"{self._at(row)} holds text ({texts[row]!r:.60}): {remedy}")


def hold_text(columns: Sequence[DataColumn]) -> bool:
    """True if the same column of several tables is text, by type. Without types it is text if half
    of its non-empty cells are not numbers, or if it has few different cells and its non-numeric
    cells occur more than once in each table.

    Raises InputError if types contradict each other.
    """
    filled = [column for column in columns if column.values.notna().any()]
    typed = {column.kind not in NUMBERS: column for column in filled if column.written is None}
    if len(typed) == 2:
        raise InputError(f"{typed[False]._whole} holds numbers here and text elsewhere; use one")
    if typed or all(column.kind in NUMBERS for column in filled):
        return True in typed
    cells = np.concatenate([column.cells() for column in filled])
    cells = cells[(cells != "") & (cells != NONE)]
    words = different_texts(cells[~_numeric(cells)])
    few = len({*cells}) <= FEW_TEXTS and min(words.values(), default=0) > len(filled)
    return words.total() * 2 >= max(len(cells), 1) or few


def one_kind(columns: Sequence[DataColumn]) -> list[Any]:
    """Return the cells (n,) of the same column of several tables: float32, float64 if float32
    merges values, or categories as text, "" if missing.

    Raises InputError for dates, for numbers written as text, and for too many different texts.
    """
    if not hold_text(columns):
        rounded = [column.numbers(np.float32) for column in columns]
        exact = [column.numbers() for column in columns]
        for column, cells in zip(columns, exact, strict=True):
            large = column.kind == "integer" and np.nanmax(np.abs(cells)) > EXACT
            if large and len(np.unique(cells[~np.isnan(cells)])) < column.values.nunique():
                what = "integers beyond 2^53, of which float64 makes some equal"
                raise InputError(f"{column._whole} holds {what}: subtract a constant")
        return rounded if float32_offset(np.concatenate(exact)) is None else exact
    texts = [column.cells() for column in columns]
    counts = different_texts(np.concatenate(texts))
    rows, first = max(map(len, texts)), next(iter(counts), "")
    written = (
        counts if columns[0].written is None else {t: counts[t] for t in counts if not is_number(t)}
    )
    what = ""
    if dates_in(counts):
        what = f"dates ({first!r}): {option('dates', True)} reads them as days"
    elif "categorical" not in {column.kind for column in columns} and _are_quantities(written):
        filled = next(k for k, cells in enumerate(texts) if (cells != "").any())
        raise columns[filled]._no_numbers(texts[filled])
    elif len(counts) > MOST_TEXTS or len(counts) * 2 > max(rows, 2 * FEW_TEXTS):
        what = f"{len(counts)} different texts, as {first!r:.40}: too many for categories"
        what += "; give numbers in their place"
    if what:
        raise InputError(f"{columns[0]._whole} holds {what}")
    return texts


def _form(text: str) -> str:
    """Return a text with 0 for each number."""
    return _DIGITS.sub("0", text).lstrip("+-")


def _are_quantities(counts: Mapping[str, int]) -> bool:
    """True if most texts are a number among signs, such as ``$ 5`` or ``7%``; or, if they are too
    many for one-hot features, a number with the same other characters: ``5 kg``, ``12:30``."""
    forms, total = Counter[str](), sum(counts.values())
    for text, times in counts.items():
        form = _form(text)
        forms["0" if _SIGNED.fullmatch(form) else form] += times
    if forms["0"] * 2 > total:
        return True
    form, times = max(forms.items(), key=lambda counted: counted[1])
    currency = _CURRENCY.fullmatch(form) and any("." in text or "," in text for text in counts)
    many = len(counts) > FEW_TEXTS and times * 2 > total
    return many and bool(currency or _MEASURED.fullmatch(form))


def dates_in(texts: Iterable[str]) -> list[str]:
    """Return the different texts that are written as dates, if most non-empty texts are."""
    counts = Counter(texts)
    counts.pop("", None)
    dates = [text for text in counts if is_date(text)]
    return dates if sum(counts[text] for text in dates) * 2 > counts.total() else []


@np.errstate(over="ignore", invalid="ignore")  # near the largest numbers
def float32_offset(cells: FloatArray) -> float | None:
    """Return an offset to subtract from cells (n,), so that float32 keeps their values distinct.

    None if no offset is needed, 0 if no offset helps. Values count as merged if fewer than 90% of
    the different values of up to 10000 cells remain in float32. Example: times in seconds.
    """
    cells = cells[~np.isnan(cells)]
    cells = cells[:: 1 + len(cells) // 10_000].astype(np.float64)
    middle, high = np.quantile(np.abs(cells), [0.5, 0.95]) if len(cells) else (0.0, 1.0)
    if high - middle >= 2**16 * np.spacing(np.float32(high)):
        return None
    enough = 0.9 * len(np.unique(cells))
    low, high = np.quantile(cells, [0.05, 0.95])
    unit = 10.0 ** np.ceil(np.log10(max(high - low, 1.0)))  # a round number, alike in all folds
    for offset in (0.0, float(np.floor(low / unit) * unit)):
        if len(np.unique((cells - offset).astype(np.float32))) >= enough:
            return offset or None
    return 0.0


def different_texts(texts: TextArray) -> Counter[str]:
    """Count each text, most frequent first, without missing cells."""
    counts = Counter(filter(None, texts.tolist()))
    return Counter(dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))))


def _numeric(texts: TextArray) -> BoolArray:
    """True for cells (n,) that read as numbers, or as True or False."""
    import pandas as pd

    cells = pd.Series(texts, dtype="str")
    numeric = np.asarray(pd.to_numeric(cells, errors="coerce").notna(), dtype=bool)
    return numeric if numeric.all() else numeric | cells.str.lower().isin(TRUTH).to_numpy(bool)


def is_number(text: str) -> bool:
    """True if a cell is an integer or a number with a decimal point, in ASCII without ``_``."""
    if not text.isascii() or "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """Columns by name. ``path`` is a file, or the name of an argument in Python.

    ``written`` returns the raw cells (n,) of a column if cells have no types. ``formats``: how the
    text of a column was read as numbers (``ColumnEncoding``).
    """

    path: Path
    frame: pd.DataFrame  # (n, columns)
    place: Callable[[int], str]
    written: Callable[[str], TextArray] | None = None
    formats: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns in file order."""
        return tuple(str(name) for name in self.frame.columns)

    def column(self, name: str) -> DataColumn:
        """Return one column."""
        written = None if self.written is None else partial(self.written, name)
        return DataColumn(self.frame[name], name, str(self.path), self.place, written)

    def numbers(self, name: str, dtype: Any = np.float64, missing: bool = True) -> Any:
        """Return one column (n,) as numbers. Raises InputError as ``DataColumn.numbers`` does."""
        return self.column(name).numbers(dtype, missing)

    def codes(self, name: str, labels: Collection[float]) -> FloatArray:
        """Return a publisher's column (n,) of labels. Raises InputError for an unknown label."""
        values: FloatArray = self.numbers(name, missing=False)
        for row in np.flatnonzero(~np.isin(values, [*labels])).tolist():
            raise InputError(
                f"{self.place(row)}: label {values[row]:g} is not one of {[*labels]}; "
                "get the file again"
            )
        return values

    def matrix(self, names: Sequence[str]) -> Float32Array:
        """Return several columns as float32 (n, d). Raises InputError for a missing column."""
        if lost := [name for name in names if name not in self.names]:
            raise InputError(f"{self.path}, line 1: no column {lost[0]!r}; get the file again")
        return np.column_stack([self.numbers(name, np.float32) for name in names])


class UnusableColumnsError(InputError):
    """Error for columns that are neither numbers nor categories; ``faults`` by name."""

    def __init__(self, message: str, faults: Mapping[str, str]) -> None:
        super().__init__(message)
        self.faults = faults


def read_features(tables: Sequence[DataTable], names: Sequence[str]) -> list[pd.DataFrame]:
    """Return the same columns of several tables as float32, or as text in all tables.

    Raises UnusableColumnsError with all unusable columns and the reasons.
    """
    import pandas as pd

    by_table: list[dict[str, Any]] = [{} for _ in tables]
    faults: dict[str, str] = {}
    for name in names:
        try:
            cells = one_kind([table.column(name) for table in tables])
            for columns, values in zip(by_table, cells, strict=True):
                columns[name] = values
        except InputError as error:
            faults[name] = str(error)
    if faults:
        alike: dict[str, list[str]] = {}  # columns by remedy, the end of a message
        for name, fault in faults.items():
            alike.setdefault(fault.rpartition(": ")[2], []).append(name)
        messages = [
            faults[first] + (f" (also {', '.join(map(repr, rest[:SHOWN]))})" if rest else "")
            for first, *rest in [*alike.values()][:SHOWN]
        ]
        messages[1:] = [fault.removeprefix(f"{tables[0].path}, ") for fault in messages[1:]]
        messages += [f"{len(alike) - SHOWN} more columns"] if len(alike) > SHOWN else []
        remedy = f"to leave out: {option('drop', [*faults])}"
        raise UnusableColumnsError(f"{'; '.join(messages)}; {remedy}", faults)
    return [pd.DataFrame(columns) for columns in by_table]


def read_table(
    path: str | Path,
    format: str = "",
    text: Collection[str] = (),
    as_text: bool = False,
    encoding: str | None = None,
) -> DataTable:
    """Read a CSV file with a header (separator comma, semicolon, tab or ``|``), or a Parquet file.

    ``format`` ("csv", "parquet") decides, by default the suffix. Cells of the columns ``text`` (in
    any case), or of all columns of a CSV file, stay unparsed. ``encoding``: of a CSV file that is
    not UTF-8. A CSV file takes up to 20 times its size in memory, and 2 KiB for each column.
    """
    path = Path(path)
    parquet = read_beginning(path, 4) == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
    if format == "parquet" or (not format and parquet):
        frame = _parquet(path)
        _refuse_unnamed(path, list(frame.columns))
        _refuse_repeated(path, list(frame.columns))
        return DataTable(path, frame, lambda row: f"{path}, row {row + 1}")
    raw = _unix_lines(path, encoding)
    said = _SEPARATOR.match(raw)  # a first line "sep=;" is Excel's
    raw = _below_comments(raw if said is None else b"\n" + raw[said.end() :])
    beginning = islice((line for line in BytesIO(raw) if line.strip(b" \t\n")), SAMPLE)
    lines = [line.decode("utf-8", "replace") for line in beginning]
    separator = said[1].decode() if said else max(",;\t|", key=partial(_fits, lines))
    names, starts, width, again = _counted(path, raw, separator)
    named = {n for n in names if n and (as_text or n in text or n.lower() in text)}
    written_as = {j: str for j, n in enumerate(names) if n in named}
    form: dict[str, Any] = {"sep": separator, "header": 0, "names": range(width)}
    frame = _csv(path, raw, dtype=written_as, **form)
    if again and not any(map(is_number, names)):
        raise InputError(
            f"{path}, line {again} repeats the header; remove it, or begin the file with a "
            "line of column names"
        )
    if _is_data(names, frame):
        raise InputError(
            f"{path}, line 1: no header: {', '.join(names):.60} looks like a row; begin the file "
            "with a line of column names"
        )
    there = [j for j in range(width) if names[j] or frame[j].notna().any()]
    if not names[0] and there[0] == 0 and frame[0].dtype.kind in "iu" and frame[0].is_unique:
        names[0] = UNNAMED
    columns = {names[j]: j for j in there}
    _refuse_unnamed(path, names, there)
    _refuse_repeated(path, [names[j] for j in there])
    frame = frame[there].set_axis([*columns], axis=1)

    def written(name: str) -> TextArray:
        only = {"usecols": [columns[name]], "dtype": str, "na_values": []}
        return np.array(_csv(path, raw, **form, **only).iloc[:, 0], dtype=object)

    def place(row: int) -> str:
        return f"{path}, line {starts[row + 1]}" if row + 1 < len(starts) else str(path)

    return DataTable(path, frame, place, written)


def _counted(path: Path, raw: bytes, separator: str) -> tuple[list[str], array[int], int, int]:
    """Return the header's names, the line at which each record begins (header first), the number
    of cells of each row, and the first line that repeats the header, or 0.

    All rows have as many cells as the header, or one more, an empty one after a separator at the
    end of each line. Raises InputError with the lines of other rows.
    """
    starts, counts, again, header = array("q"), array("q"), 0, b""
    mark, ends = separator.encode(), 0  # lines that end with a separator
    names: list[str] = []
    for number, line, cells in _records(path, raw, separator):
        if not isinstance(cells, int) and not starts:
            header = line
            names = [re.sub(r"\s*\n\s*", " ", str(cell).strip()) for cell in cells]
        elif line == header and not again:
            again = number
        ends += line.endswith(mark, 0, len(line.rstrip(b" \n")))
        starts.append(number)
        counts.append(cells if isinstance(cells, int) else len(cells))
    usual = Counter(counts[1:]).most_common(1)
    if not usual:
        raise InputError(f"{path}: no rows below the header; get the file again or name another")
    width, rows = usual[0]
    if width == len(names) - 1 and not names[-1]:
        names.pop()
    elif width == len(names) + 1 and ends >= rows:
        names.append("")
    if width != len(names) and rows * 2 > len(counts):
        raise InputError(
            f"{path}, line {starts[0]}: not the header: {len(names)} cells where the rows below "
            f"have {width}; begin the file with a line of column names"
        )
    wrong = [k for k, cells in enumerate(counts) if k and cells != len(names)]
    if wrong:
        cells, also = counts[wrong[0]], ", ".join(str(starts[k]) for k in wrong[1:5])
        raise InputError(
            f"{path}, line {starts[wrong[0]]}: {cells} cells where the header has {len(names)}; "
            f"{'complete' if cells < len(names) else 'correct'} the line, or remove it"
            + (f" (also lines {also}{', ...' if len(wrong) > 5 else ''})" if also else "")
        )
    return names, starts, len(names), again


def _records(
    path: Path, raw: bytes, separator: str
) -> Iterator[tuple[int, bytes, list[str] | int]]:
    """Yield each record that is not blank: its first line, by number and as bytes, and its cells;
    of a line without quotes below the header only their number, which is faster."""
    lines, mark, first = enumerate(BytesIO(raw), start=1), separator.encode(), True

    blanks = re.compile(rb'" +(?=%s|\n|$)' % re.escape(mark))  # behind a quoted cell

    def record() -> Iterator[str]:
        yield blanks.sub(b'"', line).decode()
        for _, more in lines:  # line breaks in a quoted cell
            yield blanks.sub(b'"', more).decode()
        raise InputError(
            f"{path}, line {number}: a cell begins with a quote that is not closed; correct it, "
            "or write a quote in a cell twice"
        )

    for number, line in lines:
        cells: list[str] | int = line.count(mark) + 1
        if cells == 1 and not line.strip(b" \t\n"):
            continue
        if first or b'"' in line:
            form: dict[str, Any] = {"delimiter": separator, "skipinitialspace": True}
            try:
                cells = next(csv.reader(record(), **form, strict=True))
            except csv.Error as error:
                raise InputError(
                    f"{path}, line {number}: a quoted cell goes on behind its closing quote "
                    f"({error}); correct it, or write a quote in a cell twice"
                ) from error
        first = False
        yield number, line, cells


def _below_comments(raw: bytes) -> bytes:
    """Blank out lines above the header that begin with ``#``. The last of them is the header if a
    number follows below it."""
    found = _COMMENTS.match(raw)
    end = found.end() if found else 0
    below = raw[end : raw.find(b"\n", end)].decode("utf-8", "replace")
    if any(map(is_number, re.split("[,;\t|]", below))):
        end = raw.rfind(b"\n", 0, len(raw[:end].rstrip())) + 1
    return b"\n" * raw.count(b"\n", 0, end) + raw[end:]


def _fits(lines: Sequence[str], separator: str) -> tuple[int, int, bool]:
    """Return a separator's fit to the first lines: the lines with as many cells as the header, the
    number of its cells, and False for a comma, which may be a decimal mark."""
    try:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        counts = [len(cells) for cells in rows]
    except csv.Error:
        return 0, 0, False
    several = counts[0] > 1
    return counts.count(counts[0]) * several, counts[0], several and separator != ","


def _is_data(names: Sequence[str], frame: pd.DataFrame) -> bool:
    """True if the supposed header is a row: it has numbers above all columns of numbers, and unless
    some are decimals, known texts above columns of text."""
    kinds = [dtype.kind in "biuf" for dtype in frame.dtypes]
    numbers = [name for name, numeric in zip(names, kinds, strict=True) if numeric]
    if not all(is_number(name) or name in MISSING for name in numbers):
        return False
    if any(is_number(name) and not name.isdecimal() for name in numbers):
        return True
    texts = [j for j, numeric in enumerate(kinds) if not numeric]
    return all(bool((frame.iloc[:, j] == names[j]).any()) for j in texts)


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
    """Read a publisher's file without a header; its ``columns`` are named "1", "2", ...

    ``rows``: their number, if known. The first ``skip`` lines are ignored. ``separator`` "" means
    white space. Columns in ``text`` (from 0) may hold text; with ``missing``, cells may be missing.
    Raises InputError if the file does not match.
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
    lines = [number for number, line in enumerate(BytesIO(raw), 1) if line.strip()][skip:]
    table = DataTable(path, frame, lambda row: f"{path}, line {lines[row]}")
    for j, name in enumerate(table.names):
        if j not in text and not missing and bool(frame[name].isna().any()):
            table.numbers(name, missing=False)
    return table


def _parquet(path: Path) -> pd.DataFrame:
    """Return the columns of a file, except those in which pandas stored an index."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; pip install 'budget-bench[parquet]'"
        ) from error
    try:
        with opened(path) as file:
            table = pq.ParquetFile(file).read()
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        # pandas writes an index that is not a range as a column, and records it in the metadata
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except (pa.ArrowException, OSError, ValueError) as error:
        check_memory(error, path)
        reason = str(error).strip().partition("\n")[0][:200]
        if read_beginning(path, 4) != b"PAR1":
            raise InputError(
                f"{path}: not a Parquet file, by its first bytes; if it is CSV, rename it to .csv"
            ) from error
        raise InputError(f"{path}: not a Parquet file ({reason}); get the file again") from error
    if not len(frame):
        raise InputError(f"{path}: the file is empty; get it again or name another")
    frame.columns = [str(name) for name in frame.columns]
    return frame[[name for name in frame.columns if name not in index]]


def _unix_lines(path: Path, encoding: str | None = None) -> bytes:
    """Read a file as UTF-8 without its byte order mark, with bare carriage returns (line ends of
    old spreadsheets) replaced."""
    return read_text(path, encoding).encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def exact_floats() -> dict[str, str]:
    """Return pandas' option to round to the nearest number; newer versions always do and reject
    it."""
    import pandas as pd

    major, minor = (int(part) for part in pd.__version__.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _csv(path: Path, raw: bytes, **options: Any) -> pd.DataFrame:
    import pandas as pd

    try:
        return pd.read_csv(
            BytesIO(raw),
            **{"na_values": MISSING, **options},
            index_col=False,
            keep_default_na=False,
            skipinitialspace=True,
            low_memory=False,
            **exact_floats(),
        )
    except (ValueError, pd.errors.ParserError) as error:
        check_memory(error, path)
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split())
        raise InputError(f"{path}: not a table ({reason}); correct the file") from error


def _refuse_unnamed(path: Path, names: Sequence[str], among: Iterable[int] = ()) -> None:
    for j in among or range(len(names)):
        if not names[j]:
            index = "; an index in front is left out by to_csv(index=False)" if j == 0 else ""
            raise InputError(f"{path}, line 1: column {j + 1} has no name; give it one{index}")


def _refuse_repeated(path: Path, names: Sequence[str]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{path}, line 1: two columns are called {name!r}; rename one")
