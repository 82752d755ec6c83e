"""Executors: jobs in this process, or in worker processes of this machine.

A worker is a fresh interpreter connected by two pipes; it is reused until an error occurs. Workers
share nothing. Each can be killed without leaving a lock behind, and none imports the caller's
``__main__``. ``dask.py`` runs jobs on the workers of a cluster.

    LocalExecutor                         serve, in its own process
      submit -> Worker.assign  -- job -->   _answer
      outcome <- queue <- Worker._listen  <-- started, progress, ended --
"""

import contextlib
import faulthandler
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

import psutil

from bench_core._io.machine import (
    LINUX,
    Processes,
    descendants,
    die_with,
    end_all,
    has_children,
    limit_memory,
    memory_of,
    one_blas_thread,
    private_pipes,
    reset_peak_rss,
)
from bench_core.errors import NO_MEMORY, one_line
from bench_core.execution.contract import LONGEST_LINE, LONGEST_TEXT
from bench_core.execution.fitting import metrics_of
from bench_core.execution.trial import attempt
from bench_core.planning.plan import OnEvent, news
from bench_core.results.records import Job, Outcome, Status

START_SECONDS = 60.0
"""Maximum start time of a worker that does not count against the job's time limit."""

LOG_BYTES = 1 << 25
"""Longer logs are cut to their end."""

_LOOK = 0.1  # seconds between checks of jobs' limits
_CHILDREN_INTERVAL = 1.0  # seconds between checks of child processes, which are slower
_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.executors import serve; serve(a['parent'], a['memory'])"
)
_THREADS = ("OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_ONE_THREAD = dict.fromkeys(_BLAS, "1")  # BLAS sums depend on the number of threads

Message = tuple[Any, ...]
"""Message type, followed by its content."""


class Executor(Protocol):
    """Runs up to ``slots`` jobs at a time."""

    slots: int

    def submit(self, job: Job) -> None:
        """Accept a job."""

    def outcome(self) -> Outcome:
        """Wait for a job to end."""

    def close(self) -> None:
        """Stop all work."""


class InlineExecutor:
    """Runs jobs in this process, one after another: no limits, no kills, easy to debug."""

    slots = 1

    def __init__(self, on_event: OnEvent) -> None:
        metrics_of.cache_clear()  # modules may change between runs of one session
        self._on_event = on_event

    def submit(self, job: Job) -> None:
        """Accept a job."""
        self._job = job

    def outcome(self) -> Outcome:
        """Run the job."""
        job = self._job
        self._on_event(news("start", job))
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            seconds = time.perf_counter() - started
            self._on_event(news("progress", job, done=done, total=total, seconds=seconds))

        written = _Tee(sys.stderr)  # stdout is reserved for the command's result
        with redirect_stdout(written), redirect_stderr(written), one_blas_thread():
            outcome = attempt(job, progress)
        return replace(outcome, output=written.end)

    def close(self) -> None:
        """Do nothing, as no process was started."""


class _Tee(TextIOBase):
    """Forwards written text, and keeps the end of it."""

    def __init__(self, to: TextIO | None) -> None:
        self.end = ""
        self._to = to
        # rich then draws past the tee: its bars are not output of the job
        self.rich_proxied_file = getattr(to, "rich_proxied_file", to)

    def write(self, text: str) -> int:
        self.end = (self.end + text)[-LONGEST_TEXT:]
        if self._to is not None and not self._to.closed:  # None under pythonw
            self._to.write(text)
        return len(text)

    def flush(self) -> None:
        if self._to is not None and not self._to.closed:
            self._to.flush()


class Worker:
    """A fresh interpreter with ``threads`` threads, its current job and its log.

    Its messages are put into ``heard``, and None when it has ended. ``memory`` limits its
    allocation, 0 for no limit.
    """

    def __init__(self, number: int, threads: int, memory: int, heard: "queue.Queue[Heard]") -> None:
        about = {"parent": os.getpid(), "memory": memory, "path": sys.path}
        self.number = number
        self.log: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the worker
        if os.name == "posix":
            import fcntl

            fcntl.fcntl(self.log.fileno(), fcntl.F_SETFL, os.O_APPEND)  # allows truncation
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(about)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=os.environ | dict.fromkeys(_THREADS, str(threads)) | _ONE_THREAD,
            start_new_session=True,  # the parent handles Ctrl-C
        )
        self.handle = psutil.Process(self.process.pid)
        self.family: Processes = []  # child processes at the last check
        self.job: Job | None = None
        self.sent, self.deadline = 0.0, float("inf")
        self._log_start = 0  # start of the job's output in the log
        self._listener = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self._listener.start()

    def assign(self, job: Job, timeout: float) -> None:
        """Send a job; its time counts from the worker's message that it started."""
        self.job, self.sent = job, time.monotonic()
        self._log_start = os.fstat(self.log.fileno()).st_size
        self.deadline = self.sent + START_SECONDS + timeout
        pipe: Any = self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # the listener reports that it died
            pickle.dump(job, pipe)
            pipe.flush()

    def start_clock(self, timeout: float) -> None:
        """Start the time limit when the worker has started its job."""
        self.sent = time.monotonic()
        self.deadline = self.sent + timeout

    @property
    def seconds(self) -> float:
        """Seconds since the start of its job."""
        return time.monotonic() - self.sent

    def kill(self) -> None:
        """Kill the process and its child processes."""
        end_all(self.handle, self.family)
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self._listener.join(timeout=1)  # a detached process may still hold the pipe
        self.log.close()

    def cut_log(self) -> None:
        """Truncate a long log to its end."""
        if LINUX and os.fstat(self.log.fileno()).st_size > LOG_BYTES:
            kept = self._end_of_log(LONGEST_TEXT)
            os.ftruncate(self.log.fileno(), 0)
            self.log.write(kept)
            self._log_start = 0

    def output(self) -> str:
        """Return the end of the job's stdout and stderr."""
        size = os.fstat(self.log.fileno()).st_size
        return self._end_of_log(min(LONGEST_TEXT, size - self._log_start)).decode(errors="replace")

    def _end_of_log(self, count: int) -> bytes:
        self.log.seek(-count, os.SEEK_END)
        written: bytes = self.log.read(count)
        return written

    def _listen(self, heard: "queue.Queue[Heard]") -> None:
        pipe: Any = self.process.stdout
        with pipe, contextlib.suppress(Exception):  # closed, or damaged by a job's output
            while True:
                heard.put((self, pickle.load(pipe)))
        heard.put((self, None))


Heard = tuple[Worker, Message | None]


class LocalExecutor:
    """A pool of ``slots`` workers, with a limit on time (seconds) and memory (bytes) per job; 0 for
    no limit. ``allocation`` limits the allocation of one process (Linux), used or not."""

    def __init__(
        self,
        slots: int,
        threads: int,
        on_event: OnEvent,
        timeout: float = 0.0,
        memory: int = 0,
        allocation: int = 0,
    ) -> None:
        self.slots, self.threads, self.on_event = slots, threads, on_event
        self.timeout = timeout or float("inf")
        self.memory, self.allocation = memory, allocation if LINUX else 0
        self._workers: dict[int, Worker] = {}
        self._heard: queue.Queue[Heard] = queue.Queue(1000)
        self._looked = self._looked_at_children = 0.0

    def submit(self, job: Job) -> None:
        """Assign a job to an idle worker, or to a new one."""
        idle = [worker for worker in self._workers.values() if worker.job is None]
        for worker in idle:
            if worker.process.poll() is None:
                return worker.assign(job, self.timeout)
            self._drop(worker)  # it died after its last job
        number = next(n for n in range(1, self.slots + 1) if n not in self._workers)
        worker = Worker(number, self.threads, self.allocation, self._heard)
        self._workers[number] = worker
        return worker.assign(job, self.timeout)

    def outcome(self) -> Outcome:
        """Wait until a job ends, exceeds a limit or loses its worker."""
        while True:
            ended = None
            with contextlib.suppress(queue.Empty):
                ended = self._hear(*self._heard.get(timeout=_LOOK))
            if ended := ended or self._look():
                return ended

    def close(self) -> None:
        """Kill all workers."""
        for worker in list(self._workers.values()):
            self._drop(worker)

    def _hear(self, worker: Worker, message: Message | None) -> Outcome | None:
        """Handle a message of a worker."""
        if self._workers.get(worker.number) is not worker or worker.job is None:
            return None  # replaced, or ended while idle
        if message is None:
            return self._crashed(worker)
        word, *about = message
        if word == "ended":
            return self._ended(worker, worker.job, *about)
        if word == "started":
            worker.start_clock(self.timeout)
            self.on_event(news("start", worker.job, worker=worker.number))
        else:
            how_far = {"done": about[0], "total": about[1], "seconds": worker.seconds}
            self.on_event(news("progress", worker.job, worker=worker.number, **how_far))
        return None

    def _ended(self, worker: Worker, job: Job, outcome: Outcome, children: bool) -> Outcome:
        outcome = replace(outcome, job=job, seconds=worker.seconds, output=worker.output())
        worker.job = None
        # a failed job may leave any state behind, and its child processes must not slow down the
        # next job
        if children or outcome.status != Status.OK:
            self._drop(worker)
        return outcome

    def _look(self) -> Outcome | None:
        """Check all jobs: end one that exceeds a limit or whose worker died."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return None
        self._looked = now
        busy = [worker for worker in self._workers.values() if worker.job]
        if now > self._looked_at_children + _CHILDREN_INTERVAL:
            self._looked_at_children = now
            for worker in busy:
                worker.family = descendants(worker.handle)
        for worker in busy:
            worker.cut_log()
            # its child processes may still hold the pipe
            if worker.process.poll() is not None and self._heard.empty():
                return self._crashed(worker)
            if now > worker.deadline:
                line = f"exceeded the time limit of {self.timeout:g} s"
                return self._end(worker, Status.TIMEOUT, line)
            used = memory_of([worker.handle, *worker.family], self.memory) if self.memory else 0
            if used > self.memory:
                return self._end(worker, Status.OUT_OF_MEMORY, _too_much(self.memory))
        return None

    def _crashed(self, worker: Worker) -> Outcome:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(timeout=5)
        code = worker.process.poll()
        ended = self._end(worker, Status.CRASHED, "the process closed the pipe to its parent")
        if code is None:
            return ended
        status, error = _cause(code, ended.output[-4000:], self.memory)
        return replace(ended, status=status, error=one_line(error, LONGEST_LINE))

    def _end(self, worker: Worker, status: Status, error: str) -> Outcome:
        """Outcome of a job that ends together with its worker."""
        job, seconds, output = worker.job, worker.seconds, worker.output()
        assert job is not None
        self._drop(worker)
        return Outcome(job, status, error, seconds=seconds, output=output)

    def _drop(self, worker: Worker) -> None:
        del self._workers[worker.number]
        worker.kill()


def _too_much(memory: int) -> str:
    return f"needed more than {memory / (1 << 20):.0f} MiB of memory"


def _cause(code: int, output: str, memory: int) -> tuple[Status, str]:
    """Reason for this exit code of a process."""
    if memory and any(word in output.lower() for word in NO_MEMORY):
        return Status.OUT_OF_MEMORY, _too_much(memory)
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
        return Status.CRASHED, f"its process was killed by {name}{hint}"
    last = "".join(f": {line}" for line in output.strip().splitlines()[-1:])
    return Status.CRASHED, f"its process ended with status {code}{last}"


def serve(parent: int, memory: int) -> None:
    """Run a worker process: read jobs from standard input until it closes, and reply to each.

    The process never outlives its parent. On Linux the system ends it; on all systems, a thread
    that reads the input ends it when the pipe closes. ``memory``: allocation limit in bytes, or 0.
    """
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = private_pipes()
    faulthandler.enable()
    with contextlib.suppress(OSError):  # kill this process first if memory runs out
        Path("/proc/self/oom_score_adj").write_text("1000")
    reset_peak_rss()
    jobs: queue.Queue[Job] = queue.Queue()
    threading.Thread(target=_listen, args=(source, jobs), daemon=True).start()
    if memory:
        limit_memory(memory)
    while True:
        _answer(jobs.get(), sink)


def _listen(source: BinaryIO, jobs: queue.Queue[Job]) -> None:
    """Read jobs; when the pipe closes, end this process and its child processes."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(pickle.load(source))
    for child in psutil.Process().children():
        end_all(child)
    os._exit(1)


def _answer(job: Job, sink: BinaryIO) -> None:
    process = os.getpid()
    writing = threading.Lock()  # a learner may report from several threads

    def send(*message: Any) -> None:
        with writing:
            pickle.dump(message, sink)
            sink.flush()

    send("started")
    outcome = attempt(job, partial(send, "progress"), (BaseException,))
    if os.getpid() != process:  # the learner forked and both processes returned
        os._exit(1)
    with contextlib.suppress(Exception):  # the job may have closed or replaced them
        sys.stdout.flush()
        sys.stderr.flush()
    send("ended", outcome, has_children())
