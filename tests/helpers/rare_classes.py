"""Seven classes, some with a handful of training rows, as in data of faults or species."""

import numpy as np

from bench_core import Examples, Prices, Splits, Task

CLASSES = 7


def rare_classes(rare, rows=10_000, seed=0):
    """Three splits of ``rows`` rows with ten features at 1 to 10; the last classes have ``rare``
    rows each in every split, which their features separate only in part."""
    rng = np.random.default_rng(seed)
    parts = [_part(rare, rows, rng) for _ in range(3)]
    prices = Prices.additive(np.arange(1.0, 11.0))
    return Splits(*parts, prices=prices, task=Task.MULTICLASS, classes=CLASSES)


def _part(rare, rows, rng):
    X = rng.normal(size=(rows, 10)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)
    large = CLASSES - len(rare)
    y = np.digitize(signal, np.quantile(signal, 1 - 0.5 ** np.arange(1, large))).astype(float)
    few = np.repeat(np.arange(large, CLASSES), rare)
    y[: len(few)] = few
    X[: len(few) : 2, 3] += 2
    order = rng.permutation(rows)
    return Examples(X[order], y[order])


def entropy_of(y):
    """Log-loss of the best constant."""
    shares = np.bincount(y.astype(int)) / len(y)
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


def log_loss(scores, y):
    """Mean log-loss of scores (n, K)."""
    own = scores[np.arange(len(y)), y.astype(int)]
    return float(np.mean(np.logaddexp.reduce(scores, axis=1) - own))
