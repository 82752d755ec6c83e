"""Quantile binning of float32 columns to one byte per cell, eight of them to a word.

A column with at most ``max_bins`` distinct values gets a bin for each, divided at the midpoints.
Otherwise values that alone fill a bin's fair share get their own, and the rest is divided
evenly by multiplicity (the greedy rule of LightGBM's Dataset). All rows are looked at, so
physical copies and multiplicities give the same edges and no seed is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_trees.kernels.packed_codes import LANES, Words, count_words, unpack
from bench_trees.threads import workers

MAX_BINS = 255
"""Bins for numbers; the missing bin comes on top, so that every code fits a byte."""

_STRIP = 16  # columns read together: one cache line of float32
_ROWS = 4096  # rows encoded at a time by one thread
_TILE = 64
_LARGEST = np.float32(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """How every feature is divided.

    Feature j has the edges ``edges[offset[j]:offset[j + 1]]`` (float32, strictly rising) and
    one bin more than edges: code b means that x is at most edge b and above edge b - 1, so
    ``code <= b`` is exactly ``x <= edge[b]``. NaN has the code after the last bin.
    """

    edges: NDArray[np.float32]
    offset: NDArray[np.int64]

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
    def counts(self) -> NDArray[np.int64]:
        """Bins for numbers per feature (d,), at least 1; also the code of NaN."""
        return np.diff(self.offset) + 1

    def threshold(self, feature: int, code: int) -> float:
        """The edge for ``code <= b``: infinite at the last bin, where every number goes left."""
        edge = int(self.offset[feature]) + code
        return float(self.edges[edge]) if edge < self.offset[feature + 1] else float("inf")

    def codes(self, X: NDArray[np.float32], threads: int = 1) -> NDArray[np.uint8]:
        """Bin numbers of rows X (n, d), feature-major: uint8 (d, n)."""
        return unpack(self.words(X, threads), self.features)

    def words(self, X: NDArray[np.float32], threads: int = 1) -> Words:
        """Bin numbers of rows X (n, d) as ``boost`` reads them: uint64 (ceil(d / 8), n)."""
        X = _plain(X, self.features)
        out = np.empty((count_words(self.features), len(X)), dtype=np.uint64)
        padded = np.full((self.features, 256), np.inf, dtype=np.float32)
        for j in range(self.features):
            padded[j, : self.counts[j] - 1] = self.edges[self.offset[j] : self.offset[j + 1]]

        def piece(start: int, stop: int) -> None:
            _encode(X, padded, self.counts, start, stop, out)

        with workers(threads) as crew:
            crew.run(piece, len(X), _ROWS)
        return out

    def to_state(self) -> dict[str, Any]:
        """The arrays by name."""
        return {"edges": self.edges, "offset": self.offset}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``to_state``; ignores other entries."""
        return cls(np.asarray(state["edges"], np.float32), np.asarray(state["offset"], np.int64))


def find_bins(
    X: NDArray[np.float32],
    max_bins: int = MAX_BINS,
    multiplicity: NDArray[np.int64] | None = None,
    threads: int = 1,
) -> Bins:
    """Divide every column of X (n, d) into at most ``max_bins`` bins (2..255), NaN apart.

    Infinities are ordinary extreme values. ``multiplicity`` (n,): copies each row stands for.
    """
    if not 2 <= max_bins <= MAX_BINS:
        raise ValueError(f"max_bins must be 2..{MAX_BINS}, got {max_bins}")
    X = _plain(X, X.shape[1])
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * X.shape[1]

    def piece(start: int, stop: int) -> None:
        strip = np.ascontiguousarray(X[:, start:stop].T)
        for j, column in enumerate(strip, start):
            found[j] = _column_edges(column, multiplicity, max_bins)

    with workers(threads) as crew:
        crew.run(piece, X.shape[1], _STRIP)
    offset = np.concatenate([[0], np.cumsum([len(e) for e in found])]).astype(np.int64)
    edges = np.concatenate(found) if found else np.empty(0, np.float32)
    return Bins(edges.astype(np.float32), offset)


def _plain(X: NDArray[np.float32], features: int) -> NDArray[np.float32]:
    """X as the one array type the kernels are compiled for: C order, read-only, no subclass."""
    if X.ndim != 2 or X.shape[1] != features:
        raise ValueError(f"X must be (n, {features}), got {X.shape}")
    plain = np.ascontiguousarray(X, dtype=np.float32).view(np.ndarray).view()
    plain.flags.writeable = False
    return plain


def _column_edges(
    column: NDArray[np.float32], multiplicity: NDArray[np.int64] | None, max_bins: int
) -> NDArray[np.float32]:
    known = ~np.isnan(column)
    if multiplicity is None:
        values = np.sort(column[known])
        copies = None
    else:
        order = np.argsort(column, kind="stable")[: int(known.sum())]
        values, copies = column[order], multiplicity[order]
    if len(values) == 0:
        return values
    first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    if copies is None:
        counts = np.diff(np.append(first, len(values))).astype(np.int64)
    else:
        counts = np.add.reduceat(copies, first).astype(np.int64)
    distinct = values[first]
    if len(distinct) > max_bins:
        last = _greedy_ends(counts, max_bins)
    else:
        last = np.arange(len(distinct) - 1)
    return _between(distinct[last], distinct[last + 1])


def _between(low: NDArray[np.float32], high: NDArray[np.float32]) -> NDArray[np.float32]:
    """Float32 values e with low <= e < high, at the midpoint where there is one."""
    a, b = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(invalid="ignore"):
        middle = (a + (b - a) / 2).astype(np.float32)
    middle = np.where(np.isposinf(high), _LARGEST, middle)
    middle = np.where(np.isneginf(low), -_LARGEST, middle)
    return np.where((middle >= low) & (middle < high), middle, low)


@njit(cache=True, nogil=True)
def _greedy_ends(counts: NDArray[np.int64], max_bins: int) -> NDArray[np.int64]:
    """Indices of distinct values that end a bin (the last bin's end left out)."""
    total = counts.sum()
    fair = total / max_bins
    rest = total
    bins_left = max_bins
    for c in counts:
        if c >= fair:
            rest -= c
            bins_left -= 1
    share = rest / max(bins_left, 1)
    ends = np.empty(max_bins, np.int64)
    used = 0
    filled = 0
    for i in range(len(counts) - 1):
        own = counts[i] >= fair
        if not own:
            rest -= counts[i]
        filled += counts[i]
        if own or filled >= share or (counts[i + 1] >= fair and filled >= max(1.0, share / 2)):
            ends[used] = i
            used += 1
            if used >= max_bins - 1:
                break
            filled = 0
            if not own:
                bins_left -= 1
                share = rest / max(bins_left, 1)
    return ends[:used].copy()


@njit(cache=True, nogil=True)
def _encode(
    X: NDArray[np.float32],
    padded: NDArray[np.float32],
    counts: NDArray[np.int64],
    start: int,
    stop: int,
    out: Words,
) -> None:
    """Words of rows start:stop by a branch-free search in edges padded to 256.

    In tiles of rows, so that a column's edges are fetched once per tile.
    """
    for tile in range(start, stop, _TILE):
        end = min(tile + _TILE, stop)
        for j in range(X.shape[1]):
            row = padded[j]
            word = out[j // LANES]
            shift = np.uint64(8 * (j % LANES))
            for i in range(tile, end):
                x = X[i, j]
                below = 0  # number of edges below x
                for step in (128, 64, 32, 16, 8, 4, 2, 1):
                    below += step * (row[below + step - 1] < x)
                code = np.uint64(counts[j] if np.isnan(x) else below) << shift
                word[i] = code if shift == np.uint64(0) else word[i] | code
