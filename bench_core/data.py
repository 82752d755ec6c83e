"""The values that data sets, learners and the harness exchange.

``Features`` is all a model sees at prediction time; it holds neither labels nor
multiplicities, so nothing can be read from it that is not known when serving.
``Examples`` adds what training and scoring need. The two are separate classes
(not a subclass of one another) so that labels cannot travel by accident.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray


class Task(StrEnum):
    """What is predicted, and therefore what ``Prediction.scores`` holds."""

    RANKING = "ranking"  # grades per document, scores in any order-preserving unit
    REGRESSION = "regression"  # label units
    BINARY = "binary"  # labels 0 and 1, scores are log-odds of 1
    MULTICLASS = "multiclass"  # labels 0..K-1, scores (n, K)


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Consecutive groups of rows: query ``j`` holds rows ``boundaries[j]:boundaries[j + 1]``.

    ``boundaries`` int64 (q + 1,) begin at 0 and rise strictly, else ValueError.
    """

    boundaries: IntArray

    def __post_init__(self) -> None:
        # rows of empty queries would shift those behind them
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
        """Number of rows in all queries together."""
        return int(self.boundaries[-1])

    @property
    def sizes(self) -> IntArray:
        """Rows per query, shape (q,)."""
        return np.diff(self.boundaries)

    def index(self) -> IntArray:
        """The query number of every row, shape (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)

    def select(self, start: int, stop: int) -> Queries:
        """Queries ``start:stop`` as boundaries that start at 0 again."""
        b = self.boundaries[start : stop + 1]
        return Queries(b - b[0])


@dataclass(frozen=True, slots=True, eq=False)
class Frames(Queries):
    """Pictures whose pixels are rows, line by line: frame ``j`` has ``widths[j]`` pixels a line.

    ``widths`` int64 (q,); ValueError where they do not divide the frames' pixels. Without them the
    rows are pixels drawn from the frames and make no picture.
    """

    widths: IntArray | None = None

    def __post_init__(self) -> None:
        Queries.__post_init__(self)
        if self.widths is None:
            return
        if self.widths.shape != (len(self),) or bool(np.any(self.widths < 1)):
            raise ValueError("every frame needs a width of at least one pixel")
        if bool(np.any(self.sizes % self.widths)):
            raise ValueError("a frame's pixels must fill its lines")

    def pictures(self, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """The values (n,) of its rows as one picture (height, width) per frame; ValueError
        without ``widths``."""
        if self.widths is None:
            raise ValueError("drawn pixels make no picture")
        # rows lie line by line
        for start, stop, width in zip(
            self.boundaries[:-1], self.boundaries[1:], self.widths, strict=True
        ):
            yield values[start:stop].reshape(-1, int(width))


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What a model may look at: ``X`` float32 (n, d), NaN = missing, and the query groups."""

    X: Float32Array
    queries: Queries | None = None  # None where rows stand alone

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Features with labels.

    ``y`` float64 (n,): grades, targets, 0/1, or class numbers 0..K-1.
    ``multiplicity`` int64 (n,) or None: how many identical copies a row stands for.
    Metrics and mean cost give exactly what physical copies would give. ``frames``: the pictures
    that the rows are pixels of. Metrics alone see them; to a model the rows are independent.
    Raises ValueError where the shapes do not fit together.
    """

    X: Float32Array
    y: FloatArray
    queries: Queries | None = None
    multiplicity: IntArray | None = None
    frames: Frames | None = None

    def __post_init__(self) -> None:
        n = len(self.X)
        if self.X.ndim != 2 or self.y.shape != (n,):
            raise ValueError(f"X must be (n, d) and y (n,), got {self.X.shape} and {self.y.shape}")
        if self.queries is not None and self.queries.rows != n:
            raise ValueError(f"queries cover {self.queries.rows} rows of {n}")
        if self.multiplicity is not None and self.multiplicity.shape != (n,):
            raise ValueError(f"multiplicity must be ({n},), got {self.multiplicity.shape}")
        if self.frames is not None and (self.queries is not None or self.frames.rows != n):
            raise ValueError(f"frames cover {self.frames.rows} rows of {n}, or there are queries")

    def __len__(self) -> int:
        return len(self.X)

    @property
    def features(self) -> Features:
        """The part a model may see at prediction time."""
        return Features(self.X, self.queries)

    @property
    def groups(self) -> Queries | None:
        """What metrics take together: the queries or the frames."""
        return self.queries if self.frames is None else self.frames

    @property
    def weights(self) -> FloatArray:
        """Multiplicity as float64 (n,), ones where it is None."""
        if self.multiplicity is None:
            return np.ones(len(self.X))
        return self.multiplicity.astype(np.float64)
