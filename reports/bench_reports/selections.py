"""Tables of models at a limit, for ``bench best``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bench_core.leaderboard.columns import CHEAPER, saving_ends
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import Table
from bench_core.terminal.wording import cost, half, quality, saving

if TYPE_CHECKING:
    from bench_core.leaderboard.selection import Selection

SAVING = (CHEAPER, f"{CONFIDENCE} interval")
VALIDATION, RUN = ("validation quality", "validation cost"), ("audit", "repeats")
"""Titles of columns; "quality" is the metric."""


def chance(selection: Selection) -> float:
    """Return the probability that a likeliest model reaches the target."""
    return selection.likely.probability if selection.likely else 0.0


def selections(shown: Sequence[Selection], titles: Sequence[str], title: str) -> Table:
    """Return a table of learners at a limit, with the first one highlighted on a terminal; of
    several budgets, none."""
    metric = shown[0].metric.name
    cells = {name.replace("quality", metric): cell for name, cell in CELLS.items()} | {
        metric: CELLS["quality"]
    }
    titles = [name.replace("quality", metric) if name in VALIDATION else name for name in titles]
    rows = [[cells[name](selection) for name in titles] for selection in shown]
    styles = ["" if k or "budget" in titles else "bold green" for k in range(len(rows))]
    right = [name for name in titles if name not in ("budget", "learner", "at", *RUN)]
    return Table(titles, rows, "learner", right, ("at",), row_styles=styles, title=title)


def _quality(selection: Selection) -> str:
    """Return the test quality, with * within a budget if it is tied for the best."""
    text, standing = quality(selection.pick.quality), selection.standing
    if math.isnan(standing.interval.low):
        return text
    return f"{text}{'*' if standing.tier == 1 else ' '}"


def _saving(selection: Selection) -> str:
    """Return the saving, with ! if it does not count and * if it is tied for the best."""
    if not selection.sure:
        return saving(selection.saving, chance(selection))
    mark = "!" if selection.saved.lost else "*" if selection.saved.tier == 1 else " "
    return saving(selection.saving) + mark


CELLS: dict[str, Callable[[Selection], str]] = {
    "budget": lambda one: str(one.limit),
    "learner": lambda one: one.learner,
    "cost": lambda one: cost(one.pick.cost) + "!" * one.standing.over,
    CHEAPER: _saving,
    f"{CONFIDENCE} interval": lambda one: saving_ends(one.saved.interval),
    "sure": lambda one: "yes" if one.sure else _saving(one),
    "quality": _quality,
    "±": lambda one: half(one.standing.interval),
    "validation quality": lambda one: quality(one.pick.valid_quality),
    "validation cost": lambda one: cost(one.pick.valid_cost),
    "audit": lambda one: one.audit,
    "repeats": lambda one: f"{one.repeats} of {one.of}",
    "at": lambda one: one.pick.settings[0].short,
}
"""The columns of a learner at a limit by title; "!": above the budget by more than chance."""
