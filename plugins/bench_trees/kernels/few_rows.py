"""Which features may split a leaf best where rows are few and features many.

A leaf's histograms then hold more numbers than it has rows, and to write them, read them and
subtract them from their parent's takes longer than to count its rows. So every leaf is counted,
eight features at a time and side by side, and searched while the sums are in the nearest cache::

    V[8 * b + k]   packed sum of the bins below b of feature 8 g + k, the k-th of word g
    W[8 * b + k]   their hessian, where hessians differ between rows

A feature that may be the best has its histogram written, for ``best_cuts``. The others' net gains
are lower than that of one of these by more than rounding.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels import intrinsics, splitting
from bench_trees.kernels.compiling import calling, inner_dividing
from bench_trees.kernels.growth import BEGIN, COUNT, END, HESSIAN, PACKED, SLOT, Sums
from bench_trees.kernels.intrinsics import add_pair
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.splitting import TAKEN, Limits, _own_term, _terms

ROOM = CODES_PER_WORD * 257  # of eight features the sums below every bin, missing included, and all


class Leaves(NamedTuple):
    """Leaves and their rows."""

    numbers: Int64Array  # (m,)
    table: Int64Array  # the integers of all nodes
    rows: UInt32Array  # of all leaves, in their order
    values: Int64Array  # theirs (n, channels): packed gradients, and hessians where these differ


class Word(NamedTuple):
    """Sums of a leaf's rows over the bins of eight features, and those of missing values."""

    bins: Int64Array
    V: Int64Array
    W: Int64Array
    lost: Int64Array  # (2, 8)


class Whole(NamedTuple):
    """The sums of a leaf, as integers and as numbers, and how to read those of its parts."""

    packed: int
    second: int
    rows: int
    g: float
    h: float
    plain: bool  # a row's hessian is its multiplicity
    mask: int
    bits: int
    gradient: float
    hessian: float


@calling(intrinsics, splitting)
def candidates(
    words: UInt64Array,
    some: Leaves,
    groups: Int64Array,
    sums: Sums,
    limits: Limits,
    charges: Float64Array,
    gain: Float64Array,
    found: Int64Array,
    counts: Int64Array,
) -> None:
    """Write to found[i, :counts[i]] the features of the words ``groups`` that may be the best of
    leaf i, and their histograms to ``sums``; the gain of the others is -inf. ``charges`` (m, d) is
    what they owe there, infinite where a feature is not asked for."""
    V, W = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    word = Word(np.zeros(2 * ROOM, np.int64), V, W, np.zeros((2, CODES_PER_WORD), np.int64))
    highest = np.full(len(some.numbers), -np.inf)
    for g in groups:  # words outside, leaves inside: a word's column is read while it is near
        start, stop = CODES_PER_WORD * g, min(CODES_PER_WORD * (g + 1), len(sums.first) - 1)
        first = sums.first[start : stop + 1]
        for i in range(len(some.numbers)):
            number = some.numbers[i]
            lowest = np.inf
            for j in range(start, stop):
                if charges[i, j] < np.inf:
                    gain[number, j] = -np.inf
                    lowest = min(lowest, charges[i, j])
            node = some.table[number]
            if lowest == np.inf or node[COUNT] < 2 * limits.min_rows:
                continue
            whole = _whole(node, sums)
            parent = _own_term(whole.g, whole.h, limits.l2)
            _count(words[g], some, node[BEGIN], node[END], whole.plain, word.bins)
            _cumulate(word, first, whole)
            if not _may_exceed(word, first, whole, limits, _terms(highest[i], lowest, parent)):
                continue
            for j in range(start, stop):
                if charges[i, j] == np.inf:
                    continue
                top = _highest_terms(word, j - start, first, whole, limits)
                least = _terms(highest[i], charges[i, j], parent)
                if top == -np.inf or (least > 0 and top <= least):
                    continue
                if top - parent > 4 * TAKEN * parent:  # else it may be rounding
                    highest[i] = max(highest[i], (top - parent) / 2 - charges[i, j])
                _write(word, j - start, first, sums.hist[node[SLOT]])
                found[i, counts[i]] = j
                counts[i] += 1


@njit(inline="always")
def _whole(node: Int64Array, sums: Sums) -> Whole:
    plain, mask = sums.hist.shape[1] == 1, int((np.int64(1) << sums.count_bits) - 1)
    g = (node[PACKED] >> sums.count_bits) * sums.units[0]
    h = float(node[COUNT]) if plain else node[HESSIAN] * sums.units[1]
    units = sums.count_bits, sums.units[0], sums.units[1]
    return Whole(node[PACKED], node[HESSIAN], node[COUNT], g, h, plain, mask, *units)


@njit(inline="always")
def _count(
    words: UInt64Array, some: Leaves, begin: int, end: int, plain: bool, bins: Int64Array
) -> None:
    """Add the rows of a leaf to the bins of eight features, side by side; two numbers a bin with
    hessians."""
    low, step = np.uint64(255), np.uint64(CODES_PER_WORD)
    if plain:
        for i in range(begin, end):
            c, v = words[some.rows[i]], some.values[i, 0]
            bins[(c & low) * step] += v
            bins[((c >> np.uint64(8)) & low) * step + np.uint64(1)] += v
            bins[((c >> np.uint64(16)) & low) * step + np.uint64(2)] += v
            bins[((c >> np.uint64(24)) & low) * step + np.uint64(3)] += v
            bins[((c >> np.uint64(32)) & low) * step + np.uint64(4)] += v
            bins[((c >> np.uint64(40)) & low) * step + np.uint64(5)] += v
            bins[((c >> np.uint64(48)) & low) * step + np.uint64(6)] += v
            bins[(c >> np.uint64(56)) * step + np.uint64(7)] += v
        return
    for i in range(begin, end):
        c, v, h = words[some.rows[i]], some.values[i, 0], some.values[i, 1]
        for k in range(CODES_PER_WORD):
            code = (c >> np.uint64(8 * k)) & low
            add_pair(bins, np.uint64(2) * (code * step + np.uint64(k)), v, h)


@njit(inline="always")
def _cumulate(word: Word, first: Int64Array, whole: Whole) -> None:
    """Sums below every bin, which is left empty, and those of missing values."""
    bins, V, W, lost = word
    end = CODES_PER_WORD * _most(first)
    if whole.plain:
        for i in range(np.uint64(end)):
            V[i + np.uint64(CODES_PER_WORD)] = V[i] + bins[i]
            bins[i] = 0
    else:
        for i in range(np.uint64(end)):
            V[i + np.uint64(CODES_PER_WORD)] = V[i] + bins[np.uint64(2) * i]
            W[i + np.uint64(CODES_PER_WORD)] = W[i] + bins[np.uint64(2) * i + np.uint64(1)]
        for i in range(np.uint64(2 * end)):
            bins[i] = 0
    for k in range(len(first) - 1):
        at = CODES_PER_WORD * (first[k + 1] - first[k] - 1) + k
        lost[0, k], lost[1, k] = whole.packed - V[at], whole.second - W[at]


@njit(inline="always")
def _most(first: Int64Array) -> int:
    """Bins of the feature with the most."""
    most = 0
    for k in range(len(first) - 1):
        most = max(most, first[k + 1] - first[k])
    return most


@njit(inline="always")
def _may_exceed(word: Word, first: Int64Array, whole: Whole, limits: Limits, least: float) -> bool:
    """Whether the two terms of eq. 12 exceed ``least`` at any cut of the eight features."""
    end = CODES_PER_WORD * _most(first)
    if least == 0 or _exceeds(word.V, word.W, end, whole, limits, least):
        return True
    if not word.lost[0].any():
        return False
    _shift(word, end, 1)  # the missing go left
    above = _exceeds(word.V, word.W, end, whole, limits, least)
    _shift(word, end, -1)
    return above


@njit(inline="always")
def _shift(word: Word, end: int, sign: int) -> None:
    for b in range(0, end, CODES_PER_WORD):
        for k in range(CODES_PER_WORD):
            word.V[b + k] += sign * word.lost[0, k]
            word.W[b + k] += sign * word.lost[1, k]


@njit(inline="always")
def _exceeds(
    V: Int64Array, W: Int64Array, end: int, whole: Whole, limits: Limits, least: float
) -> bool:
    """As in ``splitting``, of cuts that leave enough rows on both sides."""
    above, l2 = 0, limits.l2
    fewest, most = limits.min_rows, whole.rows - limits.min_rows
    for i in range(np.uint64(CODES_PER_WORD), np.uint64(end)):
        rows = V[i] & whole.mask
        gl = (V[i] >> whole.bits) * whole.gradient
        hl = float(rows) if whole.plain else W[i] * whole.hessian
        gr, dl, dr = whole.g - gl, hl + l2, whole.h - hl + l2
        exceeds = gl * gl * dr + gr * gr * dl > least * (dl * dr)
        above += int(exceeds & (rows >= fewest) & (rows <= most))
    return above > 0


@inner_dividing
def _highest_terms(word: Word, k: int, first: Int64Array, whole: Whole, limits: Limits) -> float:
    """The highest sum of the two terms of eq. 12 at an allowed cut of one feature, else -inf."""
    top, l2 = -np.inf, limits.l2
    for side in range(2 if word.lost[0, k] != 0 else 1):
        for b in range(1, first[k + 1] - first[k]):
            v = word.V[CODES_PER_WORD * b + k] + side * word.lost[0, k]
            w = word.W[CODES_PER_WORD * b + k] + side * word.lost[1, k]
            left = v & whole.mask
            gl = (v >> whole.bits) * whole.gradient
            hl = float(left) if whole.plain else w * whole.hessian
            gr, hr = whole.g - gl, whole.h - hl
            few = min(left, whole.rows - left) < limits.min_rows
            if few or min(hl, hr) < limits.min_hessian or min(hl, hr) + l2 <= 0:
                continue
            terms = gl * gl / (hl + l2) + gr * gr / (hr + l2)
            top = max(top, terms if terms == terms else np.inf)
    return top


@njit(inline="always")
def _write(word: Word, k: int, first: Int64Array, hist: Int64Array) -> None:
    """A feature's sums to its bins (channels, bins)."""
    for channel in range(len(hist)):
        sums = word.V if channel == 0 else word.W
        for b in range(first[k + 1] - first[k]):
            at = CODES_PER_WORD * b + k
            hist[channel, first[k] + b] = sums[at + CODES_PER_WORD] - sums[at]
