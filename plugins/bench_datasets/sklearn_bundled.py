"""Data sets bundled with scikit-learn: real, small, always available. Every feature costs 1.

Split 60/20/20 by the seed within each class.
"""

from typing import ClassVar

import numpy as np

from bench_core import Prices, Source, Splits, Task, provide_datasets
from bench_core.datasets.splitting import cut_by_class, take


class _Bundled:
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    task: ClassVar[Task]
    loader: ClassVar[str]

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Split by ``seed``; every size uses all rows."""
        from sklearn import datasets

        loaded = getattr(datasets, self.loader)()
        X, y = loaded.data.astype(np.float32), loaded.target.astype(np.float64)
        return Splits(
            *take(X, y, cut_by_class(y, (0.6, 0.2, 0.2), seed)),
            Prices.additive(np.ones(X.shape[1])),
            feature_names=tuple(str(name) for name in loaded.feature_names),
        )


class BreastCancer(_Bundled):
    """569 tumours, 30 measurements; 0 malignant, 1 benign."""

    name: ClassVar[str] = "breast-cancer"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Breast cancer Wisconsin (diagnostic), bundled with scikit-learn"
    loader: ClassVar[str] = "load_breast_cancer"


class Digits(_Bundled):
    """1797 handwritten digits, 64 pixels."""

    name: ClassVar[str] = "digits"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Handwritten digits, 8x8 pixels, bundled with scikit-learn"
    loader: ClassVar[str] = "load_digits"


bench_datasets = provide_datasets(BreastCancer, Digits)
