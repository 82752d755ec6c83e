"""Data structures that data sets, learners and the harness exchange.

``Features`` is a model's only input at prediction time. It holds neither labels nor
multiplicities, so a model cannot read anything unknown when serving. ``Examples`` adds the data
for training and scoring. Neither class is a subclass of the other, so that labels cannot be passed
to a model by accident.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

MOST_ROWS = 2**31 - 1  # of one part, copies included: trees count in 32 bits


class Task(StrEnum):
    """Prediction task, which determines the content of ``Prediction.scores``."""

    RANKING = "ranking"  # grades per document, scores in any order-preserving unit
    REGRESSION = "regression"  # label units
    BINARY = "binary"  # labels 0 and 1, scores are log-odds of 1
    MULTICLASS = "multiclass"  # labels 0..K-1, scores (n, K)


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Consecutive groups of rows: query ``j`` holds rows ``boundaries[j]:boundaries[j + 1]``.

    ``boundaries`` int64 (q + 1,) start at 0 and increase strictly, else ValueError. ``tags`` int64
    (q,) or None: a number of each query for metrics of plugins, such as the width of a picture
    whose pixels are the rows; nothing else reads it.
    """

    boundaries: IntArray
    tags: IntArray | None = None

    def __post_init__(self) -> None:
        # empty queries would shift the rows of later queries
        b = self.boundaries
        if b.ndim != 1 or len(b) == 0 or b[0] != 0 or bool(np.any(np.diff(b) <= 0)):
            raise ValueError("query boundaries must start at 0 and rise strictly")
        if self.tags is not None and self.tags.shape != (len(b) - 1,):
            raise ValueError(f"tags must be ({len(b) - 1},), got {self.tags.shape}")

    @classmethod
    def from_sizes(cls, sizes: IntArray) -> Queries:
        """Queries from the number of rows of each (q,), all at least 1."""
        return cls(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    @classmethod
    def from_ids(cls, ids: Any) -> Queries:
        """Queries from the id of every row (n,); ValueError if rows of a query are apart."""
        ids = np.asarray(ids)
        begins = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])[: len(ids)])
        if len(np.unique(ids)) < len(begins):
            raise ValueError("rows of a query are apart; sort the rows by query")
        return cls.from_sizes(np.diff(np.append(begins, len(ids))))

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
        return Queries(b - b[0], None if self.tags is None else self.tags[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Input of a model: ``X`` float32 (n, d), NaN = missing, and the query groups.

    ``prices`` float64 (n, s): price of each sensor for each row, as far as it is known before the
    purchase (the training mean where it is not); None if no price is quoted by row.
    """

    X: Float32Array
    queries: Queries | None = None  # None for independent rows
    prices: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Features with labels.

    ``y`` float64 (n,): grades, targets, 0/1, or class numbers 0..K-1.
    ``multiplicity`` int64 (n,) or None: number of identical copies that a row represents. Metrics
    and mean cost equal their values on physical copies. ``groups``: rows that depend on each other,
    such as the visits of a patient or the pixels of a picture. Statistics and metrics use
    them; models treat the rows as independent.
    ``prices`` are as in ``Features``. ``price_columns`` float64 (n, c) are all columns of prices of
    a user's table, for the cost model alone: learners get None.
    Raises ValueError if shapes do not match.
    """

    X: Float32Array
    y: FloatArray
    queries: Queries | None = None
    multiplicity: IntArray | None = None
    groups: Queries | None = None
    price_columns: FloatArray | None = None
    prices: FloatArray | None = None

    def __post_init__(self) -> None:
        n = len(self.X)
        if self.X.ndim != 2 or self.y.shape != (n,):
            raise ValueError(f"X must be (n, d) and y (n,), got {self.X.shape} and {self.y.shape}")
        if self.queries is not None and self.queries.rows != n:
            raise ValueError(f"queries cover {self.queries.rows} rows of {n}")
        if self.multiplicity is not None and self.multiplicity.shape != (n,):
            raise ValueError(f"multiplicity must be ({n},), got {self.multiplicity.shape}")
        if self.groups is not None and (self.queries is not None or self.groups.rows != n):
            raise ValueError(f"groups cover {self.groups.rows} rows of {n}, or there are queries")
        if any(of is not None and len(of) != n for of in (self.price_columns, self.prices)):
            raise ValueError(f"prices by row must be of {n} rows")

    def __len__(self) -> int:
        return len(self.X)

    @property
    def features(self) -> Features:
        """Model input at prediction time."""
        return Features(self.X, self.queries, self.prices)

    @property
    def units(self) -> Queries | None:
        """Groups of rows that are drawn together: the queries or groups; None for single rows."""
        return self.queries if self.groups is None else self.groups

    @property
    def weights(self) -> FloatArray:
        """Multiplicity as float64 (n,), ones if it is None."""
        if self.multiplicity is None:
            return np.ones(len(self.X))
        return self.multiplicity.astype(np.float64)
