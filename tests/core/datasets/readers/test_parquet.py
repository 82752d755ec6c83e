"""Parquet files: what sound ones hold, and unsound ones refused in one line and little memory."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_core.datasets.readers.parquet_pages import PageError, pages
from bench_core.datasets.readers.tables import read_table
from bench_core.errors import InputError

TEXTS = ["red", "blue", None, "red"]


def written(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def refusal(path: Path) -> str:
    """Why a file is refused; an empty text where it is read."""
    try:
        read_table(path)
    except InputError as error:
        return str(error)
    return ""


POOLS: list[Any] = []  # they live as long as what was made in them may


def peak_memory(path: Path) -> int:
    """The most that pyarrow had while the file was refused or read."""
    usual = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(usual))
    pa.set_memory_pool(POOLS[-1])
    try:
        refusal(path)
    finally:
        pa.set_memory_pool(usual)
    return int(POOLS[-1].max_memory())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY", "x": "PLAIN"}},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"compression": "zstd", "data_page_version": "2.0", "data_page_size": 64},
        {"row_group_size": 3},
        {"compression": "none", "version": "1.0"},
    ],
)
def test_every_way_of_storing_gives_the_same_table(options: dict[str, Any], tmp_path: Path) -> None:
    columns = {
        "t": TEXTS * 50,
        "x": [0.5, None, 2.0, 3.0] * 50,
        "b": [True, None, False, True] * 50,
    }
    table = read_table(written(tmp_path / "x.parquet", columns, **options))
    np.testing.assert_array_equal(table.numbers("x")[:4], [0.5, np.nan, 2, 3])
    np.testing.assert_array_equal(table.numbers("b")[:4], [1, np.nan, 0, 1])
    assert table.categories("t").tolist() == ["red", "blue", "", "red"] * 50
    assert table.is_text("t")
    assert len(table) == 200


def test_types_of_numbers_and_text_are_read_as_pandas_does(tmp_path: Path) -> None:
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
    assert table.texts("kind").tolist() == ["b", "a", "b"]
    assert table.numbers("code").tolist() == [3, 4, 3]


def test_an_index_that_pandas_kept_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
    for k, kept in enumerate([frame[frame["a"] > 1], frame.set_index("b"), frame]):
        kept.to_parquet(tmp_path / f"{k}.parquet")
        names = tuple(map(str, kept.columns))
        assert read_table(tmp_path / f"{k}.parquet").names == names


@pytest.mark.parametrize(
    "notes", [b"{", b"[]", b"\xff", b'{"index_columns": 3}', b'{"index_columns": [["a"], {}]}']
)
def test_notes_of_pandas_that_make_no_sense_change_nothing(notes: bytes, tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2], "b": [3, 4]}).replace_schema_metadata({b"pandas": notes})
    pq.write_table(table, tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").names == ("a", "b")


def test_a_long_text_in_many_rows_is_in_memory_once(tmp_path: Path) -> None:
    """A million rows of 20000 characters: 20 GB, were each one written out."""
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(1_000_000) % 2, type=pa.int32()), pa.array(["a", "x" * 20_000])
    )
    columns = {"t": text, "y": pa.array(np.arange(1_000_000) % 251)}
    path = written(tmp_path / "x.parquet", columns)
    assert peak_memory(path) < 200e6
    table = read_table(path)
    assert table.is_text("t")
    with pytest.raises(InputError, match="row 2, column 't': a cell of 20000 characters"):
        table.texts("t")


@pytest.mark.parametrize(
    "columns",
    [
        {"a": np.zeros(3_000_000, dtype=np.int8), "b": np.zeros(3_000_000)},
        {"a": ["x" * 10_000_000, "y"]},
        {"a": pa.array([b"\0" * 1000] * 30_000, pa.binary(1000))},
    ],
    ids=["rows", "a cell", "wide cells"],
)
def test_a_bomb_is_refused_before_it_is_unpacked(columns: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", columns, compression="zstd")
    with pytest.raises(InputError, match="unpacks to a decompression bomb"):
        read_table(path)
    assert peak_memory(path) < 1e6


def test_text_by_differences_is_read_few_rows_at_a_time(tmp_path: Path) -> None:
    """Each cell repeats the one before: pages of 60 kB hold 20000 cells of as many characters."""
    path = tmp_path / "x.parquet"
    options = {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}}
    rng = random.Random(0)
    long = "".join(rng.choices("abcdefgh", k=20_000))
    written(path, {"t": [long] * 20_000}, **options)
    assert path.stat().st_size < 100_000
    assert peak_memory(path) < 100e6
    assert read_table(path).frame["t"].nunique() == 1


def test_a_column_of_lists_is_refused_by_name(tmp_path: Path) -> None:
    for k, column in enumerate(([[1, 2], [3]], [{"a": 1}, {"a": 2}])):
        path = written(tmp_path / f"{k}.parquet", {"x": [1, 2], "odd": column})
        with pytest.raises(InputError, match=r"column 'odd' holds .*; write the file without it"):
            read_table(path)


def test_decimals_are_refused_where_numbers_are_wanted(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"d": [Decimal("1.5"), Decimal("2.5")]})
    with pytest.raises(InputError, match="column 'd'"):
        read_table(path).numbers("d")


def test_pages_add_up_to_what_the_footer_says(tmp_path: Path) -> None:
    columns = {"t": TEXTS * 999, "x": np.arange(3996), "f": [b"ab"] * 3996}
    path = written(tmp_path / "x.parquet", columns, data_page_size=512, compression="zstd")
    content, footer = path.read_bytes(), pq.read_metadata(path)
    for j in range(3):
        chunk = footer.row_group(0).column(j)
        start = min(chunk.dictionary_page_offset, chunk.data_page_offset)
        found = list(pages(content, start, chunk.total_compressed_size))
        assert sum(page.values for page in found if page.is_data) == 3996
        headers = chunk.total_uncompressed_size - sum(page.size for page in found)
        assert 0 < headers < 200 * len(found)
        with pytest.raises(PageError):
            list(pages(content[: start + 3], start, chunk.total_compressed_size))


def test_a_footer_of_fewer_rows_than_pages_is_refused(tmp_path: Path) -> None:
    """Row counts of the footer are written as zigzag numbers: 1000 is d0 0f, 10 is 14."""
    path = written(tmp_path / "x.parquet", {"a": np.arange(1000)})
    content = path.read_bytes()
    for old, new in ((b"\xd0\x0f", b"\xd2\x0f"), (b"\xd0\x0f", b"\xd0\x7f")):
        at = content.rindex(old)
        path.write_bytes(content[:at] + new + content[at + 2 :])
        with pytest.raises(InputError, match="not a Parquet file"):
            read_table(path)


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_are_refused_in_one_line_or_read(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = tmp_path / "x.parquet"
    pd.DataFrame({"t": TEXTS * 5, "x": np.arange(20), "y": [0.5] * 20}).to_parquet(path)
    content = path.read_bytes()
    for _ in range(100):
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(changed) // 3 if rng.random() < 0.5 else len(changed))
            changed[-at if rng.random() < 0.5 else at] = rng.choice(
                (0, 127, 255, rng.randrange(256))
            )
        path.write_bytes(changed)
        assert "\n" not in refusal(path)


def test_a_file_that_is_empty_or_cut_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", {"a": np.arange(1000)})
    content = path.read_bytes()
    for size in (0, 3, 100, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match="not a Parquet file"):
            read_table(path)
    written(path, {"a": pa.array([], pa.int64())})
    with pytest.raises(InputError, match="the file is empty"):
        read_table(path)


@pytest.mark.parametrize(
    "footer",
    [
        b"\x19\xf7" + b"\xff" * 8 + b"\x0f\0",  # a list of 2^60 numbers that are not there
        b"\x19" * 50_000 + b"\0",  # lists in lists
        b"\x1c" * 50_000 + b"\0",  # structs in structs
    ],
)
def test_a_footer_that_promises_more_than_it_has_is_refused(footer: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert "not a Parquet file" in refusal(path)
