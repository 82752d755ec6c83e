"""Data frames of any library, by narwhals: pandas, Polars, PyArrow, Modin and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import InputError, one_line

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = (np.ndarray, list, tuple, Mapping)
"""Types that are not frames, so that narwhals, which takes 0.1 s to import, is not needed."""


def columns_of(values: Any) -> dict[str, Any] | None:
    """Return the columns (n,) of a data frame by name; None for any other value.

    Numbers, dates and times are arrays of their type with NaN or NaT for missing cells. Anything
    else, and integers with missing cells, are objects with None for missing cells.
    """
    frame = _as_narwhals(values)
    if not hasattr(frame, "iter_columns"):
        return None
    return {str(column.name): _cells(column) for column in frame.iter_columns()}


def pandas_of(values: Any) -> Any:
    """Convert a frame or series of another library to pandas; return other values unchanged."""
    import pandas as pd

    if isinstance(values, pd.DataFrame):
        if not any(isinstance(dtype, pd.ArrowDtype) for dtype in values.dtypes):
            return values
        return pd.concat(
            [_without_arrow(values.iloc[:, j]) for j in range(values.shape[1])], axis=1
        )
    if isinstance(values, pd.Series):
        return _without_arrow(values)
    frame = _as_narwhals(values)
    if hasattr(frame, "iter_columns"):
        columns = dict(_series(column) for column in frame.iter_columns())
        return pd.DataFrame(columns, columns=[*columns])
    if hasattr(frame, "to_numpy") and frame is not values:
        return _series(frame)[1]
    return values.to_pandas() if hasattr(values, "to_pandas") else values


def _without_arrow(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a series with pandas' categories or Python's objects in place of Arrow types whose
    values pandas cannot infer: dictionaries, nulls, structs, lists."""
    import pandas as pd

    if pd.api.types.infer_dtype(series) != "unknown-array":
        return series
    import pyarrow as pa

    return pd.Series(pa.array(series.array).to_pandas().array, series.index, name=series.name)


def rows_of(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the titles and the rows of a frame, with None for missing cells. Its index is first,
    unless it only numbers the rows of several columns."""
    import pandas as pd

    index = frame.index.to_frame(index=False).set_axis([n or "" for n in frame.index.names], axis=1)
    if isinstance(frame.index, pd.RangeIndex) and frame.shape[1] > 1:
        index = index.iloc[:, :0]
    cells = [
        column.astype(object).where(column.notna(), None).tolist()
        for table in (index, frame)
        for _, column in table.items()
    ]
    titles = [*map(str, index.columns), *map(str, frame.columns)]
    return [titles, *map(list, zip(*cells, strict=True))]


def polars_of(values: Any) -> Any:
    """Return a Polars frame, computed if lazy; None for any other value."""
    import pandas as pd

    if isinstance(values, pd.DataFrame):
        return None
    frame = _as_narwhals(values)
    is_polars = hasattr(frame, "iter_columns") and frame.implementation.is_polars()
    return frame.to_native() if is_polars else None


def _as_narwhals(values: Any) -> Any:
    """Convert a frame or series to narwhals, computed if lazy; return other values unchanged."""
    if isinstance(values, _PLAIN):
        return values
    import narwhals as nw

    frame = nw.from_native(values, pass_through=True, allow_series=True)
    if not isinstance(frame, nw.LazyFrame):
        return frame
    try:
        return frame.collect()
    except Exception as error:  # any error of a query of the user
        raise InputError(f"lazy frame not computed: {one_line(str(error))[:200]}") from error


def _cells(column: Any) -> Any:
    """Return the cells (n,) of a series; those without a NumPy type as Python's objects."""
    import narwhals as nw

    objects = (nw.Int128, nw.UInt128, nw.Struct, nw.Array)
    try:
        if column.dtype not in objects and not (column.dtype.is_integer() and column.null_count()):
            return column.to_numpy()
        return np.fromiter(column.to_list(), dtype=object, count=len(column))
    except Exception as error:  # of the frame's library, which has types without a NumPy form
        what = f"column {str(column.name)!r} holds {column.dtype}, which NumPy lacks"
        raise InputError(f"{what}: give numbers, text or categories") from error


def _series(column: Any) -> tuple[str, pd.Series[Any]]:
    """Return the name of a series, and the series in pandas."""
    import narwhals as nw
    import pandas as pd

    cells = _cells(column)
    if column.dtype in (nw.Categorical, nw.Enum):
        cells = pd.Categorical(cells)
    return str(column.name), pd.Series(cells)
