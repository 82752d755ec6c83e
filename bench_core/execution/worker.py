"""A worker process: takes jobs from its standard input until that ends.

It never outlives its parent: the system kills it with the parent where it can (Linux), and a
thread that waits for more input ends it when the pipe closes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

from bench_core._io.machine import limit_memory
from bench_core.execution.failures import failure
from bench_core.execution.messages import job_from_json, receive, result_to_wire, send
from bench_core.execution.trial import perform
from bench_core.results.records import Status

PROGRESS_SECONDS = 0.1


def main(parent: int, memory: int) -> None:
    """Serve jobs. ``parent`` is the process id of the caller, ``memory`` bytes or 0."""
    die_with(parent)
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = _private_pipes()
    faulthandler.enable()
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(source, jobs), daemon=True).start()
    if memory:
        limit_memory(memory)
    while True:
        _serve(jobs.get(), sink)


def die_with(parent: int) -> None:
    """Ask the system to kill this process when its parent dies."""
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if hasattr(os, "getppid") and os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent, out of the way of anything a learner prints or reads."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _listen(source: BinaryIO, jobs: queue.Queue[dict[str, Any]]) -> None:
    try:
        while True:
            jobs.put(receive(source)[0])
    except (EOFError, OSError):
        leave()


def leave() -> None:
    """End this process and whatever it started."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _serve(message: dict[str, Any], sink: BinaryIO) -> None:
    send(sink, {"event": "started"})
    started = last = time.perf_counter()

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= PROGRESS_SECONDS or done >= total:
            last = now
            send(sink, {"event": "progress", "done": int(done), "total": int(total)})

    try:
        result = perform(job_from_json(message), progress)
        header, arrays = result_to_wire(result)
        answer = {"event": "done", "status": Status.OK, "result": header}
    except BaseException as error:
        status, line, trace = failure(error)
        answer = {"event": "done", "status": status, "error": line, "trace": trace}
        arrays = {}
    with contextlib.suppress(OSError, ValueError):  # the job may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    send(sink, {**answer, "seconds": time.perf_counter() - started}, arrays)
