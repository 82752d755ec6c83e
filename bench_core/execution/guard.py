"""The process above a worker (Linux): whatever the worker starts cannot outlive it.

It takes in processes whose parents have died, also those that left the worker's session, and kills
all of them when the worker ends, when it is asked to (SIGTERM) or when its own parent dies. It ends
as the worker did. ``enclosed`` puts a stranger's learner into a process namespace of its own.
"""

import contextlib
import os
import resource
import signal
from typing import NoReturn

from bench_core._io.namespaces import enter_own_processes, show_own_processes
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


def enclosed() -> None:
    """Go on in a process namespace of its own, two processes below this one, which ends as that one
    does. The first of the namespace between them takes in what loses its parents there."""
    enter_own_processes()
    reader, writer = os.pipe()
    if first := os.fork():
        _hold_only(reader)
        _, status = os.waitpid(first, 0)
        code = int(os.read(reader, 8) or os.waitstatus_to_exitcode(status))
        _end_by(-code) if code < 0 else os._exit(code)
    prctl(DEATH_SIGNAL, signal.SIGKILL)
    show_own_processes()
    worker = os.fork()
    if worker:
        _hold_only(writer)
        while (ended := os.waitpid(-1, 0))[0] != worker:
            pass
        os.write(writer, b"%d" % os.waitstatus_to_exitcode(ended[1]))
        os._exit(0)
    prctl(DEATH_SIGNAL, signal.SIGKILL)
    for pipe in (reader, writer):
        os.close(pipe)


def _hold_only(pipe: int) -> None:
    """Close all files but a pipe and the log."""
    os.closerange(0, 2)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))


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
