"""ADAPT's synthetic data: layout, costs, and what the seed redraws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_datasets.adapt_synthetic import (
    AdaptSynthetic1,
    AdaptSynthetic2,
    border,
)

from bench_core import Splits


def prepared(dataset: Any, seed: int = 0) -> Splits:
    return dataset.prepare(None, "quick", 0, seed)  # type: ignore[no-any-return]


def parts(splits: Splits) -> list[Any]:
    return [splits.train, splits.valid, splits.test]


def test_synthetic_2_has_equal_clusters_in_every_split() -> None:
    corners = {(-1, 2): 1.0, (1, 2): 0.0, (1, 0): 1.0, (1, -1): 0.0}
    for part, each in zip(parts(prepared(AdaptSynthetic2())), (250, 125, 250), strict=True):
        nearest = np.round(part.X).astype(int)
        for corner, label in corners.items():
            own = (nearest == corner).all(axis=1)
            assert own.sum() == each
            assert set(part.y[own]) == {label}
        assert np.abs(part.X - nearest).max() <= np.float32(0.3)


def test_synthetic_1_is_linear_on_exactly_forty_percent_and_free() -> None:
    splits = prepared(AdaptSynthetic1())
    assert splits.prices.everything == 0
    for part, rows in zip(parts(splits), (1000, 500, 1000), strict=True):
        left = part.X[:, 0] < -0.2
        assert left.sum() == 0.4 * rows
        assert np.array_equal(part.y[left] == 1, part.X[left, 1] > 0)
        assert not np.array_equal(part.y == 1, part.X[:, 1] > 0)


def test_synthetic_1_keeps_a_margin_to_its_border_and_fills_the_square() -> None:
    X, y = prepared(AdaptSynthetic1()).train.X.astype(float), prepared(AdaptSynthetic1()).train.y
    height = border(X[:, 0])
    assert np.abs(X[:, 1] - height).min() >= 0.05 - 1e-6
    assert np.array_equal(y == 1, X[:, 1] > height)
    assert X.min() < -0.99
    assert X.max() > 0.99
    assert np.abs(X).max() <= 1


def test_the_border_of_synthetic_1_is_one_wave() -> None:
    at = np.array([-1.0, -0.2, -0.2 + 1 / 3, -0.2 + 2 / 3, 0.8])
    assert border(at).tolist() == pytest.approx([0, 0, 0.55, 0, -0.55], abs=1e-12)


@pytest.mark.parametrize("dataset", [AdaptSynthetic1(), AdaptSynthetic2()])
def test_the_seed_redraws_every_split(dataset: Any) -> None:
    one, same, other = (prepared(dataset, seed) for seed in (0, 0, 1))
    for a, b, c in zip(parts(one), parts(same), parts(other), strict=True):
        assert np.array_equal(a.X, b.X)
        assert not np.array_equal(a.X, c.X)
    assert not np.array_equal(one.train.X, one.test.X)
