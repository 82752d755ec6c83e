"""The best that each learner offers within a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_core.results import operating_points as selection
from bench_reports.assembly import audit_mark, pick, varied_parameters
from bench_reports.board import Pick

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.operating_points import Criterion


@dataclass(frozen=True, slots=True)
class Offer:
    """A learner within a budget: what to expect on test, and what it was chosen by.

    ``repeats`` of ``of`` repeats could afford anything.
    """

    learner: str
    pick: Pick
    valid_quality: float
    valid_cost: float
    audit: str
    repeats: int
    of: int


def offers(frame: pd.DataFrame, metric: Criterion, budget: float) -> list[Offer]:
    """All learners that can be afforded on one data set, the best on validation first.

    Those that only some repeats can afford come last.
    """
    points = selection.operating_points(frame, metric.name)
    chosen = selection.under_budget(points, metric.higher_is_better, budget)
    if chosen.empty:
        return []
    of = len(frame[["fold", "seed"]].drop_duplicates())
    found = [
        _offer(row, chosen[chosen["learner"] == row["learner"]], frame, of)
        for _, row in selection.over_repeats(chosen).iterrows()
    ]
    sign = -1 if metric.higher_is_better else 1
    return sorted(
        found, key=lambda o: (o.repeats < o.of, sign * o.valid_quality, o.valid_cost, o.learner)
    )


def _offer(mean: pd.Series[Any], chosen: pd.DataFrame, frame: pd.DataFrame, of: int) -> Offer:
    learner = str(mean["learner"])
    own = frame[frame["learner"] == learner]
    return Offer(
        learner=learner,
        pick=pick(mean, chosen, varied_parameters(own)),
        valid_quality=float(mean["valid_quality"]),
        valid_cost=float(mean["valid_cost"]),
        audit=audit_mark(own),
        repeats=int(mean["repeats"]),
        of=of,
    )


def least_cost(frame: pd.DataFrame, metric: Criterion) -> float:
    """The validation cost of the cheapest point of any learner; NaN without any."""
    points = selection.operating_points(frame, metric.name)
    return float(points["valid_cost"].min()) if len(points) else math.nan
