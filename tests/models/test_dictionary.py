"""What a tree says, needs and costs, against a walk row by row."""

import numpy as np
import pytest
from bench_models import dictionary as module
from bench_models.dictionary import dictionary, needs_of, sensor_bits
from helpers.cronus_cases import forest
from helpers.random_trees import path as walk
from helpers.random_trees import used_features

from bench_core import DiscountGroup, Prices, price_list

N, D = 90, 5
MULTIPLIER = np.array([1.0, 0.25, 2.0, 1.0, 0.5])


@pytest.fixture(scope="module", name="X")
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, size=(N, D)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture(scope="module")
def trees(X):
    return forest(X, np.nan_to_num(X) @ np.ones(D), 8)


@pytest.fixture(scope="module")
def share():
    m = np.random.default_rng(1).integers(1, 5, size=N)
    return m / m.sum()


def test_columns_are_the_outputs_of_the_trees(X, trees, share):
    found = dictionary(trees, X, share, Prices.additive(np.ones(D)), threads=1).columns
    expected = [[walk(trees, t, x).value for x in X] for t in range(trees.trees)]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))


def test_a_tree_costs_its_price_and_the_mean_splits_of_the_rows(X, trees, share):
    prices = price_list(np.ones(D), split=0.25, tree=3.0, multiplier=MULTIPLIER)
    found = dictionary(trees, X, share, prices, threads=2).tree_cost
    for t in range(trees.trees):
        splits = [MULTIPLIER[walk(trees, t, x).features].sum() for x in X]
        assert found[t] == pytest.approx(3.0 + 0.25 * float(share @ splits))


def test_needs_are_sensors_not_features(trees):
    group = DiscountGroup((0, 1), (2.0, 3.0))
    prices = price_list(np.array([7.0, 8.0, 1.0, 1.0, 9.0]), discounted=[group], derived={4: [2]})
    found = needs_of(trees, prices)
    assert found.shape == (prices.sensors, trees.trees)
    for t in range(trees.trees):
        sensors = {int(a) for j in used_features(trees, t) for a in prices.sensors_of(int(j))}
        assert set(np.flatnonzero(found[:, t])) == sensors


def test_blocks_of_rows_change_nothing(X, trees, share, monkeypatch):
    prices = Prices.additive(np.ones(D), split=0.25)
    whole = dictionary(trees, X, share, prices, 1)
    monkeypatch.setattr(module, "_CELLS", 1)
    monkeypatch.setattr(module, "_ROWS", 20)  # the last block is a shorter one
    pieces, threaded = (dictionary(trees, X, share, prices, threads) for threads in (1, 3))
    np.testing.assert_array_equal(pieces.columns, whole.columns)
    np.testing.assert_allclose(pieces.tree_cost, whole.tree_cost, rtol=1e-12)
    np.testing.assert_array_equal(threaded.columns, whole.columns)
    np.testing.assert_array_equal(threaded.tree_cost, pieces.tree_cost)


def test_an_ensemble_without_trees_is_an_empty_dictionary(X, trees, share):
    none = trees.select(np.arange(0))
    found = dictionary(none, X, share, Prices.additive(np.ones(D), split=1.0), 1)
    assert found.columns.shape == (0, N)
    assert found.tree_cost.shape == (0,)


@pytest.mark.parametrize("at_a_time", [1, 3 * D, 1 << 30])
def test_sensors_are_those_of_each_tree_however_many_are_looked_at_at_a_time(
    trees, monkeypatch, at_a_time
):
    monkeypatch.setattr(module, "_TESTS", at_a_time)
    prices = Prices.additive(np.ones(D))
    bits = sensor_bits(trees, prices)
    used = [set(used_features(trees, t).tolist()) for t in range(trees.trees)]
    assert [{j for j in range(D) if int(row[0]) >> j & 1} for row in bits] == used
