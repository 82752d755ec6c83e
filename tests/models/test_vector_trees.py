"""Boosted trees with a vector in each leaf."""

import numpy as np
from bench_models.dictionary import sums
from bench_models.vector_trees import boost_vectors
from bench_trees import Settings, boost, find_bins

SETTINGS = Settings(trees=25, learning_rate=0.3, max_leaves=8, min_rows=10)


def rows(n=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    X[rng.random((n, 3)) < 0.3] = np.nan
    filled = np.nan_to_num(X).astype(np.float64)
    targets = np.column_stack([filled[:, 0], filled[:, 0] - 2 * filled[:, 1], 0 * filled[:, 2]])
    return X, targets + 0.1 * rng.normal(size=(n, 3))


def fitted(targets, known=None, **more):
    known = np.ones(targets.shape, dtype=bool) if known is None else known
    settings = Settings(**{**{n: getattr(SETTINGS, n) for n in SETTINGS.__slots__}, **more})
    return boost_vectors(rows()[0], targets, known, settings, np.random.default_rng(0))


def test_one_output_is_plain_boosting():
    X, targets = rows()
    bins = find_bins(X)
    plain = boost(bins.codes(X), bins, targets[:, 1], settings=SETTINGS)
    # the engine sums in fixed point
    np.testing.assert_allclose(sums(fitted(targets[:, 1:2]), X), sums(plain, X), atol=1e-5)


def test_every_output_is_learned():
    X, targets = rows()
    model = fitted(targets, trees=60)
    error = ((sums(model, X) - targets) ** 2).mean(axis=0)
    assert (error[:2] < 0.1 * targets.var(axis=0)[:2]).all()
    assert error[2] < 0.012  # noise of variance 0.01


def test_unknown_targets_say_nothing():
    X, targets = rows()
    known = np.random.default_rng(1).random(targets.shape) < 0.5
    one = fitted(np.where(known, targets, 1e6), known)
    two = fitted(np.where(known, targets, -7.0), known)
    assert np.array_equal(sums(one, X), sums(two, X))
    assert np.isfinite(sums(one, X)).all()
    whole = sums(fitted(targets), X)
    assert np.abs(sums(one, X) - whole).mean() < 0.2


def test_nothing_to_learn_leaves_the_mean():
    X, targets = rows()
    model = fitted(np.full_like(targets, 3.0))
    assert model.trees == 0
    assert np.array_equal(sums(model, X), np.full(targets.shape, 3.0))
