"""Memory of a command and all that it starts, watched from outside (Linux).

``private`` is what the processes alone hold (RssAnon): it must fit, whatever else happens.
``mapped`` are pages of files (RssFile, RssShmem): prepared data, shared arrays, spilled paths,
program code. The system takes them back where memory is short; here they count once for each
process that maps them. What the system keeps of files beyond that (page cache) is not counted.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 0.1


@dataclass
class Peaks:
    """Largest sums in bytes over all processes at one time, looked at every tenth of a second;
    ``single`` is the most that one process held in all, as the system kept it."""

    private: int = 0
    mapped: int = 0
    resident: int = 0
    single: int = 0
    seconds: float = 0.0


def watched(
    command: Sequence[str], env: Mapping[str, str], folder: Path
) -> tuple[subprocess.CompletedProcess[str], Peaks]:
    """Run a command in a folder; what it said, and its peaks."""
    peaks, over = Peaks(), threading.Event()
    started = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        cwd=folder,
    ) as process:
        watch = threading.Thread(target=_watch, args=(process.pid, peaks, over))
        watch.start()
        try:
            said = process.communicate()[0]
        finally:
            over.set()
            watch.join()
    peaks.seconds = time.perf_counter() - started
    return subprocess.CompletedProcess(command, process.returncode, said), peaks


def _watch(root: int, peaks: Peaks, over: threading.Event) -> None:
    while not over.wait(SECONDS):
        facts = [_facts(pid) for pid in family(root)]
        private = sum(f.get("RssAnon", 0) for f in facts)
        mapped = sum(f.get("RssFile", 0) + f.get("RssShmem", 0) for f in facts)
        peaks.private = max(peaks.private, private)
        peaks.mapped = max(peaks.mapped, mapped)
        peaks.resident = max(peaks.resident, private + mapped)
        peaks.single = max(peaks.single, *(f.get("VmHWM", 0) for f in facts))


def family(root: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            parent = stat.read_text().rpartition(")")[2].split()[1]
            parents.setdefault(int(parent), []).append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def _facts(pid: int) -> dict[str, int]:
    """Sizes in bytes by the names of /proc/PID/status; nothing of a process that ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    words = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in words}
