"""Sensors paid by each row, one bit per row and sensor::

paid[k]   row 63 ..... row 0 | row 127 ..... row 64 | ...      uint64 words of sensor k
"""

import numpy as np

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import inner, kernel


@kernel
def count_unpaid(
    paid: UInt64Array,
    sensors: Int64Array,
    rows: UInt32Array,
    multiplicity: Int64Array,
    out: Int64Array,
) -> None:
    """Multiplicity of ``rows`` that have not paid, into out[k] for k in ``sensors``.

    ``multiplicity`` (n,), or (0,) if all are 1.
    """
    if len(multiplicity) > 0:
        for k in sensors:
            bits = paid[k]
            owing = np.int64(0)
            for r in rows:
                if not (bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1):
                    owing += multiplicity[r]
            out[k] = owing
        return
    row_bits = np.empty(paid.shape[1], np.uint64)
    for w in range(len(row_bits)):
        row_bits[w] = 0
    for r in rows:
        row_bits[r >> 6] |= np.uint64(1) << np.uint64(r & 63)
    for k in sensors:
        bits = paid[k]
        owing = np.int64(0)
        for w in range(len(row_bits)):
            owing += _ones(row_bits[w] & ~bits[w])
        out[k] = owing


@inner
def _ones(word: np.uint64) -> np.int64:
    """Number of bits set: counts of 2, 4 and 8 adjacent bits, then their sum."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word += word >> np.uint64(8)
    word += word >> np.uint64(16)
    word += word >> np.uint64(32)
    return np.int64(word & np.uint64(127))


@kernel
def mark_paid(paid: UInt64Array, sensors: Int64Array, rows: UInt32Array) -> None:
    """Set the bits of ``rows`` for ``sensors``."""
    for k in sensors:
        for r in rows:
            paid[k, r >> 6] |= np.uint64(1) << np.uint64(r & 63)
