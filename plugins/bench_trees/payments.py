"""Kernels over the bits that say which rows have paid which sensors."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def count_unpaid(
    paid: NDArray[np.uint64],
    sensors: NDArray[np.int64],
    rows: NDArray[np.uint32],
    multiplicity: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Multiplicity of ``rows`` that have not paid, into out[k] for k in ``sensors``.

    ``multiplicity`` (n,), or (0,) where all are 1.
    """
    plain = len(multiplicity) == 0
    for k in sensors:
        bits = paid[k]
        owing = np.int64(0)
        if plain:
            for r in rows:
                owing += np.int64(~(bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1))
        else:
            for r in rows:
                if not (bits[r >> 6] >> np.uint64(r & 63)) & np.uint64(1):
                    owing += multiplicity[r]
        out[k] = owing


@njit(cache=True, nogil=True)
def mark_paid(
    paid: NDArray[np.uint64], sensors: NDArray[np.int64], rows: NDArray[np.uint32]
) -> None:
    """Set the bits of ``rows`` for ``sensors``."""
    for k in sensors:
        for r in rows:
            paid[k, r >> 6] |= np.uint64(1) << np.uint64(r & 63)
