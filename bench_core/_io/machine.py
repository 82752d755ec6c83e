"""This machine and its libraries in one line each, and this process: the peak of its memory, and
limits on memory and on the threads of BLAS."""

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
    """What timings depend on, without names of people or hosts."""
    import numpy as np

    return (
        f"{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


class Place(NamedTuple):
    """Where an attempt was made: the host's name, which no export holds, ``machine`` and its
    processor."""

    host: str
    machine: str
    cpu: str


def this_place() -> Place:
    """The place of this process."""
    return Place(socket.gethostname(), machine(), processor())


CPU = "cpu"
"""Stands among names of libraries for the processor's features."""


@cache
def versions(*names: str) -> str:
    """The versions of these distributions, as ``numpy 2.4.6, scipy 1.17.1``; of those that are not
    installed nothing. ``CPU`` is spelt by its ``kernels``."""
    found = []
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found.append(kernels() if name == CPU else f"{name} {version(name)}")
    return ", ".join(found)


def installed() -> str:
    """Python's version and those of the libraries that compute."""
    own = versions("numpy", "scipy", "scikit-learn", "numba")
    return f"python {platform.python_version()}, {own}"


@cache
def kernels() -> str:
    """What numpy and BLAS choose their loops by, and with them the order of sums."""
    import numpy as np

    known = [lib for lib in _blas().info() if "blas" in lib["prefix"]]
    blas = {str(lib.get("architecture", "?")) for lib in known}
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", ())
    return f"BLAS {'/'.join(sorted(blas)) or '?'}, SIMD {'+'.join(simd) or 'none'}"


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS works in the calling thread alone: it would share out sums by the number of its threads,
    so that their last bit depends on that, and idle ones would spin."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    # finding the libraries reads all maps of the process: as long as a small fit
    import scipy.linalg  # noqa: F401 - brings its BLAS with it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _value(file: str, name: str) -> str:
    """What stands behind a name in a file of Linux's /proc, "" where it does not."""
    with contextlib.suppress(OSError):
        for line in Path("/proc", file).read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""


@cache
def memory() -> int:
    """Bytes of memory that this machine or its container has."""
    import psutil

    found = [int(psutil.virtual_memory().total)]
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            found.append(int(Path("/sys/fs/cgroup", limit).read_text()))
    return min(found)


def reset_peak_rss() -> None:
    """Start counting the peak from here, where the system can."""
    with contextlib.suppress(OSError):  # else the peak covers the whole life of the process
        Path("/proc/self/clear_refs").write_text("5")


def peak_rss_mb() -> float:
    """The peak of resident memory in MiB since ``reset_peak_rss``."""
    if peak := _value("self/status", "VmHWM"):  # such as 1024 kB
        return int(peak.split()[0]) / 1024
    if sys.platform == "win32":
        import psutil

        return float(psutil.Process().memory_info().peak_wset) / (1 << 20)
    import resource

    whole_life = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return whole_life / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def limit_memory(limit: int) -> None:
    """Refuse this process more than ``limit`` bytes of private memory (Linux): an allocation fails
    (MemoryError); read-only memory maps do not count."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
