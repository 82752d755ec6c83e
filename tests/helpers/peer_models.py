"""Rows that are hard to route, and the outputs of an imported model in plain NumPy."""

import numpy as np

from helpers.random_trees import leaves_of


def hard_rows(rng, n, d, missing=0.1):
    """float32 (n, d): many zeros, equal values, numbers next to zero, some missing."""
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, 0] = np.round(X[:, 0] * 2)
    X[rng.random(X.shape) < 0.25] = 0
    X[rng.random(X.shape) < 0.02] = np.float32(1e-36)
    X[rng.random(X.shape) < 0.02] = np.float32(-1e-36)
    X[rng.random(X.shape) < 0.02] = np.float32(2e-35)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def signal(rng, X):
    """A target that also depends on zeros and on missing cells."""
    z = np.nan_to_num(X.astype(np.float64), nan=0.7)
    wave = z[:, 0] - z[:, 1] * z[:, 2] + np.sin(2 * z[:, 3]) + 1.5 * (X[:, 1] == 0)
    return np.asarray(wave + np.isnan(X[:, 2]) + 0.3 * rng.normal(size=len(X)))


def on_thresholds(rng, e, n):
    """float32 (n, d): cells are thresholds of the ensemble and their neighbours."""
    inner = e.feature >= 0
    X = np.zeros((n, e.features), dtype=np.float32)
    for j in range(e.features):
        limits = np.unique(np.r_[e.threshold[inner & (e.feature == j)], np.float32(0)])
        with np.errstate(over="ignore"):
            near = [np.nextafter(limits, np.float32(s)) for s in (-np.inf, np.inf)]
        cells = np.concatenate([limits, *near])
        X[:, j] = rng.choice(cells[np.isfinite(cells)], n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


def raw_scores(model, X):
    """Raw outputs (n, K), averages included, before the link."""
    e = model.ensemble
    values = e.value[leaves_of(e, X)]
    sums = np.zeros((len(X), model.outputs))
    for t in range(e.trees):
        if e.vectors is None:
            sums[:, e.output[t]] += values[t]
        else:
            sums += e.vectors[values[t].astype(int)]
    if model.average:
        sums /= e.trees / (1 if e.vectors is not None else model.outputs)
    return sums + e.base


def assert_close(ours, theirs, rtol=2e-6):
    """Equal to float32 precision of the largest value."""
    theirs = np.asarray(theirs, dtype=np.float64).reshape(ours.shape)
    assert np.abs(ours - theirs).max() <= rtol * max(1.0, np.abs(theirs).max())
