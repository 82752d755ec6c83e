"""What cells are is decided by column over all files; expected values are those written here."""

import random
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from helpers.kit import every, prepared, refused

from bench_core.data import Task
from bench_core.datasets.user_arrays import array_splits
from bench_core.splits import SPLITS

N = 120
X = [round(random.Random(0).uniform(-1, 1), 3) for _ in range(N)]


def write(path, name, cells, y=None):
    """A file of a column of numbers, the column of these cells, and labels."""
    labels = y or [k % 2 for k in range(len(cells))]
    lines = [f"{x},{cell},{label}" for x, cell, label in zip(X * 2, cells, labels, strict=False)]
    path.write_text("\n".join([f"x,{name},y", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        (["31.1", "31.10", "31.100"], 3),
        (["007", "7", "+7", "7.0"], 4),
        (["9223372036854775000", "9223372036854775001", "92233720368547750010"], 3),
        (["1e3", "1000", "true", "True"], 4),
        (["None", "12", "13"], 3),
    ],
)
def test_query_ids_are_text(ids, count, tmp_path):
    rows = [name for name in ids for _ in range(20)] + [str(100 + k // 3) for k in range(60)]
    path = write(tmp_path / "r.csv", "qid", rows)
    with path.open("a") as file:
        file.write("".join(f"{k},{200 + k},{k % 2}\n" for k in range(60)))
    splits = prepared(path)
    assert splits.task is Task.RANKING
    queries = [len(getattr(splits, part).queries) for part in SPLITS]
    assert sum(queries) == count + 20 + 60


@pytest.mark.parametrize("first", [10**18, 2**63 - 1, 2**64 - 1, 10**30])
def test_query_ids_of_svmlight_have_any_number_of_digits(first, tmp_path):
    path = tmp_path / "r.svm"
    rows = [f"{k % 3} qid:{first + k // 3} 1:{k % 7} 2:{x}\n" for k, x in enumerate(X)]
    path.write_text("".join(rows))
    splits = prepared(path)
    assert sum(len(getattr(splits, part).queries) for part in SPLITS) == N // 3
    path.write_text("".join([*rows, rows[0]]))
    refused(f"query {first} is split", prepared, path)


@pytest.mark.parametrize("end", [[""] * 40, ["?"] * 40, ["NA", " ? ", "nan", ""] * 10])
def test_a_column_without_values_in_one_file_is_missing_there(end, tmp_path):
    full = write(tmp_path / "full.csv", "cabin", ["A", "", "B", "A"] * 20)
    none = write(tmp_path / "none.csv", "cabin", end)
    splits = prepared(full, test=str(none))
    assert splits.feature_names == ("x", "cabin=A", "cabin=B")
    assert np.isnan(splits.test.X[:, 1:]).all()
    assert np.nansum(splits.train.X[:, 1:], axis=0)[0] > 0
    # no value in training: nothing can be learned of it
    splits = prepared(none, test=str(full))
    assert splits.feature_names == ("x", "cabin")
    assert np.isnan(splits.train.X[:, 1]).all()
    assert np.isnan(splits.test.X[:, 1]).all()


def test_text_that_reads_as_numbers_in_one_file_stays_text(tmp_path):
    train = write(tmp_path / "train.csv", "zone", ["A", "B", "07", "7.0", "C"] * 20)
    test = write(tmp_path / "test.csv", "zone", ["07", "7.0"] * 8)
    splits = prepared(train, test=str(test))
    made = [splits.feature_names[1:][k] for k in splits.test.X[:, 1:].argmax(axis=1)]
    assert made == ["zone=07", "zone=7.0"] * 8


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["123456789012345678901", "5", "2"], [1.2345679e20, 5, 2]),
        (["20124400100030425447"] * 2 + ["-99999999999999999999"], [2.01244e19] * 2 + [-1e20]),
        ([str(2**63), "-1", "1"], [2.0**63, -1, 1]),
        (["True", "False", ""], [1, 0, np.nan]),
        (["True ", '"false "', "TRUE", "None"], [1, 0, 1, np.nan]),
        ([" 7 ", "?", " ? "], [7, np.nan, np.nan]),
        (["1.5", "None", "NULL"], [1.5, np.nan, np.nan]),
        (["1.5", "\\N", "(null)"], [1.5, np.nan, np.nan]),
    ],
)
def test_what_a_person_takes_for_numbers_is_numbers(cells, values, tmp_path):
    found = every(prepared(write(tmp_path / "v.csv", "c", cells * 40)), "c")
    expected = np.float32(values * 40)
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-5)


@pytest.mark.parametrize("cells", [["2.630,370", "57,000"], ["0,184", "1,318"], ["1234,567"]])
def test_the_remedy_for_commas_is_the_option_that_reads_them(cells, tmp_path):
    path = write(tmp_path / "v.csv", "c", [f'"{cell}"' for cell in cells * N])
    refused("'c'|decimal=','", prepared, path)
    values = [float(cell.replace(".", "").replace(",", ".")) for cell in cells]
    read = every(prepared(path, decimal=","), "c")
    np.testing.assert_array_equal(np.unique(read), np.unique(np.float32(values)))


@pytest.mark.parametrize("texts", [["3", "12", "B2", "C"], ["3", "12", "7", "B2"]])
def test_mostly_empty_text_with_digits_is_text(texts, tmp_path):
    splits = prepared(write(tmp_path / "v.csv", "deck", ["", "", "", "", *texts] * 15))
    assert {n for n in splits.feature_names if n != "x"} == {f"deck={text}" for text in texts}


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["Mild", "None", "Severe"], ["Mild", "None", "Severe"]),
        ([" <=50K", ">50K", "<=50K "], ["<=50K", ">50K"]),
        (["9007199254740992", "9007199254740993"], ["9007199254740992", "9007199254740993"]),
        (["100000000000000000001", "100000000000000000002"],) * 2,
        (["1", "2", "x"] + ["y"] * 3, ["1", "2", "x", "y"]),
    ],
)
def test_labels_are_the_classes_that_are_written(written, classes, tmp_path):
    y = [written[k % len(written)] for k in range(N)]
    splits = prepared(write(tmp_path / "v.csv", "c", [x * 2 for x in X], y))
    assert splits.classes == len(classes)
    shown = ", ".join(f"{name} is {k}" for k, name in enumerate(classes))
    assert f"classes: {shown}" in splits.notes
    # also where a file has some of them alone
    other = write(tmp_path / "t.csv", "c", X[:4], [classes[0]] * 4)
    test = prepared(tmp_path / "v.csv", test=str(other)).test
    assert test.y.tolist() == [0] * 4


def test_blanks_behind_commas_are_no_part_of_cells(tmp_path):
    lines = [f"{x}, {('?', 'State-gov', 'Private')[k % 3]}, {k % 9}" for k, x in enumerate(X)]
    (tmp_path / "v.csv").write_text("\n".join(["x, job, y", *lines]) + "\n")
    splits = prepared(tmp_path / "v.csv")
    assert set(splits.feature_names) == {"x", "job=State-gov", "job=Private"}
    assert np.isnan(every(splits, "job=Private")).sum() == N // 3


def test_decimals_and_truth_with_gaps_of_parquet(tmp_path):
    frame = pd.DataFrame(
        {
            "d": [Decimal("1.5"), None, Decimal("2.25")] * 40,
            "t": pd.Series([True, None, False] * 40, dtype=object),
            "y": [0, 1] * 60,
        }
    )
    frame.to_parquet(tmp_path / "v.parquet")
    splits = prepared(tmp_path / "v.parquet")
    assert splits.feature_names == ("d", "t")
    assert {*every(splits, "d")[~np.isnan(every(splits, "d"))]} == {1.5, 2.25}
    assert np.isnan(every(splits, "t")).sum() == 40


def test_masked_cells_of_arrays_are_missing():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(60, 2)).astype(np.float32)
    mask = np.zeros((60, 2), dtype=bool)
    mask[::3, 1] = True
    made = array_splits(np.ma.array(cells, mask=mask), np.arange(60) % 2)
    assert sum(int(np.isnan(getattr(made, part).X).sum()) for part in SPLITS) == 20
    y = np.ma.array(np.arange(60) % 2, mask=np.arange(60) == 7)
    refused("y, row 7|missing", array_splits, cells, y)


@pytest.mark.parametrize(
    "cells",
    [
        ["T1", "T2", "T3"],
        ["0", "1", "2", "3+"],
        ["[0-10)", "[10-20)"],
        ["5 mg", "10 mg"],
        ["<=50K", ">50K"],
        [f"site {k}" for k in range(20)],
        [f"10.0.0.{k}" for k in range(20)],
        [f"1.2.{k}" for k in range(100, 115)],
        [f"E11.{k}" for k in range(20)],
        [f"P{k}" for k in range(20)],
    ],
)
def test_names_with_digits_are_categories(cells, tmp_path):
    splits = prepared(write(tmp_path / "v.csv", "c", cells * (N // len(cells))))
    assert any("column 'c' holds text" in note for note in map(str, splits.notes))


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("Unnamed: 0", True), ("", True), ("customer_id", True), ("rowId", True), ("No.", True),
     ("income", False), ("grid", False), ("GRID", False)],
)  # fmt: skip
def test_different_whole_numbers_called_an_index_are_left_out(name, left_out, tmp_path):
    numbers = random.Random(1).sample(range(10**6), N)
    lines = [f"{n},{x},{k % 2}" for k, (n, x) in enumerate(zip(numbers, X, strict=True))]
    (tmp_path / "v.csv").write_text("\n".join([f"{name},x,y", *lines]) + "\n")
    splits = prepared(tmp_path / "v.csv")
    assert (splits.feature_names == ("x",)) == left_out
    what = f"column {name or 'Unnamed: 0'!r} numbers the rows and is left out: keep_column="
    assert any(what in str(note) for note in splits.notes) == left_out
    lines = [line.replace(str(numbers[0]), str(numbers[1]), 1) for line in lines]
    (tmp_path / "v.csv").write_text("\n".join([f"{name or 'id'},x,y", *lines]) + "\n")
    assert len(prepared(tmp_path / "v.csv").feature_names) == 2  # one number comes twice


def test_the_largest_values_are_read_quietly(recwarn):
    largest = float(np.finfo(np.float32).max)
    cells = [largest, -largest, 3.4e38, -3.4e38] * (N // 4)
    frame = pd.DataFrame({"x": X, "id": cells})
    splits = array_splits(frame, np.arange(N) % 2)
    assert set(every(splits, "id")) == set(np.float32(cells))
    assert not recwarn.list
