"""The best split of every feature in a node, from its histogram.

The raw gain of a split of node p into l and r (Peter et al., NIPS 2017, eq. 12):

    1/2 [ G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G_p^2 / (H_p + l2) ]

Ties go to the lowest bin, and there to NaN on the right. Where the node holds no NaN, NaN goes
to the child with more rows, left if they are equal.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int32Array, Int64Array


class Units(NamedTuple):
    """How to read the sums of a histogram (``fixed_point``)."""

    count_bits: int
    gradient: float
    hessian: float


class Limits(NamedTuple):
    """``l2`` on top of every denominator; the least rows and hessian that a child may have."""

    l2: float
    min_rows: int
    min_hessian: float


@njit(cache=True, nogil=True)
def best_cuts(
    hist: Int64Array,
    slots: Int64Array,
    table: Int64Array,
    features: Int64Array,
    first: Int64Array,
    units: Units,
    limits: Limits,
    gain: Float64Array,
    cut: Int32Array,
) -> None:
    """Raw gain and cut per node and feature.

    Node i's histogram is hist[slots[i]], and its answers go to ``gain[table[i], j]`` (-inf where no
    split is allowed) and ``cut[table[i], j]`` = 2 * bin + (1 if NaN goes left). Feature j has
    its bins at first[j]:first[j+1], the last of them for NaN.
    """
    # G, H, N: gradient, hessian and rows of bins 0..b, the last entry that of the whole node
    V, G, H, N = np.empty(256, np.int64), np.empty(256), np.empty(256), np.empty(256)
    score = np.empty(256)
    plain = hist.shape[1] == 1  # a row's hessian is its multiplicity
    for i in range(len(slots)):
        for f in range(len(features)):
            j = features[f]
            packed = hist[slots[i], 0, first[j] : first[j + 1]]
            hessian = packed if plain else hist[slots[i], 1, first[j] : first[j + 1]]
            bins = len(packed) - 1
            _sum_packed(packed, units, V, G, N)
            if plain:
                H[: bins + 1] = N[: bins + 1]
            else:
                _sum_hessians(hessian, units, H)
            node = G[bins], H[bins], N[bins]
            missing_rows = float(packed[bins] & ((np.int64(1) << units.count_bits) - 1))
            missing_g = (packed[bins] >> units.count_bits) * units.gradient
            missing_h = missing_rows if plain else hessian[bins] * units.hessian
            best, where = -np.inf, -1
            for side in range(2 if missing_rows > 0 else 1):  # NaN right, then NaN left
                moved = side * missing_g, side * missing_h, side * missing_rows
                _raw_gains(G, H, N, bins, node, moved, limits, score)
                top = _highest(score, bins)
                if top < best or top == -np.inf:
                    continue
                b = 0
                while score[b] != top:
                    b += 1
                if top > best or 2 * b < where:
                    best, where = top, 2 * b + side
            if missing_rows == 0 and where >= 0 and 2 * N[where // 2] >= N[bins]:
                where += 1
            gain[table[i], j] = best
            cut[table[i], j] = where


# The three steps are loops without branches, which the compiler turns into vector code


@njit(cache=True, nogil=True)
def _sum_packed(
    packed: Int64Array, units: Units, V: Int64Array, G: Float64Array, N: Float64Array
) -> None:
    """Gradients G and rows N of bins 0..b, by way of their packed sums V."""
    v = np.int64(0)
    for b in range(len(packed)):
        v += packed[b]
        V[b] = v
    mask = (np.int64(1) << units.count_bits) - 1
    for b in range(len(packed)):
        G[b] = (V[b] >> units.count_bits) * units.gradient
        N[b] = V[b] & mask


@njit(cache=True, nogil=True)
def _sum_hessians(hessian: Int64Array, units: Units, H: Float64Array) -> None:
    """Hessians H of bins 0..b."""
    h = np.int64(0)
    for b in range(len(hessian)):
        h += hessian[b]
        H[b] = h * units.hessian


@njit(cache=True, nogil=True)
def _raw_gains(
    G: Float64Array,
    H: Float64Array,
    N: Float64Array,
    bins: int,
    node: tuple[float, float, float],
    moved: tuple[float, float, float],
    limits: Limits,
    out: Float64Array,
) -> None:
    """Raw gain of the cut behind every bin, -inf where a child would be too small.

    ``moved``: gradient, hessian and rows of the missing, if they go left, else zeros.
    """
    l2, min_rows, min_hessian = limits
    g, h, n = node
    parent = g * g / (h + l2) if h + l2 > 0 else 0.0
    for b in range(bins):
        gl, hl, nl = G[b] + moved[0], H[b] + moved[1], N[b] + moved[2]
        gr, hr, nr = g - gl, h - hl, n - nl
        allowed = (
            (nl >= min_rows)
            & (nr >= min_rows)
            & (hl >= min_hessian)
            & (hr >= min_hessian)
            & (hl + l2 > 0)
            & (hr + l2 > 0)
        )
        dl = hl + l2 if allowed else 1.0  # divided by even where the result is not used
        dr = hr + l2 if allowed else 1.0
        value = 0.5 * (gl * gl / dl + gr * gr / dr - parent)  # eq. 12
        out[b] = value if allowed else -np.inf


@njit(cache=True, nogil=True)
def _highest(values: Float64Array, n: int) -> float:
    """The maximum of the first n, in four chains that need not wait for one another."""
    a = b = c = d = -np.inf
    for i in range(0, n // 4 * 4, 4):
        a = max(a, values[i])
        b = max(b, values[i + 1])
        c = max(c, values[i + 2])
        d = max(d, values[i + 3])
    for i in range(n // 4 * 4, n):
        a = max(a, values[i])
    return max(a, b, c, d)
