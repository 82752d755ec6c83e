"""Decorators of kernels and of functions private to them."""

import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import event


class _Uncollected(event.Listener):
    """Pauses garbage collection while numba compiles: it would scan the compiler's many objects
    again and again, a fifth of the time."""

    def __init__(self) -> None:
        self.depth, self.enabled = 0, False

    def on_start(self, event: Any) -> None:
        """Pause at the outermost function."""
        if self.depth == 0:
            self.enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """Go on after it."""
        self.depth -= 1
        if self.depth == 0 and self.enabled:
            gc.enable()


_register: Any = event.register  # without types
_register("numba:compile", _Uncollected())
_njit: Any = njit  # numba's type stubs lack these options
_HIDDEN = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_KERNEL = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
kernel: Any = _njit(**_KERNEL)
"""``njit`` for a function called from Python that calls no kernel of another file."""
inner = _njit(**_HIDDEN)
"""``njit`` for a function private to kernels: without entry points for Python and C, which take as
long to compile as a short function."""
inner_dividing = _njit(**_HIDDEN, error_model="numpy")
"""The same, with infinity as a quotient by zero: a check for it would prevent vectorised loops of
quotients."""
inner_summing = _njit(**_HIDDEN, fastmath={"reassoc", "nsz"})
"""The same for sums of floats, which the compiler may split into several independent ones."""
ZERO: Any = np.int64(0)
"""An argument that is not a literal, for which numba would compile a function once more."""
ONE: Any = np.int64(1)


@cache
def _sources() -> bytes:
    """A digest of the source of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def calling(**more: Any) -> Callable[[Any], Any]:
    """``njit`` for a function that calls kernels of other files.

    numba's cache compares only the source of the compiled function's file; here it compares the
    sources of all kernels.
    """

    def compiled(function: Any) -> Any:
        kernel: Any = _njit(**_KERNEL, **more)(function)
        if hasattr(kernel, "py_func"):  # not for plain Python
            index = kernel._cache._cache_file  # numba has no public name for its comparison
            index._source_stamp = index._source_stamp, _sources()
        return kernel

    return compiled
