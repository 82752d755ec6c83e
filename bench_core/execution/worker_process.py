"""A worker as its parent sees it: a process at the other end of two pipes, and its log."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, BinaryIO

import psutil

from bench_core._io.processes import LINUX, Processes, end_all, memory_of, processor_seconds
from bench_core.execution.failures import LONGEST_TEXT
from bench_core.execution.messages import job_to_json, receive, send
from bench_core.results.records import Job

START_SECONDS = 60.0
"""How long a worker may take to start before that counts against the job's time."""

LOG_BYTES = 1 << 25
"""A longer log is cut to its end."""

_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.worker import main; main(a['parent'], a['memory'])"
)
_THREADS = ("OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_ONE_THREAD = dict.fromkeys(_BLAS, "1")
"""Of BLAS, whose sums depend on how many there are (``one_blas_thread`` inline)."""

Message = tuple[dict[str, Any], dict[str, Any]]
"""A header and arrays."""


class WorkerProcess:
    """A fresh interpreter, and what it is doing.

    Its messages are put into ``heard``, an empty one where it sent something else, and None when it
    has ended. ``memory`` is what it may allocate, 0 is no limit.
    """

    def __init__(
        self, threads: int, memory: int, heard: "queue.Queue[tuple[WorkerProcess, Message | None]]"
    ) -> None:
        about = {"parent": os.getpid(), "memory": memory, "path": sys.path}
        self.log: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the worker
        if LINUX:
            import fcntl

            fcntl.fcntl(self.log.fileno(), fcntl.F_SETFL, os.O_APPEND)  # so that it can be cut
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(about)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | dict.fromkeys(_THREADS, str(threads)) | _ONE_THREAD,
            start_new_session=True,  # Ctrl-C in the terminal is the parent's business
        )
        self.seen = psutil.Process(self.process.pid)
        self.family: Processes = []  # what it had started when that was last looked at
        self.job: Job | None = None
        self.began = False  # whether it has taken up its job
        self.sent, self.deadline = 0.0, float("inf")
        self._log_start = 0  # where the output of the job begins in the log
        self._processor = 0.0  # seconds, before the job
        self._listener = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._listener.start()

    def assign(self, job: Job, timeout: float) -> None:
        """Send a job; its time counts from the worker's message that it started."""
        self.job, self.sent, self.began = job, time.monotonic(), False
        self._log_start = os.fstat(self.log.fileno()).st_size
        self.deadline = self.sent + START_SECONDS + timeout
        pipe: Any = self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # it died, which the listener will report
            send(pipe, job_to_json(job))

    def start_clock(self, timeout: float) -> None:
        """The worker has taken up its job."""
        self.began, self.sent = True, time.monotonic()
        self._processor = processor_seconds([self.seen])
        self.deadline = self.sent + timeout

    def busy_threads(self, seconds: float) -> float:
        """How many threads computed for the job of so many seconds, on average."""
        spent = processor_seconds([self.seen, *self.family]) - self._processor
        return spent / seconds

    def memory(self, limit: int) -> int:
        """Bytes that it holds with all that it started (``memory_of``)."""
        return memory_of([self.seen, *self.family], limit)

    def kill(self) -> None:
        """End the process and whatever it started, at once."""
        end_all(self.seen, self.family)
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self._listener.join(timeout=1)  # something it started elsewhere may still hold the pipe
        self.log.close()

    def cut_log(self) -> None:
        """Forget all but the end of a log that has become too long."""
        size = os.fstat(self.log.fileno()).st_size
        if LINUX and size > LOG_BYTES:
            kept = os.pread(self.log.fileno(), LONGEST_TEXT, size - LONGEST_TEXT)
            os.ftruncate(self.log.fileno(), 0)
            os.write(self.log.fileno(), kept)
            self._log_start = 0

    def output(self) -> str:
        """The end of what the job wrote to stdout and stderr."""
        size = os.fstat(self.log.fileno()).st_size
        self.log.seek(max(self._log_start, size - LONGEST_TEXT))
        written: bytes = self.log.read(LONGEST_TEXT)
        self.log.seek(0, os.SEEK_END)  # the worker shares the offset
        return written.decode(errors="replace")

    def _listen(self, heard: "queue.Queue[tuple[WorkerProcess, Message | None]]") -> None:
        pipe: BinaryIO = self.process.stdout  # type: ignore[assignment]
        with pipe:
            try:
                while True:
                    heard.put((self, receive(pipe)))
            except (EOFError, OSError):
                heard.put((self, None))
            except Exception:  # a learner wrote to the pipe
                heard.put((self, ({}, {})))
