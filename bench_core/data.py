"""Data structures that data sets, learners and the harness exchange.

``Features`` is a model's only input at prediction time. It holds neither labels nor
multiplicities, so a model cannot read anything unknown when serving. ``Examples`` adds the data
for training and scoring. Neither class is a subclass of the other, so that labels cannot be passed
to a model by accident.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray


class Task(StrEnum):
    """Prediction task, which determines the content of ``Prediction.scores``."""

    RANKING = "ranking"  # grades per document, scores in any order-preserving unit
    REGRESSION = "regression"  # label units
    BINARY = "binary"  # labels 0 and 1, scores are log-odds of 1
    MULTICLASS = "multiclass"  # labels 0..K-1, scores (n, K)


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Consecutive groups of rows: query ``j`` holds rows ``boundaries[j]:boundaries[j + 1]``.

    ``boundaries`` int64 (q + 1,) start at 0 and increase strictly, else ValueError.
    """

    boundaries: IntArray

    def __post_init__(self) -> None:
        # empty queries would shift the rows of later queries
        b = self.boundaries
        if b.ndim != 1 or len(b) == 0 or b[0] != 0 or bool(np.any(np.diff(b) <= 0)):
            raise ValueError("query boundaries must start at 0 and rise strictly")

    @classmethod
    def from_sizes(cls, sizes: IntArray) -> Queries:
        """Queries from the number of rows of each (q,), all at least 1."""
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def __len__(self) -> int:
        return len(self.boundaries) - 1

    @property
    def rows(self) -> int:
        """Total number of rows."""
        return int(self.boundaries[-1])

    @property
    def sizes(self) -> IntArray:
        """Rows per query, shape (q,)."""
        return np.diff(self.boundaries)

    def index(self) -> IntArray:
        """The query number of every row, shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    def select(self, start: int, stop: int) -> Queries:
        """Queries ``start:stop``, with boundaries that start at 0."""
        b = self.boundaries[start : stop + 1]
        return Queries(b - b[0])


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Input of a model: ``X`` float32 (n, d), NaN = missing, and the query groups."""

    X: Float32Array
    queries: Queries | None = None  # None for independent rows

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Features with labels.

    ``y`` float64 (n,): grades, targets, 0/1, or class numbers 0..K-1.
    ``multiplicity`` int64 (n,) or None: number of identical copies that a row represents. Metrics
    and mean cost equal their values on physical copies.
    Raises ValueError if shapes do not match.
    """

    X: Float32Array
    y: FloatArray
    queries: Queries | None = None
    multiplicity: IntArray | None = None

    def __post_init__(self) -> None:
        n = len(self.X)
        if self.X.ndim != 2 or self.y.shape != (n,):
            raise ValueError(f"X must be (n, d) and y (n,), got {self.X.shape} and {self.y.shape}")
        if self.queries is not None and self.queries.rows != n:
            raise ValueError(f"queries cover {self.queries.rows} rows of {n}")
        if self.multiplicity is not None and self.multiplicity.shape != (n,):
            raise ValueError(f"multiplicity must be ({n},), got {self.multiplicity.shape}")

    def __len__(self) -> int:
        return len(self.X)

    @property
    def features(self) -> Features:
        """Model input at prediction time."""
        return Features(self.X, self.queries)

    @property
    def weights(self) -> FloatArray:
        """Multiplicity as float64 (n,), ones if it is None."""
        if self.multiplicity is None:
            return np.ones(len(self.X))
        return self.multiplicity.astype(np.float64)
