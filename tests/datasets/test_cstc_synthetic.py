"""The synthetic problem of CSTC: quadrants, experts, prices."""

from __future__ import annotations

import numpy as np
import pytest
from bench_datasets.cstc_synthetic import MEANS, CSTCSynthetic, generate
from helpers.cstc_cases import synthetic


@pytest.fixture(scope="module", params=[0, 7])
def splits(request: pytest.FixtureRequest) -> object:
    return synthetic(request.param)


def test_every_split_holds_exactly_a_quarter_in_each_quadrant(splits) -> None:
    for part, rows in ((splits.train, 4000), (splits.valid, 2000), (splits.test, 4000)):
        signs, count = np.unique(part.X[:, :2], axis=0, return_counts=True)
        assert signs.tolist() == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
        assert count.tolist() == [rows // 4] * 4


def test_the_expert_of_a_rows_own_quadrant_is_its_label(splits) -> None:
    for part in (splits.train, splits.valid, splits.test):
        own = {(1, 1): 2, (1, -1): 3, (-1, 1): 4, (-1, -1): 5}
        for x, y in zip(part.X, part.y, strict=True):
            assert x[own[int(x[0]), int(x[1])]] == y


def test_labels_are_normal_about_their_quadrants_mean_and_other_experts_about_zero(splits) -> None:
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


def test_signs_cost_one_and_experts_ten(splits) -> None:
    assert splits.prices.feature_price().tolist() == [1, 1, 10, 10, 10, 10]
    assert splits.prices.everything == 42
    assert splits.prices.split == splits.prices.tree == 0


def test_its_optimum_is_what_models_reach_that_know_how_it_is_made() -> None:
    rows = generate(np.random.default_rng(9), 200_000)
    x, z = rows.X[:, 0] > 0, rows.X[:, 1] > 0
    both = np.select([x & z, x & ~z, ~x & z], MEANS[:3], MEANS[3])
    expert = rows.X[np.arange(len(x)), np.select([x & z, x & ~z, ~x & z], [2, 3, 4], 5)]
    made = {0: np.zeros(len(x)), 1: np.where(x, 2, -2), 2: both, 12: expert}
    for cost, error in CSTCSynthetic.optimum["mse"]:
        assert np.mean((rows.y - made[cost]) ** 2) == pytest.approx(error, rel=0.02, abs=1e-9)
