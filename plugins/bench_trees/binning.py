"""Quantile binning of float32 columns to one byte per cell, eight of them to a word.

A column with at most ``max_bins`` distinct values gets a bin for each, divided at the midpoints.
Otherwise a value that fills a bin's fair share gets its own bin. The rest is divided evenly by
multiplicity (the greedy rule of LightGBM's Dataset). All rows are used: physical copies and
multiplicities give the same edges, and no seed is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bench_trees.arrays import Float32Array, Int64Array, UInt8Array, UInt64Array, frozen
from bench_trees.kernels.packed_codes import count_words, encode, greedy_ends, unpack
from bench_trees.threads import workers

MAX_BINS = 255
"""Most bins for numbers; with the missing bin added every code fits a byte."""

_STRIP = 16  # columns read together: one cache line of float32
_ROWS = 4096  # rows encoded at a time by one thread
_LARGEST = np.float32(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """The division of every feature into bins.

    Feature j has the edges ``edges[offset[j]:offset[j + 1]]`` (float32, strictly rising) and one
    bin more than edges. Code b means that x is at most edge b and above edge b - 1, so ``code <=
    b`` is exactly ``x <= edge[b]``. NaN has the code after the last bin.
    """

    edges: Float32Array
    offset: Int64Array

    def __post_init__(self) -> None:
        sizes = np.diff(self.offset)
        if self.offset[0] != 0 or self.offset[-1] != len(self.edges) or bool(np.any(sizes < 0)):
            raise ValueError("bins: offset and edges do not fit together")
        if len(sizes) and int(sizes.max()) >= MAX_BINS:
            raise ValueError(f"bins: a feature has more than {MAX_BINS} bins")

    @property
    def features(self) -> int:
        """Number of features d."""
        return len(self.offset) - 1

    @property
    def counts(self) -> Int64Array:
        """Bins for numbers per feature (d,), at least 1; also the code of NaN."""
        return np.diff(self.offset) + 1

    def threshold(self, feature: Any, code: Any) -> Any:
        """The edges for codes ``<= code`` of features, numbers or arrays of one shape: infinite at
        the last bin, where every number goes left."""
        edge = self.offset[feature] + code
        edges = np.append(self.edges, np.float32(np.inf))
        return edges[np.where(edge < self.offset[feature + 1], edge, -1)]

    def codes(self, X: Float32Array, threads: int = 1) -> UInt8Array:
        """Bin numbers of rows X (n, d), feature-major: uint8 (d, n)."""
        return unpack(self.words(X, threads), self.features)

    def words(self, X: Float32Array, threads: int = 1) -> UInt64Array:
        """Bin numbers of rows X (n, d) in the form for ``boost``: uint64 (ceil(d / 8), n)."""
        X = _checked(X, self.features)
        out = np.empty((count_words(self.features), len(X)), dtype=np.uint64)
        padded = np.full((self.features, 256), np.inf, dtype=np.float32)
        counts = self.counts
        padded[np.arange(256) < counts[:, None] - 1] = self.edges

        def piece(start: int, stop: int) -> None:
            encode(X, padded, counts, start, stop, out)

        with workers(threads) as pool:
            pool.run(piece, len(X), _ROWS)
        return out

    def state(self) -> dict[str, Any]:
        """The arrays by name."""
        return {"edges": self.edges, "offset": self.offset}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``; ignores other entries."""
        return cls(np.asarray(state["edges"], np.float32), np.asarray(state["offset"], np.int64))


def find_bins(
    X: Float32Array,
    max_bins: int = MAX_BINS,
    multiplicity: Int64Array | None = None,
    threads: int = 1,
) -> Bins:
    """Divide every column of X (n, d) into at most ``max_bins`` bins (2..255), NaN apart.

    Infinities are ordinary extreme values. ``multiplicity`` (n,): copies of each row.
    """
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"max_bins must be 2..{MAX_BINS}, got {max_bins}")
    X = _checked(X, X.shape[1])
    edges: list[Float32Array] = [np.empty(0, np.float32)] * X.shape[1]

    def piece(start: int, stop: int) -> None:
        strip = np.ascontiguousarray(X[:, start:stop].T)
        for j, column in enumerate(strip, start):
            edges[j] = _column_edges(column, multiplicity, max_bins)

    with workers(threads) as pool:
        pool.run(piece, X.shape[1], _STRIP)
    offset = np.cumsum([0, *map(len, edges)], dtype=np.int64)
    return Bins(np.concatenate([np.empty(0, np.float32), *edges]), offset)


def _checked(X: Float32Array, features: int) -> Float32Array:
    if X.ndim != 2 or X.shape[1] != features:
        raise ValueError(f"X must be (n, {features}), got {X.shape}")
    return frozen(X, np.float32)


def _column_edges(
    column: Float32Array, multiplicity: Int64Array | None, max_bins: int
) -> Float32Array:
    present = ~np.isnan(column)
    if multiplicity is None:
        distinct, counts = np.unique(column[present], return_counts=True)
    else:
        distinct, place = np.unique(column[present], return_inverse=True)
        counts = np.bincount(place, multiplicity[present]).astype(np.int64)
    if len(distinct) > max_bins:
        last = greedy_ends(counts, max_bins)
    else:
        last = np.arange(len(distinct) - 1)
    return _between(distinct[last], distinct[last + 1])


def _between(low: Float32Array, high: Float32Array) -> Float32Array:
    """Float32 values e with low <= e < high, at the midpoint if possible."""
    a, b = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(invalid="ignore"):
        middle = (a + (b - a) / 2).astype(np.float32)
    middle = np.where(np.isposinf(high), _LARGEST, middle)
    middle = np.where(np.isneginf(low), -_LARGEST, middle)
    return np.where((middle >= low) & (middle < high), middle, low)
