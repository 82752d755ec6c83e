"""Arrays too large for memory, in temporary files that vanish with them."""

from __future__ import annotations

import mmap
import tempfile

import numpy as np

from bench_core.arrays import FloatArray

IN_MEMORY = 1 << 30
"""Bytes up to which an array is an ordinary one."""


def zeros(shape: tuple[int, ...]) -> FloatArray:
    """Float64 zeros, in a file of the system's temporary folder (TMPDIR) where they are large."""
    size = int(np.prod(shape)) * 8
    if size <= IN_MEMORY:
        return np.zeros(shape)
    with tempfile.TemporaryFile() as file:  # the map keeps the file open
        file.truncate(size)
        return np.ndarray(shape, np.float64, buffer=mmap.mmap(file.fileno(), size))


def forget(array: FloatArray) -> None:
    """Take the pages of a spilled array out of this process; its file keeps the content."""
    file: object = array
    while isinstance(file, np.ndarray):  # a part of it
        file = file.base
    if isinstance(file, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)
