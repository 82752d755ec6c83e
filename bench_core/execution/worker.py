"""A worker process: takes jobs from its standard input until that ends, and answers each.

It never outlives its parent: on Linux the system ends it, and everywhere a thread that waits for
more input does when the pipe closes.
"""

import contextlib
import faulthandler
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from bench_core._io.machine import limit_memory, reset_peak_rss
from bench_core._io.processes import die_with, end_all, has_children
from bench_core.execution.failures import failure
from bench_core.execution.messages import job_from_json, receive, result_to_wire, send
from bench_core.execution.trial import perform
from bench_core.results.records import Status


def main(parent: int, memory: int) -> None:
    """Serve jobs. ``memory``: bytes that may be allocated, or 0."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = _private_pipes()
    faulthandler.enable()
    with contextlib.suppress(OSError):  # where memory runs out the system ends this one first
        Path("/proc/self/oom_score_adj").write_text("1000")
    reset_peak_rss()
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(source, jobs), daemon=True).start()
    if memory:
        limit_memory(memory)
    while True:
        _serve(jobs.get(), sink)


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
    """Take in jobs; when the pipe closes, end this process and whatever it started."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(receive(source)[0])
    for child in psutil.Process().children():
        end_all(child)
    os._exit(1)


def _serve(message: dict[str, Any], sink: BinaryIO) -> None:
    process = os.getpid()
    writing = threading.Lock()  # a learner may report from several threads
    send(sink, {"event": "started"})

    def progress(done: int, total: int) -> None:
        with writing:
            send(sink, {"event": "progress", "done": int(done), "total": int(total)})

    arrays: dict[str, Any] = {}
    answer: dict[str, Any] = {"event": "done", "status": Status.OK}
    try:
        answer["result"], arrays = result_to_wire(perform(job_from_json(message), progress))
    except BaseException as error:
        status, line, trace = failure(error)
        answer |= {"status": status, "error": line, "trace": trace}
    if os.getpid() != process:  # the learner forked and both came back
        os._exit(1)
    with contextlib.suppress(Exception):  # the job may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    with writing:
        send(sink, answer | {"children": has_children()}, arrays)
