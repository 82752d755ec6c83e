"""Where jobs run: in this process, or in worker processes of this machine.

A worker is a fresh interpreter at the other end of two pipes, used until something goes wrong in
it. Nothing is shared between workers: each can be killed alone without
leaving a lock behind, and none imports the caller's ``__main__``. Nothing that one sends is taken
unless it answers its job.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from io import TextIOBase
from typing import Any, TextIO

from bench_core._io.machine import EXIT_OUT_OF_MEMORY, one_blas_thread
from bench_core._io.processes import waited_seconds
from bench_core.errors import one_line
from bench_core.execution.events import OnEvent, news
from bench_core.execution.failures import LONGEST_LINE, LONGEST_TEXT, failure, shortened
from bench_core.execution.messages import ForeignAnswerError, progress_of, result_of
from bench_core.execution.processes import Heard, Worker
from bench_core.execution.trial import perform
from bench_core.results.records import MORE_THREADS, Job, Outcome, Status, Trial

_LINUX = sys.platform.startswith("linux")
_POLL = 0.1
_SETTLED = 0.002
_NO_MEMORY = ("out of memory", "bad_alloc", "cannot allocate memory", "memoryerror")


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
        started, before = time.perf_counter(), waited_seconds([os.getpid()])

        def progress(done: int, total: int) -> None:
            seconds = time.perf_counter() - started
            self._on_event(news("progress", job, done=done, total=total, seconds=seconds))

        status, result, line, trace = Status.OK, None, "", ""
        written = _Tee(sys.stderr)  # stdout holds nothing but the result of the command
        try:
            with redirect_stdout(written), redirect_stderr(written), one_blas_thread():
                result = perform(job, progress)
        except (Exception, SystemExit) as error:
            status, line, trace = failure(error)
        seconds = time.perf_counter() - started
        waited = waited_seconds([os.getpid()]) - before
        return Outcome(job, status, line, trace, result, seconds, written.kept, waited)

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
class LocalExecutor:
    """A pool of ``slots`` workers with a time limit (seconds) and a memory limit (bytes) for each,
    0 is no limit.

    ``allocation`` is what one process may allocate (Linux), whether it uses that or not.
    """

    slots: int
    threads: int
    on_event: OnEvent
    timeout: float = 0.0
    memory: int = 0
    allocation: int = 0
    _workers: dict[int, Worker] = field(default_factory=dict)
    _heard: queue.Queue[Heard] = field(default_factory=lambda: queue.Queue(1000))
    _checked: float = 0.0

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker, or to a new one."""
        worker = self._idle() or self._start()
        worker.assign(job, self.timeout or float("inf"))

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
        """A worker without a job. One that died since its last, or where processes were left
        running, is no fault of the next."""
        for worker in [worker for worker in self._workers.values() if worker.job is None]:
            if worker.process.poll() is None and not worker.leaves_processes():
                return worker
            self._drop(worker)
        return None

    def _start(self) -> Worker:
        number = next(n for n in range(1, self.slots + 1) if n not in self._workers)
        memory = self.allocation if _LINUX else self.memory
        worker = Worker.start(number, self.threads, memory, self._heard)
        self._workers[number] = worker
        return worker

    def _hear(
        self, worker: Worker, message: dict[str, Any] | None, arrays: dict[str, Any]
    ) -> Outcome | None:
        job = worker.job
        if self._workers.get(worker.number) is not worker:
            return None  # it was replaced
        if job is None:  # nobody asked
            self._drop(worker)
            return None
        if message is None or message.get("token") != worker.token:
            if worker.served and (not worker.began or _token(message) in worker.served):
                self._drop(worker)  # by an earlier job: this one begins anew elsewhere
                self.submit(job)
                return None
            return self._crashed(worker, job) if message is None else self._foreign(worker, job)
        try:
            return self._take(worker, job, message, arrays)
        except (ForeignAnswerError, KeyError, TypeError, ValueError) as error:
            return self._foreign(worker, job, str(error))

    def _take(
        self, worker: Worker, job: Job, message: dict[str, Any], arrays: dict[str, Any]
    ) -> Outcome | None:
        """Act on a message about a worker's job."""
        seconds = time.monotonic() - worker.sent
        if message["event"] == "done":
            return self._done(worker, job, message, arrays, seconds)
        if message["event"] == "started":
            if not worker.began:
                worker.start_clock(self.timeout or float("inf"))
                self.on_event(news("start", job, worker=worker.number))
            return None
        done, total = progress_of(message)
        about = {"worker": worker.number, "seconds": seconds}
        self.on_event(news("progress", job, done=done, total=total, **about))
        return None

    def _done(
        self,
        worker: Worker,
        job: Job,
        message: dict[str, Any],
        arrays: dict[str, Any],
        seconds: float,
    ) -> Outcome:
        status = Status(message["status"])
        if status != Status.OK:  # what failed once may have left anything behind
            error = one_line(str(message["error"]), LONGEST_LINE)
            trace = shortened(str(message["trace"]), 2 * LONGEST_TEXT)
            return self._end(worker, job, status, error, seconds, trace)
        result = result_of(job, message["result"], arrays)
        worker.free()
        output, waited = worker.output(), min(worker.waited(), seconds)
        found = Outcome(job, status, "", "", result, seconds, output, waited)
        if (busy := worker.busy_threads()) <= self.threads + 0.5:
            return found
        if isinstance(result, Trial):
            return replace(found, result=replace(result, marks=(*result.marks, MORE_THREADS)))
        return replace(found, error=f"kept {busy:.1f} threads busy, granted are {self.threads}")

    def _overdue(self) -> Outcome | None:
        """A job that has passed one of its limits."""
        now = time.monotonic()
        look = now - self._checked > _POLL
        self._checked = now if look else self._checked
        if look:  # who has just sent a message computes again, and the thread that sent it waits
            time.sleep(_SETTLED)
        for worker in self._workers.values():
            if worker.job is None:
                continue
            if now > worker.deadline:
                error = f"took longer than {self.timeout:g} s and was ended"
                return self._end(worker, worker.job, Status.TIMEOUT, error, now - worker.sent)
            if look:
                worker.cut_log()
                worker.look()
            if look and self.memory and worker.memory(self.memory) > self.memory:
                status, error = Status.OUT_OF_MEMORY, _too_much(self.memory)
                return self._end(worker, worker.job, status, error, now - worker.sent)
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
        code = worker.process.poll()
        if code is None:
            return self._foreign(worker, job)
        ended = self._end(worker, job, Status.CRASHED, "", time.monotonic() - worker.sent)
        status, error = _cause(code, ended.output[-4000:], self.memory)
        return replace(ended, status=status, error=one_line(error, LONGEST_LINE))

    def _foreign(self, worker: Worker, job: Job, what: str = "") -> Outcome:
        """What came from a worker is no answer to its job."""
        error = "its process sent what is no answer to its job" + (f" ({what})" if what else "")
        seconds = time.monotonic() - worker.sent
        return self._end(worker, job, Status.CRASHED, one_line(error, LONGEST_LINE), seconds)

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


def _token(message: dict[str, Any] | None) -> str:
    return str(message.get("token")) if message else ""


def _too_much(memory: int) -> str:
    return f"needed more than {memory / (1 << 20):.0f} MiB of memory"


def _cause(code: int, output: str, memory: int) -> tuple[Status, str]:
    if code == EXIT_OUT_OF_MEMORY or (memory and any(w in output.lower() for w in _NO_MEMORY)):
        return Status.OUT_OF_MEMORY, _too_much(memory)
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
        return Status.CRASHED, f"its process died of {name}{hint}"
    last = "".join(f": {line}" for line in output.strip().splitlines()[-1:])
    return Status.CRASHED, f"its process ended with status {code}{last}"
