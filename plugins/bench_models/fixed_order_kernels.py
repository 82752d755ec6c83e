"""The compiled loops of ``fixed_order``: sums of products, triangles.

Only additions, products, quotients and roots, each rounded as IEEE 754 says, in an order that
stands here: every processor gives the same bits. Loops over rows hold no sum from row to row, so
that they are done several rows at a time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray

WIDE = 512  # rows at a time: what a loop reads stays in the nearest cache


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    kernels: list[Any] = [combine, project, towards, factor, solve, inverse]
    # as bench_trees.kernels: numba itself says whether what it stored is of this source
    if all(kernel._cache._cache_file._load_index() for kernel in kernels):
        return
    say("compiling the loops that sum in a fixed order, once per machine, about 4 s")
    one, square = np.ones(1), np.ones((1, 1))
    combine(square, square, one)
    project(square, square)
    towards(one, square, square)
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
