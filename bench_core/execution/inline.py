"""Jobs in this process, one after another: no limits, no kills, easy to debug."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import TextIO

from bench_core.execution.events import Event, OnEvent
from bench_core.execution.failures import LONGEST_TEXT, failure
from bench_core.execution.messages import perform
from bench_core.results.records import Job, Outcome, Status


class InlineExecutor:
    """Runs a job when the caller waits for an outcome."""

    slots = 1

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._waiting: deque[Job] = deque()

    def submit(self, job: Job) -> None:
        """Put a job in line."""
        self._waiting.append(job)

    def outcome(self) -> Outcome:
        """Do the next job in line."""
        job = self._waiting.popleft()
        self._on_event(news("start", job))
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            seconds = time.perf_counter() - started
            self._on_event(news("progress", job, done=done, total=total, seconds=seconds))

        status, result, line, trace = Status.OK, None, "", ""
        written = _Tee(sys.stderr)  # stdout holds nothing but the result of the command
        try:
            with redirect_stdout(written), redirect_stderr(written):
                result = perform(job, progress)
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


def news(
    kind: str, job: Job, *, done: int = 0, total: int = 0, seconds: float = 0.0, worker: int = 0
) -> Event:
    """An event about a job."""
    return Event(
        kind,  # type: ignore[arg-type]
        key=job.key,
        title=job.spec.title,
        activity=job.kind,
        learner=job.learner,
        dataset=job.spec.dataset,
        worker=worker,
        seconds=seconds,
        done=done,
        total=total,
    )
