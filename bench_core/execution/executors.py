"""Where jobs run: in this process, or in worker processes of this machine.

A worker is a fresh interpreter at the other end of two pipes, used until something goes wrong in
it. Nothing is shared between workers: each can be killed alone without leaving a lock behind, and
none imports the caller's ``__main__``. ``dask.py`` has the workers of a cluster.
"""

import contextlib
import queue
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import TextIOBase
from typing import Any, Protocol, TextIO

from bench_core._io.machine import one_blas_thread
from bench_core._io.processes import LINUX, families
from bench_core.errors import one_line
from bench_core.execution.events import OnEvent, news
from bench_core.execution.failures import LONGEST_LINE, LONGEST_TEXT, failure
from bench_core.execution.messages import result_of_wire
from bench_core.execution.trial import perform
from bench_core.execution.worker_process import Message, WorkerProcess
from bench_core.results.records import MORE_THREADS, Job, Outcome, Status, Trial

_LOOK = 0.1  # seconds between two looks at the limits of jobs
_FAMILY = 1.0  # and between two looks at what they started, which takes longer
_SOME = 0.5  # seconds of a job below which it is too short to tell how many threads it used
_INVALID = "worker returned an invalid reply"
_NO_MEMORY = ("out of memory", "bad_alloc", "cannot allocate memory", "memoryerror")


class Executor(Protocol):
    """Does jobs, ``slots`` of them at a time."""

    slots: int

    def submit(self, job: Job) -> None:
        """Take a job."""

    def outcome(self) -> Outcome:
        """Wait for a job to end."""

    def close(self) -> None:
        """Leave nothing running."""


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
            with redirect_stdout(written), redirect_stderr(written), one_blas_thread():
                result = perform(job, progress)
        except (Exception, SystemExit) as error:
            status, line, trace = failure(error)
        seconds = time.perf_counter() - started
        return Outcome(job, status, line, trace, result, seconds, written.kept)

    def close(self) -> None:
        """Nothing runs."""


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


class LocalExecutor:
    """A pool of ``slots`` workers with a time limit (seconds) and a memory limit (bytes) for each,
    0 is no limit. ``allocation`` is what one process may allocate (Linux), used or not."""

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
        self.memory, self.allocation = memory, allocation
        self._workers: dict[int, WorkerProcess] = {}
        self._heard: queue.Queue[tuple[WorkerProcess, Message | None]] = queue.Queue(1000)
        self._looked = self._looked_at_families = 0.0

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker, or to a new one."""
        for number, worker in list(self._workers.items()):
            if worker.job is None:
                if worker.process.poll() is None:
                    return worker.assign(job, self.timeout)
                self._drop(number)  # it died since its last job, which is no fault of this one
        number = next(n for n in range(1, self.slots + 1) if n not in self._workers)
        worker = WorkerProcess(self.threads, self.allocation if LINUX else 0, self._heard)
        self._workers[number] = worker
        return worker.assign(job, self.timeout)

    def outcome(self) -> Outcome:
        """Wait for a job to end, by itself, by its limits or with its worker."""
        while True:
            ended = None
            with contextlib.suppress(queue.Empty):
                ended = self._hear(*self._heard.get(timeout=_LOOK))
            if ended := ended or self._look():
                return ended

    def close(self) -> None:
        """Kill all workers."""
        for number in list(self._workers):
            self._drop(number)

    def _hear(self, worker: WorkerProcess, message: Message | None) -> Outcome | None:
        """Act on a message of a worker."""
        number = next((n for n, known in self._workers.items() if known is worker), 0)
        if not number or worker.job is None:  # it was replaced, or ended while it was idle
            return None
        if message is None:
            return self._crashed(number)
        header, arrays = message
        seconds = time.monotonic() - worker.sent
        try:
            if header["event"] == "done":
                return self._done(number, header, arrays, seconds)
            if header["event"] == "started":
                worker.start_clock(self.timeout)
                about = news("start", worker.job, worker=number)
            else:
                how_far = {"done": header["done"], "total": header["total"], "seconds": seconds}
                about = news("progress", worker.job, worker=number, **how_far)
        except (KeyError, TypeError, ValueError):  # a learner wrote to the pipe
            return self._end(number, Status.CRASHED, _INVALID)
        self.on_event(about)
        return None

    def _done(
        self, number: int, header: dict[str, Any], arrays: dict[str, Any], seconds: float
    ) -> Outcome:
        worker = self._workers[number]
        job, status = worker.job, Status(header["status"])
        assert job is not None
        if status != Status.OK:  # what failed once may have left anything behind
            return self._end(number, status, header["error"], header["trace"])
        result: Any = result_of_wire(job, header["result"], arrays)
        found = Outcome(job, status, "", "", result, seconds, worker.output())
        busy = worker.busy_threads(seconds) if seconds > _SOME else 0.0
        worker.job = None
        if header["children"]:  # what it left running must not take from the next job
            self._drop(number)
        if busy <= self.threads + 0.5:
            return found
        if isinstance(result, Trial):
            return replace(found, result=replace(result, marks=(*result.marks, MORE_THREADS)))
        return replace(found, error=f"kept {busy:.1f} threads busy, granted are {self.threads}")

    def _look(self) -> Outcome | None:
        """Look at all jobs: one that has passed a limit, or whose worker died, has ended."""
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return None
        self._looked = now
        busy = {number: worker for number, worker in self._workers.items() if worker.job}
        if now > self._looked_at_families + _FAMILY:
            self._looked_at_families = now
            below = families(worker.process.pid for worker in busy.values())
            for worker in busy.values():
                worker.family = below[worker.process.pid]
        for number, worker in busy.items():
            worker.cut_log()
            # what it started may still hold its pipe
            if worker.process.poll() is not None and self._heard.empty():
                return self._crashed(number)
            if now > worker.deadline:
                line = f"took longer than {self.timeout:g} s and was ended"
                return self._end(number, Status.TIMEOUT, line)
            if self.memory and worker.memory(self.memory) > self.memory:
                return self._end(number, Status.OUT_OF_MEMORY, _too_much(self.memory))
        return None

    def _crashed(self, number: int) -> Outcome:
        process = self._workers[number].process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        if (code := process.poll()) is None:
            return self._end(number, Status.CRASHED, _INVALID)
        ended = self._end(number, Status.CRASHED, "")
        status, error = _cause(code, ended.output[-4000:], self.memory)
        return replace(ended, status=status, error=one_line(error, LONGEST_LINE))

    def _end(self, number: int, status: Status, error: str, trace: str = "") -> Outcome:
        """How a job ended that takes its worker with it."""
        worker = self._workers[number]
        job, seconds, output = worker.job, time.monotonic() - worker.sent, worker.output()
        assert job is not None
        self._drop(number)
        return Outcome(job, status, error, trace, seconds=seconds, output=output)

    def _drop(self, number: int) -> None:
        self._workers.pop(number).kill()


def _too_much(memory: int) -> str:
    return f"needed more than {memory / (1 << 20):.0f} MiB of memory"


def _cause(code: int, output: str, memory: int) -> tuple[Status, str]:
    if memory and any(word in output.lower() for word in _NO_MEMORY):
        return Status.OUT_OF_MEMORY, _too_much(memory)
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
        return Status.CRASHED, f"its process died of {name}{hint}"
    last = "".join(f": {line}" for line in output.strip().splitlines()[-1:])
    return Status.CRASHED, f"its process ended with status {code}{last}"
