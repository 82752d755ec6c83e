"""The best split of every feature in a node, from its histogram.

The raw gain of a split of node p into l and r (Peter et al., NIPS 2017, eq. 12):

    1/2 [ G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G_p^2 / (H_p + l2) ]

Ties go to the lowest bin, and there to NaN on the right. In a node without NaN, NaN goes to the
child with more rows, left if they are equal.
"""

from typing import NamedTuple

import numpy as np

from bench_trees.arrays import Float64Array, Int32Array, Int64Array
from bench_trees.kernels.compiling import calling, inner, inner_dividing
from bench_trees.kernels.histograms import SMALL, SMALL_NODE


class Sums(NamedTuple):
    """Histograms, the start of each feature's bins, and their scales (``fixed_point``).

    Feature j has its bins at first[j]:first[j + 1], the last of them for NaN.
    """

    hist: Int64Array  # (slots, channels, bins)
    first: Int64Array  # (d + 1,)
    count_bits: int
    units: Float64Array  # (2,) of gradients and hessians


class Units(NamedTuple):
    """Units of the sums of a histogram, as numbers."""

    count_bits: int
    gradient: float
    hessian: float


class Rules(NamedTuple):
    """The settings that decide on splits."""

    max_depth: int  # -1: no limit
    min_rows: int  # least number in a child
    min_hessian: float
    l2: float  # added to every denominator
    level: bool  # level by level, left to right; else the highest net gain first
    every: bool  # all leaves with a positive net gain at once
    above_floor: bool  # raw gains must be above rounding
    always: bool  # net gains may be negative


class Owed(NamedTuple):
    """The three terms of eq. 13: a split of node i on feature j is charged coupled[j] + lazy[i, j]
    + split[j] * rows; ``lazy`` is (0, d) if nothing is lazy."""

    coupled: Float64Array
    lazy: Float64Array
    split: Float64Array


class Cuts(NamedTuple):
    """The best cut of every feature at m nodes."""

    gain: Float64Array  # (m, d) raw, -inf if no split is allowed
    cut: Int32Array  # (m, d) 2 * bin + (1 if NaN goes left)


TAKEN = 1e-11  # a raw gain above this share of the node's own score is not rounding


@calling()
def best_cuts(
    sums: Sums, pairs: Int64Array, features: Int64Array, rules: Rules, owed: Owed, cuts: Cuts
) -> None:
    """Raw gain and cut of the features of both nodes of every pair (``histograms``).

    Features that cannot win may get -inf: minus its charges (``owed``), such a gain is below that
    of an earlier one of these features.
    """
    # V, W: packed sums and hessians of bins up to every cut, then of the node; as numbers G, H, N
    V, W = np.empty(257, np.int64), np.empty(257, np.int64)
    G, H, N, score = np.empty(257), np.empty(257), np.empty(257), np.empty(257)
    hist, first, (gain, cut) = sums.hist, sums.first, cuts
    units = Units(sums.count_bits, sums.units[0], sums.units[1])
    plain = hist.shape[1] == 1  # a row's hessian is its multiplicity
    mask = (np.int64(1) << units.count_bits) - 1
    coupled, lazy, split = owed
    for pair in pairs:
        for which in range(2):
            slot, node = pair[SMALL + which], pair[SMALL_NODE + which]
            if slot < 0 or node < 0:
                continue
            parent, highest = 0.0, -np.inf  # the node's own term, and its highest net gain so far
            if len(features):
                whole, weight = np.int64(0), np.int64(0)  # every feature's bins contain all rows
                for b in range(first[features[0]], first[features[0] + 1]):
                    whole += hist[slot, 0, b]
                    weight += hist[slot, -1, b]
                if (whole & mask) < 2 * rules.min_rows:
                    for j in features:
                        gain[node, j] = -np.inf
                    continue
                g = (whole >> units.count_bits) * units.gradient
                h = float(whole & mask) if plain else weight * units.hessian
                parent = _own_term(g, h, rules.l2)
            # a view of each feature's bins would take longer than most features
            bins, hessians = hist[slot, 0], hist[slot, -1]
            for j in features:
                gain[node, j] = -np.inf
                begin, end = first[j], first[j + 1]
                packed, hessian = bins[begin:end], hessians[begin:end]
                low, many = _cumulate(packed, hessian, plain, rules.min_rows, mask, V, W)
                if many == 0:
                    continue
                lost = bins[end - 1]
                charge = coupled[j]
                if len(lazy):
                    charge += lazy[node, j]
                charge += split[j] * (V[low + many] & mask)  # eq. 13
                least = _terms(highest, charge, parent)
                above = least == 0
                for side in range(1 if lost == 0 else 2):
                    span, moved_sums = ((low, low + many), (side * lost, side * hessians[end - 1]))
                    above = above or _exceeds(V, W, span, plain, moved_sums, units, rules.l2, least)
                if not above:
                    continue
                packed_sums, weights = V[low : low + many + 1], W[low : low + many + 1]
                for k in range(many + 1):
                    G[k] = (packed_sums[k] >> units.count_bits) * units.gradient
                    N[k] = packed_sums[k] & mask
                    H[k] = N[k] if plain else weights[k] * units.hessian
                missing_rows = float(lost & mask)
                missing_g = (lost >> units.count_bits) * units.gradient
                missing_h = missing_rows if plain else hessian[-1] * units.hessian
                total = G[many], H[many], N[many]
                best, where, rows = -np.inf, -1, 0.0
                for side in range(2 if missing_rows > 0 else 1):  # NaN right, then NaN left
                    moved = side * missing_g, side * missing_h, side * missing_rows
                    _raw_gains(G, H, N, many, total, moved, rules, score)
                    top = _highest(score, many)
                    if top < best or top == -np.inf:
                        continue
                    k = 0
                    while score[k] != top:
                        k += 1
                    if top > best or 2 * (low + k) < where:
                        best, where, rows = top, 2 * (low + k) + side, N[k]
                if where < 0:
                    continue
                side = where % 2
                if missing_rows == 0 and 2 * rows >= total[2]:
                    side = 1
                gain[node, j] = best
                cut[node, j] = 2 * _bin_of(packed, where // 2) + side
                if best > TAKEN * parent and best - charge > highest:
                    highest = best - charge


# The steps are loops without branches, which the compiler vectorises if it can


@inner
def _cumulate(
    packed: Int64Array,
    hessian: Int64Array,
    plain: bool,
    min_rows: int,
    mask: np.int64,
    V: Int64Array,
    W: Int64Array,
) -> tuple[int, int]:
    """Packed sums V of the bins up to every cut, then of all bins, and hessians W unless ``plain``.
    Return the first cut that may leave enough rows on both sides, and the number of such cuts.

    After an empty bin the cut equals the one before it, and the lower one is taken.
    """
    last = np.uint64(len(packed) - 1)
    v, w = packed[0], hessian[0]
    V[0], W[0] = v, w  # even if it is empty: NaN may go left alone
    filled = np.uint64(1)  # unsigned: never a negative index
    if plain:
        for b in range(np.uint64(1), last):
            v += packed[b]
            V[filled] = v
            filled += np.uint64(packed[b] != 0)
    else:
        for b in range(np.uint64(1), last):
            v += packed[b]
            w += hessian[b]
            V[filled], W[filled] = v, w
            filled += np.uint64(packed[b] != 0)
    whole = v + packed[last]
    missing = packed[last] & mask
    least, most = min_rows - missing, (whole & mask) - min_rows  # NaN may go left
    low, high = 0, np.int64(filled) - 1
    while low <= high and (V[low] & mask) < least:
        low += 1
    while high >= low and (V[high] & mask) > most:
        high -= 1
    V[high + 1], W[high + 1] = whole, w + hessian[last]
    return low, int(high + 1 - low)


@inner
def _bin_of(packed: Int64Array, cut: int) -> int:
    """The bin after which the cut of this number in ``_cumulate`` lies."""
    b = 0
    while cut > 0:
        b += 1
        cut -= int(packed[b] != 0)
    return b


@inner
def _own_term(g: float, h: float, l2: float) -> float:
    """The node's own term in eq. 12; infinite if products in ``_exceeds`` could be too large or
    small."""
    return g * g / (h + l2) if 1e-60 < h + l2 < 1e60 else np.inf


@inner
def _terms(net: float, charge: float, parent: float) -> float:
    """A lower bound of the two terms of eq. 12 at a cut with a higher net gain, lower by many times
    the rounding error; 0 if products in ``_exceeds`` could be too large or small."""
    terms = 2 * (net + charge) + parent - 1e-12 * (2 * (abs(net) + charge) + parent)
    return terms if 1e-60 < terms < 1e60 else 0.0


@inner
def _exceeds(
    sums: Int64Array,
    hessians: Int64Array,
    cuts: tuple[int, int],
    plain: bool,
    moved: tuple[int, int],
    units: Units,
    l2: float,
    least: float,
) -> bool:
    """True if the two terms of eq. 12 exceed ``least`` at any of these cuts, for children of any
    size.

    The last entry of ``sums`` and ``hessians``, unused if ``plain``, is the node's; ``moved``
    always goes left. Both sides of the comparison are multiplied by H_l + l2 and H_r + l2, since a
    division takes longer.
    """
    mask = (np.int64(1) << units.count_bits) - 1
    first, last = cuts
    whole = sums[last]
    g = (whole >> units.count_bits) * units.gradient
    h = float(whole & mask) if plain else hessians[last] * units.hessian
    below = 0
    for k in range(np.uint64(first), np.uint64(last)):  # unsigned, so that no index is negative
        v, w = sums[k] + moved[0], hessians[k] + moved[1]
        gl = (v >> units.count_bits) * units.gradient
        hl = float(v & mask) if plain else w * units.hessian
        gr, dl, dr = g - gl, hl + l2, h - hl + l2
        below += int(gl * gl * dr + gr * gr * dl <= least * (dl * dr))
    return below < last - first


@inner_dividing
def _raw_gains(
    G: Float64Array,
    H: Float64Array,
    N: Float64Array,
    bins: int,
    node: tuple[float, float, float],
    moved: tuple[float, float, float],
    rules: Rules,
    out: Float64Array,
) -> None:
    """Raw gain of the cut after every bin, -inf if a child would be too small.

    ``moved``: gradient, hessian and rows of the missing, if they go left, else zeros.
    """
    l2, min_rows, min_hessian = rules.l2, rules.min_rows, rules.min_hessian
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
        dl = hl + l2 if allowed else 1.0  # a valid divisor even if the result is not used
        dr = hr + l2 if allowed else 1.0
        value = 0.5 * (gl * gl / dl + gr * gr / dr - parent)  # eq. 12
        out[b] = value if allowed else -np.inf


@inner
def _highest(values: Float64Array, n: int) -> float:
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
