"""The two compiled loops: coordinate descent, and sums of kernels in a fixed order."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray, IntArray

TILE = 256  # support vectors at a time: their distances stay in the nearest cache


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    kernels: list[Any] = [descend, kernel_sums]
    # as bench_trees.kernels: numba itself says whether what it stored is of this source
    if all(kernel._cache._cache_file._load_index() for kernel in kernels):
        return
    say("compiling the loops of linear and kernel methods, once per machine, about 3 s")
    one, square = np.ones(1), np.ones((1, 1))
    descend(square, one, one, np.zeros(1), 1, 0.0)
    kernel_sums(square, square, square, np.array([0, 1]), one, np.zeros((1, 1)))


@njit(cache=True, nogil=True)
def descend(
    gram: FloatArray,
    slope: FloatArray,
    penalty: FloatArray,
    b: FloatArray,
    sweeps: int,
    tolerance: float,
) -> None:
    """Minimise b'Gb / 2 - slope'b + sum_j penalty_j |b_j| over b (d,), starting from b, in place.

    Coordinates in order; sweeps over all and sweeps over those not 0 take turns, until a sweep
    over all moves none by more than ``tolerance``. Coordinates with G_jj = 0 are left alone.
    """
    d = len(b)
    left = slope - gram @ b
    only_active = False
    for _ in range(sweeps):
        largest = 0.0
        for j in range(d):
            own = gram[j, j]
            if own <= 0.0 or (only_active and b[j] == 0.0):
                continue
            z = left[j] + own * b[j]
            shrunk = abs(z) - penalty[j]
            new = 0.0 if shrunk <= 0.0 else (shrunk / own if z > 0.0 else -shrunk / own)
            move = new - b[j]
            if move != 0.0:
                b[j] = new
                for i in range(d):
                    left[i] -= move * gram[j, i]
                largest = max(largest, abs(move))
        if largest <= tolerance:
            if not only_active:
                return
            only_active = False
        else:
            only_active = True


@njit(cache=True, nogil=True)
def kernel_sums(
    z: FloatArray,
    vectors: FloatArray,
    coefficients: FloatArray,
    groups: IntArray,
    gamma: FloatArray,
    out: FloatArray,
) -> None:
    """Add sum_s coefficients[k, s] sum_g exp(-gamma_g |z_g - v_gs|^2) to out (n, K).

    ``z`` (n, d), ``vectors`` (d, S); group g is the columns groups[g]:groups[g + 1]. Every row's
    sums have an order of their own, so that they do not depend on the rows around it.
    """
    count = vectors.shape[1]
    distance, total = np.empty(TILE), np.empty(TILE)
    for first in range(0, count, TILE):
        size = min(TILE, count - first)
        for i in range(len(z)):
            total[:size] = 0.0
            for g in range(len(gamma)):
                distance[:size] = 0.0
                for j in range(groups[g], groups[g + 1]):
                    x = z[i, j]
                    for s in range(size):
                        off = x - vectors[j, first + s]
                        distance[s] += off * off
                for s in range(size):
                    total[s] += np.exp(-gamma[g] * distance[s])
            for k in range(len(coefficients)):
                part = 0.0
                for s in range(size):
                    part += coefficients[k, first + s] * total[s]
                out[i, k] += part
