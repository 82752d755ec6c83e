"""Columns of a table as plain arrays: rows with the same keys, codes and texts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import IntArray

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, NDArray[Any]]
"""A table as plain arrays by name."""


def positions(points: pd.DataFrame, keys: list[str]) -> list[IntArray]:
    """Which rows have the same keys, in order of the keys."""
    group, many = np.zeros(len(points), dtype=np.int64), 1
    for key in keys:
        codes, count = codes_of(points[key])
        if many * count >= 1 << 62:
            known, group = np.unique(group, return_inverse=True)
            many = len(known)
        group, many = group * count + codes, many * count
    return alike(group.astype(np.min_scalar_type(-many)))


def alike(group: IntArray) -> list[IntArray]:
    """Which places have the same number, in order of the numbers."""
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order])) + 1
    edges = [0, *ends.tolist(), len(order)] if len(order) else []
    return [order[start:end] for start, end in pairwise(edges)]


def texts(column: pd.Series[Any]) -> NDArray[np.object_]:
    """A column of text; cells of one category are one object."""
    import pandas as pd

    if not isinstance(column.dtype, pd.CategoricalDtype):
        return np.array([*map(str, column)], dtype=object)
    known = np.array([*map(str, column.cat.categories), str(np.nan)], dtype=object)
    made: NDArray[np.object_] = known[column.cat.codes.to_numpy()]
    return made


def codes_of(column: pd.Series[Any]) -> tuple[IntArray, int]:
    """Numbers in the order of a column's values, what is absent last, and how many they may be."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, known = column.cat.codes.to_numpy(), len(column.cat.categories)
        codes = np.where(codes < 0, known, codes) if (codes < 0).any() else codes
        return codes.astype(np.int64), known + 1
    codes, values = pd.factorize(column, sort=True, use_na_sentinel=False)
    return codes.astype(np.int64), max(1, len(values))
