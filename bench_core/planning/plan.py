"""What was asked for, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench_core.planning.request import RunRequest

if TYPE_CHECKING:
    from bench_core.results.records import FitSpec, TrialSpec


Tell = Callable[[str, bool], None]
"""Takes one line for the user, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """One data set as a run uses it."""

    name: str
    title: str
    task: str
    stand_in: bool
    stand_in_for: str
    fold: int
    seed: int
    size: str
    fingerprint: str
    features: int
    classes: int
    rows: dict[str, int]  # by split
    queries: dict[str, int]  # by split, 0 where rows are independent
    price_of_everything: float
    unit: str
    metrics: tuple[str, ...]  # those of the run that suit the task, the primary one first
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do.

    ``fits`` come in an order in which every fit follows those it stands on. ``finished`` holds the
    keys of trials that the store already has. ``seconds`` estimates the work left from earlier
    timings in the store, None where there are none for some of it.
    """

    run: str
    suite: str
    title: str
    profile: str
    reference: str
    accounting: str
    metrics: tuple[str, ...]
    higher_is_better: Mapping[str, bool]
    datasets: tuple[DatasetUse, ...]
    fits: tuple[FitSpec, ...]
    trials: tuple[TrialSpec, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    finished: frozenset[str] = frozenset()
    finished_fits: frozenset[str] = frozenset()
    seconds: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # values of plugins' suite keys
    paper: str = ""
    skipped: tuple[tuple[str, str], ...] = ()  # (trial key, reason)
    workers: int = 1
    threads: int = 1
    executor: str = "local"
    rungs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # data sets of the suite whose files are not there


def about_run(plan: Plan, request: RunRequest) -> dict[str, Any]:
    """What the store keeps about a run, as JSON values."""
    asked = asdict(replace(request, learners=()))
    asked["learners"] = [x if isinstance(x, str) else x.name for x in request.learners]
    return {
        "suite": plan.suite,
        "title": plan.title,
        "paper": plan.paper,
        "profile": plan.profile,
        "reference": plan.reference,
        "rungs": list(plan.rungs),
        "absent": list(plan.absent),
        "accounting": plan.accounting,
        "metrics": list(plan.metrics),
        "higher_is_better": dict(plan.higher_is_better),
        "datasets": [asdict(use) for use in plan.datasets],
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
        "extra": dict(plan.extra),
        "request": asked,
    }
