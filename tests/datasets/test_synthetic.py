"""Synthetic data of ADAPT and of CSTC: layout and costs; what the seed redraws of all such data."""

import numpy as np
import pytest
from bench_datasets.acquisition import Cube, CubeNM, CubePrices, CubeUniform
from bench_datasets.adapt_synthetic import AdaptSynthetic1, AdaptSynthetic2, border
from bench_datasets.cstc_synthetic import MEANS, CSTCSynthetic, generate
from helpers.cstc_cases import synthetic
from helpers.kit import parts


def prepared(dataset, seed=0):
    return dataset.prepare(None, "quick", 0, seed)


def test_synthetic_2_has_equal_clusters_in_every_split():
    corners = {(-1, 2): 1.0, (1, 2): 0.0, (1, 0): 1.0, (1, -1): 0.0}
    for part, each in zip(parts(prepared(AdaptSynthetic2())), (250, 125, 250), strict=True):
        nearest = np.round(part.X).astype(int)
        for corner, label in corners.items():
            own = (nearest == corner).all(axis=1)
            assert own.sum() == each
            assert set(part.y[own]) == {label}
        assert np.abs(part.X - nearest).max() <= np.float32(0.3)


def test_synthetic_1_is_linear_on_exactly_forty_percent_and_free():
    splits = prepared(AdaptSynthetic1())
    assert splits.prices.everything == 0
    for part, rows in zip(parts(splits), (1000, 500, 1000), strict=True):
        left = part.X[:, 0] < -0.2
        assert left.sum() == 0.4 * rows
        assert np.array_equal(part.y[left] == 1, part.X[left, 1] > 0)
        assert not np.array_equal(part.y == 1, part.X[:, 1] > 0)


def test_synthetic_1_keeps_a_margin_to_its_border_and_fills_the_square():
    X, y = prepared(AdaptSynthetic1()).train.X.astype(float), prepared(AdaptSynthetic1()).train.y
    height = border(X[:, 0])
    assert np.abs(X[:, 1] - height).min() >= 0.05 - 1e-6
    assert np.array_equal(y == 1, X[:, 1] > height)
    assert X.min() < -0.99
    assert X.max() > 0.99
    assert np.abs(X).max() <= 1


def test_the_border_of_synthetic_1_is_one_wave():
    at = np.array([-1.0, -0.2, -0.2 + 1 / 3, -0.2 + 2 / 3, 0.8])
    assert border(at).tolist() == pytest.approx([0, 0, 0.55, 0, -0.55], abs=1e-12)


DRAWN = (AdaptSynthetic1, AdaptSynthetic2, Cube, CubeUniform, CubePrices, CubeNM)


@pytest.mark.parametrize("kind", DRAWN)
def test_the_seed_redraws_every_split(kind):
    one, same, other = (parts(prepared(kind(), seed)) for seed in (0, 0, 1))
    for a, b, c in zip(one, same, other, strict=True):
        assert np.array_equal(a.X, b.X)
        assert not np.array_equal(a.X, c.X)
    assert not np.array_equal(one[0].X[: len(one[2])], one[2].X)
    assert not np.array_equal(one[1].X, one[2].X)


@pytest.fixture(scope="module", params=[0, 7])
def splits(request):
    return synthetic(request.param)


def test_every_split_holds_exactly_a_quarter_in_each_quadrant(splits):
    for part, rows in ((splits.train, 4000), (splits.valid, 2000), (splits.test, 4000)):
        signs, count = np.unique(part.X[:, :2], axis=0, return_counts=True)
        assert signs.tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
        assert count.tolist() == [rows // 4] * 4


def test_the_expert_of_a_rows_own_quadrant_is_its_label(splits):
    for part in parts(splits):
        own = {(1, 1): 2, (1, -1): 3, (-1, 1): 4, (-1, -1): 5}
        for x, y in zip(part.X, part.y, strict=True):
            assert x[own[int(x[0]), int(x[1])]] == y


def test_labels_are_normal_about_their_quadrants_mean_and_other_experts_about_zero(splits):
    train = splits.train
    for k, (signs, mean) in enumerate(
        {(1, 1): 3.0, (1, -1): 1.0, (-1, 1): -1.0, (-1, -1): -3.0}.items()
    ):
        here = (train.X[:, :2] == signs).all(axis=1)
        others = np.delete(train.X[here][:, 2:], k, axis=1)
        assert train.y[here].mean() == pytest.approx(mean, abs=0.13)  # four standard errors
        assert train.y[here].std() == pytest.approx(1, abs=0.1)
        assert np.abs(others.mean(axis=0)).max() < 0.13
        assert others.std() == pytest.approx(1, abs=0.06)
    assert train.y.var() == pytest.approx(6, abs=0.4)


def test_signs_cost_one_and_experts_ten(splits):
    assert splits.prices.feature_price().tolist() == [1, 1, 10, 10, 10, 10]
    assert splits.prices.everything == 42
    assert splits.prices.split == splits.prices.tree == 0


def test_its_optimum_is_what_models_reach_that_know_how_it_is_made():
    rows = generate(np.random.default_rng(9), 200_000)
    x, z = rows.X[:, 0] > 0, rows.X[:, 1] > 0
    both = np.select([x & z, x & ~z, ~x & z], MEANS[:3], MEANS[3])
    expert = rows.X[np.arange(len(x)), np.select([x & z, x & ~z, ~x & z], [2, 3, 4], 5)]
    made = {0: np.zeros(len(x)), 1: np.where(x, 2, -2), 2: both, 12: expert}
    for cost, error in CSTCSynthetic.optimum["mse"]:
        assert np.mean((rows.y - made[cost]) ** 2) == pytest.approx(error, rel=0.02, abs=1e-9)
