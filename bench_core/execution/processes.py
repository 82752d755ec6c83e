"""A worker as its parent sees it: a process at the other end of two pipes, and its log."""

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from bench_core._io.processes import (
    Thread,
    computing,
    descendants,
    end_all,
    own_memory,
    threads_of,
    waited_seconds,
)
from bench_core.execution.failures import LONGEST_TEXT
from bench_core.execution.messages import job_to_json, receive, send
from bench_core.results.records import Job

START_SECONDS = 60.0
"""How long a worker may take to start before that counts against the job's time."""

LOOKS = 5
"""So often must a job have been looked at to say how many threads it uses."""

LOG_BYTES = 1 << 25
"""A longer log is cut to its end."""

_END_SECONDS = 5.0
_LINUX = sys.platform.startswith("linux")
_START = (
    "import json, os, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.start import start; start(a)"
)
_THREADS = ("OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_ONE_THREAD = dict.fromkeys(_BLAS, "1")
"""Of BLAS, whose sums depend on how many there are (``one_blas_thread`` inline)."""

Heard = tuple["Worker", dict[str, Any] | None, dict[str, Any]]


@dataclass(eq=False)
class Worker:
    """One process, and what it is doing."""

    number: int
    process: subprocess.Popen[bytes]
    log: Any
    listener: threading.Thread = field(init=False)
    job: Job | None = None
    token: str = ""
    served: set[str] = field(default_factory=set)  # the tokens of jobs before this one
    began: bool = False
    deadline: float = float("inf")
    sent: float = 0.0
    log_start: int = 0  # where the output of the job begins in the log
    looks: list[float] = field(default_factory=list)  # how many threads were seen to compute
    threads: dict[Path, Thread] = field(default_factory=dict)  # when they were looked at last
    waits: float = 0.0  # of its processes, before the job

    @classmethod
    def start(cls, number: int, threads: int, memory: int, heard: Any) -> "Worker":
        """A fresh interpreter, whose messages are put into ``heard``; ``memory`` is what a process
        may allocate, 0 is no limit."""
        about = {"parent": os.getpid(), "memory": memory, "path": sys.path}
        log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the worker
        if _LINUX:
            import fcntl

            fcntl.fcntl(log.fileno(), fcntl.F_SETFL, os.O_APPEND)  # so that it can be cut
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(about)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | dict.fromkeys(_THREADS, str(threads)) | _ONE_THREAD,
            start_new_session=True,  # Ctrl-C in the terminal is the parent's business
        )
        worker = cls(number, process, log)
        worker.listener = threading.Thread(
            target=_listen, args=(worker, heard), name=f"worker-{number}", daemon=True
        )
        worker.listener.start()
        return worker

    def assign(self, job: Job, timeout: float) -> None:
        """Send a job; its time counts from the worker's message that it started."""
        self.job, self.sent, self.began = job, time.monotonic(), False
        self.token = secrets.token_hex(16)
        self.log_start = os.fstat(self.log.fileno()).st_size
        self.deadline = self.sent + START_SECONDS + timeout
        message: Any = {**job_to_json(job), "token": self.token}
        pipe: Any = self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # it died, which the listener will report
            send(pipe, message)

    def start_clock(self, timeout: float) -> None:
        """The worker has taken up its job."""
        self.began, self.sent, self.looks = True, time.monotonic(), []
        processes = self._processes()
        self.waits, self.threads = waited_seconds(processes), threads_of(processes)
        self.deadline = self.sent + timeout

    def free(self) -> None:
        """Its job is done."""
        self.served.add(self.token)
        self.job, self.token = None, ""

    def leaves_processes(self) -> bool:
        """Whether something that a job started still runs."""
        return _LINUX and len(descendants(self.process.pid)) > 1

    def look(self) -> None:
        """Count the threads that compute, of the process and of all that it started. Their
        processor time alone would say less: on a busy machine many get the time of one."""
        if _LINUX and self.began:
            now = threads_of(self._processes())
            self.looks.append(computing(self.threads, now))
            self.threads = now

    def busy_threads(self) -> float:
        """How many threads computed for the job, on average; 0 for one too short to tell."""
        return sum(self.looks) / len(self.looks) if len(self.looks) >= LOOKS else 0.0

    def memory(self, limit: int) -> int:
        """Bytes that it holds with all that it started (``own_memory``)."""
        return own_memory(self._processes(), limit)

    def waited(self) -> float:
        """Seconds of the job in which its processes waited for a processor."""
        return max(0.0, waited_seconds(self._processes()) - self.waits)

    def _processes(self) -> list[int]:
        return [self.process.pid, *descendants(self.process.pid)] if _LINUX else []

    def kill(self) -> None:
        """End the process and whatever it started, at once."""
        if _LINUX:
            self._end_guard()
        elif hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.listener.join(timeout=1)  # something it started elsewhere may still hold the pipe
        self.log.close()

    def _end_guard(self) -> None:
        for number in (signal.SIGTERM, signal.SIGCONT):  # a learner may have stopped its guard
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            end_all(self._processes())

    def cut_log(self) -> None:
        """Forget all but the end of a log that has become too long."""
        size = os.fstat(self.log.fileno()).st_size
        if _LINUX and size > LOG_BYTES:
            kept = os.pread(self.log.fileno(), LONGEST_TEXT, size - LONGEST_TEXT)
            os.ftruncate(self.log.fileno(), 0)
            os.write(self.log.fileno(), kept)
            self.log_start = 0

    def output(self) -> str:
        """The end of what the job wrote to stdout and stderr."""
        size = os.fstat(self.log.fileno()).st_size
        self.log.seek(max(self.log_start, size - LONGEST_TEXT))
        written: bytes = self.log.read(LONGEST_TEXT)
        self.log.seek(0, os.SEEK_END)  # the worker shares the offset
        return written.decode(errors="replace")


def _listen(worker: Worker, heard: queue.Queue[Heard]) -> None:
    pipe: BinaryIO = worker.process.stdout  # type: ignore[assignment]
    with pipe:
        try:
            while True:
                heard.put((worker, *receive(pipe)))
        except (EOFError, OSError):
            heard.put((worker, None, {}))
        except Exception:  # a learner wrote to the pipe
            heard.put((worker, {}, {}))
