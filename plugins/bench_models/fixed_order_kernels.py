"""The compiled loops of ``fixed_order``: sums of products, functions of numbers, triangles.

Only additions, products, quotients and roots, each rounded as IEEE 754 says, in an order that
stands here: every processor gives the same bits. Loops over rows hold no sum from row to row, so
that they are done several rows at a time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray, IntArray

TILE, WIDE = 256, 512  # rows at a time: what a loop reads stays in the nearest cache
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROOT2 = 1.4142135623730951
_LEAST = -708.0  # e to that is the smallest normal number, nearly; below it is 0


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    products: list[Any] = [combine, project, towards, factor, solve, inverse]
    kernels = [*products, sigmoid, softplus_and_sigmoid, logarithm]
    # as bench_trees.kernels: numba itself says whether what it stored is of this source
    if all(kernel._cache._cache_file._load_index() for kernel in kernels):
        return
    say("compiling the loops that sum in a fixed order, once per machine, about 4 s")
    one, square = np.ones(1), np.ones((1, 1))
    combine(square, square, one)
    project(square, square)
    towards(one, square, square)
    sigmoid(one)
    softplus_and_sigmoid(one, one.copy(), one.copy())
    logarithm(one)
    inverse(factor(square))
    solve(square, one, False)


@njit(cache=True, nogil=True)
def combine(Z: FloatArray, weights: FloatArray, constants: FloatArray) -> FloatArray:
    """``weights @ Z + constants`` (m, n), for Z (k, n): row j of Z is added after row j - 1."""
    m, n = len(weights), Z.shape[1]
    out = np.empty((m, n))
    for first in range(0, n, WIDE):
        size = min(WIDE, n - first)
        for i in range(m):
            out[i, first : first + size] = constants[i]
        for j in range(len(Z)):
            z = Z[j, first : first + size]
            for i in range(m):
                w, to = weights[i, j], out[i, first : first + size]
                for r in range(size):
                    to[r] += w * z[r]
    return out


@njit(cache=True, nogil=True)
def project(Z: FloatArray, rows: FloatArray) -> FloatArray:
    """``rows @ Z.T`` (m, k), for Z (k, n) and rows (m, n): 512 sums each, which are then added."""
    m, n = len(rows), Z.shape[1]
    partial_sums = np.empty((m, WIDE))
    out = np.empty((m, len(Z)))
    for j in range(len(Z)):
        partial_sums[:] = 0.0
        for first in range(0, n, WIDE):
            size = min(WIDE, n - first)
            z = Z[j, first : first + size]
            for i in range(m):
                v, sums = rows[i, first : first + size], partial_sums[i]
                for r in range(size):
                    sums[r] += z[r] * v[r]
        for i in range(m):
            sums, width = partial_sums[i], WIDE
            while width > 1:
                width //= 2
                for r in range(width):
                    sums[r] += sums[r + width]
            out[i, j] = sums[0]
    return out


@njit(cache=True, nogil=True)
def towards(g: FloatArray, steps: FloatArray, changes: FloatArray) -> FloatArray:
    """The inverse Hessian times g (k,), from ``steps`` of L-BFGS and ``changes`` of the gradient,
    both (m, k), the oldest first: algorithm 7.4 of Nocedal and Wright."""
    m, k = steps.shape
    q = g.copy()
    share, rho = np.empty(m), np.empty(m)
    for i in range(m - 1, -1, -1):
        sy, sq = 0.0, 0.0
        for j in range(k):
            sy += steps[i, j] * changes[i, j]
            sq += steps[i, j] * q[j]
        rho[i], share[i] = 1.0 / sy, sq / sy
        for j in range(k):
            q[j] -= share[i] * changes[i, j]
    if m:
        yy = 0.0
        for j in range(k):
            yy += changes[m - 1, j] * changes[m - 1, j]
        for j in range(k):
            q[j] /= rho[m - 1] * yy
    for i in range(m):
        yq = 0.0
        for j in range(k):
            yq += changes[i, j] * q[j]
        for j in range(k):
            q[j] += steps[i, j] * (share[i] - rho[i] * yq)
    return q


@njit(inline="always")
def exponentials(z: FloatArray, bits: IntArray, out: FloatArray) -> None:
    """``out`` (m,) = e^-|z| of at most TILE numbers, 0 where that is not normal.

    e^-|z| = 2^k e^t with |t| <= log(2) / 2, and e^t by its series to t^13.
    """
    scale = bits.view(np.float64)
    for r in range(len(z)):
        x = max(-abs(z[r]), _LEAST)
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
        out[r] = p * t + 1.0
        bits[r] = (np.int64(whole) + 1023) << 52
    for r in range(len(z)):
        out[r] = 0.0 if abs(z[r]) > -_LEAST else out[r] * scale[r]


@njit(cache=True, nogil=True)
def sigmoid(z: FloatArray) -> FloatArray:
    """1 / (1 + e^-z) (n,), to 2 ulp."""
    out = np.empty(len(z))
    bits, e = np.empty(TILE, dtype=np.int64), np.empty(TILE)
    for first in range(0, len(z), TILE):
        here, to = z[first : first + TILE], out[first : first + TILE]
        exponentials(here, bits, e)
        for r in range(len(here)):
            to[r] = (1.0 if here[r] >= 0.0 else e[r]) / (1.0 + e[r])
    return out


@njit(cache=True, nogil=True)
def softplus_and_sigmoid(z: FloatArray, value: FloatArray, slope: FloatArray) -> None:
    """``value`` (n,) = log(1 + e^z) and ``slope`` (n,), its derivative, to 3 ulp.

    With e = e^-|z| and y = e / (2 + e) <= 1/3, log(1 + e) = 2 (y + y^3 / 3 + ...), to y^33.
    """
    bits, e = np.empty(TILE, dtype=np.int64), np.empty(TILE)
    for first in range(0, len(z), TILE):
        here = z[first : first + TILE]
        total, part = value[first : first + TILE], slope[first : first + TILE]
        exponentials(here, bits, e)
        for r in range(len(here)):
            y = e[r] / (2.0 + e[r])
            s = y * y
            p = 1.0 / 33.0
            p = p * s + 1.0 / 31.0
            p = p * s + 1.0 / 29.0
            p = p * s + 1.0 / 27.0
            p = p * s + 1.0 / 25.0
            p = p * s + 1.0 / 23.0
            p = atanh(s, p)
            total[r] = max(here[r], 0.0) + 2.0 * (y + y * (s * p))
            part[r] = (1.0 if here[r] >= 0.0 else e[r]) / (1.0 + e[r])


@njit(inline="always")
def atanh(s: float, p: float) -> float:
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


@njit(cache=True, nogil=True)
def logarithm(x: FloatArray) -> FloatArray:
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
            p = atanh(s, 1.0 / 23.0)
            whole = exponent[r] + large
            to[r] = whole * _LN2_HIGH + (2.0 * (y + y * (s * p)) + whole * _LN2_LOW)
    return out


@njit(cache=True, nogil=True)
def factor(A: FloatArray) -> FloatArray:
    """The lower Cholesky factor L (k, k) of a positive definite matrix; NaN where it is none."""
    k = len(A)
    L = np.zeros((k, k))
    for j in range(k):
        column = A[j:, j].copy()
        for c in range(j):
            w = L[j, c]
            for i in range(k - j):
                column[i] -= w * L[j + i, c]
        root = np.sqrt(column[0])
        for i in range(k - j):
            L[j + i, j] = column[i] / root
        L[j, j] = root
    return L


@njit(cache=True, nogil=True)
def solve(L: FloatArray, b: FloatArray, transposed: bool) -> FloatArray:
    """x with L x = b, or L' x = b, for a lower triangular L (k, k)."""
    k = len(b)
    x = b.copy()
    for step in range(k):
        j = k - 1 - step if transposed else step
        x[j] = x[j] / L[j, j]
        if transposed:
            for i in range(j):
                x[i] -= x[j] * L[j, i]
        else:
            for i in range(j + 1, k):
                x[i] -= x[j] * L[i, j]
    return x


@njit(cache=True, nogil=True)
def inverse(L: FloatArray) -> FloatArray:
    """L^-1 (k, k) of a lower triangular matrix."""
    k = len(L)
    out = np.zeros((k, k))
    for i in range(k):
        out[i, i] = 1.0
        for c in range(i):
            w = L[i, c]
            for j in range(c + 1):
                out[i, j] -= w * out[c, j]
        for j in range(i + 1):
            out[i, j] = out[i, j] / L[i, i]
    return out
