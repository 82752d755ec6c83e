"""Processes with all that they started: their memory, their processor time, and their end."""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence

import psutil

LINUX = sys.platform.startswith("linux")
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl

Processes = list[psutil.Process]


def die_with(parent: int) -> None:
    """End this process as soon as its parent, ``parent``, has ended, and take in descendants whose
    own parents have died, so that ``families`` finds them (Linux)."""
    if LINUX:
        libc = ctypes.CDLL(None)
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        libc.prctl(_SUBREAPER, 1)
    if os.name == "posix" and os.getppid() != parent:  # it had ended before
        os._exit(1)


def has_children() -> bool:
    """Whether anything that this process started still runs."""
    children = psutil.Process().children()
    return bool(psutil.wait_procs(children, timeout=0)[1])


def families(roots: Iterable[int]) -> Mapping[int, Processes]:
    """Of each process the descendants that run now, parents first.

    All processes are listed once: that takes some 10 ms, however many roots there are.
    """
    children: dict[int, Processes] = {}
    for process in psutil.process_iter(["ppid", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            children.setdefault(process.info["ppid"], []).append(process)
    found: dict[int, Processes] = {}
    for root in roots:
        below = list(children.get(root, ()))
        for process in below:  # it grows while it is walked
            below += children.get(process.pid, ())
        found[root] = below
    return found


def memory_of(processes: Sequence[psutil.Process], limit: int) -> int:
    """Bytes of memory that processes hold together, without files that they mapped (Linux).

    Pages that forked processes share count once for each, unless the sum passes ``limit``: then
    they are shared out, which takes longer to find.
    """
    total = shared_out = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found = process.memory_info()
            total += found.rss - getattr(found, "shared", 0)
    if total <= limit or not LINUX or len(processes) == 1:
        return total
    for process in processes:
        with contextlib.suppress(psutil.Error):
            shared_out += process.memory_full_info().pss
    return min(total, shared_out)


def processor_seconds(processes: Sequence[psutil.Process]) -> float:
    """Processor time of processes, and of the children that they waited for."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])  # user and system, own and of children
    return total


def end_all(root: psutil.Process, known: Iterable[psutil.Process] = ()) -> None:
    """Kill a process with all that it started, and with those ``known`` to have been started by it,
    which its end may have cut off."""
    victims, found = set[psutil.Process](), {root, *known}
    while found != victims:
        victims = found
        for process in victims:  # who is stopped starts no more
            with contextlib.suppress(psutil.Error):
                process.suspend()
        below = families(process.pid for process in victims)
        found = {*victims, *(child for each in below.values() for child in each)}
    for process in victims:
        with contextlib.suppress(psutil.Error):
            process.kill()
