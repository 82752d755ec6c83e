"""A user's own data in memory: arrays, data frames, series and mappings of columns.

They become the same parts as files, so splits, tasks, classes and refusals are those of
``user_files``. Columns without names are ``x0``, ``x1``, ... Rows of a query are put together,
queries in the order in which they first come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.digests import digest
from bench_core.arrays import Float32Array, IntArray
from bench_core.data import Queries
from bench_core.datasets.cache import fingerprint
from bench_core.datasets.file_parts import Part
from bench_core.datasets.priced import to_json
from bench_core.datasets.readers.texts import (
    TextArray,
    cells,
    has_decimal_commas,
    no_categories,
    refuse_long,
)
from bench_core.datasets.splitting import hashed
from bench_core.datasets.user_files import splits_of
from bench_core.errors import InputError, unknown
from bench_core.protocols import Source
from bench_core.splits import Splits

if TYPE_CHECKING:
    import pandas as pd

FEW = 6
"""So many columns are named in an error."""
Texts = dict[str, TextArray]
NUMBERS = ("integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty")


class InMemory:
    """Splits, one for each fold, as a data set: prepared data keep them under a digest of all that
    they hold."""

    files = ()

    def __init__(self, name: str, *splits: Splits) -> None:
        self.name, self.title, self.task = name, f"{name} (in memory)", splits[0].task
        self.splits, self.folds = splits, len(splits)
        self.depends_on = ("fold",) if self.folds > 1 else ()

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The splits that it was made of."""
        return self.splits[fold]

    def stamp(self, source: Source) -> str:
        """A digest of arrays, names, prices, task and notes."""
        return digest([_contents(own) for own in self.splits])


def _contents(own: Splits) -> list[Any]:
    costs = [to_json(own.costs), to_json(own.prices), own.costs_assumed]
    about = [own.feature_names, own.origins, own.task, own.classes, own.stand_in, own.notes]
    return [fingerprint(own), costs, about]


def array_splits(
    X: Any,
    y: Any,
    queries: Any = None,
    split: Any = None,
    valid: Any = None,
    test: Any = None,
    task: str = "",
    drop: Sequence[str] = (),
    shares: tuple[float, ...] = (),
    turn: float = 0.0,
) -> Splits:
    """The splits of data in memory, where every feature costs 1.

    ``X`` (n, d) numbers, NaN = missing, and of a frame also columns of text or categories, which
    become numbers as those of files do (``encoding``); ``y`` (n,) numbers or text; ``queries`` (n,)
    ids; ``split`` (n,) of the words train, valid and test. Of a frame or a mapping of columns the
    three may be names of columns. ``valid`` and ``test`` are pairs (X, y), with ids (X, y,
    queries), or, where ``y`` is a column's name, frames like ``X``. Columns of ``drop`` are left
    out; ``shares`` and ``turn`` are as in ``splits_of``. Raises InputError, in one line, for what
    cannot be used.
    """
    given = {"train": _part("X", "y", X, y, queries, split, drop)}
    for name, more in (("valid", valid), ("test", test)):
        if more is not None:
            apart = _taken_apart(name, more, y, queries)
            given[name] = _part(name, f"{name}'s y", *apart, None, drop)
    for name, part in given.items():
        _refuse_other_columns(name, given["train"].names, part.names)
    column = split if isinstance(split, str) else "split"
    return splits_of(given, str(task), column, shares, turn)


def _refuse_other_columns(name: str, wanted: tuple[str, ...], names: tuple[str, ...]) -> None:
    if len(names) != len(wanted):
        raise InputError(f"{name} has {len(names)} features where X has {len(wanted)}")
    there = set(names)
    if missing := [column for column in wanted if column not in there]:
        raise InputError(f"{name} has no column {missing[0]!r}, which X has; give it the same ones")


def _taken_apart(name: str, more: Any, y: Any, queries: Any) -> tuple[Any, Any, Any]:
    """X, y and queries of a validation or test part."""
    if isinstance(y, str) and not isinstance(more, tuple):
        return more, y, queries if isinstance(queries, str) else None
    if not isinstance(more, tuple | list) or len(more) not in (2, 3):
        raise InputError(f"{name} is {_kind(more)}; give a pair (X, y), or (X, y, queries)")
    X, labels, *ids = more
    return X, labels, ids[0] if ids else None


def _part(
    name: str, label: str, X: Any, y: Any, queries: Any, split: Any, drop: Sequence[str]
) -> Part:
    """One part; ``name`` and ``label`` are what messages call X and y."""
    X = _table(X, name)
    X, _ = _columns_taken(X, name, {f"drop {column}": column for column in drop})
    X, (y, queries, split) = _columns_taken(X, name, {"y": y, "queries": queries, "split": split})
    names, matrix, texts = _matrix(X, name)
    n = len(matrix)
    labels = _labels(y, label, n)
    words = None if split is None else _words(split, "split", n)
    order, groups, unit = grouped_rows(queries, n)
    return Part(
        Path(name),
        matrix[order],
        labels[order],
        groups,
        unit,
        names,
        None if words is None else words[order],
        lambda row: f"{name}, row {int(order[row])}",
        texts={column: text[order] for column, text in texts.items()},
    )


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def _table(X: Any, name: str) -> Any:
    """X as a data frame, where its columns have names or types of their own, else as an array."""
    import pandas as pd

    if isinstance(X, Mapping) and hasattr(X, "target"):
        raise InputError(f"{name} is a whole data set; give X.data and X.target as X and y")
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "toarray"):
        X = X.toarray()
    if isinstance(X, Mapping):
        try:
            return pd.DataFrame({str(key): value for key, value in X.items()})
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: its columns make no table ({error})") from error
    if isinstance(X, pd.Series):
        raise InputError(f"{name} is one column; give a table: {name}.to_frame()")
    if isinstance(X, pd.DataFrame):
        return X
    try:
        X = np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name}: its rows have different lengths; give a table (n, d)") from error
    if X.dtype.names:
        return pd.DataFrame(X)
    if X.ndim != 2:
        raise InputError(f"{name} has shape {X.shape}; give a table (n, d)")
    return X if X.dtype.kind in "biuf" else pd.DataFrame(X, columns=_numbered(X.shape[1]))


def _numbered(columns: int) -> list[str]:
    return [f"x{j}" for j in range(columns)]


def _columns_taken(X: Any, name: str, given: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """X without the columns that ``given`` names, and these columns in their place."""
    wanted = [v for v in given.values() if isinstance(v, str)]
    found = []
    for what, value in given.items():
        if isinstance(value, str):
            if isinstance(X, np.ndarray):
                raise InputError(f"{what}={value!r} names a column, and {name} has no names")
            if value not in X.columns:
                raise InputError(
                    f"{name}: {what}: {unknown('column', value, [*map(str, X.columns)])}"
                )
            value = X[value]
        found.append(value)
    return (X.drop(columns=wanted) if wanted else X), found


def _matrix(X: Any, name: str) -> tuple[tuple[str, ...], Float32Array, Texts]:
    """The features' names, their values float32 (n, d), NaN in columns of text, and these."""
    if min(X.shape) == 0:
        raise InputError(f"{name} has shape {X.shape}; give at least one row and one feature")
    texts: Texts = {}
    if isinstance(X, np.ndarray):
        names, values = _numbered(X.shape[1]), X.astype(np.float64)
    else:
        names = [str(column) for column in X.columns]
        values, texts = _values(X, names, name)
    for column, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{name}: two columns are called {column!r}; rename one")
    with np.errstate(over="ignore"):
        matrix = values.astype(np.float32)
    for row, j in np.argwhere(np.isinf(matrix))[:1]:
        raise InputError(
            f"{name}, row {row}, column {names[j]!r}: the value is infinite, or too large for "
            "float32; correct it"
        )
    return tuple(names), matrix, texts


def _values(X: pd.DataFrame, names: Sequence[str], name: str) -> tuple[NDArray[np.float64], Texts]:
    """A frame's numbers (n, d), NaN in columns of text, and these; InputError names all columns
    that are neither numbers nor categories."""
    values, texts, faults = np.full(X.shape, np.nan), {}, []
    for j, column in enumerate(names):
        given = X.iloc[:, j]
        if _is_numeric(given):
            values[:, j] = given.to_numpy(dtype=np.float64, na_value=np.nan)
        elif what := _no_text(given):
            faults.append(f"{column!r} holds {what}")
        else:
            texts[column] = cells(given)
            refuse_long(texts[column], lambda row: f"{name}, row {row}", column)
    if faults:
        more = f"; {len(faults) - FEW} more columns" if len(faults) > FEW else ""
        listed = "; ".join(faults[:FEW]) + more
        raise InputError(f"{name}: column {listed}; or leave them out: drop=[...]")
    return values, texts


def _no_text(column: pd.Series[Any]) -> str:
    """What a column that is not numeric holds in place of categories, or ""."""
    import pandas as pd

    categories = isinstance(column.dtype, pd.CategoricalDtype)
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if not categories and kind not in ("string", "mixed-integer"):
        return f"values of type {kind}: give numbers, text or categories"
    texts = cells(column)
    known = texts[texts != ""]
    if has_decimal_commas(texts):
        return f"numbers with decimal commas ({str(known[0])!r}): write decimal points"
    numbers = pd.to_numeric(pd.Series(known, dtype=object), errors="coerce").notna()
    if not categories and numbers.sum() * 2 > len(known):
        return f"numbers as text ({str(known[0])!r}): pandas.to_numeric reads them"
    return no_categories(texts)


def _is_numeric(column: pd.Series[Any]) -> bool:
    import pandas as pd

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return True
    return pd.api.types.infer_dtype(column, skipna=True) in NUMBERS and not isinstance(
        column.dtype, pd.CategoricalDtype
    )


def _labels(y: Any, name: str, n: int) -> NDArray[Any]:
    """Labels (n,): float64, or text."""
    if y is None:
        raise InputError(f"{name} is missing: give the label of each row")
    column = _column(y, name, n)
    if _is_numeric(column):
        labels = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(labels).all():
            row = int(np.argmin(np.isfinite(labels)))
            what = "missing" if np.isnan(labels[row]) else "infinite"
            raise InputError(f"{name}, row {row}: the label is {what}; correct it or drop the row")
        return np.asarray(labels)
    if column.dtype.kind in "mMc":
        raise InputError(f"{name} holds {column.dtype}; give numbers, or classes as text")
    return _words(column, name, n)


def _words(values: Any, name: str, n: int) -> NDArray[Any]:
    """A column (n,) as text; InputError where a cell is missing."""
    column = _column(values, name, n)
    missing = column.isna().to_numpy(dtype=bool)
    if missing.any():
        raise InputError(f"{name}, row {int(np.argmax(missing))}: the value is missing; fill it in")
    texts = cells(column)
    refuse_long(texts, lambda row: f"{name}, row {row}", name)
    return texts


def _column(values: Any, name: str, n: int) -> pd.Series[Any]:
    """One value for each of ``n`` rows."""
    import pandas as pd

    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    if isinstance(values, Mapping | str | set | pd.DataFrame) or not hasattr(values, "__iter__"):
        raise InputError(f"{name} is {_kind(values)}; give one value for each of the {n} rows")
    if not isinstance(values, pd.Series):
        values = np.asarray(values if hasattr(values, "dtype") else list(values))
        if values.ndim != 1:
            raise InputError(
                f"{name} has shape {values.shape}; give one value for each row: ({n},)"
            )
    if len(values) != n:
        hint = ""
        if name == "queries" and np.issubdtype(np.asarray(values).dtype, np.integer):
            hint = ": numpy.repeat turns sizes of queries into ids" if sum(values) == n else ""
        raise InputError(f"{name} has {len(values)} values for {n} rows{hint}")
    return pd.Series(values).reset_index(drop=True)


def grouped_rows(queries: Any, n: int) -> tuple[IntArray, Queries | None, NDArray[np.uint64]]:
    """An order of ``n`` rows in which queries are whole, the queries, and a hash (uint64) of each,
    of each row where there are no queries. InputError for ids that are not one for each row."""
    if queries is None:
        return np.arange(n), None, hashed(np.arange(n))
    if isinstance(queries, Queries):
        queries = queries.index()
    ids = _words(queries, "queries", n)
    _, first, number = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(first[number][order]) != 0))
    digests = (blake2b(str(ids[order[k]]).encode(), digest_size=8).digest() for k in starts)
    unit = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return order, Queries(np.append(starts, n).astype(np.int64)), unit
