"""The counter-based hash that all random numbers come from: the finaliser of splitmix64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Int32Array

U64 = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(z: int) -> int:
    """The finaliser of splitmix64 on one number."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(key: int, counter: int) -> int:
    """The random 64 bits number ``counter`` of a stream."""
    return mix((key + (counter + 1) * GOLDEN) & MASK)


def stream(*parts: int) -> int:
    """The key of a stream."""
    key = 0
    for part in parts:
        key = draw(key, part)
    return key


def draws(key: int, counters: U64) -> U64:
    """``draw`` for an array of counters; wraps around modulo 2**64."""
    z = (counters + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def bell(bits: U64) -> Int32Array:
    """Sum of the four 16-bit parts, centred: mean 0, standard deviation 37837."""
    parts = bits.view(np.uint16).reshape(*bits.shape, 4).astype(np.int32)
    total = parts[..., 0] + parts[..., 1] + parts[..., 2] + parts[..., 3]
    return np.asarray(total - np.int32(131070))
