"""Ranks of learners over several data sets, with tie tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_core.leaderboard.board import Board
from bench_core.statistics import LEVEL
from bench_core.statistics.comparison import Interval, tiers_and_ranks


@dataclass(frozen=True, slots=True)
class Ranked:
    """A learner's ranks."""

    learner: str
    mean: float  # over data sets
    by_dataset: tuple[float, ...]
    interval: Interval  # of the mean: two of them overlap unless Nemenyi's test separates them
    tier: int  # by Nemenyi's test
    ranks: tuple[int, int]  # best and worst rank by the test


def over_datasets(boards: Sequence[Board]) -> tuple[tuple[str, ...], tuple[Ranked, ...]]:
    """Return the data sets, and the learners that are on all of their boards, best tier first.

    Ranks are by area, or by best quality on boards on which a learner has no area; ties share the
    mean rank. Nemenyi's test separates learners; it treats data sets as fixed. Only the first of
    several boards of the same data counts, and none on which the metric is not defined. Empty for
    fewer than two boards with rows, or for fewer than two learners on all boards.
    """
    import pandas as pd

    boards = [b for b in boards if b.rows and not b.same_as and not b.undefined]
    names = [
        row.learner
        for row in (boards[0].rows if boards else ())
        if all(any(row.learner == other.learner for other in board.rows) for board in boards)
    ]
    if len(boards) < 2 or len(names) < 2:
        return (), ()
    ranks = pd.DataFrame([_losses(board, names) for board in boards]).rank(axis=1).to_numpy()
    apart = least_difference(*ranks.shape)
    better = np.subtract.outer(mean := ranks.mean(axis=0), mean) < -apart
    low, high = np.clip([mean - apart / 2, mean + apart / 2], 1, len(names))
    ends = [Interval(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
    tiers = tiers_and_ranks(better)
    rows = [
        Ranked(name, float(mean[k]), tuple(ranks[:, k].tolist()), ends[k], *tiers[k])
        for k, name in enumerate(names)
    ]
    rows.sort(key=lambda one: (one.tier, one.mean, one.learner))
    return tuple(board.dataset for board in boards), tuple(rows)


_MIXED = "mean quality over all budgets, on some data sets by best quality"


def ranked_by(boards: Sequence[Board]) -> str:
    """Return what ``over_datasets`` ranks by, in words."""
    datasets, ranked = over_datasets(boards)
    names = {one.learner for one in ranked}
    has_area = [
        not any(math.isnan(row.area.value) for row in board.rows if row.learner in names)
        for board in boards
        if board.dataset in datasets
    ]
    if all(has_area):
        return "mean quality over all budgets"
    return _MIXED if any(has_area) else "best quality"


def least_difference(datasets: int, learners: int, share: float = LEVEL) -> float:
    """Return the critical difference of mean ranks (Nemenyi 1963; Demsar 2006)."""
    q = normal_range(share, learners) / math.sqrt(2)
    return q * math.sqrt(learners * (learners + 1) / (6 * datasets))


def normal_range(share: float, count: int) -> float:
    """Return the quantile of the range of ``count`` standard normal values, the studentized range
    of known variance. Importing scipy.stats instead would add half a second to every board."""
    from scipy.special import ndtr

    least, step = np.linspace(-9, 9, 721, retstep=True)  # trapezoids over the least value
    density = count * np.exp(-(least**2) / 2) / math.sqrt(2 * math.pi) * step
    low, high = 0.0, 20.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        within = float(density @ (ndtr(least + middle) - ndtr(least)) ** (count - 1))
        low, high = (middle, high) if within < share else (low, middle)
    return high


def _losses(board: Board, names: Sequence[str]) -> list[float]:
    """Return losses, lower is better: from areas if all learners have one, else best qualities."""
    rows = {row.learner: row for row in board.rows}
    areas = [rows[name].area.value for name in names]
    if any(map(math.isnan, areas)):
        areas = [rows[name].best.quality for name in names]
    return [-value if board.higher_is_better else value for value in areas]
