"""Jobs in an order that respects what they need; a job whose need failed is skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from bench_core.results.records import Job, Outcome, Status


class Executor(Protocol):
    """Runs jobs, some at a time."""

    @property
    def slots(self) -> int:
        """How many jobs it takes at once."""

    def submit(self, job: Job) -> None:
        """Begin a job."""

    def outcome(self) -> Outcome:
        """Wait for the next job to end."""

    def close(self) -> None:
        """End everything it started."""


def run_jobs(jobs: Sequence[Job], executor: Executor) -> Iterator[Outcome]:
    """Run all jobs and yield how each ended, as they end.

    ``jobs`` stand after those they need; a need that is not among them is taken as done. Fits
    that other fits stand on go first, then scores, so that an interrupted run has rows.
    """
    needed_by_fits = {need for job in jobs if job.kind == "fit" for need in job.needs}
    waiting = {job.key: job for job in sorted(jobs, key=lambda j: _rank(j, needed_by_fits))}
    running: set[str] = set()
    failed: dict[str, Outcome] = {}
    while waiting or running:
        yield from _hopeless(waiting, failed)
        for job in [j for j in waiting.values() if _ready(j, waiting, running)]:
            if len(running) == executor.slots:
                break
            running.add(job.key)
            del waiting[job.key]
            executor.submit(job)
        if running:
            outcome = executor.outcome()
            running.remove(outcome.job.key)
            if outcome.status != Status.OK:
                failed[outcome.job.key] = outcome
            yield outcome


def _rank(job: Job, needed_by_fits: set[str]) -> int:
    if job.kind == "fit":
        return 0 if job.key in needed_by_fits else 2
    return 1


def _ready(job: Job, waiting: dict[str, Job], running: set[str]) -> bool:
    return not any(need in waiting or need in running for need in job.needs)


def _hopeless(waiting: dict[str, Job], failed: dict[str, Outcome]) -> list[Outcome]:
    """Take out of ``waiting`` what can no longer run."""
    skipped: list[Outcome] = []
    again = True
    while again:
        again = False
        for job in list(waiting.values()):
            cause = next((failed[need] for need in job.needs if need in failed), None)
            if cause is not None:
                del waiting[job.key]
                failed[job.key] = _skip(job, cause)
                skipped.append(failed[job.key])
                again = True
    return skipped


def _skip(job: Job, cause: Outcome) -> Outcome:
    if job.kind == "score" and cause.job.kind == "fit" and cause.status != Status.SKIPPED:
        # the trial's own fit: how it ended is how the trial ended
        return Outcome(job, cause.status, cause.error)
    if cause.status == Status.SKIPPED:
        return Outcome(job, Status.SKIPPED, cause.error)
    return Outcome(
        job, Status.SKIPPED, f"stands on {cause.job.spec.title}: {cause.status} ({cause.error})"
    )
