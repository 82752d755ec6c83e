"""Exponentials and logarithms.

Only additions, products and quotients, each rounded as IEEE 754 says, in an order that stands here:
every processor gives the same bits, as those of numpy and of C do not. Loops over rows hold no sum
from row to row and no check for quotients by zero, so that they are done several rows at a time.
"""

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels.compiling import inner

TILE = 256  # rows at a time: what a loop reads stays in the nearest cache
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROOT2 = 1.4142135623730951
_LEAST = -708.0  # e to that is the smallest normal number, nearly; below it is 0


@inner
def _exponentials(z: Float64Array, bits: Int64Array) -> None:
    """Put e^-|z| in place of at most TILE numbers, 0 where that is not normal. ``bits`` (TILE,) is
    room.

    e^-|z| = 2^k e^t with |t| <= log(2) / 2, and e^t by its series to t^13.
    """
    scale = bits.view(np.float64)
    for r in range(len(z)):
        size = abs(z[r])
        x = max(-size, _LEAST)
        whole = np.floor(x * _LOG2_E + 0.5)
        t = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * t + 1.0 / 479001600.0
        p = p * t + 1.0 / 39916800.0
        p = p * t + 1.0 / 3628800.0
        p = p * t + 1.0 / 362880.0
        p = p * t + 1.0 / 40320.0
        p = p * t + 1.0 / 5040.0
        p = p * t + 1.0 / 720.0
        p = p * t + 1.0 / 120.0
        p = p * t + 1.0 / 24.0
        p = p * t + 1.0 / 6.0
        p = p * t + 0.5
        p = p * t + 1.0
        z[r] = p * t + 1.0
        bits[r] = 0 if size > -_LEAST else (np.int64(whole) + 1023) << 52
    for r in range(len(z)):
        z[r] *= scale[r]


@njit(cache=True, nogil=True, error_model="numpy")
def sigmoid(z: Float64Array, value: Float64Array, slope: Float64Array) -> None:
    """``value`` (n,) = 1 / (1 + e^-z), to 2 ulp, and ``slope`` (n,), its derivative."""
    bits, e = np.empty(TILE, dtype=np.int64), np.empty(TILE)
    for first in range(0, len(z), TILE):
        here = z[first : first + TILE]
        p, curve = value[first : first + TILE], slope[first : first + TILE]
        for r in range(len(here)):
            e[r] = here[r]
        _exponentials(e[: len(here)], bits)
        for r in range(len(here)):
            p[r] = (1.0 if here[r] >= 0.0 else e[r]) / (1.0 + e[r])
        for r in range(len(here)):
            curve[r] = p[r] * (1.0 - p[r])


@njit(cache=True, nogil=True, error_model="numpy")
def softplus_and_sigmoid(z: Float64Array, value: Float64Array, slope: Float64Array) -> None:
    """``value`` (n,) = log(1 + e^z) and ``slope`` (n,), its derivative, to 3 ulp.

    With e = e^-|z| and y = e / (2 + e) <= 1/3, log(1 + e) = 2 (y + y^3 / 3 + ...), to y^33.
    """
    bits, e = np.empty(TILE, dtype=np.int64), np.empty(TILE)
    for first in range(0, len(z), TILE):
        here = z[first : first + TILE]
        total, part = value[first : first + TILE], slope[first : first + TILE]
        for r in range(len(here)):
            e[r] = here[r]
        _exponentials(e[: len(here)], bits)
        for r in range(len(here)):
            y = e[r] / (2.0 + e[r])
            s = y * y
            p = 1.0 / 33.0
            p = p * s + 1.0 / 31.0
            p = p * s + 1.0 / 29.0
            p = p * s + 1.0 / 27.0
            p = p * s + 1.0 / 25.0
            p = p * s + 1.0 / 23.0
            p = _atanh(s, p)
            total[r] = max(here[r], 0.0) + 2.0 * (y + y * (s * p))
            part[r] = (1.0 if here[r] >= 0.0 else e[r]) / (1.0 + e[r])


@njit(inline="always")
def _atanh(s: float, p: float) -> float:
    """Horner's scheme of 1/3 + s/5 + ... + s^9/21, from the terms ``p`` beyond s^9."""
    p = p * s + 1.0 / 21.0
    p = p * s + 1.0 / 19.0
    p = p * s + 1.0 / 17.0
    p = p * s + 1.0 / 15.0
    p = p * s + 1.0 / 13.0
    p = p * s + 1.0 / 11.0
    p = p * s + 1.0 / 9.0
    p = p * s + 1.0 / 7.0
    p = p * s + 1.0 / 5.0
    return p * s + 1.0 / 3.0


@njit(cache=True, nogil=True, error_model="numpy")
def logarithm(x: Float64Array) -> Float64Array:
    """log x (n,) of normal numbers x > 0, to 2 ulp: x = 2^k m, m from sqrt(1/2) to sqrt(2)."""
    out = np.empty(len(x))
    bits = x.view(np.int64)
    mantissa = np.empty(TILE, dtype=np.int64)
    parts = mantissa.view(np.float64)
    exponent = np.empty(TILE)
    for first in range(0, len(x), TILE):
        size = min(TILE, len(x) - first)
        here, to = bits[first : first + size], out[first : first + size]
        for r in range(size):
            exponent[r] = (here[r] >> 52) - 1023
            mantissa[r] = (here[r] & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000
        for r in range(size):
            m = parts[r]
            large = 1.0 if m > _ROOT2 else 0.0
            m = m * (1.0 - 0.5 * large)
            y = (m - 1.0) / (m + 1.0)
            s = y * y
            p = _atanh(s, 1.0 / 23.0)
            whole = exponent[r] + large
            to[r] = whole * _LN2_HIGH + (2.0 * (y + y * (s * p)) + whole * _LN2_LOW)
    return out
