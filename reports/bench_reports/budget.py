"""The best that each learner offers within a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_core.results import operating_points
from bench_reports.assembly import audit_mark, pick, varied_parameters
from bench_reports.board import Pick

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.protocols import Metric


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


def offers(frame: pd.DataFrame, metric: Metric, budget: float) -> list[Offer]:
    """All learners that can be afforded on one data set, the best on validation first.

    Those that only some repeats can afford come last.
    """
    chosen = operating_points.under_budget(frame, metric, budget)
    if chosen.empty:
        return []
    of = len(frame[["fold", "seed"]].drop_duplicates())
    found = [
        _offer(row, chosen[chosen["learner"] == row["learner"]], frame, of)
        for _, row in operating_points.over_repeats(chosen).iterrows()
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


def least_cost(frame: pd.DataFrame, metric: Metric) -> float:
    """The validation cost of the cheapest point of any learner; NaN without any."""
    points = operating_points.operating_points(frame, metric)
    return float(points["valid_cost"].min()) if len(points) else math.nan
