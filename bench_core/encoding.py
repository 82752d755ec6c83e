"""Encoding of a table's columns as features, also for single cells when a model serves.

Numbers stay numbers and dates become days, also if they are written as text. An offset may be
subtracted so that float32 keeps values distinct. A column of few texts is one-hot encoded by the
texts of the training rows; a column of many texts becomes one feature of codes. A missing cell is
missing in all features of its column. An unseen text is 0 in all one-hot features, or a missing
code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import nan
from typing import Any

import numpy as np

from bench_core.arrays import Float32Array

EPOCH = np.datetime64("1970-01-01")
MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "#N/A N/A", "NULL", "null"),
    *("nan", "-nan", "NaN", "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Missing cells of a file, as in pandas."""
NONE = "None"
"""A missing cell among numbers, else a word."""
NO_TEXT = frozenset(("None", "nan", "NaT", "<NA>"))
"""Text forms of missing values that are not text."""

COMMA, YEAR_FIRST = ",", "Y-M-D"
"""Formats of columns (see ``ColumnEncoding``), besides ``D.M.Y``, ``D/M/Y`` and ``M/D/Y``."""
_SPACES = "\u00a0\u202f '"  # group separators, besides the points of 1.234,50
_GROUPED = re.compile(rf"[+-]?(\d{{1,3}}([.{_SPACES}]\d{{3}})+|\d+)(,\d+)?([eE][+-]?\d+)?")
_POINTS = str.maketrans({",": ".", **dict.fromkeys(f".{_SPACES}")})
_TIME = r"(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?(?:Z|([+-]\d{2}):?(\d{2}))?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})-(\d{{1,2}})-(\d{{1,2}}){_TIME}")
_FIRST_DAY = date(1970, 1, 1).toordinal()
_YEAR_LAST = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})")


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """The encoding of one column.

    ``texts``: texts of the training rows, most frequent first, () for numbers. ``one_hot``: each
    text has its own feature. ``missing``: further texts that mean a missing value. ``offset`` is
    subtracted from numbers. ``made``: the features that a transformer of this name made.
    ``format``: how its text is read as numbers: "" with decimal points, "," with decimal commas;
    as dates: "Y-M-D", and besides "D.M.Y", "D/M/Y" or "M/D/Y".
    """

    name: str
    texts: tuple[str, ...] = ()
    one_hot: bool = False
    missing: tuple[str, ...] = ()
    offset: float = 0.0
    made: tuple[str, ...] = ()
    format: str = ""

    @property
    def kind(self) -> str:
        """Kind of encoding: ``number``, ``date``, ``one-hot`` or ``codes``."""
        if self.texts:
            return "one-hot" if self.one_hot else "codes"
        return "date" if "Y" in self.format else "number"

    @property
    def features(self) -> tuple[str, ...]:
        """Names of its k features."""
        if self.made:
            return self.made
        if self.one_hot:
            return tuple(f"{self.name}={text}" for text in self.texts)
        return (f"{self.name}-{self.offset:.15g}" if self.offset else self.name,)

    @property
    def unseen(self) -> float:
        """Code of an unseen text."""
        return -1.0 if self.one_hot else nan

    def places(self) -> dict[str, float]:
        """Codes of texts, including texts that mean a missing value."""
        missing = dict.fromkeys(("", *self.missing), nan)
        return missing | {text: float(k) for k, text in enumerate(self.texts)}

    def codes(self, cells: Iterable[Any]) -> Float32Array:
        """Return a number for each cell (n,): numbers minus the offset, places of texts in
        ``texts``.

        Missing cells are NaN; dates are days since 1970-01-01. An unseen text is NaN, or -1 with
        ``one_hot``. Surrounding blanks are ignored. Raises ValueError if a cell is not a number
        (or a date) in a column of numbers (of dates).
        """
        if self.texts:
            places, unseen = self.places(), self.unseen
            return np.array([place_in(places, v, unseen) for v in cells], dtype=np.float32)
        numbers: Any = np.asarray(cells if hasattr(cells, "dtype") else [*cells])
        if numbers.dtype.kind == "M":
            numbers = (numbers - EPOCH) / np.timedelta64(1, "D")
        elif numbers.dtype.kind not in "biuf":
            numbers = np.array([number_of(v, self.format) for v in numbers.ravel().tolist()])
        with np.errstate(over="ignore"):
            moved = numbers - self.offset if self.offset else numbers
            return np.asarray(moved, dtype=np.float32)

    def spread(self, codes: Float32Array) -> Float32Array:
        """Return the features (n, k) of ``codes`` (n,)."""
        if not self.one_hot:
            return codes[:, None]
        made: Float32Array = (codes[:, None] == np.arange(len(self.texts))).astype(np.float32)
        made[np.isnan(codes)] = nan
        return made


def plain_encodings(names: Sequence[str]) -> tuple[ColumnEncoding, ...]:
    """Return encodings of columns that are used as features unchanged."""
    return tuple(map(ColumnEncoding, names))


def encodings_from(documents: Iterable[Mapping[str, Any]]) -> tuple[ColumnEncoding, ...]:
    """Return encodings from the JSON of ``asdict``."""
    lists = ("texts", "missing", "made")
    made = ({**own, **{name: tuple(own[name]) for name in lists}} for own in documents)
    return tuple(ColumnEncoding(**own) for own in made)


def text_of(cell: Any) -> str:
    """Return a cell as text, "" if missing."""
    if isinstance(cell, str):
        return cell.strip()
    text = str(cell)
    return "" if text in NO_TEXT else text


def place_in(places: Mapping[str, float], cell: Any, unseen: float) -> float:
    """Return the code of a cell's text. Tables read 7 as 7.0 if their other cells are missing."""
    place = places.get(text_of(cell))
    if place is None and isinstance(cell, float) and cell.is_integer():
        place = places.get(str(int(cell)))
    return unseen if place is None else place


def number_of(cell: Any, format: str = "") -> float:
    """Return a cell as a number, NaN if missing. Text is read as a file's, in this format.

    Raises ValueError if it is not a number.
    """
    if isinstance(cell, str):
        return _number_in(cell.strip(), format)
    if isinstance(cell, date) and cell == cell:  # pandas.NaT is a date, too
        if not isinstance(cell, datetime):
            return float(cell.toordinal() - _FIRST_DAY)
        return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp() / 86400
    if isinstance(cell, bytes | complex):
        raise ValueError(f"{cell!r:.60} is not a number")
    try:
        return nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        if str(cell) in NO_TEXT:
            return nan
        raise ValueError(f"{cell!r:.60} is not a number") from None


def _number_in(text: str, format: str) -> float:
    if text in MISSING or text == NONE:
        return nan
    if "Y" in format:
        return days_of(text, format)
    number = with_point(text) if format == COMMA else text
    if format == COMMA and "." in text and number == text:
        # 1.402 would be read as 1402 next to it
        raise ValueError(f"{text!r:.60} is not a number with a decimal comma, such as 1,5")
    try:
        return float(number)
    except ValueError:
        if text.lower() in ("true", "false"):
            return float(text.lower() == "true")
        raise ValueError(f"{text!r:.60} is not a number") from None


def with_point(text: str) -> str:
    """Return a number with a decimal comma or grouped digits, ``1.234,50``, as ``1234.50``; any
    other text unchanged."""
    text = text.strip()
    return text.translate(_POINTS) if _GROUPED.fullmatch(text) else text


def date_format(texts: Iterable[str]) -> str:
    """Return the format of dates, "" if they have none in common or it is ambiguous."""
    texts = [*texts]
    if all(map(_YEAR_FIRST.fullmatch, texts)):
        return YEAR_FIRST
    matches = [match for match in map(_YEAR_LAST.fullmatch, texts) if match is not None]
    marks = {match[2] for match in matches}
    if len(matches) < len(texts) or len(marks) > 1:
        return ""
    if marks == {"."}:
        return "D.M.Y"
    first, second = (max(int(match[k]) for match in matches) for k in (1, 3))
    if (first > 12) == (second > 12):
        return ""
    return "D/M/Y" if first > 12 else "M/D/Y"


def days_of(text: str, format: str) -> float:
    """Return a date, with or without a time, as days since 1970-01-01 in UTC.

    Dates such as 2024-02-01 are read in every ``format``. Raises ValueError for any other text.
    """
    try:
        if (match := _YEAR_FIRST.fullmatch(text)) is not None:
            year, month, day, hour, minute, second, east, rest = match.groups()
            days = date(int(year), int(month), int(day)).toordinal() - _FIRST_DAY
            if hour is None:
                return float(days)
            hours, minutes, seconds = int(hour), int(minute), float(second or 0)
            if hours > 23 or minutes > 59 or seconds >= 60:
                raise ValueError
            if east is not None:
                hours -= int(east)
                minutes -= int(east[0] + rest)
            return (86400 * days + 3600 * hours + 60 * minutes + seconds) / 86400
        match = _YEAR_LAST.fullmatch(text)
        if match is None or match[2] != format[1]:
            raise ValueError
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        month, day = (first, second) if format[0] == "M" else (second, first)
        return float(date(year, month, day).toordinal() - _FIRST_DAY)
    except ValueError:
        raise ValueError(f"{text!r:.60} is not a date such as 2024-02-01") from None
