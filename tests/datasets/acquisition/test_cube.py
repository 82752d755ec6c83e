"""CUBE and its variants: where each class shows, how noise is spread, what features cost."""

import numpy as np
import pytest
from bench_datasets.acquisition import Cube, CubeNM, CubePrices, CubeUniform
from helpers.kit import prepared_set, sizes

# SEFA, datasets/create_cube.py: the means of features k+1..k+3 of class k+1
TABLE = ["000", "100", "010", "110", "001", "101", "011", "111"]


def prepared(dataset, size="quick"):
    return prepared_set(dataset, "", size)


def informative(X, y, first):
    """Which cells (n, d) show the class in the block that begins at ``first``."""
    place = np.arange(X.shape[1]) - first - y[:, None]
    return (place >= 0) & (place < 3)


def deviations(X, y, first):
    """Informative cells less the means of SEFA's table."""
    rows = np.arange(len(y))
    found = [
        X[rows, first + y + bit] - np.array([int(TABLE[k][bit]) for k in y]) for bit in range(3)
    ]
    return np.concatenate(found)


@pytest.mark.parametrize("dataset", [Cube(rows=30_000), CubePrices(rows=30_000), Cube(sd=0.3)])
def test_a_class_shows_in_three_features_by_its_bits_and_all_else_is_noise(dataset):
    blocks = (0, 10) if isinstance(dataset, CubePrices) else (0,)
    data = prepared(dataset, "standard").train
    y = data.y.astype(int)
    shows = np.zeros(data.X.shape, dtype=bool)
    for first in blocks:
        found = deviations(data.X, y, first)
        few = 4 / np.sqrt(len(found))  # standard errors
        assert found.mean() == pytest.approx(0, abs=few * dataset.sd)
        assert found.std() == pytest.approx(dataset.sd, rel=few)
        shows |= informative(data.X, y, first)
    others = data.X[~shows]
    assert others.mean() == pytest.approx(0.5, abs=0.01)
    assert others.std() == pytest.approx(0.3, abs=0.01)
    assert (np.abs(others - 0.5) > 0.6).mean() == pytest.approx(0.0455, abs=0.004)  # normal
    assert np.bincount(y) / len(y) == pytest.approx(np.full(8, 1 / 8), abs=0.03)


def test_noise_of_the_uniform_variant_fills_the_unit_interval():
    data = prepared(CubeUniform(rows=30_000)).train
    y = data.y.astype(int)
    assert deviations(data.X, y, 0).std() == pytest.approx(0.3, abs=0.005)
    others = data.X[~informative(data.X, y, 0)]
    assert others.min() >= 0
    assert others.max() <= 1
    assert np.histogram(others, 10, (0, 1))[0] / len(others) == pytest.approx(
        np.full(10, 0.1), abs=0.003
    )


@pytest.mark.parametrize("sd", [0.3, 0.1])
def test_only_the_block_of_its_context_shows_a_class(sd):
    data = prepared(CubeNM(sd=sd, rows=30_000)).train
    y, code = data.y.astype(int), data.X[:, :5]
    context = code.argmax(axis=1)
    assert (code - (context[:, None] == np.arange(5))).std() == pytest.approx(0.1, abs=0.002)
    assert np.bincount(context) / len(y) == pytest.approx(np.full(5, 0.2), abs=0.01)
    joint = np.zeros((5, 8))
    np.add.at(joint, (context, y), 1 / len(y))
    assert joint == pytest.approx(np.full((5, 8), 1 / 40), abs=0.004)  # independent
    for block in range(5):
        here = context == block
        found = deviations(data.X[here], y[here], 5 + 10 * block)
        assert found.std() == pytest.approx(sd, abs=0.005)
        assert found.mean() == pytest.approx(0, abs=0.01)
        elsewhere = data.X[~here, 5 + 10 * block : 15 + 10 * block]
        assert elsewhere.mean() == pytest.approx(0.5, abs=0.01)
        assert elsewhere.std() == pytest.approx(0.3, abs=0.003)


def test_prices_are_one_a_feature_and_one_for_the_whole_context():
    for dataset in (Cube(), CubeUniform()):
        assert prepared(dataset).prices.feature_price().tolist() == [1] * 20
    two = prepared(CubePrices()).prices.feature_price()
    assert two == pytest.approx(np.array([2 / 3] * 10 + [4 / 3] * 10))
    nm = prepared(CubeNM()).prices
    assert (nm.features, nm.sensors, nm.everything) == (55, 51, 51)
    assert len({tuple(nm.sensors_of(j)) for j in range(5)}) == 1
    assert nm.feature_price().tolist() == [1] * 55


def test_sizes_follow_the_profile_or_the_option():
    assert sizes(prepared(CubeNM())) == [600, 200, 200]
    assert sizes(prepared(CubeNM(), "standard")) == [6000, 2000, 2000]
    assert sizes(prepared(CubeNM(rows=900))) == [900, 300, 300]
