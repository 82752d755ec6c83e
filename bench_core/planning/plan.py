"""The plan of a run: its data sets, fits and trials, and what is left to do of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from zipfile import is_zipfile

from bench_core.costs.model import CostModel
from bench_core.planning.invocation import FROM_PYTHON
from bench_core.planning.request import RunRequest
from bench_core.results.records import FitSpec, RunRecord, TrialSpec
from bench_core.results.store_files import state_path

Notify = Callable[[str, bool], None]
"""Takes one line for the user, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """One data set as a run uses it."""

    name: str
    title: str
    task: str
    stand_in: bool  # generated in place of licensed data
    stand_in_for: str  # the name of those
    fold: int
    seed: int
    size: str  # that of the profile
    fingerprint: str  # a digest of rows and labels
    features: int
    classes: int  # 0 where the task has none
    rows: dict[str, int]  # by split
    queries: dict[str, int]  # by split, 0 where rows are independent
    price_of_everything: float  # of every sensor for one row
    unit: str  # of all prices and costs
    metrics: tuple[str, ...]  # those of the run that suit the task, the primary one first
    notes: tuple[str, ...] = ()
    optimum: Mapping[str, Any] = field(default_factory=dict)  # by metric, or ``metric cap``
    ends: Mapping[str, Any] = field(default_factory=dict)  # by learner: results/marks.py
    caps: tuple[float, ...] = ()  # what no row may cost, measured besides the points of the paths
    budgets: tuple[str, ...] = ()  # to be shown (results/budgets.py), in the prices' unit
    accounting: str = "path"
    same_as: str = ""  # the name of the same data under the run's first accounting

    def under(self, accounting: str) -> DatasetUse:
        """The same data under another accounting, which its name tells."""
        options = self.name.removesuffix(")") + ("," if self.name.endswith(")") else "(")
        name = f"{options}accounting={accounting})"
        return replace(self, name=name, accounting=accounting, same_as=self.name)


class Estimate(NamedTuple):
    """Seconds of those jobs of a plan whose like was timed before."""

    jobs: int
    recorded: int  # of the jobs
    work: float  # of all of them, one after the other
    wall: float  # shared by the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(RunRecord):
    """The work of a run."""

    run: str  # its name in the store
    datasets: tuple[DatasetUse, ...]
    fits: tuple[FitSpec, ...]  # each follows those it stands on
    trials: tuple[TrialSpec, ...]
    costs: Mapping[str, CostModel] = field(default_factory=dict)  # by the keys in fits and trials
    finished: frozenset[str] = frozenset()  # keys of trials that the store has
    finished_fits: frozenset[str] = frozenset()
    expected: Mapping[str, float] = field(default_factory=dict)  # seconds of jobs left, by key
    skipped: tuple[tuple[str, str], ...] = ()  # (trial key, reason)
    workers: int = 1
    threads: int = 1
    executor: str = "local"

    @property
    def estimate(self) -> Estimate:
        """The time that the jobs left may take."""
        work, longest = sum(self.expected.values()), max(self.expected.values(), default=0.0)
        wall = max(longest, work / self.workers)
        return Estimate(len(jobs_left(self)), len(self.expected), work, wall)

    def __repr__(self) -> str:
        """One line: what is to be done, on which data, and how long it may take."""
        names = ", ".join(dict.fromkeys(use.name for use in self.datasets))
        todo = f"{len(trials_left(self))} of {len(self.trials)} trials to do on {names}"
        jobs, recorded, _, wall = self.estimate
        time = f", about {wall:.0f} s" if jobs == recorded > 0 else ""
        return f"Plan({self.run}: {todo}{time})"


def about_run(plan: Plan, request: RunRequest) -> dict[str, Any]:
    """The record of a run in the store, as JSON values."""
    asked = asdict(replace(request, learners=(), data=(), costs=""))
    asked["learners"] = [x if isinstance(x, str) else x.name for x in request.learners]
    asked["data"] = [x if isinstance(x, str) else f"{x.name} {FROM_PYTHON}" for x in request.data]
    asked["costs"] = request.costs if isinstance(request.costs, str) else FROM_PYTHON
    kept = {f.name: getattr(plan, f.name) for f in fields(RunRecord)}
    return {**kept, "datasets": [asdict(use) for use in plan.datasets], "request": asked}


def trials_left(plan: Plan) -> list[TrialSpec]:
    """The trials that are neither finished nor skipped."""
    reasons = dict(plan.skipped)
    return [t for t in plan.trials if t.key not in plan.finished and t.key not in reasons]


def trials_skipped(plan: Plan) -> list[tuple[TrialSpec, str]]:
    """The trials that cannot be done, each with the reason."""
    trials = {trial.key: trial for trial in plan.trials if trial.key not in plan.finished}
    return [(trials[key], reason) for key, reason in plan.skipped if key in trials]


def fits_left(plan: Plan) -> list[FitSpec]:
    """The fits to be done first, in an order in which each follows those it stands on."""
    wanted = {trial.fit for trial in trials_left(plan)}
    left: list[FitSpec] = []
    for fit in reversed(plan.fits):
        if fit.key in wanted and fit.key not in plan.finished_fits:
            left.append(fit)
            wanted.update(fit.needs.values())
    return left[::-1]


def jobs_left(plan: Plan) -> list[FitSpec | TrialSpec]:
    """The fits and the trials to be done."""
    return [*fits_left(plan), *trials_left(plan)]


def expected_seconds(
    jobs: Iterable[FitSpec | TrialSpec], recorded: Iterable[tuple[str, str, float, float]]
) -> dict[str, float]:
    """Seconds of each job whose data set and learner were timed before, by its key: medians over
    all parameters. ``recorded`` as by ``Store.durations``."""
    by_kind: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for dataset, learner, *seconds in recorded:
        by_kind.setdefault((dataset, learner), []).append((seconds[0], seconds[1]))
    found = {}
    for job in jobs:
        fit = isinstance(job, FitSpec)
        kind = job.dataset, job.learner_name if isinstance(job, FitSpec) else job.learner
        if kind in by_kind:
            found[job.key] = median(row[0 if fit else 1] for row in by_kind[kind])
    return found


def usable_fits(fits: Iterable[FitSpec], fitted: Set[str], states: str | Path) -> frozenset[str]:
    """The finished fits whose model is there and not cut off."""
    known = (fit.key for fit in fits if fit.key in fitted)
    return frozenset(key for key in known if is_zipfile(state_path(states, key)))
