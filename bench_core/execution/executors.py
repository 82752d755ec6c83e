"""Where jobs run: in this process, or in worker processes of this machine.

A worker is a fresh interpreter at the other end of two pipes, reused until something goes wrong in
it. Nothing is shared between workers: each can be killed alone without leaving a lock behind, and
none imports the caller's ``__main__``.
"""

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
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from io import TextIOBase
from typing import Any, BinaryIO, TextIO

from bench_core._io.machine import EXIT_OUT_OF_MEMORY
from bench_core.errors import one_line
from bench_core.execution.events import OnEvent, news
from bench_core.execution.failures import LONGEST_LINE, LONGEST_TEXT, failure
from bench_core.execution.trial import perform
from bench_core.execution.worker import job_to_json, receive, result_from_wire, send
from bench_core.results.records import Job, Outcome, Status

START_SECONDS = 60.0
"""How long a worker may take to start before that counts against the job's time."""

_POLL = 0.1
_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.worker import main; main(a['parent'], a['memory'])"
)
_THREADS = (
    *(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")),
    "VECLIB_MAXIMUM_THREADS",
)
_NO_MEMORY = ("out of memory", "bad_alloc", "cannot allocate memory", "memoryerror")

Heard = tuple["Worker", dict[str, Any] | None, dict[str, Any]]


class InlineExecutor:
    """Jobs in this process, one after another: no limits, no kills, easy to debug."""

    slots = 1

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event

    def submit(self, job: Job) -> None:
        """Take a job."""
        self._job = job

    def outcome(self) -> Outcome:
        """Do it."""
        job = self._job
        self._on_event(news("start", job))
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            seconds = time.perf_counter() - started
            self._on_event(news("progress", job, done=done, total=total, seconds=seconds))

        status, result, line, trace = Status.OK, None, "", ""
        written = _Tee(sys.stderr)  # stdout holds nothing but the result of the command
        try:
            with redirect_stdout(written), redirect_stderr(written):
                result = perform(job, progress, apart=False)
        except (Exception, SystemExit) as error:
            status, line, trace = failure(error)
        seconds = time.perf_counter() - started
        return Outcome(job, status, line, trace, result, seconds, written.kept)

    def close(self) -> None:
        """Nothing to end."""


class _Tee(TextIOBase):
    """Passes on what is written, and keeps the end of it."""

    def __init__(self, to: TextIO) -> None:
        self.kept = ""
        self._to = to
        # rich then draws past the tee: its bars are no output of the job
        self.rich_proxied_file = getattr(to, "rich_proxied_file", to)

    def write(self, text: str) -> int:
        self.kept = (self.kept + text)[-LONGEST_TEXT:]
        return self._to.write(text)

    def flush(self) -> None:
        self._to.flush()


@dataclass(eq=False)
class Worker:
    """One process and what it is doing."""

    number: int
    process: subprocess.Popen[bytes]
    log: Any
    listener: threading.Thread = field(init=False)
    job: Job | None = None
    deadline: float = float("inf")
    sent: float = 0.0
    log_start: int = 0  # where the output of the job begins in the log

    def assign(self, job: Job, timeout: float) -> None:
        """Send a job; its time counts from the worker's message that it started."""
        self.job, self.sent = job, time.monotonic()
        self.log_start = os.fstat(self.log.fileno()).st_size
        self.deadline = self.sent + START_SECONDS + timeout
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died, which the listener will report
            send(self.process.stdin, job_to_json(job))  # type: ignore[arg-type]

    def kill(self) -> None:
        """End the process and whatever it started, at once."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.listener.join(timeout=1)  # something it started elsewhere may still hold the pipe
        self.log.close()

    def output(self) -> str:
        """The end of what the job wrote to stdout and stderr."""
        size = os.fstat(self.log.fileno()).st_size
        self.log.seek(max(self.log_start, size - LONGEST_TEXT))
        written: bytes = self.log.read(LONGEST_TEXT)
        self.log.seek(0, os.SEEK_END)  # the worker shares the offset
        return written.decode(errors="replace")


@dataclass(eq=False)
class LocalExecutor:
    """A pool of ``slots`` workers with a time limit (seconds) and a memory limit (bytes) each; 0 is
    no limit."""

    slots: int
    threads: int
    on_event: OnEvent
    timeout: float = 0.0
    memory: int = 0
    _workers: dict[int, Worker] = field(default_factory=dict)
    _heard: queue.Queue[Heard] = field(default_factory=queue.Queue)

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker, or to a new one."""
        (self._idle() or self._start()).assign(job, self.timeout or float("inf"))

    def outcome(self) -> Outcome:
        """Wait for a job to end, by itself, by its limits or with its worker."""
        while True:
            try:
                heard = self._heard.get(timeout=_POLL)
            except queue.Empty:
                ended = self._overdue() or self._silent()
            else:
                ended = self._hear(*heard) or self._overdue()
            if ended is not None:
                return ended

    def close(self) -> None:
        """Kill all workers."""
        for worker in self._workers.values():
            worker.kill()
        self._workers.clear()

    def _idle(self) -> Worker | None:
        """A worker without a job. One that died since its last is no fault of the next."""
        for worker in list(self._workers.values()):
            if worker.job is None:
                if worker.process.poll() is None:
                    return worker
                self._drop(worker)
        return None

    def _start(self) -> Worker:
        number = next(n for n in range(1, self.slots + 1) if n not in self._workers)
        about = {"path": sys.path, "parent": os.getpid(), "memory": self.memory}
        log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the worker
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(about)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | dict.fromkeys(_THREADS, str(self.threads)),
            start_new_session=True,  # Ctrl-C in the terminal is the parent's business
        )
        worker = self._workers[number] = Worker(number, process, log)
        worker.listener = threading.Thread(
            target=_listen, args=(worker, self._heard), name=f"worker-{number}", daemon=True
        )
        worker.listener.start()
        return worker

    def _hear(
        self, worker: Worker, message: dict[str, Any] | None, arrays: dict[str, Any]
    ) -> Outcome | None:
        job = worker.job
        if self._workers.get(worker.number) is not worker or job is None:
            return None  # a message of a worker that was replaced
        if message is None:
            return self._crashed(worker, job)
        if message["event"] == "done":
            return self._done(worker, job, message, arrays)
        if message["event"] == "started":
            worker.sent = time.monotonic()
            worker.deadline = worker.sent + (self.timeout or float("inf"))
            self.on_event(news("start", job, worker=worker.number))
        else:
            about = {"worker": worker.number, "seconds": time.monotonic() - worker.sent}
            done, total = message["done"], message["total"]
            self.on_event(news("progress", job, done=done, total=total, **about))
        return None

    def _done(
        self, worker: Worker, job: Job, message: dict[str, Any], arrays: dict[str, Any]
    ) -> Outcome:
        status, seconds = Status(message["status"]), message["seconds"]
        if status != Status.OK:  # what failed once may have left anything behind
            return self._end(worker, job, status, message["error"], seconds, message["trace"])
        worker.job = None
        result = result_from_wire(message["result"], arrays)
        return Outcome(job, status, result=result, seconds=seconds, output=worker.output())

    def _overdue(self) -> Outcome | None:
        now = time.monotonic()
        for worker in self._workers.values():
            if worker.job is not None and now > worker.deadline:
                error = f"took longer than {self.timeout:g} s and was ended"
                return self._end(worker, worker.job, Status.TIMEOUT, error, now - worker.sent)
        return None

    def _silent(self) -> Outcome | None:
        """A worker that died while something it started still holds its pipe."""
        for worker in self._workers.values():
            if worker.job is not None and worker.process.poll() is not None:
                return self._crashed(worker, worker.job)
        return None

    def _crashed(self, worker: Worker, job: Job) -> Outcome:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(timeout=5)
        ended = self._end(worker, job, Status.CRASHED, "", time.monotonic() - worker.sent)
        status, error = _cause(worker.process.returncode, ended.output[-4000:], self.memory)
        return replace(ended, status=status, error=one_line(error, LONGEST_LINE))

    def _end(
        self, worker: Worker, job: Job, status: Status, error: str, seconds: float, trace: str = ""
    ) -> Outcome:
        """How a job ended that takes its worker with it."""
        output = worker.output()
        self._drop(worker)
        return Outcome(job, status, error, trace, seconds=seconds, output=output)

    def _drop(self, worker: Worker) -> None:
        del self._workers[worker.number]
        worker.kill()


def _cause(code: int, output: str, memory: int) -> tuple[Status, str]:
    if code == EXIT_OUT_OF_MEMORY or (memory and any(w in output.lower() for w in _NO_MEMORY)):
        return Status.OUT_OF_MEMORY, f"needed more than {memory / (1 << 20):.0f} MiB of memory"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
        return Status.CRASHED, f"its process died of {name}{hint}"
    last = "".join(f": {line}" for line in output.strip().splitlines()[-1:])
    return Status.CRASHED, f"its process ended with status {code}{last}"


def _listen(worker: Worker, heard: queue.Queue[Heard]) -> None:
    pipe: BinaryIO = worker.process.stdout  # type: ignore[assignment]
    with pipe:
        try:
            while True:
                heard.put((worker, *receive(pipe)))
        except (EOFError, OSError, ValueError):
            heard.put((worker, None, {}))
