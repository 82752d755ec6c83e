"""Answers of a result that are no tables: the best within a budget, a picture, and one number
for a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.leaderboard.board import UNKNOWN, Row
from bench_core.statistics.intervals import Interval
from bench_core.terminal.wording import cost, quality

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Best:
    """The learner and setting that are best within a budget on validation.

    ``params`` and ``point`` are those most repeats chose, ``at`` says so in words; ``quality`` and
    ``cost`` are on test, the means over repeats; ``features`` says what is bought, a table as of
    ``Result.features``.
    """

    dataset: str
    learner: str
    params: Mapping[str, Any]
    point: Mapping[str, Any]
    at: str
    metric: str
    quality: float
    cost: float
    audit: str
    features: DataFrame
    interval: Interval
    tier: int
    level: tuple[str, ...]

    def __repr__(self) -> str:
        """One line: who, how good, for how much, at which point."""
        low, high = map(quality, self.interval)
        sure = "" if math.isnan(self.interval.low) else f" (95%: {low} to {high})"
        reached = f"{self.metric} {quality(self.quality)}{sure} at a cost of {cost(self.cost)}"
        level = f"; not told apart from {', '.join(self.level)}" if sure and self.level else ""
        return f"{self.dataset}: {self.learner}, {reached} ({self.at}){level}"


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture of a run's curves: shown by notebooks, kept by ``save``."""

    svg: str
    run: str
    write: Callable[[str | PathLike[str]], Path]

    def __repr__(self) -> str:
        """One line: of which run."""
        return f"Figure(curves of {self.run}; save(path) writes .svg, .pdf or .png)"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture as .svg, .pdf or .png, by the name's ending."""
        return self.write(path)


def of_the_curve(row: Row) -> dict[str, float]:
    """The interval of the saving, and area and regret with theirs."""
    saved = row.saved.interval if row.saved else UNKNOWN
    found = {"saving low": saved.low, "saving high": saved.high}
    for name, one in (("area", row.area), ("regret", row.regret)):
        low, high = one.interval if one else UNKNOWN
        found |= {name: one.value if one else math.nan, f"{name} low": low, f"{name} high": high}
    return found
