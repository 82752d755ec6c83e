"""Histograms: sums of gradients per leaf, feature and bin.

Sums are integers (``fixed_point``), so a leaf's histogram is exactly that of its parent minus that
of its sibling, and of two siblings only the smaller one is counted::

    hist[slot, channel]   | feature 0 ...... NaN | feature 1 ...... NaN | feature 2 ...
                          first[0]               first[1]               first[2]

    channel 0   gradient and count of rows, packed in one integer
    channel 1   hessian; the channel is there only where hessians differ between rows
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.prefetch import AHEAD, prefetch

STRIDE = 264  # numbers per feature and channel: 256 and a cache line, lest equal bins of different
# features be 4096 bytes apart and be taken for one another


@njit(cache=True, nogil=True)
def accumulate(
    words: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    pairs: Int64Array,
    groups: Int64Array,
    first: Int64Array,
    hist: Int64Array,
) -> None:
    """Histograms of pairs of siblings, for the eight features of each word in ``groups``.

    ``rows``, ``packed`` and ``hessian`` (or none) are in leaf order. A row of ``pairs`` is::

        begin, end   positions of the smaller sibling's rows
        small        slot for its histogram
        large        slot that holds the parent's and becomes the other sibling's; -1: no sibling
        far          1 where the rows have gaps between them, so that memory is asked for ahead
    """
    channels = 1 if len(hessian) == 0 else 2
    step = channels * STRIDE
    # Eight features' bins, small enough for the nearest cache whatever the width of ``hist``
    table = np.zeros(8 * step, np.int64)
    for g in groups:  # words outside, pairs inside: a word's column is read while it is near
        for pair in range(len(pairs)):
            begin, end = pairs[pair, 0], pairs[pair, 1]
            small, large = pairs[pair, 2], pairs[pair, 3]
            far = pairs[pair, 4] != 0
            own, g_own = rows[begin:end], packed[begin:end]
            if channels == 1:
                _add_packed(words[g], own, g_own, far, table)
            else:
                _add_with_hessians(words[g], own, g_own, hessian[begin:end], far, table)
            for j in range(8 * g, min(8 * g + 8, len(first) - 1)):
                sums = table[(j - 8 * g) * step : (j - 8 * g + 1) * step]
                for channel in range(channels):
                    counted = sums[channel::channels]
                    child = hist[small, channel, first[j] : first[j + 1]]
                    for b in range(len(child)):
                        child[b] = counted[b]
                    if large >= 0:
                        parent = hist[large, channel, first[j] : first[j + 1]]
                        for b in range(len(child)):
                            parent[b] -= child[b]
                sums[:] = 0


@njit(cache=True, nogil=True)
def _add_packed(
    words: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    far: bool,
    table: Int64Array,
) -> None:
    """One add for each of eight features, written out.

    The processor stores once a cycle, and that is what this loop takes. Adds to one and the same
    bin, each of which has to wait for the one before, have seven other features' in between.
    """
    low = np.uint64(255)
    last = len(rows) - 1
    for i in range(len(rows)):
        if far:
            prefetch(words, rows[min(i + AHEAD, last)])
        c = words[rows[i]]
        v = packed[i]
        table[c & low] += v
        table[np.uint64(STRIDE) + ((c >> np.uint64(8)) & low)] += v
        table[np.uint64(2 * STRIDE) + ((c >> np.uint64(16)) & low)] += v
        table[np.uint64(3 * STRIDE) + ((c >> np.uint64(24)) & low)] += v
        table[np.uint64(4 * STRIDE) + ((c >> np.uint64(32)) & low)] += v
        table[np.uint64(5 * STRIDE) + ((c >> np.uint64(40)) & low)] += v
        table[np.uint64(6 * STRIDE) + ((c >> np.uint64(48)) & low)] += v
        table[np.uint64(7 * STRIDE) + (c >> np.uint64(56))] += v


@njit(cache=True, nogil=True)
def _add_with_hessians(
    words: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    hessian: Int64Array,
    far: bool,
    table: Int64Array,
) -> None:
    """As ``_add_packed``; gradient and hessian of a bin side by side, in one cache line."""
    low = np.uint64(255)
    one = np.uint64(1)
    eight = np.uint64(8)
    stride = np.uint64(2 * STRIDE)
    last = len(rows) - 1
    for i in range(len(rows)):
        if far:
            prefetch(words, rows[min(i + AHEAD, last)])
        c = words[rows[i]]
        v = packed[i]
        h = hessian[i]
        for k in range(8):
            at = np.uint64(k) * stride + ((c & low) << one)
            table[at] += v
            table[at + one] += h
            c >>= eight


@njit(cache=True, nogil=True)
def add_counts(
    hist: Int64Array,
    slots: Int64Array,
    steps: Int64Array,
    begin: int,
    end: int,
    count_bits: int,
    target: int,
) -> None:
    """Add steps[i] per copy counted in slots[i] to the gradients of bins begin:end of a slot."""
    mask = (np.int64(1) << count_bits) - 1
    out = hist[target, 0, begin:end]
    for i in range(len(slots)):
        counts = hist[slots[i], 0, begin:end]
        step = steps[i]
        for b in range(len(out)):
            out[b] += ((counts[b] & mask) * step) << count_bits
