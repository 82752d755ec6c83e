"""Decorators of kernels and of functions private to them.

By default numba optimises each function twice before linking it to its callers, and again within
each caller. It makes machine code every time. Here a private function is simplified and linked, and
a function called from Python is optimised with all its callees: a fifth less to compile.
"""

import gc
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core import options
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

# numba has no public names for the steps left out; steps that it may rename are done


class _Whole(JITCodeLibrary):
    """The code of a function that is called from Python."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _Part(JITCodeLibrary):
    """The code of a private function."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing: only machine code needs the environment."""


class _Options(Flags):
    """Options that are quick to compare. numba compares them at each call in the code, and reads
    all of them each time: a seventh of compilation."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values))


def _compiler(library: Any) -> type[Compiler]:
    class Own(Compiler):
        def __init__(self, *about: Any) -> None:
            super().__init__(*about)  # type: ignore[no-untyped-call]
            if hasattr(self.state.flags, "_values"):
                self.state.flags = _Options(self.state.flags)  # type: ignore[no-untyped-call]

        def compile_extra(self, func: Any) -> Any:
            enabled = gc.isenabled()  # it would scan the compiler's many objects again and again
            gc.disable()
            try:
                return super().compile_extra(func)  # type: ignore[no-untyped-call]
            finally:
                if enabled:
                    gc.enable()

        def define_pipelines(self) -> Any:
            state: Any = self.state
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().define_pipelines()  # type: ignore[no-untyped-call]

    return Own


_njit: Any = njit  # numba's type stubs lack these options
_HIDDEN = {
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _compiler(_Part),
}
_KERNEL = {
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _compiler(_Whole),
}
# Reference counting of arrays; by default a function inherits it from its caller. numba has no
# public name for it.
_KNOWN = hasattr(options.DefaultOptions, "_nrt")
_COUNTING: dict[str, bool] = {"_nrt": True} if _KNOWN else {}
_BORROWING: dict[str, bool] = {"_nrt": False} if _KNOWN else {}
kernel: Any = _njit(**_KERNEL)
"""``njit`` for a function called from Python that calls no kernel of another file."""
inner = _njit(**_HIDDEN, **_COUNTING)
"""``njit`` for a function private to kernels: without entry points for Python and C, which take as
long to compile as a short function."""
inner_dividing = _njit(**_HIDDEN, **_COUNTING, error_model="numpy")
"""The same, with infinity as a quotient by zero: a check for it would prevent vectorised loops of
quotients."""
inner_summing = _njit(**_HIDDEN, **_COUNTING, fastmath={"reassoc", "nsz"})
"""The same for sums of floats, which the compiler may split into several independent ones."""
ZERO: Any = np.int64(0)
"""An argument that is not a literal, for which numba would compile a function once more."""
ONE: Any = np.int64(1)


@cache
def _sources() -> bytes:
    """A digest of the source of all kernels."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def calling(*, borrowing: bool = False, **more: Any) -> Callable[[Any], Any]:
    """``njit`` for a function that calls kernels of other files.

    numba's cache compares only the source of the compiled function's file; here it compares the
    sources of all kernels. ``borrowing``: the function makes no arrays, so its arguments outlast it
    and their references need not be counted. For a function of some dozens of arrays that saves a
    quarter of compilation.
    """

    def compiled(function: Any) -> Any:
        how = _BORROWING if borrowing else _COUNTING
        kernel: Any = _njit(**_KERNEL, **how, **more)(function)
        if hasattr(kernel, "py_func"):  # not for plain Python
            index = kernel._cache._cache_file  # numba has no public name for its comparison
            index._source_stamp = index._source_stamp, _sources()
        return kernel

    return compiled
