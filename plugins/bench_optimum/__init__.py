"""Columns of the distance to the known optimum, on boards of data sets that state one.

The optimum is the best expected quality of any model, in corners of cost and quality: for mean
costs, between which two policies may be mixed, and for caps, which every row keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import hookimpl
from bench_core.leaderboard.columns import Column, budget_columns
from bench_core.results.budgets import Budget
from bench_core.terminal.wording import quality

if TYPE_CHECKING:
    from bench_core.leaderboard.board import Board, Row
    from bench_core.protocols import ColumnsOf


@hookimpl
def bench_columns() -> Mapping[str, ColumnsOf]:
    """Return the columns by name."""
    return {"to-optimum": to_optimum}


def to_optimum(board: Board) -> Iterator[Column]:
    """Yield the distance at any cost and at each budget whose optimum is known."""
    optima: Mapping[str, Any] = board.use.optimum
    corners = optima.get(board.metric) or ()
    if corners:
        yield _column(board, "to optimum", corners[-1][1], lambda row: row.best.quality)
    within = [column for column in budget_columns(board) if column.tier]
    for at, column in zip(board.standings, within, strict=True):
        budget = at.budget or Budget(np.inf)
        caps = optima.get(f"{board.metric} {budget.kind}") or ()
        best = optimum_within(budget, caps if budget.kind == "cap" else corners)
        if not np.isnan(best):
            yield _column(board, f"to optimum {column.title}", best, column.value)


def optimum_within(budget: Budget, corners: Sequence[tuple[float, float]]) -> float:
    """Return the best quality within a budget, NaN if unknown."""
    paid = budget.amount * (1 + 1e-9)
    below = [quality for cost, quality in corners if cost <= paid]
    if not below:
        return np.nan
    if budget.kind == "cap":
        return below[-1]
    costs, qualities = np.array(corners).T
    return float(np.interp(budget.amount, costs, qualities))


def _column(board: Board, title: str, best: float, reached: Callable[[Row], Any]) -> Column:
    sign = 1 if board.higher_is_better else -1

    def distance(row: Row) -> float:
        return sign * (best - float(reached(row)))

    about = f"distance in {board.metric} to the known optimum ({quality(best)} at any cost)"
    about = about if title == "to optimum" else ""
    return Column(title, distance, lambda row: quality(distance(row)), about)
