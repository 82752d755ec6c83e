"""Decorators of kernels that call kernels of other files, and of functions private to kernels."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import options

_njit: Any = njit  # whose types lack these options
_HIDDEN = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Reference counting of arrays; by default a function inherits it from its caller. numba has no
# public name for it.
_KNOWN = hasattr(options.DefaultOptions, "_nrt")
_COUNTING: dict[str, bool] = {"_nrt": True} if _KNOWN else {}
_BORROWING: dict[str, bool] = {"_nrt": False} if _KNOWN else {}
inner = _njit(**_HIDDEN, **_COUNTING)
"""``njit`` for a function private to kernels: without entry points for Python and C, which
take as long to compile as a short function."""
inner_borrowing = _njit(**_HIDDEN, **_BORROWING)
"""The same for a function that makes no arrays, as ``calling`` says."""
inner_dividing = _njit(**_HIDDEN, **_COUNTING, error_model="numpy")
"""The same, a quotient by zero being infinite: a check for it would keep loops of quotients from
being vectorised."""
inner_summing = _njit(**_HIDDEN, **_COUNTING, fastmath={"reassoc", "nsz"})
"""The same for sums of floats, which the compiler may split into several that do not wait for one
another."""


@cache
def _sources() -> bytes:
    """A digest of the source of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def calling(*, borrowing: bool = False, **more: Any) -> Callable[[Any], Any]:
    """``njit`` for a function that calls kernels of other files.

    numba's cache compares the source of the compiled function's file alone; here it compares the
    sources of all kernels. ``borrowing``: the function makes no arrays, so those it is given
    outlast it and their uses need not be counted. For a function of some dozens of arrays that is a
    quarter of what there is to compile.
    """

    def compiled(function: Any) -> Any:
        how = _BORROWING if borrowing else _COUNTING
        kernel: Any = _njit(cache=True, nogil=True, no_cfunc_wrapper=True, **how, **more)(function)
        if hasattr(kernel, "py_func"):  # not as plain Python
            index = kernel._cache._cache_file  # numba has no public name for what it compares
            index._source_stamp = index._source_stamp, _sources()
        return kernel

    return compiled
