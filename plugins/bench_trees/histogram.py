"""Sums of gradients per node, feature and bin, in fixed point.

A row's gradient and multiplicity travel in ONE 64-bit integer, so that a row costs one add per
feature::

    bit  63 ........................ count_bits ........ 0
         m * round(g * 2^gradient_exp)       |  m

Integer sums are associative: the result has the same bits for any number of threads, and a
parent minus its smaller child is exactly the other child. Hessians that differ between rows
travel in a second integer, round(h * 2^hessian_exp).

Resolution: ``count_bits`` holds the sum of multiplicities N; the remaining 62 - count_bits bits (at
most 52) hold the largest possible sum of gradients, S = sum m |g|. A gradient is therefore
rounded by at most S 2^(count_bits - 62): with 100000 rows about 2^-28 of the mean gradient, with
4 million 2^-17 (and the roundings of different rows average out). Scales are powers of two, so
that gradients that are short binary fractions stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_trees.kernels.prefetch import AHEAD, prefetch

SUM_BITS = 52  # so that every sum converts to float64 exactly
LANE = 264  # numbers per feature and channel: 256 and a cache line, lest equal bins of different
# features be 4096 bytes apart and be taken for one another


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """Gradients of all rows in fixed point, and how to read sums of them back.

    ``packed`` int64 (n,); ``hessian`` int64 (n,), or (0,) where every hessian is the multiplicity.
    A sum v of packed rows holds the count ``v & (2^count_bits - 1)`` and the gradient
    ``(v >> count_bits) * gradient_unit``.
    """

    packed: NDArray[np.int64]
    hessian: NDArray[np.int64]
    count_bits: int
    gradient_unit: float
    hessian_unit: float


def bits_for(total: int) -> int:
    """Bits that hold counts. Raises ValueError for more than 2^31 - 1 rows."""
    if total >= 1 << 31:
        raise ValueError(f"{total} rows (with multiplicity) are more than 2^31 - 1")
    return int(total).bit_length()


def sum_bits(count_bits: int) -> int:
    """Bits left for a sum of gradients."""
    return min(62 - count_bits, SUM_BITS)


def to_fixed_point(
    gradient: NDArray[np.float64],
    hessian: NDArray[np.float64] | None,
    multiplicity: NDArray[np.int64] | None,
    total: int,
) -> FixedPoint:
    """Pack gradients and hessians per copy (n,), ``total`` the sum of multiplicities.

    Raises ValueError where a gradient or hessian is not finite (a diverging loss), and where
    there are more than 2^31 - 1 rows.
    """
    count_bits = bits_for(total)
    g, g_unit = _rounded(gradient, multiplicity, total, sum_bits(count_bits))
    packed = (g << count_bits) + 1
    if hessian is None:
        h, h_unit = np.empty(0, np.int64), 1.0
    else:
        h, h_unit = _rounded(hessian, multiplicity, total, SUM_BITS)
    if multiplicity is not None:
        packed *= multiplicity
        h = h * multiplicity if len(h) else h
    return FixedPoint(packed, h, count_bits, g_unit, h_unit)


def _rounded(
    values: NDArray[np.float64], multiplicity: NDArray[np.int64] | None, total: int, bits: int
) -> tuple[NDArray[np.int64], float]:
    """Values as integers whose weighted sum stays below 2^bits, and the unit they count."""
    size = np.abs(values)
    most = float(size.sum() if multiplicity is None else (size * multiplicity).sum())
    if not np.isfinite(most):
        raise ValueError("gradients are not finite: the loss diverges, lower the learning rate")
    room = max(2.0**bits - total, 2.0 ** (bits - 1))  # rounding adds at most 1/2 per copy
    exponent = int(np.floor(np.log2(room) - np.log2(most))) if most > 0 else 0
    exponent = min(max(exponent, -1000), 1000)
    return np.rint(np.ldexp(values, exponent)).astype(np.int64), float(2.0**-exponent)


@njit(cache=True, nogil=True)
def accumulate(
    words: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    hessian: NDArray[np.int64],
    pairs: NDArray[np.int64],
    groups: NDArray[np.int64],
    first: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Histograms of pairs of siblings, for the eight features of each word in ``groups``.

    ``rows``, ``packed`` and ``hessian`` (or none) are in leaf order. A row of ``pairs`` is
    (begin, end, small, large, far): sum positions begin:end into slot ``small``; slot ``large``
    holds the parent and becomes the sibling (-1: there is none); ``far`` says that the rows lie far
    apart. Feature j's bins are first[j]:first[j+1] of out[slot, channel].
    """
    channels = 1 if len(hessian) == 0 else 2
    step = channels * LANE
    table = np.zeros(8 * step, np.int64)
    for g in groups:
        for pair in range(len(pairs)):
            begin, end = pairs[pair, 0], pairs[pair, 1]
            small, large = pairs[pair, 2], pairs[pair, 3]
            far = pairs[pair, 4] != 0
            if channels == 1:
                _add_packed(words[g], rows[begin:end], packed[begin:end], far, table)
            else:
                _add_both(
                    words[g], rows[begin:end], packed[begin:end], hessian[begin:end], far, table
                )
            for j in range(8 * g, min(8 * g + 8, len(first) - 1)):
                own = table[(j - 8 * g) * step : (j - 8 * g + 1) * step]
                for channel in range(channels):
                    child = out[small, channel, first[j] : first[j + 1]]
                    sums = own[channel::channels]
                    for b in range(len(child)):
                        child[b] = sums[b]
                    if large >= 0:
                        parent = out[large, channel, first[j] : first[j + 1]]
                        for b in range(len(child)):
                            parent[b] -= child[b]
                own[:] = 0


@njit(cache=True, nogil=True)
def _add_packed(
    words: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    far: bool,
    table: NDArray[np.int64],
) -> None:
    """One add for each of eight features. The processor stores once a cycle, and that is what
    this loop takes; features in between keep adds to one and the same bin apart."""
    low = np.uint64(255)
    last = len(rows) - 1
    for i in range(len(rows)):
        if far:
            prefetch(words, rows[min(i + AHEAD, last)])
        c = words[rows[i]]
        v = packed[i]
        table[c & low] += v
        table[np.uint64(LANE) + ((c >> np.uint64(8)) & low)] += v
        table[np.uint64(2 * LANE) + ((c >> np.uint64(16)) & low)] += v
        table[np.uint64(3 * LANE) + ((c >> np.uint64(24)) & low)] += v
        table[np.uint64(4 * LANE) + ((c >> np.uint64(32)) & low)] += v
        table[np.uint64(5 * LANE) + ((c >> np.uint64(40)) & low)] += v
        table[np.uint64(6 * LANE) + ((c >> np.uint64(48)) & low)] += v
        table[np.uint64(7 * LANE) + (c >> np.uint64(56))] += v


@njit(cache=True, nogil=True)
def _add_both(
    words: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    hessian: NDArray[np.int64],
    far: bool,
    table: NDArray[np.int64],
) -> None:
    """Gradient and hessian side by side, so that both lie in one cache line."""
    low = np.uint64(255)
    one = np.uint64(1)
    eight = np.uint64(8)
    lane = np.uint64(2 * LANE)
    last = len(rows) - 1
    for i in range(len(rows)):
        if far:
            prefetch(words, rows[min(i + AHEAD, last)])
        c = words[rows[i]]
        v = packed[i]
        h = hessian[i]
        for k in range(8):
            place = np.uint64(k) * lane + ((c & low) << one)
            table[place] += v
            table[place + one] += h
            c >>= eight


@njit(cache=True, nogil=True)
def add_counts(
    hist: NDArray[np.int64],
    slots: NDArray[np.int64],
    steps: NDArray[np.int64],
    begin: int,
    end: int,
    count_bits: int,
    target: int,
) -> None:
    """Add steps[i] per copy counted in slots[i] to the gradients of bins begin:end of a slot."""
    mask = (np.int64(1) << count_bits) - 1
    out = hist[target, 0, begin:end]
    for i in range(len(slots)):
        counts = hist[slots[i], 0, begin:end]
        step = steps[i]
        for b in range(len(out)):
            out[b] += ((counts[b] & mask) * step) << count_bits
