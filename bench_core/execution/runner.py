"""Run a plan: jobs to executors in order, outcomes to the store, events to the caller."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Self

from bench_core._io.machine import memory
from bench_core.metrics import parse_metric
from bench_core.metrics.evaluation import warm_up as warm_up_metrics
from bench_core.planning.plan import (
    Event,
    OnEvent,
    Plan,
    about_run,
    fits_left,
    news,
    trials_left,
    trials_skipped,
)
from bench_core.planning.request import DAY, RunRequest, cores_for
from bench_core.plugins import Registry
from bench_core.results.records import (
    TOLERANCE,
    FitSpec,
    Job,
    Outcome,
    Status,
    Verdict,
    differences,
)
from bench_core.results.store import Store
from bench_core.results.store_files import states_folder, trained_folder

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.execution.executors import Executor, LocalExecutor
    from bench_core.results.writer import Writer

_NO_ANSWER = (Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.CRASHED)
"""Outcomes of an audit that fail its trial, as predictions without an audit are unverified."""

MEMORY_SHARE = 0.8
"""Fraction of the machine's memory that the jobs of a run may use together."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run.

    After an audit, ``failures`` also lists trials with merely declared costs, with the reason.
    """

    run: str
    store: Path
    counts: Mapping[str, int]  # trials by status
    reused: int = 0  # trials finished before
    audit_failures: tuple[str, ...] = ()  # titles of trials that failed the replay audit
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    interrupted: bool = False
    failures: tuple[tuple[str, str, str], ...] = ()  # title, status, error

    @classmethod
    def of(cls, store: Store, run: str, **more: Any) -> Self:
        """Create the result of a run from its finished trials and other fields."""
        ended = store.trials(run)
        return cls(
            run,
            store.path,
            counts=Counter(t.status for t in ended),
            audit_failures=tuple(t.title for t in ended if t.audit == "failed"),
            failures=tuple((t.title, t.status, t.error) for t in ended if t.status != "ok"),
            **more,
        )

    @property
    def exit_status(self) -> int:
        """0 for success, 1 if trials or audits failed, 130 if interrupted."""
        if self.interrupted:
            return 130
        bad = sum(n for status, n in self.counts.items() if status not in ("ok", "skipped"))
        return 1 if bad or self.audit_failures else 0

    def frame(self) -> pd.DataFrame:
        """One row per trial, point and split: the export columns."""
        return Store(self.store).frame(self.run)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; finished work is kept, ``result`` holds the finished trials."""

    def __init__(self, result: RunResult) -> None:
        done = ", ".join(f"{n} {status}" for status, n in result.counts.items()) or "nothing"
        super().__init__(f"interrupted: {done} kept in {result.store}; the same call continues")
        self.result = result


@dataclass(slots=True)
class Reused:
    """State reused between parts of a run."""

    executor: LocalExecutor | None = None  # with idle workers
    registry: Registry | None = None
    compiled: set[str] = field(default_factory=set)  # names of learners

    def close(self) -> None:
        """Stop the workers."""
        if self.executor is not None:
            self.executor.close()
            self.executor = None


@dataclass(slots=True)
class JobRunner:
    """Runs jobs for a request, and sends events to ``emit``."""

    request: RunRequest
    cores: tuple[int, int]  # workers, threads per worker
    emit: OnEvent
    executor: Executor | None = None  # overrides the request's
    reused: Reused = field(default_factory=Reused)
    keep_workers: bool = False  # True to keep idle workers at the end

    def warm_up(self, jobs: Iterable[Job], metrics: Iterable[str]) -> None:
        """Compile the code of the learners and metrics once, so that workers do not repeat it and
        fit times exclude it."""
        names = dict.fromkeys(job.learner for job in jobs if job.kind == "fit")
        new = [name for name in names if name not in self.reused.compiled]
        registry = self.reused.registry
        if self.executor is not None or registry is None or not new:
            return

        def say(line: str) -> None:
            self.emit(Event("note", line))

        registry.warm_up(new, say)
        warm_up_metrics([parse_metric(name, registry.metrics) for name in metrics], say)
        self.reused.compiled.update(new)

    def perform(self, jobs: Sequence[Job], keep: Callable[[Outcome], None]) -> None:
        """Run all jobs and ``keep`` each outcome. All processes are stopped in any case, except
        idle workers that are to be kept."""
        ended: set[str] = set()

        def count(event: Event) -> None:
            self.emit(replace(event, jobs_done=len(ended), jobs_total=len(jobs)))

        executor = self.executor or self._executor(count)
        well = False
        try:
            for outcome in run_jobs(jobs, executor, self.request.retries):
                if not outcome.stored:
                    keep(outcome)
                ended.add(outcome.job.key)
                texts = {"message": outcome.error, "trace": outcome.trace, "output": outcome.output}
                seconds, status = outcome.seconds, str(outcome.status)
                count(news("finish", outcome.job, seconds=seconds, status=status, **texts))
            well = True
        finally:
            if not (well and self.keep_workers):
                executor.close()
                self.reused.executor = None

    def _executor(self, count: OnEvent) -> Executor:
        """Executor of the request."""
        from bench_core.execution.executors import InlineExecutor, LocalExecutor

        request = self.request
        if request.executor == "inline":
            if request.timeout not in (0.0, DAY) or request.memory:
                line = "limits on time and memory are not enforced inline: jobs cannot be killed"
                count(Event("note", line, warning=True))
            return InlineExecutor(count)
        if self.reused.executor is None:
            share = int(MEMORY_SHARE * memory() / self.cores[0])
            limit, most = request.memory or share, request.memory
            self.reused.executor = LocalExecutor(*self.cores, count, request.timeout, limit, most)
        self.reused.executor.on_event = count
        return self.reused.executor


def carry_out(
    plan: Plan,
    request: RunRequest,
    registry: Registry,
    writer: Writer,
    emit: OnEvent,
    executor: Executor | None = None,
    *,
    about: Mapping[str, Any] | None = None,
    listed: Sequence[str] = (),
    here: Callable[[Job], Job] = lambda job: job,
    reused: Reused | None = None,
) -> RunResult:
    """Do a plan's unfinished work; ``executor`` overrides the request's. Raises ``Interrupted`` on
    Ctrl-C.

    Of a part of a run, ``about`` is the run's record, and ``listed`` are the keys of all its
    trials. ``here`` adds this machine's file locations to a job; they are not stored. Workers are
    kept in ``reused`` if it is given.
    """
    started, keys = time.perf_counter(), [trial.key for trial in plan.trials]
    planned = {job.key: job for job in jobs_in_order(plan)}
    writer.costs(plan.costs)
    writer.begin(plan.run, about or about_run(plan, request), listed or keys)
    done, total = len(plan.finished), len(plan.trials)
    emit(Event("plan", plan.run, done=done, total=total, jobs_total=len(planned)))
    for trial, reason in trials_skipped(plan):
        writer.trial(Outcome(Job("score", trial), Status.SKIPPED, reason))

    def keep(outcome: Outcome) -> None:
        outcome = replace(outcome, job=planned[outcome.job.key])
        with writer.transaction():
            writer.attempt(plan.run, outcome)
            if isinstance(outcome.job.spec, FitSpec):
                writer.fit(outcome)
            else:
                writer.trial(outcome)

    def result(interrupted: bool = False) -> RunResult:
        seconds = time.perf_counter() - started
        known: dict[str, Any] = {"reused": done, "notes": plan.notes, "warnings": plan.warnings}
        known |= {"seconds": seconds, "interrupted": interrupted}
        return RunResult.of(Store(writer.path), plan.run, **known)

    kept, cores = reused or Reused(registry=registry), (plan.workers, plan.threads)
    runner = JobRunner(request, cores, emit, executor, kept, keep_workers=reused is not None)
    trained = trained_folder(states_folder(writer.path))
    try:
        rmtree(trained, ignore_errors=True)  # of a killed run
        runner.warm_up(planned.values(), plan.metrics)
        runner.perform([here(job) for job in planned.values()], keep)
    except BaseException as error:
        writer.end(plan.run, "interrupted")
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(result(interrupted=True)) from None
        raise
    finally:
        rmtree(trained, ignore_errors=True)
    writer.end(plan.run, "finished")
    return result()


def jobs_in_order(plan: Plan) -> list[Job]:
    """Return the unfinished jobs of a plan: fits of the reference and of baselines, so that an
    interrupted run has a board; then the other fits, first those with the longest chain of fits
    that wait for them; then trials. The reference starts first, as fits of other learners may reuse
    its trees (``FitContext.trained``)."""
    references = (use.reference for use in plan.datasets)
    early = dict.fromkeys(plan.baselines, 1) | dict.fromkeys(references, 0)
    left, judged = fits_left(plan), {trial.fit for trial in trials_left(plan)}
    chain: dict[str, float] = {}  # seconds of a fit and of the longest chain that waits for it
    for fit in reversed(left):  # a fit follows those it needs
        chain[fit.key] = chain.get(fit.key, 0.0) + plan.expected.get(fit.key, 0.0)
        for need in fit.needs.values():
            chain[need] = max(chain.get(need, 0.0), chain[fit.key])

    def place(fit: FitSpec) -> tuple[int, float]:
        return early.get(fit.learner_name, 2) if fit.key in judged else 2, -chain[fit.key]

    cores: dict[str, Any] = {"threads": plan.threads}
    jobs = [
        Job("fit", replace(fit, **cores), tuple(f"fit:{key}" for key in fit.needs.values()))
        for fit in sorted(left, key=place)
    ]
    cores["workers"] = plan.workers
    return jobs + [Job("score", replace(t, **cores), (f"fit:{t.fit}",)) for t in trials_left(plan)]


def carry_out_audit(
    store: Store, run: str, request: RunRequest, writer: Writer, emit: OnEvent
) -> RunResult:
    """Repeat a run's finished trials, replay every query and point, and compare with the store."""
    started = time.perf_counter()
    specs = store.specs(run)
    cores = cores_for(request, len(specs))
    # plugins of this request, not the stored ones; the store may have been moved
    states = str(states_folder(store.path).absolute())
    own: dict[str, Any] = {"plugins": request.plugins, "states": states}
    jobs = [
        Job("audit", replace(spec, audit_mode="full", threads=cores[1], **own)) for spec in specs
    ]
    counts: Counter[str] = Counter()
    failures: list[tuple[str, str, str]] = []

    def keep(outcome: Outcome) -> None:
        writer.attempt(run, outcome)
        key, title, status = outcome.job.spec.key, outcome.job.spec.title, str(outcome.status)
        counts[status] += 1
        if outcome.status != Status.OK:
            failures.append((title, status, outcome.error))
            if outcome.status in _NO_ANSWER:
                reason = f"the audit did not finish: {status}: {outcome.error}"
                writer.audit(key, Verdict("failed", reason))
            return
        verdict = Verdict(outcome.result.audit, outcome.result.error)
        unlike = next(differences(store.trial(key), outcome.result, TOLERANCE), None)
        if verdict.word != "failed" and unlike:
            where, what, then, now = unlike
            wrong = f"{where}: the store has {what} {then!s:.40}, the model gives {now!s:.40}"
            verdict = Verdict("failed", wrong)
        verdict = writer.audit(key, verdict)
        if verdict.reason:
            word = "audit failed" if verdict.word == "failed" else verdict.word
            failures.append((title, word, verdict.reason))

    def result(interrupted: bool = False) -> RunResult:
        refused = tuple(title for title, word, _ in failures if word == "audit failed")
        more: dict[str, Any] = {"failures": tuple(failures), "audit_failures": refused}
        seconds = time.perf_counter() - started
        return RunResult(run, store.path, counts, seconds=seconds, interrupted=interrupted, **more)

    emit(Event("plan", run, total=len(jobs), jobs_total=len(jobs)))
    try:
        JobRunner(request, cores, emit).perform(jobs, keep)
    except KeyboardInterrupt:
        raise Interrupted(result(interrupted=True)) from None
    return result()


def run_jobs(jobs: Sequence[Job], executor: Executor, retries: int = 0) -> Iterator[Outcome]:
    """Run all jobs and yield each outcome when it is available. A job whose dependency failed is
    skipped. A failed job is repeated up to ``retries`` times; every attempt is yielded.

    Ready jobs start in order, scores before fits, so that results appear early. Dependencies
    outside ``jobs`` count as finished.
    """
    order = {job.key: job for job in sorted(jobs, key=lambda job: job.kind == "fit")}
    # unfinished dependencies of each job
    lacks = {key: order.keys() & {*job.needs} for key, job in order.items()}
    above: dict[str, list[Job]] = {}  # jobs that depend on each job
    for key, needs in lacks.items():
        for need in needs:
            above.setdefault(need, []).append(order[key])
    place = {key: number for number, key in enumerate(order)}
    ready = [(place[key], job) for key, job in order.items() if not lacks[key]]  # a heap
    # tries: remaining attempts of each job
    running, tries = 0, dict.fromkeys(order, 1 + retries)
    lost: set[str] = set()

    def lose(cause: Outcome) -> Iterator[Outcome]:
        """Skip jobs that depend on a failed job."""
        for job in above.get(cause.job.key, ()):
            if job.key in lost:
                continue
            lost.add(job.key)
            status, why = cause.status, cause.error
            # the outcome of a trial's own fit is the trial's outcome
            if status != Status.SKIPPED and (job.kind, cause.job.kind) != ("score", "fit"):
                why = f"needs {cause.job.spec.title}: {status} ({why})"
                status = Status.SKIPPED
            yield (skipped := Outcome(job, status, why))
            yield from lose(skipped)

    while ready or running:
        while ready and running < executor.slots:
            executor.submit(heappop(ready)[1])
            running += 1
        outcome = executor.outcome()
        running -= 1
        key = outcome.job.key
        tries[key] -= 1
        yield outcome
        if outcome.status == Status.OK:
            for job in above.get(key, ()):
                lacks[job.key].remove(key)
                if not lacks[job.key]:
                    heappush(ready, (place[job.key], job))
        elif tries[key]:
            place[key] += len(order)  # after all others
            heappush(ready, (place[key], outcome.job))
        else:
            yield from lose(outcome)
