"""The model of a learner at a limit: its points in each repeat, with mean figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import IntArray
from bench_core.leaderboard.board import NOTHING, Likely, Pick
from bench_core.leaderboard.draws import Chosen, Draws
from bench_core.results.records import AUDITS
from bench_core.statistics import SURE_ERRORS

if TYPE_CHECKING:
    import pandas as pd

LEAST_CHANCE = 0.005
"""Below this a likeliest point is not shown."""


def pick(draws: Draws, chosen: Chosen, k: int) -> Pick:
    """Return a learner's chosen points; ``NOTHING`` if a repeat has none."""
    rows = chosen.row[draws.there[:, k], k]
    if (rows < 0).any():
        return NOTHING
    observed = chosen.quality[:, :, :1]
    observed = np.where(np.isnan(observed), chosen.held[:, :, :1], observed)
    return pick_at(draws, rows, draws.names[k], float(draws.mean(observed)[k]))


def pick_at(draws: Draws, rows: IntArray, name: str, quality: float | None = None) -> Pick:
    """Return the mean over rows, one of each repeat, with the settings of a learner's trials."""
    params, points = draws.settings
    tests, costs = draws.test(rows)
    cost, valid = (float(figures.mean()) for figures in draws.valid(rows))
    return Pick(
        quality=float(tests.mean()) if quality is None else quality,
        cost=float(costs.mean()),
        choices=tuple((points[k], params[k]) for k in rows),
        varied=draws.varied.get(name, frozenset()),
        valid_quality=valid,
        valid_cost=cost,
    )


def likely(draws: Draws, chosen: Chosen, k: int) -> Likely | None:
    """Return the points of a learner that is not sure in some repeat; None where they are unlikely
    or unknown."""
    beyond = chosen.errors[draws.there[:, k], k]
    points = pick(draws, chosen, k)
    if not points or np.isnan(beyond).any():
        return None
    probability = float(np.mean([0.5 * math.erfc(-one / math.sqrt(2)) for one in beyond.tolist()]))
    if probability < LEAST_CHANCE:
        return None
    worst = float(beyond.min())
    return Likely(points, probability, (SURE_ERRORS / worst) ** 2 if worst > 0 else math.inf)


def trials_of(draws: Draws, learner: str) -> pd.DataFrame:
    """Return the trials of a learner."""
    return draws.trials[draws.trials["learner"] == learner]


def audit_mark(own: pd.DataFrame) -> str:
    """Return the weakest audit of a learner's trials."""
    audits = {str(word) for word in own.loc[own["status"] == "ok", "audit"].dropna()} - {""}
    if "failed" in audits:
        return "failed in part"
    return min(audits, key=AUDITS.index, default="declared")
