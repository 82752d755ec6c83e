"""Processes and their descendants: memory and termination."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import psutil

LINUX = sys.platform.startswith("linux")
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl

Processes = list[psutil.Process]


def die_with(parent: int) -> None:
    """End this process when its parent, ``parent``, ends, and adopt orphaned descendants, so that
    ``descendants`` finds them (Linux)."""
    if LINUX:
        libc = ctypes.CDLL(None)
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        libc.prctl(_SUBREAPER, 1)
    if os.name == "posix" and os.getppid() != parent:  # it has ended already
        os._exit(1)


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the two pipes to the parent, separate from a learner's output and input."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def has_children() -> bool:
    """True if a process started by this one is still running."""
    children = psutil.Process().children()
    return bool(psutil.wait_procs(children, timeout=0)[1])


def descendants(process: psutil.Process) -> Processes:
    """Return all that a process has started and that still runs."""
    below: Processes = []
    with contextlib.suppress(psutil.Error):
        below = process.children(recursive=True)
    return below


def memory_of(processes: Sequence[psutil.Process], limit: int) -> int:
    """Return the memory of processes in bytes, without mapped files (Linux).

    Pages shared by forked processes count once for each. If the sum exceeds ``limit``, they are
    divided among the processes, which takes longer to compute.
    """
    total = shared_out = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            usage = process.memory_info()
            total += usage.rss - getattr(usage, "shared", 0)
    if total <= limit or not LINUX or len(processes) == 1:
        return total
    for process in processes:
        with contextlib.suppress(psutil.Error):
            shared_out += process.memory_full_info().pss
    return min(total, shared_out)


def end_all(root: psutil.Process, strays: Iterable[psutil.Process] = ()) -> None:
    """Kill a process and its descendants, including ``strays``, which may have lost their
    parent."""
    victims, family = set[psutil.Process](), {root, *strays}
    while family != victims:
        victims = family
        for process in victims:  # stopped processes start no others
            with contextlib.suppress(psutil.Error):
                process.suspend()
        family = victims.union(*map(descendants, victims))
    for process in victims:
        with contextlib.suppress(psutil.Error):
            process.kill()
