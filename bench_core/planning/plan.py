"""Plan of a run: its data sets, fits and trials, and the remaining work; events of that work."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple
from zipfile import is_zipfile

from bench_core.costs.model import CostModel
from bench_core.planning.request import FROM_PYTHON, RunRequest, cores_for
from bench_core.results.records import DatasetUse, FitSpec, Job, RunRecord, TrialSpec
from bench_core.results.store import Store
from bench_core.results.store_files import check_store, state_path, states_folder, store_path

Kind = Literal["prepare", "plan", "start", "progress", "finish", "note"]


@dataclass(frozen=True, slots=True)
class Event:
    """A progress event, passed to ``on_event``.

    ``prepare``  a data set is being read or generated (``done`` of ``total`` if known)
    ``plan``     planning has ended: ``total`` trials, ``done`` of them finished
    ``start``    job ``key`` started in worker ``worker``
    ``progress`` job ``key`` is at ``done`` of ``total`` (trees, blocks of rows)
    ``finish``   job ``key`` ended with ``status`` after ``seconds``; ``trace`` and ``output`` are
                 its traceback and the end of its output
    ``note``     one line for the user (a stand-in, assumed costs, a skipped learner)
    """

    kind: Kind
    message: str = ""
    key: str = ""
    title: str = ""  # short description of the job or data set
    activity: str = ""  # fit, score or audit
    learner: str = ""
    dataset: str = ""
    worker: int = 0  # counted from 1
    status: str = ""
    seconds: float = 0.0
    done: int = 0
    total: int = 0
    jobs_done: int = 0  # finished jobs of the run
    jobs_total: int = 0
    warning: bool = False
    trace: str = ""
    output: str = ""


OnEvent = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore every event."""


def news(kind: Kind, job: Job, **more: Any) -> Event:
    """Create an event about a job."""
    return Event(
        kind,
        key=job.key,
        title=job.spec.title,
        activity=job.kind,
        learner=job.learner,
        dataset=job.spec.dataset,
        **more,
    )


Notify = Callable[[str, bool], None]
"""Function of a line for the user, and True for a warning."""


class Estimate(NamedTuple):
    """Estimated seconds of a plan's jobs, from earlier jobs on the same data set and learner, else
    from typical times."""

    jobs: int
    recorded: int  # jobs with recorded times
    work: float  # total of all jobs
    wall: float  # with parallel workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(RunRecord):
    """Work of a run."""

    run: str  # its name in the store
    fits: tuple[FitSpec, ...]  # each follows the fits it needs
    trials: tuple[TrialSpec, ...]
    costs: Mapping[str, CostModel] = field(default_factory=dict)  # by the keys in fits and trials
    finished: frozenset[str] = frozenset()  # keys of stored trials
    finished_fits: frozenset[str] = frozenset()
    expected: Mapping[str, float] = field(default_factory=dict)  # seconds of remaining jobs, by key
    typical: frozenset[str] = frozenset()  # keys of jobs whose time is not from the store
    skipped: tuple[tuple[str, str], ...] = ()  # (trial key, reason)
    workers: int = 1
    threads: int = 1
    executor: str = "local"

    @property
    def estimate(self) -> Estimate:
        """Estimated time of the remaining jobs."""
        work, longest = sum(self.expected.values()), max(self.expected.values(), default=0.0)
        wall = max(longest, work / self.workers)
        jobs = len(jobs_left(self))
        return Estimate(jobs, len(self.expected) - len(self.typical), work, wall)

    def __repr__(self) -> str:
        """One line: the remaining trials, their data, and the estimated time."""
        names = ", ".join(dict.fromkeys(use.name for use in self.datasets))
        todo = f"{len(trials_left(self))} of {len(self.trials)} trials to do on {names}"
        time = f", about {self.estimate.wall:.0f} s" if self.expected else ""
        return f"Plan({self.run}: {todo}{time})"


def about_run(plan: Plan, request: RunRequest) -> dict[str, Any]:
    """Return the record of a run in the store, as JSON values."""
    values = asdict(replace(request, learners=(), data=(), costs=""))
    values["learners"] = [x if isinstance(x, str) else x.name for x in request.learners]
    values["data"] = [x if isinstance(x, str) else f"{x.name} {FROM_PYTHON}" for x in request.data]
    values["costs"] = request.costs if isinstance(request.costs, str) else FROM_PYTHON
    record = {f.name: getattr(plan, f.name) for f in fields(RunRecord)}
    return {**record, "datasets": [asdict(use) for use in plan.datasets], "request": values}


def trials_left(plan: Plan) -> list[TrialSpec]:
    """Return the trials that are neither finished nor skipped."""
    reasons = dict(plan.skipped)
    return [t for t in plan.trials if t.key not in plan.finished and t.key not in reasons]


def trials_skipped(plan: Plan) -> list[tuple[TrialSpec, str]]:
    """Return the trials that cannot be done, each with the reason."""
    trials = {trial.key: trial for trial in plan.trials if trial.key not in plan.finished}
    return [(trials[key], reason) for key, reason in plan.skipped if key in trials]


def fits_left(plan: Plan) -> list[FitSpec]:
    """Return the remaining fits, each after the fits it needs. A fit that nothing in the plan needs
    is wanted for itself, as in a job file of one fit."""
    used = {trial.fit for trial in plan.trials}.union(*(fit.needs.values() for fit in plan.fits))
    wanted = {trial.fit for trial in trials_left(plan)} | {fit.key for fit in plan.fits} - used
    left: list[FitSpec] = []
    for fit in reversed(plan.fits):
        if fit.key in wanted and fit.key not in plan.finished_fits:
            left.append(fit)
            wanted.update(fit.needs.values())
    return left[::-1]


def jobs_left(plan: Plan) -> list[FitSpec | TrialSpec]:
    """Return the remaining fits and trials."""
    return [*fits_left(plan), *trials_left(plan)]


def expected_seconds(
    jobs: Iterable[FitSpec | TrialSpec], recorded: Iterable[tuple[str, str, float, float]]
) -> dict[str, float]:
    """Estimate seconds by key for each job whose data set and learner were timed before: medians
    over all parameters. ``recorded`` as in ``Store.durations``."""
    by_kind: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for dataset, learner, *seconds in recorded:
        by_kind.setdefault((dataset, learner), []).append((seconds[0], seconds[1]))
    estimates = {}
    for job in jobs:
        fit = isinstance(job, FitSpec)
        kind = job.dataset, job.learner_name if isinstance(job, FitSpec) else job.learner
        if kind in by_kind:
            estimates[job.key] = median(row[0 if fit else 1] for row in by_kind[kind])
    return estimates


TYPICAL = Path(__file__).with_name("typical_seconds.json")
"""By learner: seconds of a fit of a small set and per million of ``rows * sqrt(columns)`` of its
training rows, and of a trial by its validation and test rows; measured by
``tests/speed/typical_seconds.py``."""


def typical_seconds(
    jobs: Iterable[FitSpec | TrialSpec], datasets: Iterable[DatasetUse]
) -> dict[str, float]:
    """Estimate seconds by key for each job from its data set."""
    uses = {use.name: use for use in datasets}
    return {
        job.key: typical_time(
            job.learner_name if isinstance(job, FitSpec) else job.learner,
            uses.get(job.dataset, DatasetUse()),
            fit=isinstance(job, FitSpec),
        )
        for job in jobs
    }


def typical_time(learner: str, use: DatasetUse, *, fit: bool) -> float:
    """Return typical seconds of a fit or a trial from rows, features and classes of a data set; of
    an unknown learner, as of the median learner.

    Ten times the columns take about three and a half times as long (docs/reference/measurements.md,
    growth), so time is taken to grow with the square root of their number."""
    typical, usual = _typical(TYPICAL)
    rows = sum(number for split, number in use.rows.items() if (split == "train") == fit)
    size = rows * math.sqrt(use.features) * (use.classes if use.classes > 2 else 1) / 1e6
    start, slope = typical.get(learner, usual)[:2] if fit else typical.get(learner, usual)[2:]
    return float(start + slope * size)


@cache
def _typical(file: Path) -> tuple[dict[str, list[float]], list[float]]:
    """Return the stored figures of each learner, and their medians."""
    typical = json.loads(file.read_text(encoding="utf-8"))
    return typical, [median(column) for column in zip(*typical.values(), strict=True)]


def resumed(plan: Plan, request: RunRequest) -> Plan:
    """Return a plan with the finished work of the request's store, its workers and times."""
    path = store_path(request.store)
    store = Store(path) if check_store(path) else None
    done, fitted = store.finished() if store and not request.fresh else (frozenset(),) * 2
    # a fit that is not planned again is in the store
    fits = {*(fit.key for fit in plan.fits), *(trial.fit for trial in plan.trials)} & fitted
    states = states_folder(path)
    plan = replace(
        plan,
        finished=done & {trial.key for trial in plan.trials},
        # with a complete model file
        finished_fits=frozenset(key for key in fits if is_zipfile(state_path(states, key))),
        executor=request.executor,
    )
    workers, threads = cores_for(request, len(trials_left(plan)))
    jobs, recorded = jobs_left(plan), store.durations() if store else []
    known = expected_seconds(jobs, recorded)
    guessed = typical_seconds((job for job in jobs if job.key not in known), plan.datasets)
    plan = replace(plan, expected=known | guessed, typical=frozenset(guessed))
    return replace(plan, workers=workers, threads=threads)
