"""Parquet files: what sound ones hold, and unsound ones refused in one line."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.kit import refused

from bench_core.datasets.readers.tables import read_features, read_table
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_files import read_part

TEXTS = ["red", "blue", None, "red"]


def written(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_numbers_truth_and_text_have_missing_cells(tmp_path):
    columns = {"t": TEXTS, "x": [0.5, None, 2.0, 3.0], "b": [True, None, False, True]}
    table = read_table(written(tmp_path / "x.parquet", columns))
    np.testing.assert_array_equal(table.numbers("x"), [0.5, np.nan, 2, 3])
    np.testing.assert_array_equal(table.numbers("b"), [1, np.nan, 0, 1])
    assert table.column("t").cells().tolist() == ["red", "blue", "", "red"]
    assert len(table) == 4


def test_types_of_numbers_and_text_are_read_as_pandas_does(tmp_path):
    frame = pd.DataFrame(
        {
            "small": pd.array([1, None, 3], dtype="Int8"),
            "half": np.array([1, 2, 3], dtype=np.float16),
            "truth": pd.array([True, None, False], dtype="boolean"),
            "large": np.array([2**53, 1, 2], dtype=np.uint64),
            "kind": pd.Categorical(["b", "a", "b"]),
            "code": pd.Categorical([3, 4, 3]),
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    table, theirs = read_table(tmp_path / "x.parquet"), pd.read_parquet(tmp_path / "x.parquet")
    for name in ("small", "half", "truth", "large"):
        expected = theirs[name].to_numpy(dtype=np.float64, na_value=np.nan)
        np.testing.assert_array_equal(table.numbers(name), expected)
    assert table.column("kind").texts().tolist() == ["b", "a", "b"]
    assert table.numbers("code").tolist() == [3, 4, 3]
    refused("x.parquet, row 1, column 'kind'|'b'", table.numbers, "kind")
    pd.DataFrame(np.eye(3)).rename(columns=str).to_parquet(tmp_path / "n.parquet")
    assert read_table(tmp_path / "n.parquet").names == ("0", "1", "2")


def test_an_index_that_pandas_kept_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
    for k, kept in enumerate([frame[frame["a"] > 1], frame.set_index("b"), frame]):
        kept.to_parquet(tmp_path / f"{k}.parquet")
        names = tuple(map(str, kept.columns))
        assert read_table(tmp_path / f"{k}.parquet").names == names


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = written(tmp_path / "x.parquet", {"a": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused("pyarrow|pip install|parquet", read_table, path)


def test_a_column_of_lists_is_refused_by_name_unless_it_is_left_out(tmp_path):
    for k, column in enumerate(([[1, 2], [3]], [{"a": 1}, {"a": 2}])):
        path = written(tmp_path / f"{k}.parquet", {"x": [1, 2], "odd": column, "y": [0, 1]})
        refused("'odd'|of type|drop=['odd']", read_features, [read_table(path)], ["x", "odd"])
        part = read_part(path, TableOptions(label="y", drop=("odd",)))
        assert part.columns == ("x",)


def test_integers_that_float64_merges_are_refused(tmp_path):
    for first in (2**63, -(2**60)):
        kind = pa.uint64() if first > 0 else pa.int64()
        column = pa.array([first + k for k in range(60)], kind)
        path = written(tmp_path / "x.parquet", {"x": column})
        refused("'x'|beyond 2^53|subtract a constant", read_features, [read_table(path)], ["x"])
    path = written(tmp_path / "x.parquet", {"x": pa.array([2**60, 0, None] * 20, pa.int64())})
    assert np.nanmax(read_features([read_table(path)], ["x"])[0]["x"]) == 2.0**60


def test_a_text_called_parquet_says_so(tmp_path):
    (tmp_path / "x.parquet").write_text("a,b\n1,2\n")
    refused("not a Parquet file|rename it to .csv", read_table, tmp_path / "x.parquet")


def test_a_file_that_is_empty_or_cut_is_refused(tmp_path):
    path = written(tmp_path / "x.parquet", {"a": np.arange(1000)})
    content = path.read_bytes()
    for size in (0, 3, 100, len(content) - 1):
        path.write_bytes(content[:size])
        refused("not a Parquet file", read_table, path)
    written(path, {"a": pa.array([], pa.int64())})
    refused("empty", read_table, path)
