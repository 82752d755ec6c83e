"""Links from a mean of leaves to a score.

Exponentials and logarithms are made of additions, products and quotients, each rounded as IEEE 754
says, in an order that stands here and in ``scorer.c``: every processor, numpy and C give the same
bits. Those of numpy are chosen by the processor, those of C by its library.
"""

import numpy as np

from bench_core.arrays import FloatArray

LEAST_SHARE, LARGEST_EXPONENT = 1e-6, 700.0
_LEAST_EXPONENT = -708.0  # e to that is the smallest normal number, nearly
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_AT_ONCE = 4096  # numbers whose arrays stay in a near cache
_HALF_ROOT2 = 0.7071067811865476


def linked(raw: FloatArray, link: str) -> FloatArray:
    """The link of scores (n, K): as they are, e to that, or log-odds of shares, for K > 1 their
    logarithms."""
    if link == "exp":
        return exponential(np.clip(raw, _LEAST_EXPONENT, LARGEST_EXPONENT))
    if link == "probability":
        shares = np.clip(raw, LEAST_SHARE, 1 - LEAST_SHARE)
        if raw.shape[1] > 1:
            return logarithm(shares)
        own, other = logarithm(np.stack([shares, 1.0 - shares]))
        return np.asarray(own - other)
    return raw


def exponential(x: FloatArray) -> FloatArray:
    """e^x of numbers from -708 to 700, to 2 ulp: 2^k e^t with |t| <= log(2) / 2, and e^t by its
    series to t^13."""
    whole = np.floor(x * _LOG2_E + 0.5)
    t = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
    series = np.ones_like(t)
    for k in range(13, 0, -1):
        series *= t
        series /= k
        series += 1.0
    return np.asarray(np.ldexp(series, whole.astype(np.int32)))


def logarithm(x: FloatArray) -> FloatArray:
    """log x of normal numbers x > 0, to 2 ulp: x = 2^k m with m from sqrt(1/2) to sqrt(2), and
    log m = 2 (y + y^3 / 3 + ...), to y^23, with y = (m - 1) / (m + 1)."""
    flat, out = x.reshape(-1), np.empty(x.size)
    for first in range(0, len(flat), _AT_ONCE):
        out[first : first + _AT_ONCE] = _logarithm(flat[first : first + _AT_ONCE])
    return out.reshape(x.shape)


def _logarithm(x: FloatArray) -> FloatArray:
    m, k = np.frexp(x)
    small = m < _HALF_ROOT2
    m *= small + 1.0
    whole = np.subtract(k, small, dtype=np.float64)
    y = (m - 1.0) / (m + 1.0)
    s = y * y
    series = np.full_like(s, 1.0 / 23.0)
    for odd in range(21, 1, -2):
        series *= s
        series += 1.0 / odd
    return np.asarray(whole * _LN2_HIGH + (2.0 * (y + y * (s * series)) + whole * _LN2_LOW))
