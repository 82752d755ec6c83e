"""Gradients and their sums as integers: fixed point.

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

from bench_trees.arrays import Float64Array, Int64Array

SUM_BITS = 52  # so that every sum converts to float64 exactly


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """Gradients of all rows in fixed point, and the units in which sums of them are read.

    ``packed`` int64 (n,); ``hessian`` int64 (n,), or (0,) where every hessian is the multiplicity.
    """

    packed: Int64Array
    hessian: Int64Array
    count_bits: int
    gradient_unit: float
    hessian_unit: float

    def read(self, packed: int, hessian: int) -> tuple[int, float, float]:
        """Rows (with multiplicity), gradient and hessian of a sum of packed rows."""
        count = packed & ((1 << self.count_bits) - 1)
        gradient = (packed >> self.count_bits) * self.gradient_unit
        return count, gradient, hessian * self.hessian_unit if len(self.hessian) else float(count)


def bits_for(total: int) -> int:
    """Bits that hold counts. Raises ValueError for more than 2^31 - 1 rows."""
    if total >= 1 << 31:
        raise ValueError(f"{total} rows (with multiplicity) are more than 2^31 - 1")
    return int(total).bit_length()


def sum_bits(count_bits: int) -> int:
    """Bits left for a sum of gradients."""
    return min(62 - count_bits, SUM_BITS)


def to_fixed_point(
    gradient: Float64Array,
    hessian: Float64Array | None,
    multiplicity: Int64Array | None,
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
    values: Float64Array, multiplicity: Int64Array | None, total: int, bits: int
) -> tuple[Int64Array, float]:
    """Values as integers whose weighted sum stays below 2^bits, and the unit they count."""
    size = np.abs(values)
    most = float(size.sum() if multiplicity is None else (size * multiplicity).sum())
    if not np.isfinite(most):
        raise ValueError("gradients are not finite: the loss diverges, lower the learning rate")
    room = max(2.0**bits - total, 2.0 ** (bits - 1))  # rounding adds at most 1/2 per copy
    exponent = int(np.floor(np.log2(room) - np.log2(most))) if most > 0 else 0
    exponent = min(max(exponent, -1000), 1000)
    return np.rint(np.ldexp(values, exponent)).astype(np.int64), float(2.0**-exponent)
