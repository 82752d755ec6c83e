"""Data sets that come with scikit-learn: real, small, always at hand. Every feature costs 1.

Split 60/20/20 by the seed, each class by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_core import Dataset, Examples, Prices, Source, Splits, Task, hookimpl
from bench_core.datasets.splitting import cut_by_class


def _splits(loaded: Any, task: Task, seed: int) -> Splits:
    X, y = loaded.data.astype(np.float32), loaded.target.astype(np.float64)
    train, valid, test = (
        Examples(X[rows], y[rows]) for rows in cut_by_class(y, (0.6, 0.2, 0.2), seed)
    )
    return Splits(
        train, valid, test,
        prices=Prices.additive(np.ones(X.shape[1])),
        task=task,
        classes=len(loaded.target_names),
        feature_names=tuple(str(name) for name in loaded.feature_names),
    )  # fmt: skip


@dataclass(frozen=True)
class BreastCancer:
    """569 tumours, 30 measurements; 0 malignant, 1 benign."""

    name: ClassVar[str] = "breast-cancer"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Breast cancer Wisconsin (diagnostic), bundled with scikit-learn"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Split by ``seed``; every size is the whole set."""
        from sklearn.datasets import load_breast_cancer

        return _splits(load_breast_cancer(), Task.BINARY, seed)


@dataclass(frozen=True)
class Digits:
    """1797 handwritten digits, 64 pixels."""

    name: ClassVar[str] = "digits"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Handwritten digits, 8x8 pixels, bundled with scikit-learn"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Split by ``seed``; every size is the whole set."""
        from sklearn.datasets import load_digits

        return _splits(load_digits(), Task.MULTICLASS, seed)


@hookimpl
def bench_datasets() -> Sequence[type[Dataset]]:
    """The data sets of this family."""
    return [BreastCancer, Digits]
