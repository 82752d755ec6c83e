"""Descriptions of this machine and its libraries; peak memory, memory limit and BLAS threads of
this process."""

import contextlib
import os
import platform
import socket
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple


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
