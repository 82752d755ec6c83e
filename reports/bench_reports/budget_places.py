"""Budgets at which the page and figures compare learners, and the certainty there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import draws_of
from bench_core.leaderboard.certainty import standings
from bench_core.results.budgets import CAP, Budget
from bench_core.statistics.bootstrap import DRAWS

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Standings
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

PLACES = 30
"""Most budgets; each costs a bootstrap of all learners, and a column of intervals in a page."""


def places(budgets: Iterable[float]) -> FloatArray:
    """Return the positive budgets at which some curve rises; of more than ``PLACES`` an even
    selection with the first and the last."""
    paid = np.unique([budget for budget in budgets if budget > 0])
    even = np.linspace(0, len(paid) - 1, min(len(paid), PLACES)).round().astype(int)
    return np.asarray(paid[even])


def standings_at(
    info: RunInfo,
    store: Store,
    frame: pd.DataFrame,
    board: Board,
    budgets: Sequence[Budget],
    resamples: int = DRAWS,
) -> list[Standings]:
    """Return all learners with their intervals at each budget, from the same draws."""
    means = [budget for budget in budgets if budget.kind != CAP]
    draws = draws_of(info, store, frame, board.dataset, resamples=resamples)
    chosen, _ = draws.chosen(means)
    made = {budget: standings(draws, budget, chosen[budget]) for budget in means}
    for cap in (budget for budget in budgets if budget.kind == CAP):
        # each cap has its own points
        draws = draws_of(info, store, frame, board.dataset, cap=cap, resamples=resamples)
        made[cap] = standings(draws, cap, draws.chosen([cap])[0][cap])
    return [made[budget] for budget in budgets]
