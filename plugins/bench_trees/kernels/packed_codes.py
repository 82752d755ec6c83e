"""Codes of eight features side by side in one 64-bit word per row.

Histograms are what training costs, and a row's word feeds eight of them with one read::

    bit           63 ..... 56   ...   15 ...... 8   7 ....... 0
    words[g, i]   feature 8g+7  ...   feature 8g+1  feature 8g      of row i

    words  uint64 (ceil(d / 8), n); features beyond d have code 0
"""

from __future__ import annotations

import numpy as np

from bench_trees.arrays import UInt8Array, UInt64Array
from bench_trees.threads import Workers

CODES_PER_WORD = 8


def count_words(features: int) -> int:
    """Words that hold a row's codes."""
    return -(-features // CODES_PER_WORD)


def pack(codes: UInt8Array, crew: Workers) -> UInt64Array:
    """Words of codes (d, n)."""
    d, n = codes.shape
    words = np.zeros((count_words(d), n), np.uint64)

    def piece(start: int, stop: int) -> None:
        for j in range(start * CODES_PER_WORD, min(stop * CODES_PER_WORD, d)):
            shift = np.uint64(8 * (j % CODES_PER_WORD))
            words[j // CODES_PER_WORD] |= codes[j].astype(np.uint64) << shift

    crew.run(piece, len(words), 1)
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
