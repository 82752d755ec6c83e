"""Processes of one test run compile a kernel once: who needs one that another compiles waits, and
then reads it from numba's cache."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Kernels that numba caches are compiled under a lock file in ``folder``."""
    compiled = Dispatcher.compile

    def compile_in_turn(kernel: Any, signature: Any) -> Any:
        path = getattr(kernel._cache, "cache_path", None)  # None for what is not cached
        if path is None:
            return compiled(kernel, signature)
        code = kernel.py_func.__code__
        name = f"{Path(code.co_filename).stem}.{code.co_name}.{code.co_firstlineno}"
        # numba's own lock first, as a thread that compiles a caller holds it. Kernels call each
        # other in no circle, so neither do processes wait in one. The system's lock belongs to the
        # process: a fork of it does not keep it
        with global_compiler_lock, (folder / name).open("w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            return compiled(kernel, signature)

    Dispatcher.compile = compile_in_turn
    try:
        yield
    finally:
        Dispatcher.compile = compiled
