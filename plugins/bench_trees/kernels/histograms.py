"""Histograms of a growing tree's leaves: sums of gradients per leaf, feature and bin.

Sums are integers (``fixed_point``), so a leaf's histogram is exactly its parent's minus its
sibling's. Of two siblings only the smaller one is counted::

    hist[slot, channel]   | feature 0 ...... NaN | feature 1 ...... NaN | feature 2 ...
                          first[0]               first[1]               first[2]

    channel 0   gradient and count of rows, packed in one integer
    channel 1   hessian; the channel exists only if hessians differ between rows

Rows of a small leaf lie far apart: neither the processor's prefetching nor its window of
instructions hides the latency of memory. A request ``AHEAD`` rows ahead hides the latency to the
second cache. The next word's column is requested an entire pass ahead.
"""

import numpy as np
from numba import njit

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import add_pair, prefetch, prefetch_early

# Columns of ``pairs``, one row for every pair of siblings to be scored
START, STOP = 0, 1  # positions of the smaller sibling's rows
SMALL = 2  # slot for its histogram
LARGE = 3  # slot that holds the parent's and becomes the other sibling's; -1: no sibling
GAPS = 4  # 0 where the rows are all of 0:STOP in order, 1 where memory is requested ahead
SMALL_NODE, LARGE_NODE = 5, 6  # numbers of both; -1: none
PAIR = 7

AHEAD = 32  # rows whose words are requested: their adds take as long as the second cache; with
# more, words evict sums
IN_ORDER = 64  # the same for rows in order
STRIDE = 264  # numbers per feature and channel: 256 and a cache line, as the processor confuses
# equal bins of different features 4096 bytes apart
SCRATCH = 16 * STRIDE  # numbers that ``accumulate`` works with


@inner
def _accumulate(
    words: UInt64Array,
    rows: UInt32Array,
    values: Int64Array,
    pairs: Int64Array,
    groups: Int64Array,
    number: int,
    first: Int64Array,
    hist: Int64Array,
    scratch: Int64Array,
) -> None:
    """Histograms of pairs of siblings, for the eight features of the word groups[number]; the next
    word's are requested ahead.

    ``rows`` and ``values`` (n, channels) are in leaf order; ``scratch`` (SCRATCH,) is zero before
    and afterwards.
    """
    channels = values.shape[1]
    flat = values.reshape(values.size)
    step = channels * STRIDE
    # Eight features' bins, small enough for the nearest cache at any width of ``hist``
    table = scratch[: 8 * step]
    g = groups[number]
    column, following = words[g], words[groups[min(number + 1, len(groups) - 1)]]
    ends = first[8 * g : 8 * g + 9]
    for i in range(len(pairs)):
        begin, end = pairs[i, START], pairs[i, STOP]
        small, large = pairs[i, SMALL], pairs[i, LARGE]
        gaps = pairs[i, GAPS] != 0
        pair_rows, pair_values = rows[begin:end], flat[channels * begin : channels * end]
        if channels == 1:
            _add_packed(column, following, pair_rows, pair_values, gaps, table)
        else:
            _add_with_hessians(column, following, pair_rows, pair_values, gaps, table)
        for j in range(8 * g, min(8 * g + 8, len(first) - 1)):
            at = (j - 8 * g) * step
            for channel in range(channels):
                child = hist[small, channel, first[j] : first[j + 1]]
                parent = hist[large, channel, first[j] : first[j + 1]]
                sums = table[at + channel : at + channels * len(child)]
                if channels == 1:  # literal strides for the compiler
                    _take(sums, 1, child, parent, large >= 0)
                else:
                    _take(sums, 2, child, parent, large >= 0)
            used = table[at : at + channels * (first[j + 1] - first[j])]
            for b in range(len(used)):  # from 0, so that it is vectorised
                used[b] = 0
        for k in range(len(ends) - 1, 8):  # of absent features, which have code 0
            for channel in range(channels):
                table[k * step + channel] = 0


@njit(inline="always")
def _take(
    sums: Int64Array, stride: int, child: Int64Array, parent: Int64Array, sibling: bool
) -> None:
    """Copy a feature's sums, ``stride`` numbers apart, to the child's bins and, with a sibling,
    subtract them from the parent's."""
    if sibling:
        for b in range(len(child)):
            parent[b] -= sums[stride * b]
    for b in range(len(child)):
        child[b] = sums[stride * b]


@inner
def _add_packed(
    words: UInt64Array,
    following: UInt64Array,
    rows: UInt32Array,
    packed: Int64Array,
    gaps: bool,
    table: Int64Array,
) -> None:
    """Add once for each of eight features, written out; rows with gaps request the ``following``
    words.

    The processor stores once a cycle, which bounds this loop. An add to a bin waits for the
    previous one to the same bin; seven other features' adds are in between.
    """
    low = np.uint64(255)
    last = len(rows) - 1
    for i in range(len(rows)):
        r = rows[i]
        if gaps:
            prefetch(words, rows[min(i + AHEAD, last)])
            prefetch_early(following, r)
        c = words[r]
        v = packed[i]
        table[c & low] += v
        table[np.uint64(STRIDE) + ((c >> np.uint64(8)) & low)] += v
        table[np.uint64(2 * STRIDE) + ((c >> np.uint64(16)) & low)] += v
        table[np.uint64(3 * STRIDE) + ((c >> np.uint64(24)) & low)] += v
        table[np.uint64(4 * STRIDE) + ((c >> np.uint64(32)) & low)] += v
        table[np.uint64(5 * STRIDE) + ((c >> np.uint64(40)) & low)] += v
        table[np.uint64(6 * STRIDE) + ((c >> np.uint64(48)) & low)] += v
        table[np.uint64(7 * STRIDE) + (c >> np.uint64(56))] += v


@inner
def _add_with_hessians(
    words: UInt64Array,
    following: UInt64Array,
    rows: UInt32Array,
    values: Int64Array,
    gaps: bool,
    table: Int64Array,
) -> None:
    """Like ``_add_packed``; a bin's gradient and hessian share one cache line.

    Instructions other than stores take time too. Rows in order are thus not looked up, and no
    request is checked for the end of the rows: the last rows have a separate loop.
    """
    count, ahead = np.uint64(len(rows)), np.uint64(AHEAD)
    if not gaps:
        for i in range(count):
            prefetch(words, i + np.uint64(IN_ORDER))  # beyond the array's end it does nothing
            _add_pairs(words[i], values, i, table)
        return
    asking = count - min(count, ahead)
    for i in range(asking):
        r = np.uint64(rows[i])
        prefetch(words, np.uint64(rows[i + ahead]))
        prefetch_early(following, r)
        _add_pairs(words[r], values, i, table)
    for i in range(asking, count):
        r = np.uint64(rows[i])
        prefetch_early(following, r)
        _add_pairs(words[r], values, i, table)


@njit(inline="always")
def _add_pairs(c: int, values: Int64Array, i: int, table: Int64Array) -> None:
    """Add the i-th pair of values to the bins of the eight codes of c."""
    v, h = values[np.uint64(2) * i], values[np.uint64(2) * i + np.uint64(1)]
    for k in range(8):
        code = (c >> np.uint64(8 * k)) & np.uint64(255)
        add_pair(table, np.uint64(2) * (np.uint64(STRIDE * k) + code), v, h)


@inner
def _add_counts(
    hist: Int64Array,
    counted: Int64Array,
    begin: int,
    end: int,
    count_bits: int,
    target: int,
) -> None:
    """Add to the gradients of bins begin:end of the slot ``target``: for each slot and step of
    ``counted``, the step per copy counted there."""
    mask = (np.int64(1) << count_bits) - 1
    out = hist[target, 0, begin:end]
    for i in range(len(counted)):
        counts = hist[counted[i, 0], 0, begin:end]
        step = counted[i, 1]
        for b in range(len(out)):
            out[b] += ((counts[b] & mask) * step) << count_bits
