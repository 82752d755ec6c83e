"""Processes and what they started, as Linux's /proc shows them."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import NamedTuple

SUBREAPER, DEATH_SIGNAL = 36, 1  # of prctl


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the system has such (Linux)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value)


def descendants(process: int) -> list[int]:
    """All that a process started and what that started, parents first."""
    found, waiting = [], [process]
    while waiting:
        new = [child for parent in waiting for child in _children(parent)]
        found += new
        waiting = new
    return found


def _children(process: int) -> Iterator[int]:
    for thread in _threads(process):
        listed = b""
        with contextlib.suppress(OSError):
            listed = (thread / "children").read_bytes()
        yield from map(int, listed.split())


class Thread(NamedTuple):
    """Whether it computes, or would if a processor were free, and the nanoseconds that it had one,
    0 where the system does not say."""

    ready: bool
    spent: int


def threads_of(processes: Iterable[int]) -> dict[Path, Thread]:
    """The threads of processes, by their folders."""
    found = {}
    for process in processes:
        for thread in _threads(process):
            with contextlib.suppress(OSError):
                state = (thread / "stat").read_bytes().rpartition(b")")[2].split()[0]
                spent = 0
                with contextlib.suppress(FileNotFoundError):
                    spent = int((thread / "schedstat").read_bytes().split()[0])
                found[thread] = Thread(state == b"R", spent)
    return found


def computing(before: Mapping[Path, Thread], now: Mapping[Path, Thread]) -> float:
    """How many threads computed between two looks: those that were ready in the end, but no more
    than shared the processor time (n with equal shares are n). What is awake for a moment now and
    then has hardly any of it, though on a busy machine it is long ready before it gets that."""
    ready = sum(thread.ready for thread in now.values())
    idle = Thread(False, 0)
    spent = [thread.spent - before.get(at, idle).spent for at, thread in now.items()]
    squares = sum(time * time for time in spent)
    return min(ready, sum(spent) ** 2 / squares) if squares else ready


def waited_seconds(processes: Iterable[int]) -> float:
    """How long the first threads of processes have waited while others had the processor, 0 where
    the system does not say (Linux does)."""
    total = 0
    for process in processes:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{process}/schedstat").read_bytes().split()[1])
    return total / 1e9


def running_elsewhere(looks: int = 30) -> float:
    """How many threads besides this one want a processor now: the mean of looks 5 ms apart, so that
    what is just ending counts little; infinite where the system does not say (Linux does)."""
    seen = 0
    for _ in range(looks):
        time.sleep(0.005)
        try:
            seen += int(Path("/proc/loadavg").read_text().split()[3].split("/")[0]) - 1
        except (OSError, IndexError, ValueError):
            return inf
    return seen / looks


def _threads(process: int) -> list[Path]:
    """The folder of each thread of a process. It may end at any moment, even while it is listed."""
    try:
        return list(Path(f"/proc/{process}/task").iterdir())
    except OSError:
        return []


def end_all(processes: Iterable[int]) -> None:
    """Stop processes, so that they start no more, then kill them."""
    processes = list(processes)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


def own_memory(processes: Iterable[int], limit: int) -> int:
    """Bytes that processes hold together and that are no file's, shared memory included.

    Pages that several of them share count once for each, unless the sum passes ``limit``: then
    they are shared out, which takes longer to find.
    """
    processes = list(processes)
    total = sum(_kilobytes(p, "status", ("RssAnon:", "RssShmem:")) for p in processes) * 1024
    if total <= limit:
        return total
    shared_out = ("Pss_Anon:", "Pss_Shmem:")
    return sum(_kilobytes(p, "smaps_rollup", shared_out) for p in processes) * 1024 or total


def _kilobytes(process: int, file: str, names: tuple[str, ...]) -> int:
    try:
        lines = Path(f"/proc/{process}/{file}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0  # it has ended
    return sum(int(line.split()[1]) for line in lines if line.startswith(names))
