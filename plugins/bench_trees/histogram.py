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

SUM_BITS = 52  # so that every sum converts to float64 exactly
WIDTH = 520  # of a table row: 2 * 256 and a cache line, lest equal bins be 4096 bytes apart


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
    count_bits = int(total).bit_length()
    if count_bits > 31:
        raise ValueError(f"{total} rows (with multiplicity) are more than 2^31 - 1")
    g, g_unit = _rounded(gradient, multiplicity, total, min(62 - count_bits, SUM_BITS))
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
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    hessian: NDArray[np.int64],
    pairs: NDArray[np.int64],
    features: NDArray[np.int64],
    first: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Histograms of pairs of siblings, for some features.

    ``rows``, ``packed`` and ``hessian`` are in leaf order. A row of ``pairs`` is (begin, end,
    small, large): sum positions begin:end into slot ``small``; slot ``large`` holds the parent
    and becomes the sibling (-1: there is none). Feature j's bins are first[j]:first[j+1] of
    out[slot, channel].

    Four features go together, so that a row's numbers are read once for four adds and the adds
    are independent (skewed features hit the same bin row after row).
    """
    table = np.empty((8, WIDTH), np.int64)
    last = len(features) - 1
    for pair in range(len(pairs)):
        begin, end = pairs[pair, 0], pairs[pair, 1]
        small, large = pairs[pair, 2], pairs[pair, 3]
        for f in range(0, len(features), 4):
            c0 = codes[features[f]]
            c1 = codes[features[min(f + 1, last)]]
            c2 = codes[features[min(f + 2, last)]]
            c3 = codes[features[min(f + 3, last)]]
            width = 0
            for g in range(f, min(f + 4, len(features))):
                width = max(width, first[features[g] + 1] - first[features[g]])
            if len(hessian) == 0:
                table[:, :width] = 0
                _add_packed(c0, c1, c2, c3, rows[begin:end], packed[begin:end], table)
            else:
                table[:4, : 2 * width] = 0
                _add_both(
                    c0, c1, c2, c3, rows[begin:end], packed[begin:end], hessian[begin:end], table
                )
            for g in range(min(4, len(features) - f)):
                start = first[features[f + g]]
                stop = first[features[f + g] + 1]
                if len(hessian) == 0:
                    _store_packed(table[g], table[g + 4], out[:, 0, start:stop], small, large)
                else:
                    _store_both(table[g], out[:, :, start:stop], small, large)


@njit(cache=True, nogil=True)
def _add_packed(
    c0: NDArray[np.uint8],
    c1: NDArray[np.uint8],
    c2: NDArray[np.uint8],
    c3: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Even rows into tables 0-3, odd rows into 4-7: eight independent chains of adds."""
    t0, t1, t2, t3 = table[0], table[1], table[2], table[3]
    t4, t5, t6, t7 = table[4], table[5], table[6], table[7]
    n = len(rows)
    for i in range(0, n // 2 * 2, 2):
        v = packed[i]
        w = packed[i + 1]
        r = rows[i]
        s = rows[i + 1]
        t0[c0[r]] += v
        t1[c1[r]] += v
        t2[c2[r]] += v
        t3[c3[r]] += v
        t4[c0[s]] += w
        t5[c1[s]] += w
        t6[c2[s]] += w
        t7[c3[s]] += w
    if n % 2:
        v = packed[n - 1]
        r = rows[n - 1]
        t0[c0[r]] += v
        t1[c1[r]] += v
        t2[c2[r]] += v
        t3[c3[r]] += v


@njit(cache=True, nogil=True)
def _add_both(
    c0: NDArray[np.uint8],
    c1: NDArray[np.uint8],
    c2: NDArray[np.uint8],
    c3: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    packed: NDArray[np.int64],
    hessian: NDArray[np.int64],
    table: NDArray[np.int64],
) -> None:
    """Gradient and hessian side by side, so that both lie in one cache line."""
    t0, t1, t2, t3 = table[0], table[1], table[2], table[3]
    two = np.uint64(2)
    odd = np.uint64(1)
    for i in range(len(rows)):
        r = rows[i]
        v = packed[i]
        h = hessian[i]
        k = two * np.uint64(c0[r])
        t0[k] += v
        t0[k + odd] += h
        k = two * np.uint64(c1[r])
        t1[k] += v
        t1[k + odd] += h
        k = two * np.uint64(c2[r])
        t2[k] += v
        t2[k + odd] += h
        k = two * np.uint64(c3[r])
        t3[k] += v
        t3[k + odd] += h


@njit(cache=True, nogil=True)
def _store_packed(
    even: NDArray[np.int64],
    odd: NDArray[np.int64],
    out: NDArray[np.int64],
    small: int,
    large: int,
) -> None:
    if large < 0:
        child = out[small]
        for b in range(len(child)):
            child[b] = even[b] + odd[b]
    else:
        child, parent = out[small], out[large]
        for b in range(len(child)):
            v = even[b] + odd[b]
            child[b] = v
            parent[b] -= v


@njit(cache=True, nogil=True)
def _store_both(table: NDArray[np.int64], out: NDArray[np.int64], small: int, large: int) -> None:
    for channel in range(2):
        child = out[small, channel]
        for b in range(len(child)):
            child[b] = table[2 * b + channel]
        if large >= 0:
            parent = out[large, channel]
            for b in range(len(child)):
                parent[b] -= child[b]
