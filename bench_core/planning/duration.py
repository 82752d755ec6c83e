"""The time of a plan, from durations recorded in the store; nothing is guessed."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from bench_core.results.records import FitSpec, TrialSpec

Seconds = Mapping[tuple[str, str], tuple[float, float]]
"""By data set and learner: the median seconds of a fit and of a trial."""


class Estimate(NamedTuple):
    """Seconds of those jobs of a plan whose like is recorded: ``recorded`` of ``jobs``."""

    jobs: int
    recorded: int
    work: float  # of all of them, one after the other
    wall: float  # shared by the workers


NOTHING_TO_DO = Estimate(0, 0, 0.0, 0.0)


def median_seconds(
    recorded: Mapping[tuple[str, str, str], Sequence[tuple[float, float, float]]],
) -> Seconds:
    """Medians over all parameters of a learner; ``recorded`` as by ``Store.durations``."""
    by_kind: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for (dataset, learner, _), rows in recorded.items():
        by_kind.setdefault((dataset, learner), []).extend(rows)
    return {
        kind: (median(row[0] for row in rows), median(row[1] for row in rows))
        for kind, rows in by_kind.items()
    }


def job_seconds(jobs: Iterable[FitSpec | TrialSpec], seconds: Seconds) -> dict[str, float]:
    """Seconds of each job whose data set and learner were timed before, by its key."""
    found = {}
    for job in jobs:
        fit = isinstance(job, FitSpec)
        kind = job.dataset, job.learner_name if isinstance(job, FitSpec) else job.learner
        if kind in seconds:
            found[job.key] = seconds[kind][0 if fit else 1]
    return found


def estimate(jobs: int, known: Mapping[str, float], workers: int) -> Estimate:
    """The estimate for so many jobs, of which those in ``known`` have recorded durations."""
    work = sum(known.values())
    longest = max(known.values(), default=0.0)
    return Estimate(jobs, len(known), work, max(longest, work / workers))
