"""Measures of claims: functions from a run's export frame to one figure.

Each measure takes the claim and the rows of its contenders on its data set, in which ``learner``
holds the contenders' labels. Points are chosen on validation, figures are those of the test
split, means over repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bench_core.results import operating_points as selection
from bench_core.results.operating_points import Criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import FloatArray


class _Asked(Protocol):
    """What measures read of a claim: the contenders' names in the frame, the share of the best
    quality to keep, the most that a row may cost on average, and the cost column."""

    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def keeps(self) -> float: ...
    @property
    def budget(self) -> float: ...
    @property
    def cost(self) -> str: ...


def saving(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """1 - the cost at which the first learner keeps a share of the second's best quality, over
    the second's cost at its best."""
    points = _points(claim, frame, metric)
    both = selection.savings(points, metric.higher_is_better, claim.labels[1], claim.keeps)
    own = both[both["learner"] == claim.labels[0]]
    if own.empty or not own["reached"].all():
        return float("nan")
    return 1.0 - float((own["test_cost"] / own["reference_cost"]).mean())


def quality(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's quality within the budget; NaN unless every repeat affords something, as
    a mean would be biased towards those that do."""
    own = frame[frame["learner"] == claim.labels[0]]
    points = _points(claim, own, metric)
    chosen = selection.under_budget(points, metric.higher_is_better, claim.budget)
    every = own.groupby(["fold", "seed"]).ngroups
    return float(chosen["test_quality"].mean()) if len(chosen) == every else float("nan")


def cost(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's cost at its cheapest point that keeps a share of its own best quality."""
    own = frame[frame["learner"] == claim.labels[0]]
    points = _points(claim, own, metric)
    found = selection.savings(points, metric.higher_is_better, claim.labels[0], claim.keeps)
    return float(found["test_cost"].mean()) if found["reached"].all() else float("nan")


def margin(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """The least, over neighbours in the list, of the first's mean quality minus the second's, over
    all budgets that both can afford up to where both have their best."""
    return float(np.min([np.mean(gap) for gap in _gaps(claim, frame, metric)]))


def least_margin(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """As ``margin``, at the budget where it is least: for "always above"."""
    return float(np.min([np.min(gap) for gap in _gaps(claim, frame, metric)]))


def quality_kept(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's quality within the budget over the second's best."""
    best = selection.best_points(_points(claim, frame, metric), metric.higher_is_better)
    other = selection.over_repeats(best[best["learner"] == claim.labels[1]])
    return quality(claim, frame, metric) / float(other["test_quality"].iloc[0])


def time_ratio(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """Median seconds of the first learner's fits over those of the second's."""
    return _seconds(frame, claim.labels[0]) / _seconds(frame, claim.labels[1])


def minutes(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> float:
    """Median minutes of the first learner's fits, of what it stands on not counted."""
    return _seconds(frame, claim.labels[0]) / 60.0


def _points(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> pd.DataFrame:
    return selection.operating_points(frame, metric.name, claim.cost)


def _gaps(claim: _Asked, frame: pd.DataFrame, metric: Criterion) -> list[FloatArray]:
    """For each pair of neighbours how much better the first is, at 101 budgets."""
    sign = 1.0 if metric.higher_is_better else -1.0
    points = _points(claim, frame, metric)
    curves = [
        selection.mean_curve(selection.curve(points, metric.higher_is_better, x))
        for x in claim.labels
    ]
    gaps = []
    for better, worse in pairwise(curves):
        low = max(float(c["budget"].iloc[0]) for c in (better, worse))
        most = max(float(c["budget"].iloc[-1]) for c in (better, worse))
        if claim.budget < low:  # one of both can afford nothing
            return [np.array([np.nan])]
        budgets = np.linspace(low, min(claim.budget, most), 101)
        a, b = (
            c["test_quality"].to_numpy()[np.searchsorted(c["budget"], budgets, "right") - 1]
            for c in (better, worse)
        )
        gaps.append(sign * (a - b))
    return gaps


def _seconds(frame: pd.DataFrame, label: str) -> float:
    fits = frame.drop_duplicates(["learner", "fold", "seed", "params"])
    return float(fits.loc[fits["learner"] == label, "fit_seconds"].median())


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, how many learners it compares at least, and how its figure is written."""

    figure: Callable[[_Asked, pd.DataFrame, Criterion], float]
    learners: int
    form: str


MEASURES: Mapping[str, Measure] = {
    "saving": Measure(saving, 2, "{:.1%}"),
    "quality": Measure(quality, 1, "{:.4g}"),
    "quality-kept": Measure(quality_kept, 2, "{:.1%}"),
    "cost": Measure(cost, 1, "{:.4g}"),
    "margin": Measure(margin, 2, "{:+.4f}"),
    "least-margin": Measure(least_margin, 2, "{:+.4f}"),
    "time-ratio": Measure(time_ratio, 2, "{:.3g}x"),
    "minutes": Measure(minutes, 1, "{:.2g} min"),
}
