"""Generated data that test a learner's first purchase, or its choice of training rows; prices by
row."""

from dataclasses import replace

import numpy as np
from scipy.stats import rankdata

from bench_core import Examples, Prices, Splits, Task, price_list
from bench_core.costs.by_row import with_known_prices
from bench_core.splits import SPLITS

ROWS = 2000


def priced_by_row(splits, costs, own):
    """The splits under costs by row; ``own``: prices (n, columns) of the rows of a part."""
    parts = {name: getattr(splits, name) for name in SPLITS}
    priced = {name: replace(part, price_columns=own(part)) for name, part in parts.items()}
    splits = replace(splits, **priced)
    return knowing_prices(splits.under(costs.on_average(splits.train)))


def knowing_prices(splits):
    """Rows know the prices that are quoted."""
    known = {name: with_known_prices(getattr(splits, name), splits.costs) for name in SPLITS}
    return replace(splits, **known)


def auc(scores, y):
    """Area under the ROC curve by rank sums."""
    ranks, ones = rankdata(scores), y > 0
    n = int(ones.sum())
    return float((ranks[ones].sum() - n * (n + 1) / 2) / (n * (len(y) - n)))


def switched(n, seed, features=4, by=4.0):
    """Column 0 says which of the columns 1 and 2 has the label's sign; any others are noise."""
    rng = np.random.default_rng(seed)
    y, context = rng.integers(0, 2, (2, n))
    X = rng.normal(size=(n, features))
    X[:, 0] = by * context + 0.5 * X[:, 0]
    X[np.arange(n), 1 + context] += by * (y - 0.5)
    return Examples(X.astype(np.float32), y.astype(np.float64))


def strong_and_cheap(rows=ROWS, seed=0):
    """Feature 2 (price 9) gains most per price. The best score of features 0 and 1 (prices 1 and 2)
    has an area of .773 (d' = .75 sqrt 2), of one of them .702. The other ten are noise."""
    rng, parts = np.random.default_rng(seed), []
    price = np.array([1.0, 2, 9, 1, 2, 3, 5, 9, 9, 12, 15, 20, 20])
    for _ in range(3):
        y = rng.integers(0, 2, rows)
        X = rng.normal(size=(rows, len(price)))
        X[:, :3] += np.outer(y, [0.75, 0.75, 2.6])
        parts.append(Examples(X.astype(np.float32), y.astype(float)))
    return Splits(*parts, prices=price_list(price), task=Task.BINARY, classes=2)


def two_that_help_together(rows=ROWS, seed=0):
    """The sign of features 0 times 1 decides most, five others help alone, 18 are noise."""
    rng, parts = np.random.default_rng(seed), []
    for _ in range(3):
        X = rng.normal(size=(rows, 25))
        z = 1.6 * np.sign(X[:, 0] * X[:, 1]) + X[:, 2:7] @ np.linspace(0.3, 0.9, 5)
        y = rng.random(rows) < 1 / (1 + np.exp(-z))
        parts.append(Examples(X.astype(np.float32), y.astype(float)))
    return Splits(*parts, prices=Prices.additive(np.ones(25)), task=Task.BINARY, classes=2)


def encoded_by_labels(rows=ROWS, seed=0):
    """Feature 0 is the mean label of the row's category (one of 400) over training rows, their own
    labels included; eight others help. So training rows seem easier than all others."""
    rng, categories, raw = np.random.default_rng(seed), 400, []
    effect, weights = rng.normal(size=categories) / 2, np.linspace(0.2, 1, 8)
    for n in (rows, rows // 2, rows):
        category, X = rng.integers(0, categories, n), rng.normal(size=(n, 8))
        y = rng.random(n) < 1 / (1 + np.exp(-(X @ weights + effect[category])))
        raw.append((category, X, y.astype(float)))
    own, _, y = raw[0]
    count = np.bincount(own, minlength=categories)
    mean = np.where(count, np.bincount(own, y, categories) / np.maximum(count, 1), y.mean())
    parts = [
        Examples(np.column_stack([mean[category], X]).astype(np.float32), y)
        for category, X, y in raw
    ]
    return Splits(*parts, prices=Prices.additive(np.ones(9)), task=Task.BINARY, classes=2)
