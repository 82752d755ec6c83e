"""Quality against cost on the terminal, in letters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bench_core.leaderboard.board import Board, Row
from bench_core.terminal.wording import cost, quality
from bench_reports.board_tables import shortened

LINES = 9
"""Rows of the plot, and so the most learners that are drawn; there are two lines more."""

LABEL = 14
LEAST_WIDTH = 60


def curve_lines(board: Board, width: int) -> list[str]:
    """The board's first learners within each cost on a logarithmic scale, where the first in order
    covers others; none where nothing is to be seen or a terminal is narrow.

    Each line ends in a learner's letter, name and area.
    """
    rows = [row for row in board.rows if row.curve][:LINES]
    if board.costs is None or not rows or width < LEAST_WIDTH:
        return []
    areas = max((len(_area(row)) for row in rows), default=0)
    columns = width - 9 - 4 - LABEL - 1 - areas
    values = np.stack([_read(row, np.geomspace(*board.costs, columns)) for row in rows])
    there = ~np.isnan(values)
    if not there.any() or np.ptp(values[there]) == 0:
        return []
    top, bottom = values[there].max(), values[there].min()
    if not board.higher_is_better:
        top, bottom = bottom, top
    cells = np.full((LINES, columns), " ")
    for k in reversed(range(len(rows))):
        height = np.round((top - values[k, there[k]]) / (top - bottom) * (LINES - 1))
        cells[height.astype(int), there[k]] = chr(ord("a") + k)
    labels = _labels(rows, areas)
    lines = [f"{board.metric} within a mean cost; the area is its mean over these costs"]
    for i in range(LINES):
        edge = quality(top) if i == 0 else quality(bottom) if i == LINES - 1 else ""
        label = labels[i] if i < len(labels) else ""
        lines.append(f"{edge:>7} |{''.join(cells[i])}  {label}".rstrip())
    left, right = (cost(value) for value in board.costs)
    lines.append(f"{'':8}{left}{right:>{columns - len(left) + 1}}")
    return lines


def _labels(rows: Sequence[Row], width: int) -> list[str]:
    short = shortened([row.learner for row in rows], LABEL)
    return [
        f"{chr(ord('a') + k)} {short[row.learner]:<{LABEL}} {_area(row):>{width}}"
        for k, row in enumerate(rows)
    ]


def _area(row: Row) -> str:
    return quality(row.area.value if row.area else math.nan)


def _read(row: Row, costs: np.ndarray) -> np.ndarray:
    at = np.searchsorted([point.budget for point in row.curve], costs * (1 + 1e-9), "right") - 1
    reached = np.array([point.pick.quality for point in row.curve])
    return np.where(at < 0, math.nan, reached[at])
