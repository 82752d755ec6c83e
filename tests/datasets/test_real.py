"""Data sets from publishers' files, and those bundled with scikit-learn."""

import csv

import numpy as np
import pandas as pd
import pytest
from bench_datasets.covertype import Forest
from bench_datasets.letters import Letters, Letters26
from bench_datasets.sklearn_bundled import BreastCancer, Digits
from bench_datasets.thyroid import NAMES as THYROID_NAMES
from bench_datasets.thyroid import Thyroid, thyroid_prices
from helpers.kit import all_cells, every, parts, sizes
from helpers.kit import prepared_set as prepared
from sklearn.datasets import load_breast_cancer, load_digits

from bench_core.costs.bill import Acquired
from bench_core.data import Task


def rows_of(*some):
    return sorted(tuple(row) for part in some for row in np.column_stack([part.y, part.X]))


@pytest.fixture(scope="module")
def letter_lines(real_data):
    with (real_data / "letter" / "letter-recognition.data").open() as file:
        return list(csv.reader(file))


def test_letters_keep_the_files_order(real_data, letter_lines):
    splits = prepared(Letters(), real_data)
    assert sizes(splits) == [12000, 4000, 4000]
    lines = iter(letter_lines)
    for part in parts(splits):
        for x, y in zip(part.X, part.y, strict=True):
            letter, *cells = next(lines)
            assert x.tolist() == [float(cell) for cell in cells]
            assert y == (letter >= "N")


def test_letters_have_26_classes_on_request(real_data, letter_lines):
    splits = prepared(Letters26(), real_data)
    assert (splits.task, splits.classes) == (Task.MULTICLASS, 26)
    wanted = ["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(line[0]) for line in letter_lines[16000:]]
    assert splits.test.y.tolist() == wanted
    assert prepared(Letters(), real_data).task is Task.BINARY


def test_forest_uses_every_row_once_and_labels_class_two(real_data):
    splits = prepared(Forest(), real_data)
    wanted = pd.read_csv(real_data / "covertype" / "covtype-100k.csv.gz").to_numpy(float)
    wanted = np.column_stack([wanted[:, :-1], wanted[:, -1] == 2])
    found = np.column_stack([all_cells(splits), every(splits)])
    order = [np.lexsort(rows.T[::-1]) for rows in (found, wanted)]
    np.testing.assert_array_equal(found[order[0]], wanted[order[1]])


def test_thyroid_has_the_publishers_split(real_data):
    splits = prepared(Thyroid(), real_data)
    train = np.loadtxt(real_data / "ann-thyroid" / "ann-train.data")
    test = np.loadtxt(real_data / "ann-thyroid" / "ann-test.data")
    np.testing.assert_array_equal(splits.test.X, test[:, :-1].astype(np.float32))
    np.testing.assert_array_equal(splits.test.y, test[:, -1] - 1)
    wanted = np.column_stack([train[:, -1] - 1, train[:, :-1].astype(np.float32)])
    assert rows_of(splits.train, splits.valid) == sorted(map(tuple, wanted))
    assert (splits.task, splits.classes) == (Task.MULTICLASS, 3)


def test_thyroid_validates_on_30_percent_of_each_class(real_data):
    splits = prepared(Thyroid(), real_data)
    counts = np.array([np.bincount(p.y.astype(int)) for p in (splits.train, splits.valid)])
    assert counts.sum(axis=0).tolist() == [93, 191, 3488]
    np.testing.assert_allclose(counts[1] / counts.sum(axis=0), 0.3, atol=0.01)
    other = prepared(Thyroid(), real_data, seed=1)
    assert not np.array_equal(other.valid.X, splits.valid.X)


def test_thyroid_prices_are_those_of_the_publishers_cost_file(real_data):
    lines = (real_data / "ann-thyroid" / "ann-thyroid.cost").read_text().split()
    published = {name: float(cost) for name, cost in (line.split(":") for line in lines)}
    prices = thyroid_prices(discount=False).feature_price()
    assert set(THYROID_NAMES) - set(published) == {"FTI"}
    for name, price in zip(THYROID_NAMES, prices, strict=True):
        assert price == published.get(name, published["TT4"] + published["T4U"])


@pytest.mark.parametrize(
    ("bought", "plain", "discounted"),
    [
        (("TSH",), 22.78, 22.78),
        (("TSH", "T3"), 34.19, 32.09),
        (("TT4", "T4U"), 25.92, 23.82),
        (("FTI",), 25.92, 23.82),
        (("TT4", "T4U", "FTI"), 25.92, 23.82),
        (("age", "FTI", "TSH"), 49.70, 45.50),
    ],
)
def test_thyroid_blood_tests_may_share_the_drawing_of_blood(bought, plain, discounted):
    for discount, wanted in ((False, plain), (True, discounted)):
        prices = thyroid_prices(discount)
        mask = np.zeros((1, prices.sensors), dtype=bool)
        for name in bought:
            mask[0, prices.sensors_of(THYROID_NAMES.index(name))] = True
        assert Acquired.pack(mask).cost(prices.sensor)[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("dataset", "load"), [(BreastCancer, load_breast_cancer), (Digits, load_digits)]
)
def test_bundled_sets_hold_every_row_once_split_60_20_20(dataset, load, tmp_path):
    splits = prepared(dataset(), tmp_path)
    X, y = load(return_X_y=True)
    wanted = np.column_stack([y, X.astype(np.float32)])
    assert rows_of(*parts(splits)) == sorted(map(tuple, wanted))
    np.testing.assert_allclose(np.array(sizes(splits)) / len(y), [0.6, 0.2, 0.2], atol=0.01)
    for part in parts(splits):
        share = np.bincount(part.y.astype(int)) / len(part)
        np.testing.assert_allclose(share, np.bincount(y) / len(y), atol=0.01)
    assert splits.prices.everything == X.shape[1]
