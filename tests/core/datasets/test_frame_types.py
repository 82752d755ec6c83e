"""Types of cells in frames of pandas, Polars and Arrow: read, or one line that names the column."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.kit import every, refused

from bench_core._io.frames import columns_of
from bench_core.datasets.user_arrays import array_splits

N = 120
TIME = datetime(2024, 3, 14, 12)  # day 19796.5
ARROW = {
    "categories": pa.array(["x", "y", None] * 40).dictionary_encode(),
    "categories of numbers": pa.array([5, 7, None] * 40).dictionary_encode(),
    "decimals": pa.array([Decimal("1.5"), Decimal("2.5"), None] * 40),
    "times": pa.array([TIME, None] * 60),
    "days": pa.array([date(2024, 3, 14), None] * 60),
    "nothing": pa.array([None] * N),
    "run ends": pa.RunEndEncodedArray.from_arrays([60, N], ["x", "y"]),
    "texts": pa.array(["x", "y"] * 60, type=pa.string_view()),
}
READ = {
    "categories": ["t=x", "t=y"],
    "categories of numbers": ["t=5", "t=7"],
    "run ends": ["t=x", "t=y"],
    "texts": ["t=x", "t=y"],
}
POLARS = {
    "Int128": pl.Series(range(0, 3 * N, 3), dtype=pl.Int128),
    "Int128 with gaps": pl.Series([None, 2**70] * 60, dtype=pl.Int128),
    "enumeration": pl.Series(["x", None] * 60, dtype=pl.Enum(["x", "y"])),
    "zone": pl.Series([TIME.replace(tzinfo=UTC)] * N),
}
UNUSABLE = {
    "struct": [{"u": 1.0}] * N,
    "list": [[1, 2]] * N,
    "time": [time(1, 2)] * N,
    "length": [timedelta(hours=1)] * N,
    "bytes": [b"x"] * N,
}
FORMS = {
    "pandas": lambda cells: pd.DataFrame({"a": np.arange(N) % 7, "t": cells}),
    "pandas by Arrow": lambda cells: pd.DataFrame(
        {"a": np.arange(N) % 7, "t": pd.Series(pa.array(cells), dtype=pd.ArrowDtype(kind(cells)))}
    ),
    "polars": lambda cells: pl.DataFrame({"a": np.arange(N) % 7, "t": pl.Series(cells)}),
    "arrow": lambda cells: pa.table({"a": np.arange(N) % 7, "t": pa.array(cells)}),
}


def kind(cells):
    return pa.array(cells).type


def names(X):
    return [n for n in array_splits(X, np.arange(N) % 2).feature_names if n != "a"]


@pytest.mark.parametrize("cells", ARROW)
def test_types_of_arrow_are_read(cells):
    table = pa.table({"a": np.arange(N) % 7, "t": ARROW[cells]})
    expected = READ.get(cells, ["t"])
    assert sorted(names(table)) == expected
    columns_of(table)
    if cells not in ("run ends", "texts"):  # pandas has no such types
        assert sorted(names(table.to_pandas(types_mapper=pd.ArrowDtype))) == expected


@pytest.mark.parametrize("cells", POLARS)
def test_types_of_polars_are_read(cells):
    frame = pl.DataFrame({"a": np.arange(N) % 7, "t": POLARS[cells]})
    assert len(names(frame)) == 1
    assert len(columns_of(frame)["t"]) == N


def test_integers_of_128_bits_are_numbers():
    splits = array_splits(pl.DataFrame({"t": POLARS["Int128"], "a": [0, 1] * 60}), [0, 1] * 60)
    assert sorted(every(splits, "t")) == [*range(0, 3 * N, 3)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cells", UNUSABLE)
def test_other_types_are_one_line_with_the_column(form, cells):
    refused("'t'|numbers, text", lambda: names(FORMS[form](UNUSABLE[cells])))


def test_integers_beyond_float64_and_mixed_numbers_are_one_line():
    refused("'t'|float64", names, pd.DataFrame({"t": [10**400 + k for k in range(N)], "a": 1}))
    frame = pd.DataFrame({"t": [Decimal(1), 0.5] * 60, "a": 1})
    refused("'t'|Decimal and float|numbers", names, frame)
    union = pa.UnionArray.from_sparse(
        pa.array([0, 1] * 60, type=pa.int8()), [pa.array([1] * N), pa.array(["x"] * N)]
    )
    refused("'t'|numbers, text", names, pa.table({"t": union}))


def test_a_query_that_fails_is_one_line():
    lazy = pl.DataFrame({"a": [1, 2]}).lazy().select(pl.col("b"))
    refused("lazy frame|b", array_splits, lazy, [0, 1])
