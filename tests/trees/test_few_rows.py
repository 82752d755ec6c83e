"""Trees of few rows and many features are those that are grown with histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_trees import Penalty, Settings, boost, find_bins, histogram_pool

ROWS, FEATURES = 90, 43
PRICES = {"free": (), "once": ("coupled",), "each": ("lazy", "split"), "all": ("coupled", "split")}
HOW: dict[str, dict[str, Any]] = {
    "level": {"order": "level", "max_depth": 3},
    "best": {"max_depth": None, "max_leaves": 7, "min_hessian": 0.5, "l2": 0.1},
    "node": {"order": "level", "charge": "node", "stop": "raw"},
}


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns with ties, missing values, and of one value."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    X[:, ::3] = np.round(X[:, ::3])
    X[rng.random(X.shape) < np.linspace(0, 0.4, FEATURES) * (np.arange(FEATURES) % 2)] = np.nan
    X[:, [5, 20]] = 1.0
    return X, (np.nan_to_num(X[:, :4]).sum(axis=1) > rng.normal(size=ROWS)).astype(np.float64)


def trees(seed: int, prices: str, how: str, loss: str, threads: int) -> list[np.ndarray]:
    (X, y), rng = data(seed), np.random.default_rng(seed)
    bins = find_bins(X, max_bins=12)
    size = {"coupled": 1.0, "lazy": 0.02, "split": 0.003}
    own: Any = {p: size[p] * rng.integers(0, 3, FEATURES) for p in PRICES[prices]}
    grown = boost(
        bins.words(X),
        bins,
        y,
        loss=loss,
        settings=Settings(trees=6, min_rows=4, learning_rate=0.5, **HOW[how]),
        penalty=Penalty.plain(FEATURES, **own),
        multiplicity=rng.integers(1, 3, ROWS) if seed % 2 else None,
        threads=threads,
    )
    return [getattr(grown, name) for name in ("feature", "threshold", "missing_left", "value")]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("prices", PRICES)
def test_the_trees_are_the_same(
    monkeypatch: pytest.MonkeyPatch, prices: str, how: str, loss: str
) -> None:
    for seed, threads in ((0, 1), (1, 2)):
        with monkeypatch.context() as patch:
            wanted = trees(seed, prices, how, loss, threads)
            patch.setattr(histogram_pool, "FEATURES", 1)
            found = trees(seed, prices, how, loss, threads)
        assert len(wanted[0]) > 12
        for own, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(own, other)


def test_features_that_cannot_win_have_no_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[int] = []
    cut = histogram_pool.HistogramPool._cut

    def counted(self: Any, work: Any, features: Any, owed: Any) -> None:
        scored.append(len(features))
        cut(self, work, features, owed)

    monkeypatch.setattr(histogram_pool.HistogramPool, "_cut", counted)
    monkeypatch.setattr(histogram_pool, "FEATURES", 1)
    trees(0, "free", "best", "squared", 1)
    assert 0 < sum(scored) < len(scored) * FEATURES / 2
