"""The compiled loop of ADAPT-LSTSQ's step over q."""

from collections.abc import Callable
from math import exp, log
from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray

_CONVEX = 10.0  # |p| sigma'' <= p / (6 sqrt 3) < 1: one minimum
_PARTS = 16  # a row that may have several is looked at in so many equal steps


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    kernel: Any = sent_least_squares
    # as bench_trees.kernels: numba itself says whether what it stored is of this source
    if not kernel._cache._cache_file._load_index():
        say("compiling the loop of adapt-lstsq, once per machine, about 1 s")
        kernel(np.ones(1), np.ones(1))


@njit(cache=True, nogil=True)
def sent_least_squares(price: FloatArray, g: FloatArray) -> FloatArray:
    """sigma(u) (n,), u the minimiser of p sigma(u) + (u - g)^2 / 2 for each p = ``price`` (n,).

    At a minimum g - u = p sigma'(u), which has the sign of p. For p > 0 it is at most p / 4, and at
    most g, 1 or g + log p, the last because sigma'(u) < e^u; likewise for p < 0. Where there may be
    several minima the best of evenly spaced points decides. Newton's method, kept in a bracket
    of the minimum, does the rest.
    """
    q = np.empty(len(g))
    for i in range(len(g)):
        p, goal = price[i], g[i]
        side = 1.0 if p >= 0 else -1.0
        size = side * p
        far = max(side * goal + log(max(size, 1.0)), 1.0)
        reach = -side * min(size / 4, far)
        low, high, u = min(goal, goal + reach), max(goal, goal + reach), goal
        if size > _CONVEX:
            best = np.inf
            for k in range(_PARTS + 1):
                here = goal + reach * (k / _PARTS)
                value = p / (1 + exp(-here)) + (here - goal) ** 2 / 2
                if value < best:
                    best, u = value, here
            width = abs(reach) / _PARTS
            low, high = max(low, u - width), min(high, u + width)
        for _ in range(60):
            s = 1 / (1 + exp(-u))
            slope = p * s * (1 - s) + u - goal
            if slope > 0:
                high = u
            else:
                low = u
            curve = 1 + p * s * (1 - s) * (1 - 2 * s)
            new = u - slope / curve if curve > 0.1 else (low + high) / 2
            if not low <= new <= high:
                new = (low + high) / 2
            moved = abs(new - u)
            u = new
            if moved <= 1e-6 * max(1.0, abs(u)):  # the next step would be its square
                break
        q[i] = 1 / (1 + exp(-u))
    return q
