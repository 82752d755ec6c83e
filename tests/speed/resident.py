"""Memory of a command and all that it starts, watched from outside (Linux).

``private`` is what the processes alone hold: it must fit, whatever else happens. ``mapped`` are
pages of files: prepared data, shared arrays, spilled paths, program code. The system takes them
back where memory is short; here they count once for each process that maps them. What the system
keeps of files beyond that (page cache) is not counted.
"""

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

SECONDS = 0.05


@dataclass
class Peaks:
    """Largest sums in bytes over all processes at one time; ``shared`` divides pages that several
    map among them. Seconds of the clock."""

    private: int = 0
    mapped: int = 0
    resident: int = 0
    shared: int = 0
    seconds: float = 0.0


def watched(command, env, folder):
    """Run a command in a folder; what it said, and its peaks. Raises where it fails."""
    peaks, started, log = Peaks(), time.perf_counter(), folder / "output.txt"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=folder)
        while process.poll() is None:
            _look(psutil.Process(process.pid), peaks)
            time.sleep(SECONDS)
    peaks.seconds = time.perf_counter() - started
    assert process.returncode == 0, log.read_text()
    return log.read_text(), peaks


def _look(root, peaks):
    private = resident = shared = 0
    with suppress(psutil.Error):  # it ended meanwhile
        for one in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                held = one.memory_full_info()
                private += held.rss - held.shared
                resident += held.rss
                shared += held.pss
    peaks.private, peaks.resident = max(peaks.private, private), max(peaks.resident, resident)
    peaks.mapped, peaks.shared = max(peaks.mapped, resident - private), max(peaks.shared, shared)
