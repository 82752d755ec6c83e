"""This machine and its libraries; processes and their descendants: memory, threads, termination."""

import contextlib
import ctypes
import os
import platform
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil


@cache
def processor() -> str:
    return _value("cpuinfo", "model name") or platform.processor() or "unknown processor"


@cache
def machine() -> str:
    """Return the facts on which timings depend, without names of people or hosts."""
    import numpy as np

    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


class Place(NamedTuple):
    """Place of an attempt: the host's name (never exported), ``machine`` and its processor."""

    host: str
    machine: str
    cpu: str


def this_place() -> Place:
    """Return the place of this process."""
    return Place(socket.gethostname(), machine(), processor())


CPU = "cpu"
"""Name of the processor's features among names of libraries."""


@cache
def versions(*names: str) -> str:
    """Return the versions of these distributions, as ``numpy 2.4.6, scipy 1.17.1``; missing ones
    are omitted. ``CPU`` is replaced by ``kernels``."""
    entries = []
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            entries.append(kernels() if name == CPU else f"{name} {version(name)}")
    return ", ".join(entries)


def installed() -> str:
    """Return the versions of Python and of the numerical libraries."""
    own = versions("numpy", "scipy", "scikit-learn", "numba")
    return f"python {platform.python_version()}, {own}"


@cache
def kernels() -> str:
    """Return the facts by which numpy and BLAS choose their loops and the order of sums."""
    import numpy as np

    known = [lib for lib in _blas().info() if "blas" in lib["prefix"]]
    blas = {str(lib.get("architecture", "?")) for lib in known}
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", ())
    return f"BLAS {'/'.join(sorted(blas)) or '?'}, SIMD {'+'.join(simd) or 'none'}"


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to the calling thread. Otherwise the last bit of sums would depend on the number
    of threads, and idle threads would spin."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    # finding the libraries reads all maps of the process and takes as long as a small fit
    import scipy.linalg  # noqa: F401 - loads its BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _value(file: str, name: str) -> str:
    """Return the value of a name in a file of Linux's /proc, "" if absent."""
    with contextlib.suppress(OSError):
        for line in Path("/proc", file).read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""


@cache
def memory() -> int:
    """Return the memory of this machine or its container in bytes."""
    import psutil

    limits = [int(psutil.virtual_memory().total)]
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            limits.append(int(Path("/sys/fs/cgroup", file).read_text()))
    return min(limits)


def reset_peak_rss() -> None:
    """Reset the peak memory, if the system supports it."""
    with contextlib.suppress(OSError):  # else the peak covers the process's lifetime
        Path("/proc/self/clear_refs").write_text("5")


def peak_rss_mb() -> float:
    """Return the peak of resident memory in MiB since ``reset_peak_rss``."""
    if peak := _value("self/status", "VmHWM"):  # such as 1024 kB
        return int(peak.split()[0]) / 1024
    if sys.platform == "win32":
        import psutil

        return float(psutil.Process().memory_info().peak_wset) / (1 << 20)
    import resource

    whole_life = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return whole_life / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def limit_memory(limit: int) -> None:
    """Limit this process to ``limit`` bytes of private memory (Linux). Further allocations raise
    MemoryError; read-only memory maps do not count."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


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
