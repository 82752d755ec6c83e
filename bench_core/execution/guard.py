"""The process above a worker (Linux): whatever the worker starts cannot outlive it.

It takes in processes whose parents have died, also those that left the worker's session, and kills
all of them when the worker ends, when it is asked to (SIGTERM) or when its own parent dies. It ends
as the worker did.
"""

import contextlib
import os
import resource
import signal
from typing import NoReturn

from bench_core._io.processes import DEATH_SIGNAL, SUBREAPER, descendants, end_all, prctl


def guarded(parent: int) -> None:
    """Go on in a process of its own below this one, which becomes its guard."""
    guard = os.getpid()
    prctl(SUBREAPER, 1)
    worker = os.fork()
    if worker:
        _watch(worker, parent)
    prctl(DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)


def _watch(worker: int, parent: int) -> NoReturn:
    signal.signal(signal.SIGTERM, lambda number, frame: _leave(signal.SIGKILL))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl(DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        _leave(signal.SIGKILL)
    for pipe in (0, 1):
        os.close(pipe)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == worker:
            break
    code = os.waitstatus_to_exitcode(status)
    _leave(-code) if code < 0 else _leave(0, code)
    raise AssertionError


def _leave(number: int, code: int = 0) -> None:
    """Kill all that is left below, then end by a signal or with a code."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(ChildProcessError):
        while True:
            end_all(descendants(os.getpid()))
            os.waitpid(-1, 0)
    if number:
        _end_by(number)
    os._exit(code)


def _end_by(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
