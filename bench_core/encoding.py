"""Encoding of a table's columns as features, also for single cells when a model serves.

Numbers stay numbers and dates become days. An offset may be subtracted so that float32 keeps values
distinct. A column of few texts is one-hot encoded by the texts of the training rows; a column of
many texts becomes one feature of codes. A missing cell is missing in all features of its column. An
unseen text is 0 in all one-hot features, or a missing code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import nan
from typing import Any

import numpy as np

from bench_core.arrays import Float32Array

EPOCH = np.datetime64("1970-01-01", "ns")
NO_TEXT = frozenset(("None", "nan", "NaT", "<NA>"))
"""Text forms of missing values that are not text."""


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """The encoding of one column.

    ``texts``: texts of the training rows, most frequent first, () for numbers. ``one_hot``: each
    text has its own feature. ``missing``: further texts that mean a missing value. ``offset`` is
    subtracted from numbers. ``made``: the features that a transformer of this name made.
    """

    name: str
    texts: tuple[str, ...] = ()
    one_hot: bool = False
    missing: tuple[str, ...] = ()
    offset: float = 0.0
    made: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Kind of encoding: ``number``, ``one-hot`` or ``codes``."""
        return ("one-hot" if self.one_hot else "codes") if self.texts else "number"

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
        ``one_hot``. Surrounding blanks are ignored. Raises ValueError if a cell is not a number in
        a column of numbers.
        """
        if self.texts:
            places, unseen = self.places(), self.unseen
            return np.array([places.get(text_of(v), unseen) for v in cells], dtype=np.float32)
        numbers: Any = np.asarray(cells if hasattr(cells, "dtype") else [*cells])
        if numbers.dtype.kind == "M":
            numbers = (numbers - EPOCH) / np.timedelta64(1, "D")
        elif numbers.dtype.kind not in "biuf":
            numbers = np.array([_number(v) for v in numbers.ravel().tolist()], dtype=np.float64)
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


def _number(cell: Any) -> float:
    """Return a cell as a number, NaN if missing."""
    if isinstance(cell, date):
        if not isinstance(cell, datetime):
            return float(cell.toordinal() - date(1970, 1, 1).toordinal())
        return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp() / 86400
    if isinstance(cell, str | bytes | complex):
        raise ValueError(f"{cell!r:.60} is not a number")
    try:
        return nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        if str(cell) in NO_TEXT:
            return nan
        raise ValueError(f"{cell!r:.60} is not a number") from None
