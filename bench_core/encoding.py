"""How the columns of a user's table become features, and the same for one cell of a row to serve.

Numbers stay numbers, dates days; an offset may be subtracted, so that float32 tells them apart. A
column of few texts becomes a feature of 0 and 1 for each text of the training rows, another one a
feature of codes. A missing cell is missing in all features of its column. A text of no training row
is 0 in all of them, or a missing code.
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
"""What missing values other than text look like as text."""


@dataclass(frozen=True, slots=True)
class ColumnEncoding:
    """The encoding of one column.

    ``texts`` are those of the training rows, the most frequent first, () for numbers; ``one_hot``:
    each has a feature of its own; ``missing``: further texts that stand for no value; ``offset`` is
    subtracted from numbers; ``made``: the features that a transformer of this name has made.
    """

    name: str
    texts: tuple[str, ...] = ()
    one_hot: bool = False
    missing: tuple[str, ...] = ()
    offset: float = 0.0
    made: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """``number``, ``one-hot`` or ``codes``."""
        return ("one-hot" if self.one_hot else "codes") if self.texts else "number"

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its k features."""
        if self.made:
            return self.made
        if self.one_hot:
            return tuple(f"{self.name}={text}" for text in self.texts)
        return (f"{self.name}-{self.offset:.15g}" if self.offset else self.name,)

    @property
    def unseen(self) -> float:
        """The code of a text of no training row."""
        return -1.0 if self.one_hot else nan

    def places(self) -> dict[str, float]:
        """The codes of texts, also of those that stand for no value."""
        missing = dict.fromkeys(("", *self.missing), nan)
        return missing | {text: float(k) for k, text in enumerate(self.texts)}

    def codes(self, cells: Iterable[Any]) -> Float32Array:
        """One number for each cell (n,): numbers less the offset; for text its place in ``texts``.

        NaN where a cell is missing; dates are days since 1970-01-01. A text of no training row is
        NaN, with ``one_hot`` -1. Texts are taken without blanks around them. Raises ValueError
        where a number is wanted and a cell is none.
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
        """The features (n, k) of what ``codes`` gives (n,)."""
        if not self.one_hot:
            return codes[:, None]
        made: Float32Array = (codes[:, None] == np.arange(len(self.texts))).astype(np.float32)
        made[np.isnan(codes)] = nan
        return made


def plain_encodings(names: Sequence[str]) -> tuple[ColumnEncoding, ...]:
    """Columns that are features as they are."""
    return tuple(map(ColumnEncoding, names))


def encodings_from(documents: Iterable[Mapping[str, Any]]) -> tuple[ColumnEncoding, ...]:
    """The encodings that ``asdict`` made into JSON."""
    lists = ("texts", "missing", "made")
    made = ({**own, **{name: tuple(own[name]) for name in lists}} for own in documents)
    return tuple(ColumnEncoding(**own) for own in made)


def text_of(cell: Any) -> str:
    """A cell as text, "" where it is missing."""
    if isinstance(cell, str):
        return cell.strip()
    text = str(cell)
    return "" if text in NO_TEXT else text


def _number(cell: Any) -> float:
    """A cell as a number, NaN where it is missing."""
    if isinstance(cell, date):
        if not isinstance(cell, datetime):
            return float(cell.toordinal() - date(1970, 1, 1).toordinal())
        return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)).timestamp() / 86400
    if isinstance(cell, str | bytes | complex):
        raise ValueError(f"{cell!r:.60} is no number")
    try:
        return nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        if str(cell) in NO_TEXT:
            return nan
        raise ValueError(f"{cell!r:.60} is no number") from None
