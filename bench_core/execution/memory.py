"""Memory of this process: its peak, and a limit on it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
EXIT_OUT_OF_MEMORY = 77
"""Exit status of a worker whose resident size passed its limit."""


def reset_peak_rss() -> None:
    """Start counting the peak anew, where the system can."""
    with contextlib.suppress(OSError):  # else the peak covers the whole life of the process
        _CLEAR.write_text("5")


def peak_rss_mb() -> float:
    """The peak of resident memory in MiB since ``reset_peak_rss``."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return _rusage_peak() / (1 << 20)


def _resident() -> int:
    """Resident memory in bytes now, or its peak where the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _rusage_peak()
    return pages * os.sysconf("SC_PAGE_SIZE")


def _rusage_peak() -> int:
    """Peak of resident memory in bytes over the life of the process."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def limit_memory(limit: int, *, poll: bool | None = None) -> None:
    """Refuse this process more than ``limit`` bytes of private memory.

    On Linux RLIMIT_DATA makes the allocation fail (MemoryError); read-only memory maps do not
    count. Elsewhere (or with ``poll``) a thread watches the resident size and ends
    the process with ``EXIT_OUT_OF_MEMORY``.
    """
    if poll is None:
        poll = not sys.platform.startswith("linux")
    if poll:
        _watch(lambda: _resident() > limit)
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def _watch(passed: Callable[[], bool]) -> None:
    def watch() -> None:
        while not passed():
            time.sleep(0.05)
        os._exit(EXIT_OUT_OF_MEMORY)

    threading.Thread(target=watch, name="memory-watch", daemon=True).start()
