"""Rows of raw columns (``city``) for a program that reads features (``city=Ulm``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any

import numpy as np

from bench_core._io.frames import columns_of
from bench_core.arrays import Float32Array, IntArray
from bench_core.encoding import ColumnEncoding, place_in
from bench_core.errors import UsageError


class RawColumns:
    """The raw columns of a model, in the order of its features (d,)."""

    def __init__(self, encodings: tuple[ColumnEncoding, ...]) -> None:
        self.encodings = encodings
        self.names = tuple(own.name for own in encodings)
        self.places = [own.places() if own.texts else None for own in encodings]
        sizes = [len(own.features) for own in encodings]
        self.first: list[int] = np.cumsum([0, *sizes]).tolist()  # first feature of each column
        self.column: list[int] = np.repeat(np.arange(len(sizes)), sizes).tolist()
        # the code for which a feature is 1; -1 if the feature is the code
        self.level: list[int] = []
        for own in encodings:
            self.level += range(len(own.texts)) if own.one_hot else [-1]

    def of(self, features: Iterable[int]) -> list[int]:
        """Return the raw columns of features, each once."""
        return [*dict.fromkeys(self.column[f] for f in features)]

    def code(self, column: int, cell: Any) -> float:
        """Return the number of one cell. Raises UsageError if it must be a number and is not."""
        places = self.places[column]
        if places is not None:
            return place_in(places, cell, self.encodings[column].unseen)
        return float(self._codes(column, [cell])[0])

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
        made = np.full((len(next(iter(X.values()), ())), self.first[-1]), nan, dtype=np.float32)
        for column in needed:
            name, first, last = self.names[column], *self.first[column : column + 2]
            if name not in X:
                hint = ""
                if any(str(other).endswith(f"__{name}") for other in X):
                    hint = "; give a transformer's rows as an array: numpy.asarray(X)"
                elif "__" in name:
                    hint = "; give rows of the run's transformer, saved from result.transformer"
                raise UsageError(f"X has no column {name!r}, which the model may ask for{hint}")
            cells = np.asarray(X[name])
            codes = self._codes(column, cells if cells.dtype.kind in "biufM" else cells.tolist())
            made[:, first:last] = self.encodings[column].spread(codes)
        return made


def columns_by_name(X: Any) -> Mapping[str, Any] | None:
    """Return the columns of a data frame, mapping or list of mappings; None for an array."""
    if hasattr(X, "toarray"):  # sparse, perhaps a mapping of cells
        return None
    if isinstance(X, Mapping):
        return X
    if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
        return {name: [row[name] for row in X] for name in X[0] if all(name in row for row in X)}
    return columns_of(X)


class AskedRow:
    """Codes of the columns requested from one row, by column, in order of request."""

    def __init__(self, columns: RawColumns) -> None:
        self.columns, self.codes = columns, dict[int, float]()

    def new(self, features: IntArray) -> list[int]:
        """Return the columns of features that were not requested yet."""
        return [c for c in self.columns.of(features.tolist()) if c not in self.codes]

    def put(self, features: IntArray, values: Float32Array) -> None:
        """Write the values of features whose columns were requested."""
        for k, f in enumerate(features.tolist()):
            code, level = self.codes[self.columns.column[f]], self.columns.level[f]
            values[k] = code if level < 0 or isnan(code) else code == level
