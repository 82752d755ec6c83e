"""Kernels that call those of other files, and what kernels of the same file alone call."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import njit

_njit: Any = njit  # whose types lack these options
_HIDDEN = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = _njit(**_HIDDEN)
"""``njit`` for a function that is called by kernels of its own file alone: without the ways in from
Python and from C, which take as long to compile as a short function."""
inner_dividing = _njit(**_HIDDEN, error_model="numpy")
"""The same, a quotient by zero being infinite: a check for it would keep loops of quotients from
being done several rows at a time."""


def calling(*modules: ModuleType) -> Callable[[Any], Any]:
    """``njit`` for a function that calls kernels of these modules, which call none of others.

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
