"""The best split of every feature in a node, from its histogram.

The raw gain of a split of node p into l and r (Peter et al., NIPS 2017, eq. 12):

    1/2 [ G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G_p^2 / (H_p + l2) ]

Ties go to the lowest bin, and there to NaN on the right. Where the node holds no NaN, NaN goes
to the child with more rows, left if they are equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def best_cuts(
    hist: NDArray[np.int64],
    slots: NDArray[np.int64],
    table: NDArray[np.int64],
    features: NDArray[np.int64],
    first: NDArray[np.int64],
    count_bits: int,
    gradient_unit: float,
    hessian_unit: float,
    l2: float,
    min_rows: int,
    min_hessian: float,
    gain: NDArray[np.float64],
    cut: NDArray[np.int32],
) -> None:
    """Raw gain and cut per node and feature.

    Node i's histogram is hist[slots[i]], and its answers go to ``gain[table[i], j]`` (-inf where no
    split is allowed) and ``cut[table[i], j]`` = 2 * bin + (1 if NaN goes left). Feature j has
    its bins at first[j]:first[j+1], the last of them for NaN.

    Prefix sums first, then gains in a loop without branches that the compiler turns into
    vector code, then the maximum.
    """
    one = hist.shape[1] == 1
    mask = (np.int64(1) << count_bits) - 1
    V = np.empty(256, np.int64)
    G = np.empty(256)
    N = np.empty(256)
    H = np.empty(256)
    score = np.empty(256)
    for i in range(len(slots)):
        slot, to = slots[i], table[i]
        for f in range(len(features)):
            j = features[f]
            packed = hist[slot, 0, first[j] : first[j + 1]]
            hessian = packed if one else hist[slot, 1, first[j] : first[j + 1]]
            bins = len(packed) - 1
            v = np.int64(0)
            h = np.int64(0)
            for b in range(bins):
                v += packed[b]
                V[b] = v
            for b in range(bins):
                G[b] = (V[b] >> count_bits) * gradient_unit
                N[b] = V[b] & mask
            if one:
                H[:bins] = N[:bins]
            else:
                for b in range(bins):
                    h += hessian[b]
                    H[b] = h * hessian_unit
            missing = packed[bins]
            v += missing
            all_n = float(v & mask)
            all_g = (v >> count_bits) * gradient_unit
            miss_n = float(missing & mask)
            miss_g = (missing >> count_bits) * gradient_unit
            all_h, miss_h = all_n, miss_n
            if not one:
                miss_h = hessian[bins] * hessian_unit
                all_h = (h + hessian[bins]) * hessian_unit
            parent = all_g * all_g / (all_h + l2) if all_h + l2 > 0 else 0.0
            best = -np.inf
            where = -1
            for side in range(2 if miss_n > 0 else 1):  # NaN right, then NaN left
                add_g = side * miss_g
                add_h = side * miss_h
                add_n = side * miss_n
                for b in range(bins):
                    gl = G[b] + add_g
                    hl = H[b] + add_h
                    nl = N[b] + add_n
                    gr = all_g - gl
                    hr = all_h - hl
                    nr = all_n - nl
                    allowed = (
                        (nl >= min_rows)
                        & (nr >= min_rows)
                        & (hl >= min_hessian)
                        & (hr >= min_hessian)
                        & (hl + l2 > 0)
                        & (hr + l2 > 0)
                    )
                    dl = hl + l2 if allowed else 1.0
                    dr = hr + l2 if allowed else 1.0
                    value = 0.5 * (gl * gl / dl + gr * gr / dr - parent)
                    score[b] = value if allowed else -np.inf
                top = _highest(score, bins)
                if top < best or top == -np.inf:
                    continue
                b = 0
                while score[b] != top:
                    b += 1
                if top > best or 2 * b < where:
                    best = top
                    where = 2 * b + side
            if miss_n == 0 and where >= 0 and 2 * (V[where // 2] & mask) >= v & mask:
                where += 1
            gain[to, j] = best
            cut[to, j] = where


@njit(cache=True, nogil=True)
def _highest(values: NDArray[np.float64], n: int) -> float:
    """The maximum of the first n, in four independent chains."""
    a = b = c = d = -np.inf
    for i in range(0, n // 4 * 4, 4):
        a = max(a, values[i])
        b = max(b, values[i + 1])
        c = max(c, values[i + 2])
        d = max(d, values[i + 3])
    for i in range(n // 4 * 4, n):
        a = max(a, values[i])
    return max(a, b, c, d)
