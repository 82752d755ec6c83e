"""Jobs in this process, one after another: no limits, no kills, easy to debug."""

from __future__ import annotations

import time
from collections import deque

from bench_core.execution.events import Event, OnEvent
from bench_core.execution.messages import failure, perform
from bench_core.results.records import Job, Outcome, Status


class InlineExecutor:
    """Runs a job when its outcome is asked for."""

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

        try:
            result = perform(job, progress)
        except (Exception, SystemExit) as error:
            status, line, trace = failure(error)
            return Outcome(job, status, line, trace, seconds=time.perf_counter() - started)
        return Outcome(job, Status.OK, result=result, seconds=time.perf_counter() - started)

    def close(self) -> None:
        """Nothing to end."""


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
