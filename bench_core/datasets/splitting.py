"""Random splits, ordered by a hash: the same on every machine and with every numpy version."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples

U64 = NDArray[np.uint64]


def hashed(counters: U64 | IntArray, seed: int = 0) -> U64:
    """Return 64 well-mixed bits per counter, in the same shape."""
    start = np.uint64(0x632BE59BD9B4E019 * (seed + 1) % 2**64)
    return mixed(
        (counters.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + start
    )


def mixed(z: U64) -> U64:
    """Apply the finaliser of splitmix64 modulo 2**64: every bit depends on every other."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def shuffled(rows: int, seed: int) -> IntArray:
    """Return the numbers 0..rows-1 in an order decided by ``seed``."""
    order = np.argsort(hashed(np.arange(rows), seed), kind="stable")
    return order.astype(np.int64)


def drawn(rows: int, sizes: Sequence[int], seed: int) -> list[IntArray]:
    """Return row numbers of parts of these sizes, in a shuffled order; other rows are unused."""
    return np.split(shuffled(rows, seed)[: sum(sizes)], np.cumsum(sizes)[:-1])


def in_proportion(rows: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Divide all rows in the proportions of ``sizes``; the last part takes the rest."""
    first = [rows * size // sum(sizes) for size in sizes[:-1]]
    return *first, rows - sum(first)


def cut(rows: int, shares: tuple[float, ...], seed: int) -> list[IntArray]:
    """Return sorted row numbers of consecutive shares of a shuffle; the last takes the rest."""
    ends = [round(rows * share) for share in np.cumsum(shares[:-1])]
    return [np.sort(part) for part in np.split(shuffled(rows, seed), ends)]


def cut_by_class(y: NDArray[np.float64], shares: tuple[float, ...], seed: int) -> list[IntArray]:
    """Return row numbers as ``cut`` does, stratified by the labels (n,)."""
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    parts = [[rows[chosen] for chosen in cut(len(rows), shares, seed)] for rows in classes]
    return [np.sort(np.concatenate(part)) for part in zip(*parts, strict=True)]


def take(
    X: Float32Array, y: FloatArray, parts: Iterable[IntArray]
) -> tuple[Examples, Examples, Examples]:
    """Return train, valid and test: rows of features X (n, d) and labels y (n,) by number."""
    train, valid, test = (Examples(X[rows], y[rows]) for rows in parts)
    return train, valid, test
