"""Tables of hostile shape: one very long cell, very many columns."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.readers.tables import read_table
from bench_core.datasets.user_arrays import array_splits
from bench_core.datasets.user_files import FileData
from bench_core.errors import InputError
from bench_core.splits import Splits

LONG, ROWS = "x" * 20_000, 20_000


def own(path: Path, **options: str) -> Splits:
    data = FileData(str(path), **options)  # type: ignore[arg-type]
    return data.prepare(DataFolder("."), "quick", 0, 0)


def with_long_cell(path: Path) -> Path:
    """A column ``t`` of two short texts and one cell of 20000 characters."""
    cells = ["a", LONG, *("ab"[i % 2] for i in range(2, ROWS))]
    lines = (f"{i % 7},{cell},{i % 2}" for i, cell in enumerate(cells))
    path.write_text("\n".join(["x,t,label", *lines]) + "\n")
    return path


@pytest.mark.parametrize("options", [{}, {"label": "t"}, {"query": "t"}, {"split": "t"}])
def test_a_long_cell_is_refused_with_its_row_in_memory_for_the_file(
    options: dict[str, str], tmp_path: Path
) -> None:
    path = with_long_cell(tmp_path / "rows.csv")
    read_table(path).column("label").texts()  # what is imported is so now
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        own(path, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    says = "line 3, column 't': a cell of 20000 characters, more than 1000; shorten it"
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500
    assert peak < 100 * path.stat().st_size  # 20000 rows of 20000 characters have 1.6 GB


def test_a_long_cell_in_a_column_that_is_left_out_is_no_fault(tmp_path: Path) -> None:
    path = with_long_cell(tmp_path / "rows.csv")
    assert own(path, drop=("t",)).names == ("x",)  # type: ignore[arg-type]


def test_a_long_cell_among_numbers_is_cut_in_the_message(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,label\n" + f"{LONG},1\n" + "1,0\n2,1\n" * 50)
    with pytest.raises(InputError, match="line 2, column 'x' has a cell that is no number") as one:
        own(path)
    assert len(str(one.value)) < 500


def test_a_long_cell_of_a_data_frame_is_refused_with_its_row() -> None:
    n = 200
    X = pd.DataFrame({"x": np.arange(n) % 7, "t": ["a", LONG, *"ab" * (n // 2 - 1)]})
    y = np.arange(n) % 2
    with pytest.raises(InputError, match="X, row 1, column 't': a cell of 20000 characters"):
        array_splits(X, y)
    with pytest.raises(InputError, match="y, row 1: a cell of 20000 characters"):
        array_splits(X[["x"]], X["t"])


def test_categories_are_the_same_by_file_and_by_frame(tmp_path: Path) -> None:
    """Text of different lengths, a missing cell, more than twelve texts: 0 for the most frequent,
    then by name."""
    rng = np.random.default_rng(0)
    texts = np.array([*"abcdefghijklmn", "long one"])[rng.integers(0, 15, 300)]
    frame = pd.DataFrame({"t": texts, "x": np.arange(300) % 7, "label": np.arange(300) % 2})
    frame.loc[5, "t"] = None
    frame["split"] = np.array(["train", "valid", "test"])[np.arange(300) % 3]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.astype({"t": "category"}).to_parquet(tmp_path / "categories.parquet")
    names = ("rows.csv", "rows.parquet", "categories.parquet")
    train = frame[frame["split"] == "train"]
    counts = train["t"].value_counts()
    order = sorted(counts.index, key=lambda text: (-counts[text], text))
    expected = [order.index(text) if isinstance(text, str) else np.nan for text in train["t"]]
    for name in names:
        found = own(tmp_path / name)
        np.testing.assert_array_equal(found.train.X[:, found.names.index("t")], expected)


def test_many_different_labels_of_text_are_numbered_in_sorted_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    names = [f"c{i % 500}" for i in range(3000)]
    splits = ["train", "valid", "test"]
    lines = [f"{i % 7},{name},{splits[i % 3]}" for i, name in enumerate(names)]
    path.write_text("\n".join(["x,label,split", *lines]) + "\n")
    found = own(path)
    known = sorted(set(names[::3]))
    assert found.train.y.tolist() == [known.index(name) for name in names[::3]]
    path.write_text(path.read_text() + "1,new,valid\n")
    with pytest.raises(InputError, match="line 3002: label 'new' is of no training row"):
        own(path)


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def test_names_of_columns_are_compared_in_linear_time(tmp_path: Path) -> None:
    from bench_core.datasets.readers.tables import _refuse_header

    names = [Counted(f"c{i}") for i in range(3000)]
    Counted.compared = 0
    _refuse_header(tmp_path / "rows.csv", [*names])
    assert Counted.compared < 10 * len(names)
