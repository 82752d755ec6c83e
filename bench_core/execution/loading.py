"""Seconds spent on imports and on loading or compiling kernels while a clock runs.

They fall on whichever learner comes first in a process, so they are no part of what a learner took.
Meanwhile nothing is searched for garbage: a tenth of the time of compiling goes to looking through
the compiler's own objects, again and again.
"""

import builtins
import gc
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_KERNEL = "numba:compiler_lock"  # held while numba compiles, and while it reads its cache


class Loading:
    """``seconds`` in which some thread was loading."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._depth, self._since, self._collects = 0, 0.0, False

    def begin(self) -> None:
        """Something is being loaded from now on, beside what is already."""
        with self._lock:
            if not self._depth:
                self._since, self._collects = time.perf_counter(), gc.isenabled()
                gc.disable()
            self._depth += 1

    def end(self) -> None:
        """It is there."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self.seconds += time.perf_counter() - self._since
                if self._collects:
                    gc.enable()


@contextmanager
def loading() -> Iterator[Loading]:
    """Count the seconds of loading in the body."""
    found, plain = Loading(), builtins.__import__
    remove = _follow_kernels(found)

    def counted(*what: Any, **more: Any) -> Any:
        nonlocal remove
        found.begin()
        try:
            return plain(*what, **more)
        finally:
            found.end()
            if remove is None and "numba.core.event" in sys.modules:
                remove = _follow_kernels(found)

    builtins.__import__ = counted
    try:
        yield found
    finally:
        if builtins.__import__ is counted:
            builtins.__import__ = plain
        if remove is not None:
            remove()


def _follow_kernels(found: Loading) -> Any:
    """Have numba, where it is there, tell of what it loads; what ends that."""
    events: Any = sys.modules.get("numba.core.event")
    if events is None or not hasattr(events, "unregister"):
        return None

    class Listener(events.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            found.begin()

        def on_end(self, event: Any) -> None:
            found.end()

    listener = Listener()
    events.register(_KERNEL, listener)
    return lambda: events.unregister(_KERNEL, listener)
