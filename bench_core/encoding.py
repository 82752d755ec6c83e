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
    *("\\N", "(null)"),
)
"""Missing cells of a file, as in pandas, and those of dumps of PostgreSQL, MySQL and Oracle."""
TRUTH = ("true", "false")
"""Words for 1 and 0 in a column of numbers, in any case."""
NONE = "None"
"""A missing cell among numbers, else a word."""
NO_TEXT = frozenset(("None", "nan", "NaT", "<NA>"))
"""Text forms of missing values that are not text."""

COMMA, YEAR_FIRST = ",", "Y-M-D"
"""Formats of columns, besides ``D.M.Y`` and others (see ``ColumnEncoding``)."""
_SPACES = "\u00a0\u202f '"  # group separators, besides the points of 1.234,50
_GROUPED = re.compile(rf"[+-]?(\d{{1,3}}([.{_SPACES}]\d{{3}})+|\d+)(,\d+)?([eE][+-]?\d+)?")
_POINTS = str.maketrans({",": ".", **dict.fromkeys(f".{_SPACES}")})
_FIRST_DAY = date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal() - _FIRST_DAY
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DATE = re.compile(
    r"(?:(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)(?P<last>\d{4}|\d{2})"
    rf"|(?:[a-z]{{3,9}},? )?(?:(?P<d1>\d{{1,2}})(?P<gap>[ -/]|\. ?)?(?P<m1>{_MONTH})\.?[- /]?"
    rf"|(?P<m2>{_MONTH})\.? (?P<d2>\d{{1,2}}),? )(?P<y1>\d{{4}}|\d{{2}}))"
    r"(?:(?:T|,? |:)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<seconds>\d{2}(?:[.,]\d+)?))?"
    r"(?: ?(?P<half>[ap])\.?m\.?(?![a-z]))?"
    r"(?: ?(?:Z|(?:UTC?|GMT)?(?:(?P<sign>[+-])(?P<east>\d{1,2})(?::?(?P<rest>\d{2}))?)?"
    r"(?(sign)(?: ?\([a-z ]+\)|\[[a-z_/]+\]| [a-z]{3,5})?)))?)?",
    re.ASCII | re.IGNORECASE,
)
"""A date and perhaps a time: 2024-02-01, 1.2.2024 or 1-Feb-2024, 14:15:16.5 or 2:15 PM, and an
offset from UTC, +01 or +0100 or +01:00, behind which the zone may have a name, as in
GMT+0100 (Central European Standard Time) of JavaScript and +01:00[Europe/Berlin] of Java."""
_ZONE = re.compile(r" ?(?:Z|[+-]\d{2}:?\d{2})?(?: ?\(?[A-Z]{3,5}\)?| ?\[?[A-Z]\w+(?:/\w+)+\]?)?")
_YEAR = r"\b(?:19|20)\d\d\b"
_WORD = (
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)"
    r"(?:uary|ruary|ch|il|e|y|ust|ember|tember|ober)?\b"
)
_OTHER_DATE = re.compile(
    rf".*{_WORD}.*{_YEAR}.*|\d{{1,2}}(?:st|nd|rd|th|er|\.)? [^\W\d_]{{3,9}}\.?,? {_YEAR}.*",
    re.IGNORECASE,
)
"""Dates of asctime, and of other languages: Tue Aug 20 19:15:30 2024, 4 déc. 2024."""


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """The encoding of one column.

    ``texts``: texts of the training rows, most frequent first, () for numbers. ``one_hot``: each
    text has its own feature. ``missing``: further texts that mean a missing value. ``offset`` is
    subtracted from numbers. ``made``: the features that a transformer of this name made.
    ``format``: how its text is read as numbers: "" with decimal points, "," with decimal commas;
    as dates: "Y-M-D" or a month by name, and besides "D.M.Y", "D/M/Y", "M/D/Y", "D-M-Y" or "M-D-Y".
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
        (or a date) in a column of numbers (of dates), or days beyond the year 9999.
        """
        if self.texts:
            places, unseen = self.places(), self.unseen
            return np.array([place_in(places, v, unseen) for v in cells], dtype=np.float32)
        numbers: Any = np.asarray(cells if hasattr(cells, "dtype") else [*cells])
        if numbers.dtype.kind == "M":
            numbers = (numbers - EPOCH) / np.timedelta64(1, "D")
        elif numbers.dtype.kind not in "biuf":
            numbers = np.array([number_of(v, self.format) for v in numbers.ravel().tolist()])
        if self.kind == "date" and (no_days := numbers[numbers > LAST_DAY]).size:
            what = f"{no_days[0]:.15g} may be seconds or milliseconds"
            raise ValueError(f"{what}; give a date, or days since 1970-01-01")
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
    if isinstance(cell, np.datetime64):
        return float((cell - EPOCH) / np.timedelta64(1, "D"))
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
        if text.lower() in TRUTH:
            return float(text.lower() == "true")
        raise ValueError(f"{text!r:.60} is not a number") from None


def with_point(text: str) -> str:
    """Return a number with a decimal comma or grouped digits, ``1.234,50``, as ``1234.50``; any
    other text unchanged."""
    text = text.strip()
    return text.translate(_POINTS) if _GROUPED.fullmatch(text) else text


def is_date(text: str) -> bool:
    """True if a text has a form of dates, also if there is no such day."""
    return _DATE.fullmatch(text) is not None


def in_named_zone(text: str) -> bool:
    """True for a date whose time zone has a name and no offset: 2024-02-01 14:15 CET."""
    match = _DATE.match(text)
    return match is not None and _ZONE.fullmatch(text, match.end()) is not None


def begins_as_date(text: str) -> bool:
    """True for a text that begins with a date, or holds one in another form."""
    match = _DATE.match(text)
    # not 10.0.10.20
    begins = match is not None and text[match.end() :][:1] not in {*"0123456789.-/:"}
    return begins or _OTHER_DATE.fullmatch(text) is not None


def date_format(dates: Iterable[str]) -> str:
    """Return the format of texts that have a form of dates, "" if it is ambiguous."""
    matches = [match for match in map(_DATE.fullmatch, dates) if match is not None]
    if any(len(match["last"] or match["y1"] or "year") == 2 for match in matches):
        return ""
    numbered = [match for match in matches if match["mark"]]
    marks = {match["mark"] for match in numbered}
    if len(marks) != 1:
        return "" if marks else YEAR_FIRST
    mark = marks.pop()
    first, second = (max(int(match[k]) for match in numbered) for k in ("first", "second"))
    if mark != "." and (first > 12) == (second > 12):
        return ""
    return f"D{mark}M{mark}Y" if mark == "." or first > 12 else f"M{mark}D{mark}Y"


def days_of(text: str, format: str) -> float:
    """Return a date, with or without a time, as days since 1970-01-01 in UTC.

    Dates such as 2024-02-01 and 1-Feb-2024 are read in every ``format``. Raises ValueError for any
    other text.
    """
    try:
        match = _DATE.fullmatch(text)
        if match is None or (match["mark"] and match["mark"] != format[1]):
            raise ValueError
        year = match["y"] or match["last"] or match["y1"]
        if match["mark"]:
            day, month = (int(match[k]) for k in ("first", "second"))
            day, month = (month, day) if format[0] == "M" else (day, month)
        else:
            name = match["m1"] or match["m2"]
            month = _MONTHS.index(name[:3].lower()) + 1 if name else int(match["m"])
            day = int(match["d"] or match["d1"] or match["d2"])
        if len(year) == 2:
            raise ValueError
        days = date(int(year), month, day).toordinal() - _FIRST_DAY
        if match["hour"] is None:
            return float(days)
        hour, minute = int(match["hour"]), int(match["minute"])
        second = float((match["seconds"] or "0").replace(",", "."))
        if half := match["half"]:
            if not 1 <= hour <= 12:
                raise ValueError
            hour = hour % 12 + 12 * (half in "pP")
        if hour > 23 or minute > 59 or second >= 60:
            raise ValueError
        if match["east"]:
            east = int(f"{match['sign']}1")
            hour -= east * int(match["east"])
            minute -= east * int(match["rest"] or 0)
        return (86400 * days + 3600 * hour + 60 * minute + second) / 86400
    except ValueError:
        raise ValueError(f"{text!r:.60} is not a date such as 2024-02-01") from None
