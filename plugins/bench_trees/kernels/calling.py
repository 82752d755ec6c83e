"""Kernels that call those of other files."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import njit


def calling(*modules: ModuleType) -> Callable[[Any], Any]:
    """``njit`` for a function that calls kernels of these modules, which call none of another file.

    numba's cache compares the source of the compiled function's file alone; here it compares the
    sources of these modules as well.
    """

    def compiled(function: Any) -> Any:
        kernel: Any = njit(cache=True, nogil=True)(function)
        if hasattr(kernel, "py_func"):  # not as plain Python
            index = kernel._cache._cache_file  # numba has no public name for what it compares
            sources = [Path(str(module.__file__)).read_bytes() for module in modules]
            index._source_stamp = index._source_stamp, hashlib.sha256(b"".join(sources)).digest()
        return kernel

    return compiled
