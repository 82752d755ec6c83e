"""The unfinished part of a plan, and an estimate of its duration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_core.planning.plan import Plan
    from bench_core.results.records import FitSpec, TrialSpec
    from bench_core.results.store import Timing


def trials_left(plan: Plan) -> list[TrialSpec]:
    """The trials that are neither finished nor skipped."""
    reasons = dict(plan.skipped)
    return [t for t in plan.trials if t.key not in plan.finished and t.key not in reasons]


def trials_skipped(plan: Plan) -> list[tuple[TrialSpec, str]]:
    """The trials that cannot be done, each with the reason."""
    reasons = dict(plan.skipped)
    left = (t for t in plan.trials if t.key not in plan.finished)
    return [(t, reasons[t.key]) for t in left if t.key in reasons]


def fits_left(plan: Plan) -> list[FitSpec]:
    """The fits to be done first, in an order in which each follows those it stands on."""
    by_key = {fit.key: fit for fit in plan.fits}
    todo: set[str] = set()
    stack = [trial.fit for trial in trials_left(plan)]
    while stack:
        key = stack.pop()
        if key not in todo and key not in plan.finished_fits:
            todo.add(key)
            stack.extend(by_key[key].needs.values())
    return [fit for fit in plan.fits if fit.key in todo]


def estimated_seconds(plan: Plan, timings: Iterable[Timing]) -> float | None:
    """Seconds for what is left, shared by the workers: medians of what like fits and trials (same
    data set and learner) took; None where nothing like one of them was ever timed."""
    known = list(timings)
    fits = _medians(known, lambda t: t.fit_seconds)
    scores = _medians(known, lambda t: t.score_seconds)
    try:
        total = sum(fits[fit.dataset, fit.learner_name] for fit in fits_left(plan))
        total += sum(scores[trial.dataset, trial.learner] for trial in trials_left(plan))
    except KeyError:
        return None
    return total / plan.workers


def _medians(
    timings: Iterable[Timing], seconds: Callable[[Timing], float]
) -> dict[tuple[str, str], float]:
    by_place: dict[tuple[str, str], list[float]] = {}
    for timing in timings:
        by_place.setdefault((timing.dataset, timing.learner), []).append(seconds(timing))
    return {place: median(values) for place, values in by_place.items()}
