"""A worker process: takes jobs from its standard input until that ends, and answers each.

It never outlives its parent: on Linux the system ends it, and everywhere a thread that waits for
more input does when the pipe closes.
"""

import contextlib
import faulthandler
import os
import pickle
import queue
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from bench_core._io.machine import limit_memory, reset_peak_rss
from bench_core._io.processes import die_with, end_all, has_children
from bench_core.execution.trial import attempt
from bench_core.results.records import Job


def main(parent: int, memory: int) -> None:
    """Serve jobs. ``memory``: bytes that may be allocated, or 0."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = _private_pipes()
    faulthandler.enable()
    with contextlib.suppress(OSError):  # where memory runs out the system ends this one first
        Path("/proc/self/oom_score_adj").write_text("1000")
    reset_peak_rss()
    jobs: queue.Queue[Job] = queue.Queue()
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


def _listen(source: BinaryIO, jobs: queue.Queue[Job]) -> None:
    """Take in jobs; when the pipe closes, end this process and whatever it started."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(pickle.load(source))
    for child in psutil.Process().children():
        end_all(child)
    os._exit(1)


def _serve(job: Job, sink: BinaryIO) -> None:
    process = os.getpid()
    writing = threading.Lock()  # a learner may report from several threads

    def send(*message: Any) -> None:
        with writing:
            pickle.dump(message, sink)
            sink.flush()

    send("started")
    outcome = attempt(job, partial(send, "progress"), (BaseException,))
    if os.getpid() != process:  # the learner forked and both came back
        os._exit(1)
    with contextlib.suppress(Exception):  # the job may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    send("ended", outcome, has_children())
