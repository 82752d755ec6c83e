"""Rows of users as learners see them, for the estimators.

X becomes float32, with text encoded and prices by row apart; ``queries``, ``groups`` and
``sample_weight`` become groups of rows and numbers of copies.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_X_y,
    validate_data,
)

from bench_core._io.frames import polars_of
from bench_core.api.arguments import costs_of
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.cost_file import price_columns_of
from bench_core.costs.price_table import PriceColumn, columns_named
from bench_core.data import MOST_ROWS, Examples, Queries
from bench_core.datasets.readers.number_formats import with_days, with_decimal_commas
from bench_core.datasets.readers.tables import (
    EXACT,
    NUMBERS,
    DataColumn,
    DataTable,
    float32_offset,
    read_features,
)
from bench_core.datasets.user_arrays import data_frame, grouped_rows, without_prices
from bench_core.datasets.user_data import LARGEST_GRADE, frame_encodings
from bench_core.encoding import ColumnEncoding
from bench_core.errors import BenchError
from bench_core.serving.raw_rows import RawColumns, columns_by_name


class RowReader(BaseEstimator):
    """Base of estimators that read X, with the parameters that decide how."""

    costs: Any
    decimal: str
    dates: bool

    def _examples(
        self, X: Any, y: Any, queries: Any = None, weight: Any = None, *, ranking: bool, **more: Any
    ) -> Examples:
        """Return X as float32 (n, d) and y (n,) as rows to learn from. Raises ValueError."""
        rows, y, paid = self._checked(X, y, y_numeric=True, **more)
        return self._rows(rows, y.astype(np.float64), paid, queries, weight, ranking)

    def _rows(
        self, X: Any, y: Any, paid: Any, queries: Any, weight: Any, ranking: bool
    ) -> Examples:
        """Return rows that represent ``weight`` copies each; rows of weight 0 are left out."""
        if ranking and not bool(np.all((y >= 0) & (y <= LARGEST_GRADE))):
            raise ValueError(f"y holds grades, which must be from 0 to {LARGEST_GRADE:g}")
        copies = None if weight is None else copies_of(weight, X)
        order, units, name = np.arange(len(X)), None, "queries" if ranking else "groups"
        if ranking or queries is not None:
            order, units = in_groups(queries, len(X), name)
        if copies is not None:
            order = order[copies[order] > 0]
            if units is not None:
                ids = None if queries is None else np.asarray(queries)[order]
                units = in_groups(ids, len(order), name)[1]
        of_rows = None if copies is None else copies[order], None if ranking else units
        paid = None if paid is None else paid[order]
        return Examples(X[order], y[order], units if ranking else None, *of_rows, paid)

    def _without_prices(
        self, X: Any, sensors: Sequence[PriceColumn]
    ) -> tuple[Any, FloatArray | None]:
        """Return X without the columns of prices of some sensors, and the prices by row (n, c), NaN
        for those of the others; None without sensors."""
        if not sensors:
            return X, None
        with as_value_errors():
            X, known = without_prices(X, "X", sensors)
        paid = np.full((len(known), len(self._price_columns)), np.nan)
        paid[:, [*map(self._price_columns.index, columns_named(sensors))]] = known
        return X, paid

    def _checked(self, X: Any, y: Any, reset: bool = True, **more: Any) -> tuple[Any, Any, Any]:
        """Return X as float32 (n, d), text encoded, y (n,), and prices by row (n, c) or None.
        ``reset``: fit the encodings."""
        if reset:
            with as_value_errors():
                self._by_row = () if self.costs is None else price_columns_of(costs_of(self.costs))
            self._price_columns, names = columns_named(self._by_row), [*(columns_by_name(X) or ())]
            self._price_places = {names.index(c) for c in self._price_columns if c in names}
        X, paid = self._without_prices(X, self._by_row)
        X = self._table(X, reset)
        if reset:
            _refuse_merged(X)
            self.encodings_ = self._text_encodings(X)
        how = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "ensure_min_samples": 2}
        if self.encodings_:
            validate_data(self, X, reset=reset, skip_check_array=True)
            X, y = check_X_y(self._features(X), y, **how, **more)
        else:
            X, y = validate_data(self, X, y, reset=reset, **how, **more)
        if reset:
            found = [float32_offset(column) for column in X.T]
            self.offsets_ = np.array([offset or 0.0 for offset in found])
            if (lost := [j for j, offset in enumerate(found) if offset == 0]) != []:
                warnings.warn(f"float32 merges values of the columns {lost} of X", stacklevel=3)
        return self._cells(X), y, paid

    def _unlabelled(self, X: Any) -> tuple[Float32Array, FloatArray | None]:
        """Return X as float32 (n, d), read as in ``fit``, and prices by row (n, c) or None."""
        there = (columns_by_name(X) or ()) if self._by_row else ()
        X, paid = self._without_prices(X, [one for one in self._by_row if one.column in there])
        X, named = self._table(X), self.encodings_
        how = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        X = validate_data(
            self, X, reset=False, skip_check_array=bool(named), **({} if named else how)
        )
        X = self._cells(check_array(self._features(X), estimator=self, **how) if named else X)
        if paid is None and self._by_row:  # at the mean prices
            paid = np.full((len(X), len(self._price_columns)), np.nan)
        return X, paid

    def _table(self, X: Any, reset: bool = False) -> Any:
        """Return tables that numpy cannot convert as pandas frames, sparse matrices as arrays,
        anything else unchanged."""
        if issparse(X):
            return X.toarray()
        objects = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2
        text = objects and any(isinstance(cell, str) for cell in X.ravel().tolist())
        if columns_by_name(X) is None and not text and not hasattr(X, "to_frame"):
            return X
        with as_value_errors():
            frame, named = data_frame(X, "X")
        if not named and not reset and [*frame] != [*getattr(self, "feature_names_in_", ())]:
            return X  # in the order of the columns in ``fit``
        # Polars has integers that its own conversion to NumPy refuses
        numbers = hasattr(X, "__array__") and polars_of(X) is None and not _has_text(frame)
        return X if numbers else frame

    def _text_encodings(self, X: Any) -> tuple[ColumnEncoding, ...]:
        """Return the encodings of a frame's columns, () if all are numbers."""
        frame = columns_by_name(X)
        if frame is None or not _has_text(frame):
            return ()
        table = DataTable(Path("X"), X, lambda row: f"X, row {row}")
        with as_value_errors():
            table = with_decimal_commas(table) if self.decimal == "," else table
            table, _ = with_days(table, texts=self.dates)
            (read,) = read_features([table], table.names)
        return frame_encodings(read, [], formats=table.formats)

    def _features(self, X: Any) -> FloatArray:
        """Return a table with columns of text as numbers (n, d)."""
        raw, columns = RawColumns(self.encodings_), columns_by_name(X)
        with as_value_errors():
            cells = raw.table(X if columns is None else columns, range(len(raw.names)))
        return cells.astype(np.float64)

    def _cells(self, X: FloatArray) -> Float32Array:
        """Return cells as float32, minus ``offsets_``, which keep the values of a column
        distinct."""
        with np.errstate(over="ignore"):
            cells: Float32Array = (X - self.offsets_).astype(np.float32)
        if np.isinf(cells).any():
            raise ValueError("X holds a value too large for float32; scale its column")
        return cells


def in_groups(queries: Any, n: int, name: str = "queries") -> tuple[IntArray, Queries]:
    """Return an order of the rows that groups queries, and the queries; without ids all rows are
    one query."""
    with as_value_errors():
        order, groups = grouped_rows(queries, n, name)
    return order, groups or Queries(np.array([0, n]))


def _has_text(frame: Any) -> bool:
    return any(DataColumn(frame[name], name, "X", str).kind not in NUMBERS for name in frame)


def copies_of(sample_weight: Any, X: Any) -> IntArray:
    """Return the number of copies of each row of X (n,)."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must have a number above 0, all are zero")
    if (part := weight[weight != np.rint(weight)]).size:
        raise ValueError(
            f"sample_weight holds {part[0]:g}: weights count copies of rows; scale and round "
            "them to whole numbers, as numpy.rint(10 * weight)"
        )
    if weight.sum() > MOST_ROWS:
        raise ValueError(f"sample_weight counts more than {MOST_ROWS} copies in all; scale it")
    return np.asarray(weight, dtype=np.int64)


def _refuse_merged(X: Any) -> None:
    """Raise ValueError for a column of integers of which float64, as learners get X, makes some
    equal."""
    columns: Any = columns_by_name(X)
    if columns is None:
        columns = dict(enumerate(X.T)) if getattr(X, "ndim", 0) == 2 else {}
    for name in columns:
        cells = np.asarray(columns[name])
        if cells.dtype.kind not in "iu" or not (np.abs(cells.astype(np.float64)) > EXACT).any():
            continue
        if len(np.unique(cells)) > len(np.unique(cells.astype(np.float64))):
            what = "integers beyond 2^53, of which float64 makes some equal"
            raise ValueError(f"X, column {name!r} holds {what}: subtract a constant")


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Raise our errors as ValueError, as scikit-learn does."""
    try:
        yield
    except BenchError as error:
        raise ValueError(str(error)) from error
