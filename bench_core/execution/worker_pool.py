"""Jobs in worker processes of this machine, each of which can be killed alone.

A worker is a fresh interpreter at the other end of two pipes, reused until something goes wrong in
it. Nothing is shared between workers: killing one cannot leave a lock behind, and none imports
the caller's ``__main__``.
"""

from __future__ import annotations

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
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

from bench_core.execution import wire
from bench_core.execution.events import OnEvent
from bench_core.execution.inline import news
from bench_core.execution.memory import EXIT_OUT_OF_MEMORY
from bench_core.execution.messages import job_to_json, one_line, result_from_wire
from bench_core.results.records import Job, Outcome, Status

START_SECONDS = 60.0
"""How long a worker may take to start before that counts against the job's time."""

_POLL = 0.1
_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.worker import main; main(a['parent'], a['memory'])"
)
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_NO_MEMORY = ("out of memory", "bad_alloc", "cannot allocate memory", "memoryerror")

Heard = tuple["Worker", dict[str, Any] | None, dict[str, Any]]


@dataclass(eq=False)
class Worker:
    """One process and what it is doing."""

    number: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    listener: threading.Thread = field(init=False)
    job: Job | None = None
    deadline: float = float("inf")
    sent: float = field(default=0.0)

    def tell(self, job: Job, timeout: float) -> None:
        """Send a job; its time counts once the worker says that it started."""
        self.job, self.sent = job, time.monotonic()
        self.deadline = self.sent + START_SECONDS + timeout if timeout else float("inf")
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died: its silence is heard soon
            wire.send(self.process.stdin, job_to_json(job))  # type: ignore[arg-type]

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

    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - 4000))
        return self.log.read().decode(errors="replace")


class LocalExecutor:
    """A pool of ``slots`` workers with a time limit (seconds) and a memory limit (bytes) each."""

    def __init__(
        self,
        slots: int,
        threads: int,
        on_event: OnEvent,
        *,
        timeout: float = 0.0,
        memory: int = 0,
    ) -> None:
        self.slots = slots
        self._threads = threads
        self._on_event = on_event
        self._timeout = timeout
        self._memory = memory
        self._workers: dict[int, Worker] = {}
        self._heard: queue.Queue[Heard] = queue.Queue()

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker, or to a new one."""
        worker = self._idle() or self._start()
        worker.tell(job, self._timeout)

    def outcome(self) -> Outcome:
        """Wait for a job to end, by itself, by its limits or with its worker."""
        while True:
            try:
                worker, message, arrays = self._heard.get(timeout=_POLL)
            except queue.Empty:
                ended = self._overdue() or self._silent()
            else:
                ended = self._hear(worker, message, arrays) or self._overdue()
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
        about = {"path": sys.path, "parent": os.getpid(), "memory": self._memory}
        log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(about)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=os.environ | dict.fromkeys(_THREADS, str(self._threads)),
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
            return None  # the last words of a worker already replaced
        if message is None:
            return self._crashed(worker)
        if message["says"] == "started":
            worker.sent = time.monotonic()
            worker.deadline = worker.sent + self._timeout if self._timeout else float("inf")
            self._on_event(news("start", job, worker=worker.number))
        elif message["says"] == "progress":
            seconds = time.monotonic() - worker.sent
            done, total = message["done"], message["total"]
            self._on_event(
                news(
                    "progress",
                    job,
                    done=done,
                    total=total,
                    seconds=seconds,
                    worker=worker.number,
                )
            )
        else:
            return self._done(worker, job, message, arrays)
        return None

    def _done(
        self, worker: Worker, job: Job, message: dict[str, Any], arrays: dict[str, Any]
    ) -> Outcome:
        status, seconds = Status(message["status"]), message["seconds"]
        if status == Status.OK:
            worker.job, worker.deadline = None, float("inf")
            result = result_from_wire(message["result"], arrays)
            return Outcome(job, status, result=result, seconds=seconds)
        self._drop(worker)  # what failed once may have left anything behind
        return Outcome(job, status, message["error"], message["trace"], seconds=seconds)

    def _overdue(self) -> Outcome | None:
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if worker.job is not None and now > worker.deadline:
                self._drop(worker)
                seconds = now - worker.sent
                error = f"took longer than {self._timeout:g} s and was ended"
                return Outcome(worker.job, Status.TIMEOUT, error, seconds=seconds)
        return None

    def _silent(self) -> Outcome | None:
        """A worker that died while something it started still holds its pipe."""
        for worker in list(self._workers.values()):
            if worker.job is not None and worker.process.poll() is not None:
                return self._crashed(worker)
        return None

    def _crashed(self, worker: Worker) -> Outcome:
        assert worker.job is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(timeout=5)
        words = worker.last_words()
        self._drop(worker)
        status, error = _cause(worker.process.returncode, words, self._memory)
        seconds = time.monotonic() - worker.sent
        return Outcome(worker.job, status, error, words, seconds=seconds)

    def _drop(self, worker: Worker) -> None:
        del self._workers[worker.number]
        worker.kill()


def _cause(code: int, words: str, memory: int) -> tuple[Status, str]:
    if code == EXIT_OUT_OF_MEMORY or (memory and any(w in words.lower() for w in _NO_MEMORY)):
        return Status.OUT_OF_MEMORY, f"needed more than {memory / (1 << 20):.0f} MiB of memory"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        hint = " (the system may have run out of memory)" if -code == signal.SIGKILL else ""
        return Status.CRASHED, one_line(f"its process died of {name}{hint}")
    lines = words.strip().splitlines()
    return Status.CRASHED, one_line(
        f"its process ended with status {code}" + (f": {lines[-1]}" if lines else "")
    )


def _listen(worker: Worker, heard: queue.Queue[Heard]) -> None:
    pipe: BinaryIO = worker.process.stdout  # type: ignore[assignment]
    with pipe:
        try:
            while True:
                message, arrays = wire.receive(pipe)
                heard.put((worker, message, arrays))
        except (EOFError, OSError, ValueError):
            heard.put((worker, None, {}))
