"""Work shared with a copy of this process, where the system can copy one (Linux)."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import IO, Any, TypeVar

from bench_core._io.processes import DEATH_SIGNAL, prctl

_T = TypeVar("_T")
_R = TypeVar("_R")
_TOKEN = 4  # bytes of a place among the things
_MOST = 4096  # things whose places a pipe surely takes
_FEW = 9

_shared = False  # whether this process has a copy now, or is one


def in_order(
    do: Callable[[_T], _R],
    things: Sequence[_T],
    *,
    large: bool,
    begin: Callable[[], object] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> list[_R]:
    """``do`` each of the things, and what that gave, in order.

    Where the work is ``large``, a copy of this process does some of the things, and hands over
    what that gave as a pickle, which only the two can read or write; in the copy ``begin`` is
    called first, and here ``meanwhile``, if there is one. Whatever the copy fails at, and all that
    it did not end, is done here, so that an error is raised here, as in one process. An odd last
    one of few things is left until the copy has ended: what is done for it may be shared in turn.
    There is no copy where other threads run (they might hold locks), inside of a shared work, or
    with one processor.
    """
    if not (large and 1 < len(things) <= _MOST and _may_copy()):
        return [do(thing) for thing in things]
    read, write = os.pipe()
    with tempfile.TemporaryFile() as file, _sharing():
        shared = len(things) - (len(things) % 2 if len(things) <= _FEW else 0)
        os.write(write, b"".join(k.to_bytes(_TOKEN, "little") for k in range(shared)))
        os.close(write)
        copy = _fork()
        if not copy:
            _be_the_copy(do, things, begin, read, file)
        try:
            if meanwhile:
                meanwhile()
            found = {k: do(things[k]) for k in _places(read)}
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(copy, signal.SIGKILL)
            _ended_well(copy)
            raise
        finally:
            os.close(read)
        if _ended_well(copy):
            file.seek(0)
            found |= iter(partial(pickle.load, file), None)
    return [found[k] if k in found else do(thing) for k, thing in enumerate(things)]


def _may_copy() -> bool:
    several = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
    return several and not _shared and threading.active_count() == 1


@contextmanager
def _sharing() -> Iterator[None]:
    """No garbage is collected meanwhile: to look at all objects is to copy the memory that they lie
    in, in either process."""
    global _shared
    _shared, collects = True, gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _shared = False
        if collects:
            gc.enable()


def _fork() -> int:
    with warnings.catch_warnings():  # of threads of BLAS, which end and begin with a copy
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _ended_well(copy: int) -> bool:
    with suppress(ChildProcessError):  # where ends of processes are ignored
        return os.waitpid(copy, 0)[1] == 0
    return False


def _places(read: int) -> Iterator[int]:
    """Places of things that nobody has taken yet; both processes take one after the other."""
    while token := os.read(read, _TOKEN):
        yield int.from_bytes(token, "little")


def _be_the_copy(
    do: Callable[[Any], Any],
    things: Sequence[Any],
    begin: Callable[[], object] | None,
    read: int,
    file: IO[bytes],
) -> None:
    status = 1
    try:
        prctl(DEATH_SIGNAL, signal.SIGKILL)
        if begin:
            begin()
        for k in _places(read):  # each is handed over at once: it takes no room here
            pickle.dump((k, do(things[k])), file, protocol=5)
        pickle.dump(None, file)
        file.flush()
        status = 0
    finally:
        os._exit(status)  # nothing of the process that was copied is ended or written twice
