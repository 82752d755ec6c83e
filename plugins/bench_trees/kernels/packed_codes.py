"""Codes of eight features in one 64-bit word per row.

Histograms dominate the cost of training, and a row's word feeds eight of them with one read::

    bit           63 ..... 56   ...   15 ...... 8   7 ....... 0
    words[g, i]   feature 8g+7  ...   feature 8g+1  feature 8g      of row i

    words  uint64 (ceil(d / 8), n); features beyond d have code 0
"""

import numpy as np

from bench_trees.arrays import Float32Array, Int64Array, UInt8Array, UInt64Array
from bench_trees.kernels.compiling import kernel

CODES_PER_WORD = 8
_ROWS = 64  # of one column, encoded while its edges are in the nearest cache


def count_words(features: int) -> int:
    """Number of words for a row's codes."""
    return -(-features // CODES_PER_WORD)


def pack(codes: UInt8Array) -> UInt64Array:
    """Words of codes (d, n)."""
    words = np.zeros((count_words(len(codes)), codes.shape[1]), np.uint64)
    for j, own in enumerate(codes):
        shift = np.uint64(8 * (j % CODES_PER_WORD))
        words[j // CODES_PER_WORD] |= own.astype(np.uint64) << shift
    return words


def unpack(words: UInt64Array, features: int) -> UInt8Array:
    """Codes (d, n) of words."""
    codes = np.empty((features, words.shape[1]), np.uint8)
    for j in range(features):
        codes[j] = codes_of(words, j)
    return codes


def codes_of(words: UInt64Array, feature: int) -> UInt8Array:
    """Codes (n,) of one feature."""
    shift = np.uint64(8 * (feature % CODES_PER_WORD))
    codes: UInt8Array = (words[feature // CODES_PER_WORD] >> shift).astype(np.uint8)
    return codes


@kernel
def greedy_ends(counts: Int64Array, max_bins: int) -> Int64Array:
    """Indices of distinct values that end a bin, without the last bin's end."""
    total = 0
    for c in counts:
        total += c
    fair = total / max_bins
    rest = total
    bins_left = max_bins
    for c in counts:
        if c >= fair:
            rest -= c
            bins_left -= 1
    share = rest / max(bins_left, 1)
    ends = np.empty(max_bins, np.int64)
    used = 0
    filled = 0
    for i in range(len(counts) - 1):
        large = counts[i] >= fair
        if not large:
            rest -= counts[i]
        filled += counts[i]
        if large or filled >= share or (counts[i + 1] >= fair and filled >= max(1.0, share / 2)):
            ends[used] = i
            used += 1
            if used >= max_bins - 1:
                break
            filled = 0
            if not large:
                bins_left -= 1
                share = rest / max(bins_left, 1)
    return ends[:used].copy()


@kernel
def encode(
    X: Float32Array,
    padded: Float32Array,
    counts: Int64Array,
    start: int,
    stop: int,
    out: UInt64Array,
) -> None:
    """Encode rows start:stop as words by a branch-free search in edges padded to 256.

    Tiles of rows are used, so that a column's edges are fetched once per tile.
    """
    for tile in range(start, stop, _ROWS):
        end = min(tile + _ROWS, stop)
        for j in range(X.shape[1]):
            row = padded[j]
            word = out[j // CODES_PER_WORD]
            shift = np.uint64(8 * (j % CODES_PER_WORD))
            for i in range(tile, end):
                x = X[i, j]
                below = 0  # number of edges below x
                for step in (128, 64, 32, 16, 8, 4, 2, 1):
                    below += step * (row[below + step - 1] < x)
                code = np.uint64(counts[j] if np.isnan(x) else below) << shift
                word[i] = code if shift == np.uint64(0) else word[i] | code
