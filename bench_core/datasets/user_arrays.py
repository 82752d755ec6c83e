"""A user's own data in memory: arrays, data frames, series and mappings of columns.

They become the same parts as files (``user_data``). Columns without names are ``x0``, ``x1``, ...
Rows are grouped by query, with queries in order of first appearance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.frames import pandas_of, polars_of
from bench_core._io.large_arrays import inputs_digest
from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.price_table import PriceColumn, columns_named
from bench_core.data import MOST_ROWS, Queries, Task
from bench_core.datasets.readers.number_formats import with_days, with_decimal_commas
from bench_core.datasets.readers.tables import DataColumn, DataTable
from bench_core.datasets.table_options import USUAL, TableOptions
from bench_core.datasets.user_data import (
    TablePart,
    columns_of_prices,
    prices_of_rows,
    score_columns,
    splits_of,
)
from bench_core.errors import InputError, unknown
from bench_core.option_fields import listed
from bench_core.protocols import Source
from bench_core.splits import Splits

if TYPE_CHECKING:
    import pandas as pd


class InMemory:
    """Splits, one for each fold, as a data set. The cache keeps them under a digest of their
    content. ``transformer``: fitted on the training rows of the first fold, if there is one."""

    files = ()

    def __init__(self, name: str, *splits: Splits, transformer: Any = None) -> None:
        self.name, self.title, self.task = name, f"{name} (in memory)", splits[0].task
        self.splits, self.folds, self.transformer = splits, len(splits), transformer
        self.depends_on = ("fold",) if self.folds > 1 else ()

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Return the splits of a fold."""
        return self.splits[fold]

    def stamp(self, source: Source) -> str:
        """Return a digest of everything in the splits."""
        return inputs_digest(self.splits)


def array_splits(
    X: Any,
    y: Any,
    queries: Any = None,
    split: Any = None,
    valid: Any = None,
    test: Any = None,
    sample_weight: Any = None,
    options: TableOptions = USUAL,
    fold: int = 0,
) -> Splits:
    """Return the splits of data in memory, where every feature costs 1.

    ``X`` (n, d): numbers, NaN = missing; a frame may also have columns of text or categories, which
    are encoded as in files. ``y`` (n,): numbers or text. ``queries`` (n,): ids. ``split`` (n,): the
    words train, valid and test. These three may be column names of a frame or mapping.
    ``sample_weight`` (n,): numbers of copies of the rows of X. ``valid`` and ``test``: pairs
    (X, y), triples (X, y, queries), or, if ``y`` is a column's name, frames like ``X``.
    ``options`` are as for files; a 0 stored in a sparse matrix is a number. Raises InputError, in
    one line, for unusable data.
    """
    tables = {"train": _part("X", X, y, queries, split, sample_weight, options)}
    for name, rows in (("valid", valid), ("test", test)):
        if rows is None:
            continue
        if (isinstance(y, str) or options.choose) and not isinstance(rows, tuple):
            rows = (rows, y, queries if isinstance(queries, str) else None)
        if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
            kind = type(rows).__name__
            raise InputError(f"{name} is a {kind}; give a pair (X, y), or (X, y, queries)")
        cells, labels, ids = (*rows, None)[:3]
        if ids is None and queries is not None and options.task in ("", Task.RANKING):
            raise InputError(f"{name} has no queries, which X has; give (X, y, queries)")
        tables[name] = _part(name, cells, labels, ids, None, None, replace(options, keep_column=()))
    column = split if isinstance(split, str) else ""
    return splits_of(tables, replace(options, split=column), fold)


def _part(
    name: str, X: Any, y: Any, queries: Any, split: Any, weight: Any, options: TableOptions
) -> TablePart:
    """Return one part; ``name`` is the name of X in messages."""
    label = "y" if name == "X" else f"{name}'s y"
    frame, named = data_frame(_dense(X, options.unwritten), name)  # named: columns have names
    if options.choose and (y is not None or queries is not None or not named):
        raise InputError(f"choose names columns of {name}: give a frame, without y and queries")
    roles = {"y": y, "queries": queries, "split": split}
    columns = [("drop", n) for t in options.drop for n in listed(t, frame.columns.__contains__)]
    columns += [(role, value) for role, value in roles.items() if isinstance(value, str)]
    for what, column in (*columns, *(("keep_column", kept) for kept in options.keep_column)):
        if not named:
            raise InputError(f"{what}={column!r} names a column, and {name} has no names")
        if column not in frame.columns:
            of = "" if name == "X" else f" of {name}"
            raise InputError(f"{what}{of}: {unknown('column', column, [*frame.columns])}")
    y, queries, split = (
        frame[value] if isinstance(value, str) else value for value in roles.values()
    )
    frame = frame.drop(columns=[column for _, column in columns]).reset_index(drop=True)
    if min(frame.shape) == 0:
        raise InputError(f"{name} has shape {frame.shape}; give at least one row and one feature")
    if y is None and not options.choose:
        raise InputError(f"{label} is missing: give the label of each row")
    if queries is None and options.task == Task.RANKING:
        raise InputError(f"{name}: ranking needs queries: the id of each row's query")
    n = len(frame)
    order = grouped_rows(queries, n)[0]

    def column_of(values: Any, called: str, name: str = "") -> DataColumn | None:
        if values is None:
            return None
        series = row_values(values, called, n).iloc[order]
        return DataColumn(series, name, called, lambda row: f"{called}, row {order[row]}")

    table = DataTable(
        Path(name),
        frame if queries is None else frame.iloc[order],
        lambda row: f"{name}, row {order[row]}",
    )
    table = with_decimal_commas(table) if options.decimal == "," else table
    scores = score_columns(options, table)
    labels = table.column(next(iter(scores))) if scores else column_of(y, label)
    assert labels is not None
    table, notes = with_days(table, texts=options.dates)
    prices = columns_of_prices(table, options.prices_by_row)
    by_row = {*scores, *(priced.column for priced in options.prices_by_row)}
    weights, copies = column_of(weight, "sample_weight"), None
    if weights is not None:
        copies = weights.numbers(missing=False).astype(np.int64)
        if not np.array_equal(copies, weights.numbers(missing=False)) or copies.min() < 1:
            what = "weights count copies of rows, in whole numbers from 1"
            raise InputError(f"sample_weight: {what}: scale and round them; leave out rows of 0")
        if copies.sum(dtype=np.float64) > MOST_ROWS:
            raise InputError(f"sample_weight: more than {MOST_ROWS} copies in all; scale them")
    name_of_ids = "" if isinstance(queries, Queries) else "queries"  # a place is not an id
    ids = column_of(queries, "queries", name_of_ids)
    return TablePart(
        table,
        tuple(column for column in table.names if column not in by_row),
        *(labels, ids, column_of(split, "split")),
        notes=tuple(notes),
        named=named,
        copies=copies,
        prices=prices,
        scores={source: table.column(column) for column, source in scores.items()},
    )


def _dense(X: Any, unwritten: str) -> Any:
    """Return a sparse matrix as an array, anything else unchanged."""
    if not hasattr(X, "toarray"):
        return X
    cells = X.toarray()
    if unwritten == "missing":
        stored = np.zeros(X.shape, dtype=bool)
        stored[X.tocoo().row, X.tocoo().col] = True
        cells = np.where(stored, cells, np.nan)
    return cells


def data_frame(X: Any, name: str) -> tuple[pd.DataFrame, bool]:
    """Return X as a data frame, and True if its columns have names."""
    import pandas as pd

    if isinstance(X, Mapping) and hasattr(X, "target"):
        raise InputError(f"{name} is a Bunch; give X.data and X.target as X and y")
    X = pandas_of(_filled(X))
    if isinstance(X, pd.Series):
        raise InputError(
            f"{name} is one column or row; give a table: {name}.to_frame(), of a row "
            f"{name}.to_frame().T"
        )
    if isinstance(X, Mapping) and X and all(map(np.isscalar, X.values())):
        raise InputError(f"{name} is one row; give a table: [{name}]")
    try:
        if isinstance(X, Mapping):
            columns = {column: pandas_of(cells) for column, cells in X.items()}
            sizes = {len(cells) if hasattr(cells, "__len__") else 0 for cells in columns.values()}
            X = pd.DataFrame(columns)
            if sizes != {len(X)}:  # pandas fills rows that a column lacks
                raise ValueError("sizes of columns")
        elif isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
            X = pd.DataFrame(X)
        X = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name}: its rows have different lengths, or its columns; give a table (n, d)"
        ) from error
    if isinstance(X, pd.DataFrame) or X.dtype.names:
        X = pd.DataFrame(X)
        X = X.set_axis([str(column) for column in X.columns], axis=1)
        if not X.columns.is_unique:
            column = X.columns[X.columns.duplicated()][0]
            raise InputError(f"{name}: two columns are called {column!r}; rename one")
        return X, True
    if X.ndim != 2:
        raise InputError(f"{name} has shape {X.shape}; give a table (n, d)")
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), False


def without_prices(X: Any, name: str, sensors: Sequence[PriceColumn]) -> tuple[Any, FloatArray]:
    """Return a table without the columns of prices of ``sensors``, and these columns (n, c), each
    once. Raises InputError as files do."""
    frame, named = data_frame(X, name)
    if not named:
        called = ", ".join(columns_named(sensors))
        raise InputError(
            f"{name} has no names; its costs name columns of prices ({called}): give a data frame"
        )
    table = DataTable(Path(name), frame, lambda row: f"{name}, row {row}")
    columns = columns_of_prices(table, sensors)
    rest = frame.drop(columns=[column.name for _, column in columns])
    prices = prices_of_rows(columns, rest)
    assert prices is not None
    return (rest if polars_of(X) is None else X[[*rest]]), prices


def check_order(X: Any, values: Any, name: str) -> None:
    """Raise InputError if two pandas indexes hold the same values in different orders."""
    import pandas as pd

    index, order = getattr(X, "index", None), getattr(values, "index", None)
    if not isinstance(index, pd.Index) or not isinstance(order, pd.Index) or index.equals(order):
        return
    if len(index) == len(order) and Counter(index) == Counter(order):
        sort = f"{name}.loc[X.index] or " if index.is_unique else ""
        remedy = f"give {sort}{name}.to_numpy()"
        raise InputError(f"{name}'s index has another order than X's; {remedy}")


def _filled(values: Any) -> Any:
    """Replace masked cells of an array by missing values."""
    if not np.ma.isMaskedArray(values) or values.dtype.names:
        return values
    plain = values.dtype.kind in "biuf"
    cells: Any = values.astype(np.float64 if plain else object)
    return cells.filled(np.nan if plain else None)


def row_values(values: Any, name: str, n: int) -> pd.Series[Any]:
    """Return one value for each of ``n`` rows."""
    import pandas as pd

    values = values.index() if isinstance(values, Queries) else _filled(_dense(values, ""))
    values = pandas_of(values)
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    if isinstance(values, Mapping | str | set | pd.DataFrame) or not hasattr(values, "__iter__"):
        kind = type(values).__name__
        raise InputError(f"{name} is a {kind}; give one value for each of the {n} rows")
    if not isinstance(values, pd.Series):
        values = np.asarray(values if hasattr(values, "dtype") else list(values))
    if values.ndim != 1:
        raise InputError(f"{name} has shape {values.shape}; give one value for each row: ({n},)")
    if len(values) != n:
        sizes = name == "queries" and values.dtype.kind in "iu" and sum(values) == n
        hint = ": numpy.repeat turns sizes of queries into ids" if sizes else ""
        raise InputError(f"{name} has {len(values)} values for {n} rows{hint}")
    return pd.Series(values).reset_index(drop=True)


def grouped_rows(queries: Any, n: int, name: str = "queries") -> tuple[IntArray, Queries | None]:
    """Return an order of ``n`` rows that groups queries, and the queries. Raises InputError unless
    there is one id for each row."""
    import pandas as pd

    if queries is None:
        return np.arange(n), None
    ids = DataColumn(row_values(queries, name, n), "", name, lambda row: f"{name}, row {row}")
    number, _ = pd.factorize(ids.texts())  # queries in order of first appearance
    return np.argsort(number, kind="stable"), Queries.from_sizes(np.bincount(number))
