"""Rows of raw columns (``city``) for a program that reads features (``city=Ulm``)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from math import isnan, nan
from struct import error, pack_into
from typing import Any

import numpy as np

from bench_core._io.frames import columns_of
from bench_core.arrays import Float32Array, IntArray
from bench_core.encoding import LAST_DAY, ColumnEncoding, number_of, place_in, plain_encodings
from bench_core.errors import UsageError, one_line, shortened

AcquireFor = Callable[[int, list[str]], Sequence[Any] | Mapping[str, Any]]
"""A caller's function: the cells of columns of a row, by its number."""


class RawColumns:
    """The raw columns of a model, in the order of its features (d,)."""

    def __init__(self, encodings: tuple[ColumnEncoding, ...]) -> None:
        self.encodings = encodings
        self.names = tuple(encoding.name for encoding in encodings)
        self.labels: Any = np.array(self.names, dtype=object)
        # True if columns of numbers are features unchanged
        self.plain = encodings == plain_encodings(self.names)
        self.most = [LAST_DAY if one.kind == "date" else 1e38 for one in encodings]
        self.words = [_only_words(encoding.texts) for encoding in encodings]
        self.places = [encoding.places() if encoding.texts else None for encoding in encodings]
        sizes = [len(encoding.features) for encoding in encodings]
        self.first: list[int] = np.cumsum([0, *sizes]).tolist()  # first feature of each column
        self.column: list[int] = np.repeat(np.arange(len(sizes)), sizes).tolist()
        # the code for which a feature is 1; -1 if the feature is the code
        self.level: list[int] = []
        for encoding in encodings:
            self.level += range(len(encoding.texts)) if encoding.one_hot else [-1]

    def of(self, features: Iterable[int]) -> list[int]:
        """Return the raw columns of features, each once."""
        return [*dict.fromkeys(self.column[f] for f in features)]

    def code(self, column: int, cell: Any) -> float:
        """Return the number of one cell. Raises UsageError if it must be a number and is not."""
        places = self.places[column]
        if places is not None:
            if type(cell) is not str:
                self._check_words(column, [cell])
            return place_in(places, cell, self.encodings[column].unseen)
        if type(cell) is float and -1e38 < cell < self.most[column]:  # in a tenth of the time
            return cell - self.encodings[column].offset
        return float(self._codes(column, [cell])[0])

    def _check_words(self, column: int, cells: Iterable[Any]) -> None:
        """Raise UsageError for a number or boolean in a column that had only words in training."""
        if self.words[column]:
            for cell in cells:
                if isinstance(cell, int | float | np.bool_ | np.number) and cell == cell:
                    known = shortened([*map(repr, self.encodings[column].texts)], 3)
                    what = f"column {self.names[column]!r} needs text ({known})"
                    raise UsageError(f"{what}: {cell!r} is not text")

    def _codes(self, column: int, cells: Any) -> Float32Array:
        try:
            codes = self.encodings[column].codes(cells)
            if codes.ndim != 1:
                raise ValueError(f"{cells!r:.60} is not a list of single cells")
            return codes
        except ValueError as error:
            kind = self.encodings[column].kind
            what = f"column {self.names[column]!r} needs {kind}s, None if missing"
            raise UsageError(f"{what}: {error}") from None

    def table(self, X: Any, needed: Iterable[int]) -> Float32Array:
        """Return rows as features (n, d), NaN in columns not ``needed``, which may be absent.

        X: a mapping of columns, or an array (n, columns).
        """
        if not isinstance(X, Mapping):
            X = np.asarray(X)
            if X.ndim != 2 or X.shape[1] != len(self.names):
                raise UsageError(f"X must be (n, {len(self.names)}), not {X.shape}")
            X = dict(zip(self.names, X.T, strict=True))
        features = np.full((len(next(iter(X.values()), ())), self.first[-1]), nan, dtype=np.float32)
        for column in needed:
            name, first, last = self.names[column], *self.first[column : column + 2]
            if name not in X:
                hint = ""
                if any(str(column_name).endswith(f"__{name}") for column_name in X):
                    hint = "; give a transformer's rows as an array: numpy.asarray(X)"
                elif "__" in name:
                    hint = "; give rows of the run's transformer, saved from result.transformer"
                raise UsageError(f"X has no column {name!r}, which the model may ask for{hint}")
            if self.words[column]:
                self._check_words(column, X[name])  # numpy makes text of mixed cells
            cells = np.asarray(X[name])
            codes = self._codes(column, cells if cells.dtype.kind in "biufM" else cells.tolist())
            features[:, first:last] = self.encodings[column].spread(codes)
        return features


def _only_words(texts: Collection[str]) -> bool:
    """True if there are texts and none of them is a number or a boolean as text."""
    for text in texts:
        with suppress(ValueError):
            number_of(text)
            return False
    return bool(texts)


def columns_by_name(X: Any) -> Mapping[str, Any] | None:
    """Return the columns of a data frame, mapping or list of mappings; None for an array."""
    if hasattr(X, "toarray"):  # sparse, perhaps a mapping of cells
        return None
    if isinstance(X, Mapping):
        return X
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return {name: [row[name] for row in X] for name in X[0] if all(name in row for row in X)}
    return columns_of(X)


class AskedCells:
    """Columns requested from rows, each once, and the cells that a caller returned for them."""

    def __init__(self, columns: RawColumns, rows: int) -> None:
        self.columns = columns
        self.names: list[list[str]] = [[] for _ in range(rows)]  # in order of request
        self._codes: list[dict[int, float]] = [{} for _ in range(rows)]  # by column

    def fill(self, row: int, features: IntArray, values: Float32Array, acquire: AcquireFor) -> None:
        """Write the values of a row's features; ``acquire`` returns the cells of new columns."""
        raw = self.columns
        if raw.plain:
            names: list[str] = raw.labels[features].tolist()
            self.names[row] += names
            return _put(values, acquire(row, [*names]), names)
        codes = self._codes[row]
        new = [c for c in raw.of(features.tolist()) if c not in codes]
        if new:
            names = [raw.names[c] for c in new]
            self.names[row] += names
            cells = listed(acquire(row, [*names]), names)
            codes |= {c: raw.code(c, cell) for c, cell in zip(new, cells, strict=True)}
        for k, f in enumerate(features.tolist()):
            code, level = codes[raw.column[f]], raw.level[f]
            values[k] = code if level < 0 or isnan(code) else code == level
        return None


def listed(cells: Any, names: list[str]) -> Any:
    """Return the cells that a caller's function returned for columns, in order."""
    if hasattr(cells, "keys"):  # a mapping, or a row of a frame
        if lost := [name for name in names if name not in cells]:
            raise UsageError(f"the row has no column {lost[0]!r}; give None where it is missing")
        return [cells[name] for name in names]
    if not isinstance(cells, list | tuple | np.ndarray):
        if not isinstance(cells, Iterable):
            kind = type(cells).__name__
            raise UsageError(f"acquire returned a {kind}; return a list of values, or a mapping")
        # not numbers, or unordered
        unsound = isinstance(cells, str | bytes | Set)
        cells = [cells] if unsound else list(cells)
    if len(cells) != len(names):
        asked = ", ".join([*names[:3], *(["..."] if len(names) > 3 else [])])
        raise UsageError(
            f"acquire returned {len(cells)} values for {len(names)} features "
            f"({asked}); return one for each, None where it is missing"
        )
    return cells


def _put(values: Float32Array, cells: Any, names: list[str]) -> None:
    """Write into ``values`` the cells returned for columns of plain numbers."""
    cells = listed(cells, names)
    if not isinstance(cells, np.ndarray):
        try:  # three times as fast as numpy
            return pack_into(f"{len(cells)}f", values.data, 0, *cells)
        except (error, OverflowError):  # a value is None, text or too large
            if any(isinstance(cell, str) or str(cell) in ("NaT", "<NA>") for cell in cells):
                raw = RawColumns(plain_encodings(names))
                cells = [raw.code(column, cell) for column, cell in enumerate(cells)]
    values[:] = narrow(cells, dimensions=1)
    return None


def narrow(values: Any, dimensions: int = 0) -> Float32Array:
    """Convert real numbers, None for NaN, to float32; too large cells are infinite, as in training.
    Raises UsageError for anything else, including text and complex numbers."""
    if type(values) is np.ndarray and values.dtype == np.float32 and dimensions in (0, values.ndim):
        return values
    try:
        cells = np.ma.filled(values, nan)  # an array
        if cells.dtype == object:
            flat = [nan if v is None else v for v in cells.ravel().tolist()]
            cells = np.array(array("d", flat)).reshape(cells.shape)
    except (TypeError, ValueError, OverflowError):  # ragged, or of no numbers
        cells = np.array("")
    if cells.dtype.kind not in "biuf" or dimensions not in (0, cells.ndim):
        shown = one_line(repr(values), 60)
        raise UsageError(f"cells must be real numbers, None where missing, not {shown}")
    with np.errstate(over="ignore"):
        return cells.astype(np.float32, copy=False)
