"""Codes of eight features side by side in one 64-bit word per row.

Histograms are what training costs, and a row's word feeds eight of them with one read::

    words  uint64 (ceil(d / 8), n)      bits 8k .. 8k + 7 of words[g, i] are the code of
                                        feature 8g + k in row i; features beyond d have code 0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_trees.threads import Workers

LANES = 8
"""Features in a word."""

Words = NDArray[np.uint64]


def count_words(features: int) -> int:
    """Words that hold a row's codes."""
    return -(-features // LANES)


def pack(codes: NDArray[np.uint8], crew: Workers) -> Words:
    """Words of codes (d, n)."""
    d, n = codes.shape
    words = np.zeros((count_words(d), n), np.uint64)

    def piece(start: int, stop: int) -> None:
        for j in range(start * LANES, min(stop * LANES, d)):
            words[j // LANES] |= codes[j].astype(np.uint64) << np.uint64(8 * (j % LANES))

    crew.run(piece, len(words), 1)
    return words


def unpack(words: Words, features: int) -> NDArray[np.uint8]:
    """Codes (d, n) of words."""
    codes = np.empty((features, words.shape[1]), np.uint8)
    for j in range(features):
        codes[j] = lane(words, j)
    return codes


def lane(words: Words, feature: int) -> NDArray[np.uint8]:
    """Codes (n,) of one feature."""
    shift = np.uint64(8 * (feature % LANES))
    codes: NDArray[np.uint8] = (words[feature // LANES] >> shift).astype(np.uint8)
    return codes
