"""Histograms of a growing tree's leaves: sums of gradients per leaf, feature and bin.

Sums are integers (``fixed_point``), so a leaf's histogram is exactly that of its parent minus that
of its sibling, and of two siblings only the smaller one is counted::

    hist[slot, channel]   | feature 0 ...... NaN | feature 1 ...... NaN | feature 2 ...
                          first[0]               first[1]               first[2]

    channel 0   gradient and count of rows, packed in one integer
    channel 1   hessian; the channel is there only where hessians differ between rows

Rows of a small leaf lie far apart, so that neither the processor's own prefetching nor its
window of instructions hides the way to memory; a request ``AHEAD`` rows ahead hides that to the
second cache. What the next word's column has of these rows is asked for a whole pass before.
"""

from typing import Any

import numpy as np
from numba import njit

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import inner
from bench_trees.kernels.intrinsics import add_pair, prefetch, prefetch_early

AHEAD = 32  # rows whose words are requested: their adds take as long as the second cache to answer;
# of more, words drive out sums
IN_ORDER = 64  # the same where rows are in order
FEW_CODES, WORTH = 32, 2048  # codes up to which, and rows from which, features are counted by twos
ONE_CODE: Any = np.uint64(2 * 255)  # the bits of twice a code, and of twice a pair of few codes
TWO_CODES: Any = np.uint64(2 * (FEW_CODES**2 - 1))
BOTH = 2 * FEW_CODES**2 + 8  # numbers of two features: a pair for each pair of codes, a cache line
STRIDE = 264  # numbers per feature and channel: 256 and a cache line, lest equal bins of different
# features be 4096 bytes apart and be taken for one another
SCRATCH = 16 * STRIDE + 4 * BOTH  # numbers that ``accumulate`` works with


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
    """Histograms of pairs of siblings, for the eight features of the word groups[number]; those
    after it are asked for ahead.

    ``rows`` and ``values`` (n, channels) are in leaf order; ``scratch`` (SCRATCH,) is zero, and is
    so again afterwards. A row of ``pairs`` is::

        begin, end   positions of the smaller sibling's rows
        small        slot for its histogram
        large        slot that holds the parent's and becomes the other sibling's; -1: no sibling
        gaps         0 where the rows are all of 0:end in order, 1 where memory is asked for ahead
    """
    channels = values.shape[1]
    flat = values.reshape(values.size)
    step = channels * STRIDE
    # Eight features' bins, small enough for the nearest cache whatever the width of ``hist``
    table, both = scratch[: 8 * step], scratch[16 * STRIDE :]
    g = groups[number]
    column, following = words[g], words[groups[min(number + 1, len(groups) - 1)]]
    ends = first[8 * g : 8 * g + 9]
    few = channels == 2
    for k in range(len(ends) - 1):
        few &= ends[k + 1] - ends[k] <= FEW_CODES
    for pair in range(len(pairs)):
        begin, end = pairs[pair, 0], pairs[pair, 1]
        small, large = pairs[pair, 2], pairs[pair, 3]
        gaps = pairs[pair, 4] != 0
        own, theirs = rows[begin:end], flat[channels * begin : channels * end]
        if channels == 1:
            _add_packed(column, following, own, theirs, gaps, table)
        elif few and end - begin >= WORTH:
            _add_two_together(column, following, own, theirs, gaps, TWO_CODES, both)
            _take_apart(both, ends, table)
        else:
            _add_with_hessians(column, following, own, theirs, gaps, ONE_CODE, table)
        for j in range(8 * g, min(8 * g + 8, len(first) - 1)):
            at = (j - 8 * g) * step
            for channel in range(channels):
                child = hist[small, channel, first[j] : first[j + 1]]
                parent = hist[large, channel, first[j] : first[j + 1]]
                sums = table[at + channel : at + channels * len(child)]
                if channels == 1:  # literal strides, which the compiler must see
                    _take(sums, 1, child, parent, large >= 0)
                else:
                    _take(sums, 2, child, parent, large >= 0)
            used = table[at : at + channels * (first[j + 1] - first[j])]
            for b in range(len(used)):  # from 0 on, of which the compiler makes vector code
                used[b] = 0
        for k in range(len(ends) - 1, 8):  # of features that there are not, which have code 0
            for channel in range(channels):
                table[k * step + channel] = 0


@njit(inline="always")
def _take(
    sums: Int64Array, stride: int, child: Int64Array, parent: Int64Array, sibling: bool
) -> None:
    """A feature's sums, ``stride`` numbers apart, to the child's bins and, with a sibling, off the
    parent's."""
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
    """One add for each of eight features, written out; rows with gaps ask for the words that are
    ``following``.

    The processor stores once a cycle, and that is what this loop takes. Adds to one and the same
    bin, each of which has to wait for the one before, have seven other features' in between.
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
    mask: int,
    table: Int64Array,
) -> None:
    """As ``_add_packed``; gradient and hessian of a bin side by side, in one cache line.

    Instructions beside the stores take time too: rows in order are not looked up, and no request
    is checked for the end of the rows, of which the last ones are a loop of their own.
    """
    count, ahead = np.uint64(len(rows)), np.uint64(AHEAD)
    if not gaps:
        for i in range(count):
            prefetch(words, i + np.uint64(IN_ORDER))  # beyond the array's end it does nothing
            _add_pairs(words[i], values, i, mask, table)
        return
    asking = count - min(count, ahead)
    for i in range(asking):
        r = np.uint64(rows[i])
        prefetch(words, np.uint64(rows[i + ahead]))
        prefetch_early(following, r)
        _add_pairs(words[r], values, i, mask, table)
    for i in range(asking, count):
        r = np.uint64(rows[i])
        prefetch_early(following, r)
        _add_pairs(words[r], values, i, mask, table)


@inner
def _add_two_together(
    words: UInt64Array,
    following: UInt64Array,
    rows: UInt32Array,
    values: Int64Array,
    gaps: bool,
    mask: int,
    both: Int64Array,
) -> None:
    """As ``_add_with_hessians``, of features of few codes: one add for two of them.

    The loops are written again: whether the compiler keeps all in registers hangs on how they
    are cut into functions.
    """
    count, ahead = np.uint64(len(rows)), np.uint64(AHEAD)
    if not gaps:
        for i in range(count):
            prefetch(words, i + np.uint64(IN_ORDER))  # beyond the array's end it does nothing
            _add_four(words[i], values, i, mask, both)
        return
    asking = count - min(count, ahead)
    for i in range(asking):
        r = np.uint64(rows[i])
        prefetch(words, np.uint64(rows[i + ahead]))
        prefetch_early(following, r)
        _add_four(words[r], values, i, mask, both)
    for i in range(asking, count):
        r = np.uint64(rows[i])
        prefetch_early(following, r)
        _add_four(words[r], values, i, mask, both)


@njit(inline="always")
def _add_four(c: int, values: Int64Array, i: int, mask: int, both: Int64Array) -> None:
    """Add the i-th pair of values to the pairs of codes of c: that of every second feature is the
    higher one."""
    even, odd = np.uint64(0x001F001F001F001F), np.uint64(0x03E003E003E003E0)
    codes = (c & even) | ((c >> np.uint64(3)) & odd)
    v, h = values[np.uint64(2) * i], values[np.uint64(2) * i + np.uint64(1)]
    for k in range(4):
        add_pair(both, np.uint64(k * BOTH) + _twice(codes, 16 * k, mask), v, h)


@njit(inline="always")
def _twice(codes: Any, begin: int, mask: int) -> Any:
    """Twice the code whose bits begin at ``begin``: a rotation and one more instruction. With a
    ``mask`` that the compiler knows it makes of these a copy, a shift, and one more.
    """
    by = np.uint64((begin + 63) % 64)
    return ((codes >> by) | (codes << (np.uint64(64) - by))) & mask


@inner
def _take_apart(both: Int64Array, ends: Int64Array, table: Int64Array) -> None:
    """The sums of each feature, whose bins begin and end at ``ends``, from those of each two
    features, which are zero then."""
    codes = np.ones(8, np.int64)  # of features that there are not, which have code 0
    for k in range(len(ends) - 1):
        codes[k] = ends[k + 1] - ends[k]
    for k in range(4):
        low = table[4 * k * STRIDE : 4 * k * STRIDE + 2 * codes[2 * k]]
        high = table[(4 * k + 2) * STRIDE :]
        for code in range(codes[2 * k + 1]):
            begin = k * BOTH + 2 * FEW_CODES * code
            own = both[begin : begin + len(low)]
            for b in range(len(low)):
                low[b] += own[b]
            v = h = np.int64(0)
            for b in range(0, len(own), 2):
                v += own[b]
                h += own[b + 1]
            high[2 * code], high[2 * code + 1] = v, h
            for b in range(len(own)):
                own[b] = 0


@njit(inline="always")
def _add_pairs(c: int, values: Int64Array, i: int, mask: int, table: Int64Array) -> None:
    """Add the i-th pair of values to the bins of the eight codes of c."""
    v, h = values[np.uint64(2) * i], values[np.uint64(2) * i + np.uint64(1)]
    for k in range(8):
        add_pair(table, np.uint64(2 * STRIDE * k) + _twice(c, 8 * k, mask), v, h)


@inner
def _add_counts(
    hist: Int64Array,
    counted: Int64Array,
    begin: int,
    end: int,
    count_bits: int,
    target: int,
) -> None:
    """Add a step per copy counted in a slot to the gradients of bins begin:end of the slot
    ``target``, for each slot and step of ``counted``."""
    mask = (np.int64(1) << count_bits) - 1
    out = hist[target, 0, begin:end]
    for i in range(len(counted)):
        counts = hist[counted[i, 0], 0, begin:end]
        step = counted[i, 1]
        for b in range(len(out)):
            out[b] += ((counts[b] & mask) * step) << count_bits
