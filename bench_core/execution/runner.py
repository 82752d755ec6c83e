"""Carry out a plan: jobs in order to executors, outcomes to the store, events to the caller."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core._io.machine import memory
from bench_core.execution.events import Event, OnEvent, news
from bench_core.planning.plan import Plan, about_run, fits_left, trials_left, trials_skipped
from bench_core.planning.request import DAY, RunRequest, cores_for
from bench_core.plugins import Registry
from bench_core.results.differences import TOLERANCE, differences
from bench_core.results.records import (
    FitSpec,
    Job,
    Outcome,
    Status,
    Verdict,
)
from bench_core.results.store import Store
from bench_core.results.store_files import states_folder

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.execution.executors import InlineExecutor, LocalExecutor
    from bench_core.results.writer import Writer


_NO_ANSWER = (Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.CRASHED)
"""How an audit may end that fails its trial, as no answer is one that was verified."""

MEMORY_SHARE = 0.8
"""The part of the machine's memory that the jobs of a run may use together."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    ``counts`` are trials by status (ok, failed, timeout, out-of-memory, crashed, skipped) and
    ``reused`` how many of them were there before; ``failures`` lists title, status and error of
    those that are not ok, ``audit_failures`` the titles of trials that the replay audit refused.
    After an audit ``failures`` also lists those whose costs stay declared, with the reason.
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
        return Store(self.store).frame(self.run)


@dataclass(slots=True)
class Kept:
    """What this process keeps from one part of a run to the next: idle workers, plugins, and the
    names of data that were compared and of learners that were compiled."""

    executor: LocalExecutor | None = None
    registry: Registry | None = None
    seen: set[str] = field(default_factory=set)

    def new(self, names: Iterable[str]) -> list[str]:
        """The names that were not seen before, which they are from now on."""
        found = [name for name in dict.fromkeys(names) if name not in self.seen]
        self.seen.update(found)
        return found

    def close(self) -> None:
        """End the workers."""
        if self.executor is not None:
            self.executor.close()
            self.executor = None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; finished work is kept, ``result`` holds the trials that ended."""

    def __init__(self, result: RunResult) -> None:
        done = ", ".join(f"{n} {status}" for status, n in result.counts.items()) or "nothing"
        super().__init__(f"interrupted: {done} kept in {result.store}; the same call goes on")
        self.result = result


def carry_out(
    plan: Plan,
    request: RunRequest,
    writer: Writer,
    emit: OnEvent,
    warm_up: Callable[[Iterable[str]], None],
    *,
    about: Mapping[str, Any] | None = None,
    listed: Sequence[str] = (),
    here: Callable[[Job], Job] = lambda job: job,
    kept: Kept | None = None,
) -> RunResult:
    """Do what is unfinished of a plan. Raises ``Interrupted`` on Ctrl-C.

    ``warm_up`` is given the names of the learners to be fitted: what is compiled once and for all
    must neither be paid by each worker nor count in a fit's seconds. Where the plan is a part of a
    run, ``about`` and ``listed`` are what is kept of the whole and the keys of all its trials.
    ``here`` gives a job the places of its files on this machine; they are not kept. What ``kept``
    holds is used, and stays for the next part.
    """
    started = time.perf_counter()

    def keep(outcome: Outcome, tried: bool = True) -> None:
        outcome = replace(outcome, job=planned.get(outcome.job.key, outcome.job))
        spec = outcome.job.spec
        with writer.transaction():
            if tried:
                writer.attempt(plan.run, outcome)
            if isinstance(spec, FitSpec):
                writer.fit(outcome)
            else:
                writer.trial(spec, outcome)

    writer.costs(plan.costs)
    whole = about or about_run(plan, request)
    writer.begin(plan.run, whole, listed or [t.key for t in plan.trials])
    jobs = _jobs(plan)
    planned = {job.key: job for job in jobs}
    there = (len(plan.finished), len(plan.trials))
    emit(Event("plan", plan.run, done=there[0], total=there[1], jobs_total=len(jobs)))
    try:
        for trial, reason in trials_skipped(plan):
            keep(Outcome(Job("score", trial), Status.SKIPPED, reason), tried=False)
        jobs = list(map(here, jobs))
        known = kept or Kept()
        if jobs and (learners := known.new(job.learner for job in jobs if job.kind == "fit")):
            warm_up(learners)
        _perform(jobs, request, (plan.workers, plan.threads), emit, keep, kept)
    except BaseException as error:
        writer.end(plan.run, "interrupted")
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted(result_of(plan, writer.path, started, interrupted=True)) from None
        raise
    writer.end(plan.run, "finished")
    return result_of(plan, writer.path, started)


def result_of(plan: Plan, path: Path, started: float, interrupted: bool = False) -> RunResult:
    """How the trials of a run stand in the store at ``path``."""
    ended = Store(path).ended(plan.run)
    return RunResult(
        run=plan.run,
        store=path,
        counts=Counter(t.status for t in ended),
        reused=len(plan.finished),
        audit_failures=tuple(t.title for t in ended if t.audit == "failed"),
        notes=plan.notes,
        warnings=plan.warnings,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        failures=tuple((t.title, t.status, t.error) for t in ended if t.status != "ok"),
    )


def _jobs(plan: Plan) -> list[Job]:
    """What is to be done of a plan: fits of baselines, then of the reference, so that an
    interrupted run has a board; then what other fits stand on, and last what stands on others; of
    each the longest first."""
    early = {plan.reference: 1, **dict.fromkeys(plan.baselines, 0)}
    left = fits_left(plan)
    needed = {key for fit in left for key in fit.needs.values()}

    def rank(fit: FitSpec) -> int:
        return early.get(fit.learner_name, 2 if fit.key in needed else 4 if fit.needs else 3)

    def place(fit: FitSpec) -> tuple[int, float]:
        return rank(fit), -plan.expected.get(fit.key, 0.0)

    jobs = []
    for fit in sorted(left, key=place):
        needs = tuple(f"fit:{key}" for key in fit.needs.values())
        jobs.append(Job("fit", replace(fit, threads=plan.threads), needs))
    for trial in trials_left(plan):
        spec = replace(trial, threads=plan.threads, workers=plan.workers)
        jobs.append(Job("score", spec, (f"fit:{trial.fit}",)))
    return jobs


def carry_out_audit(
    store: Store,
    run: str,
    request: RunRequest,
    writer: Writer,
    emit: OnEvent,
) -> RunResult:
    """Do a run's finished trials again, replay every query and point, compare with the store."""
    started = time.perf_counter()
    # not what the store names
    trusted: dict[str, Any] = {"plugins": request.plugins, "modules": ()}
    specs = [replace(spec, **trusted) for spec in store.specs(run)]
    cores = cores_for(request, len(specs))
    states = str(states_folder(store.path).absolute())  # the store may have been moved
    jobs = [
        Job("audit", replace(spec, audit_mode="full", threads=cores[1], states=states))
        for spec in specs
    ]
    counts: Counter[str] = Counter()
    failures: list[tuple[str, str, str]] = []
    refused: list[str] = []

    def keep(outcome: Outcome) -> None:
        writer.attempt(run, outcome)
        key, title = outcome.job.spec.key, outcome.job.spec.title
        counts[str(outcome.status)] += 1
        if outcome.status in _NO_ANSWER:
            reason = f"the audit had no answer: {outcome.status}: {outcome.error}"
            writer.audit(key, Verdict("failed", reason))
        if outcome.status != Status.OK:
            failures.append((title, str(outcome.status), outcome.error))
            return
        verdict = Verdict(outcome.result.audit, outcome.result.error)
        unlike = next(differences(store.trial(key), outcome.result, TOLERANCE), None)
        if verdict.word != "failed" and unlike:
            where, what, then, now = unlike
            wrong = f"{where}: the store says {what} {then!s:.40}, the model gives {now!s:.40}"
            verdict = Verdict("failed", wrong)
        verdict = writer.audit(key, verdict)
        if verdict.word == "failed":
            refused.append(title)
            failures.append((title, "audit failed", verdict.reason))
        elif verdict.word == "declared":
            failures.append((title, "declared", verdict.reason))

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
        _perform(jobs, request, cores, emit, keep)
    except KeyboardInterrupt:
        raise Interrupted(result(interrupted=True)) from None
    return result()


def _perform(
    jobs: Sequence[Job],
    request: RunRequest,
    cores: tuple[int, int],
    emit: OnEvent,
    keep: Callable[[Outcome], None],
    kept: Kept | None = None,
) -> None:
    """Do all jobs and ``keep`` each outcome; whatever happens, no process is left behind but the
    idle workers that are ``kept``."""
    from bench_core.execution.executors import InlineExecutor, LocalExecutor

    ended: set[str] = set()

    def count(event: Event) -> None:
        emit(replace(event, jobs_done=len(ended), jobs_total=len(jobs)))

    if request.executor == "inline":
        executor: InlineExecutor | LocalExecutor = InlineExecutor(count)
        if request.timeout not in (0.0, DAY) or request.memory:
            line = "limits on time and memory do not hold inline: nothing can be killed there"
            count(Event("note", line, warning=True))
    elif kept and kept.executor:
        executor, kept.executor = kept.executor, None
        executor.on_event = count
    else:
        share = int(MEMORY_SHARE * memory() / cores[0])
        limit, most = request.memory or share, request.memory
        executor = LocalExecutor(*cores, count, request.timeout, limit, most)
    try:
        for outcome in run_jobs(jobs, executor, request.retries):
            keep(outcome)
            ended.add(outcome.job.key)
            texts = {"message": outcome.error, "trace": outcome.trace, "output": outcome.output}
            seconds, status = outcome.seconds, str(outcome.status)
            count(news("finish", outcome.job, seconds=seconds, status=status, **texts))
        if kept and isinstance(executor, LocalExecutor):
            kept.executor = executor
    finally:
        if not (kept and kept.executor):
            executor.close()


def run_jobs(
    jobs: Sequence[Job], executor: InlineExecutor | LocalExecutor, retries: int = 0
) -> Iterator[Outcome]:
    """Run all jobs and yield how each ended, as they end; one whose need failed is skipped. One
    that failed is tried again up to ``retries`` times, and every attempt is yielded.

    Of ``jobs`` that can begin, the first is taken, a score before a fit, so that there are rows
    early; a need that is not among them is taken as done.
    """
    order = {job.key: job for job in sorted(jobs, key=lambda job: job.kind == "fit")}
    lacks = {key: order.keys() & {*job.needs} for key, job in order.items()}
    above: dict[str, list[Job]] = {}  # what waits for each job
    for key, needs in lacks.items():
        for need in needs:
            above.setdefault(need, []).append(order[key])
    place = {key: number for number, key in enumerate(order)}
    ready = [(place[key], job) for key, job in order.items() if not lacks[key]]  # a heap
    running, tries = 0, dict.fromkeys(order, 1 + retries)
    lost: set[str] = set()
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
            yield from _hopeless(outcome, above, lost)


def _hopeless(
    failed: Outcome, above: Mapping[str, Sequence[Job]], lost: set[str]
) -> Iterator[Outcome]:
    """What can no longer run, since it stands on a job that ``failed``; it is ``lost``."""
    due = deque([failed])
    while due:
        cause = due.popleft()
        for job in above.get(cause.job.key, ()):
            if job.key not in lost:
                lost.add(job.key)
                due.append(_skip(job, cause))
                yield due[-1]


def _skip(job: Job, cause: Outcome) -> Outcome:
    if cause.status == Status.SKIPPED:
        return Outcome(job, Status.SKIPPED, cause.error)
    if job.kind == "score" and cause.job.kind == "fit":
        # the trial's own fit: how it ended is how the trial ended
        return Outcome(job, cause.status, cause.error)
    reason = f"stands on {cause.job.spec.title}: {cause.status} ({cause.error})"
    return Outcome(job, Status.SKIPPED, reason)
