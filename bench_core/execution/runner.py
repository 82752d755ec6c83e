"""Carry out a plan: jobs to executors, outcomes to the store, events to the caller."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.execution.events import Event, OnEvent
from bench_core.planning.plan import Plan, about_run
from bench_core.planning.request import RunRequest, cores_for

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.execution.scheduler import Executor
    from bench_core.results.records import Job, Outcome
    from bench_core.results.store import Store
    from bench_core.results.writer import Writer


def silent(event: Event) -> None:
    """Ignore every event."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    ``counts`` are trials by status (ok, failed, timeout, out-of-memory, crashed, skipped) and
    ``reused`` how many of them were there before; ``failures`` lists title, status and error of
    those that are not ok, ``audit_failures`` the titles of trials that the replay audit refused.
    """

    run: str
    store: Path
    counts: Mapping[str, int]
    reused: int = 0
    audit_failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    failures: tuple[tuple[str, str, str], ...] = ()

    @property
    def exit_status(self) -> int:
        """0 all well, 1 some trials or audits failed, 130 interrupted."""
        if self.interrupted:
            return 130
        bad = sum(n for status, n in self.counts.items() if status not in ("ok", "skipped"))
        return 1 if bad or self.audit_failures else 0

    def frame(self) -> pd.DataFrame:
        """One row per trial, point and split: the export columns."""
        from bench_core.results.store import Store

        return Store(self.store).frame(self.run)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; finished work is kept, ``result`` holds the trials that ended."""

    def __init__(self, result: RunResult) -> None:
        super().__init__("interrupted; finished work is kept")
        self.result = result


def carry_out(
    plan: Plan,
    request: RunRequest,
    writer: Writer,
    emit: OnEvent,
    warm_up: Callable[[Iterable[str]], None],
) -> RunResult:
    """Do what is unfinished of a plan. Raises ``Interrupted`` on Ctrl-C.

    ``warm_up`` is given the names of the learners to be fitted: what is compiled once and for all
    must neither be paid by each worker nor count in a fit's seconds.
    """
    from bench_core.planning.remaining_work import trials_skipped
    from bench_core.results.records import FitSpec, Job, Outcome, Status

    started = time.perf_counter()

    def result(interrupted: bool = False) -> RunResult:
        return _result(plan, writer.path, time.perf_counter() - started, interrupted)

    def keep(outcome: Outcome) -> None:
        spec = outcome.job.spec
        if isinstance(spec, FitSpec):
            writer.fit(outcome)
        else:
            writer.trial(spec, outcome)

    writer.costs(plan.costs)
    writer.begin(plan.run, about_run(plan, request), [t.key for t in plan.trials])
    jobs = _jobs(plan)
    there = (len(plan.finished), len(plan.trials))
    emit(Event("plan", plan.run, done=there[0], total=there[1], jobs_total=len(jobs)))
    try:
        for trial, reason in trials_skipped(plan):
            keep(Outcome(Job("score", trial), Status.SKIPPED, reason))
        if jobs:
            warm_up(job.spec.learner_name for job in jobs if isinstance(job.spec, FitSpec))
        with closing(_perform(jobs, request, plan.workers, plan.threads, emit)) as outcomes:
            for outcome in outcomes:
                writer.attempt(plan.run, outcome)
                keep(outcome)
    except KeyboardInterrupt:
        writer.end(plan.run, "interrupted")
        raise Interrupted(result(interrupted=True)) from None
    except BaseException:
        writer.end(plan.run, "interrupted")
        raise
    writer.end(plan.run, "finished")
    return result()


def _result(plan: Plan, path: Path, seconds: float, interrupted: bool) -> RunResult:
    from bench_core.results.store import Store

    ended = Store(path).ended(plan.run)
    return RunResult(
        run=plan.run,
        store=path,
        counts=Counter(t.status for t in ended),
        reused=len(plan.finished),
        audit_failures=tuple(t.title for t in ended if t.audit == "failed"),
        notes=plan.notes,
        warnings=plan.warnings,
        seconds=seconds,
        interrupted=interrupted,
        failures=tuple((t.title, t.status, t.error) for t in ended if t.status != "ok"),
    )


def _jobs(plan: Plan) -> list[Job]:
    """What is to be done of a plan, each job after those it needs."""
    from bench_core.planning.remaining_work import fits_left, trials_left
    from bench_core.results.records import Job

    fits = [
        Job("fit", fit, tuple(f"fit:{key}" for key in fit.needs.values()))
        for fit in fits_left(plan)
    ]
    return fits + [Job("score", trial, (f"fit:{trial.fit}",)) for trial in trials_left(plan)]


def carry_out_audit(
    store: Store, run: str, request: RunRequest, writer: Writer, emit: OnEvent
) -> RunResult:
    """Replay every query and point of a run's finished trials."""
    from bench_core.execution.messages import spec_from_json
    from bench_core.results.records import Job, Status, TrialSpec
    from bench_core.results.schema import states_folder

    started = time.perf_counter()
    specs: list[TrialSpec] = [spec_from_json(TrialSpec, spec) for spec in store.specs(run)]
    workers, threads = cores_for(request, len(specs))
    states = str(states_folder(store.path).absolute())  # the store may have been moved
    jobs = [Job("audit", replace(spec, threads=threads, states=states)) for spec in specs]
    counts: Counter[str] = Counter()
    failures: list[tuple[str, str, str]] = []
    refused: list[str] = []

    def keep(outcome: Outcome) -> None:
        title, verdict = outcome.job.spec.title, outcome.result
        counts[str(outcome.status)] += 1
        if outcome.status != Status.OK:
            failures.append((title, str(outcome.status), outcome.error))
            return
        writer.audit(outcome.job.spec.key, verdict.word, verdict.reason)
        if verdict.word == "failed":
            refused.append(title)
            failures.append((title, "audit failed", verdict.reason))

    def result(interrupted: bool = False) -> RunResult:
        return RunResult(
            run=run,
            store=store.path,
            counts=counts,
            audit_failures=tuple(refused),
            seconds=time.perf_counter() - started,
            interrupted=interrupted,
            failures=tuple(failures),
        )

    emit(Event("plan", run, total=len(jobs), jobs_total=len(jobs)))
    try:
        with closing(_perform(jobs, request, workers, threads, emit)) as outcomes:
            for outcome in outcomes:
                writer.attempt(run, outcome)
                keep(outcome)
    except KeyboardInterrupt:
        raise Interrupted(result(interrupted=True)) from None
    return result()


@dataclass(slots=True)
class _Count:
    """Adds to every event how many of the jobs are done."""

    emit: OnEvent
    total: int
    done: int = field(default=0)

    def __call__(self, event: Event) -> None:
        self.emit(replace(event, jobs_done=self.done, jobs_total=self.total))

    def end(self, outcome: Outcome) -> None:
        """Emit the event of a finished job."""
        from bench_core.execution.inline import news

        self.done += 1
        event = news("finish", outcome.job, seconds=outcome.seconds)
        event = replace(event, trace=outcome.trace, output=outcome.output)
        self(replace(event, message=outcome.error, status=str(outcome.status)))


def _perform(
    jobs: Sequence[Job], request: RunRequest, workers: int, threads: int, emit: OnEvent
) -> Generator[Outcome, None, None]:
    """Outcomes as they come; whatever happens, no process is left behind."""
    from bench_core.execution.scheduler import run_jobs

    count = _Count(emit, len(jobs))
    executor = _executor(request, workers, threads, count)
    try:
        for outcome in run_jobs(jobs, executor):
            yield outcome
            count.end(outcome)
    finally:
        executor.close()


def _executor(request: RunRequest, workers: int, threads: int, on_event: OnEvent) -> Executor:
    from bench_core.execution.inline import InlineExecutor
    from bench_core.execution.worker_pool import LocalExecutor

    if request.executor == "inline":
        if request.timeout or request.memory:
            line = "limits on time and memory do not hold inline: nothing can be killed there"
            on_event(Event("note", line, warning=True))
        return InlineExecutor(on_event)
    return LocalExecutor(workers, threads, on_event, timeout=request.timeout, memory=request.memory)
