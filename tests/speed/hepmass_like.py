"""A data set of HEPMASS's shape, generated: a plugin for ``test_large_data``."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import bench_core
from bench_core import Examples, Prices, Splits, Task

FEATURES = 28
ROWS = {
    "quick": (350_000, 140_000, 560_000),
    "standard": (350_000, 140_000, 560_000),
    "paper": (3_500_000, 1_400_000, 5_600_000),
}


def _rows(count, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, FEATURES), dtype=np.float32)
    signal = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3])
    y = (signal + rng.standard_normal(count, dtype=np.float32) > 0.4).astype(np.float64)
    return Examples(X, y)


@dataclass(frozen=True)
class HepmassLike:
    """Normal columns, four of which tell something about the class."""

    name: ClassVar[str] = "hepmass-like"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Generated in HEPMASS's shape"

    def prepare(self, source, size, fold, seed):
        """All rows in the paper's size, a tenth of them otherwise."""
        train, valid, test = (_rows(n, (seed, k)) for k, n in enumerate(ROWS[size]))
        prices = Prices.additive(np.ones(FEATURES))
        return Splits(train, valid, test, prices=prices, task=self.task, classes=2)


@bench_core.hookimpl
def bench_datasets():
    """The one data set."""
    return [HepmassLike]
