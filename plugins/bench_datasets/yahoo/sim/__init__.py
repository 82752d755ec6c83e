"""``yahoo-sim``: a generated stand-in for Yahoo's learning-to-rank set 1.

``docs/yahoo-sim.md`` holds the definition, number by number, and the reasons. Everything is
integer arithmetic on a counter-based hash (``hashing.py``), comparisons and table look-ups, so that
a seed gives the same bits on every machine, in any block order and for any number of threads. Row i
of a split does not depend on how many rows are asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bench_core import Prices, Source, Splits, Task, UsageError, param
from bench_datasets.yahoo._labels import Judgement
from bench_datasets.yahoo.sim._columns import FEATURES, PATTERNS, features
from bench_datasets.yahoo.sim._rows import generate

__all__ = ["PATTERNS", "ROWS", "YahooSim", "YahooSimB", "features", "generate"]

ROWS = {
    "quick": (12000, 4000, 6000),
    "standard": (60000, 15000, 25000),
    "paper": (473134, 71083, 165660),
}


@dataclass(frozen=True)
class YahooSim(Judgement):
    """The generated stand-in for Yahoo set 1."""

    name: ClassVar[str] = "yahoo-sim"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Generated stand-in for Yahoo LTR set 1 (519 priced features)"
    stand_in_for: ClassVar[str] = "yahoo"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")

    pattern: Literal["a", "b"] = param("a", "where the informative features lie")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate the three splits at the profile's size; ``fold`` is ignored."""
        if size not in ROWS:
            raise UsageError(f"size {size!r}: yahoo-sim has quick, standard and paper")
        pattern = PATTERNS[self.pattern]
        threads = min(4, os.cpu_count() or 1)
        train, valid, test = (
            self.judged(generate(pattern, seed, split, rows, threads), split)
            for split, rows in enumerate(ROWS[size])
        )
        cost = np.array([f.price for f in features(pattern)], dtype=np.float64)
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost, split=self.split, unit="feature evaluations"),
            task=Task.RANKING,
            feature_names=tuple(f"f{j}" for j in range(1, FEATURES + 1)),
            stand_in=True,
            notes=("generated stand-in for yahoo: proves that the chain works, not a method",),
        )  # fmt: skip


@dataclass(frozen=True)
class YahooSimB(YahooSim):
    """The same with its informative features elsewhere in the price groups."""

    name: ClassVar[str] = "yahoo-sim-b"
    title: ClassVar[str] = "yahoo-sim with another importance pattern"

    pattern: Literal["a", "b"] = param("b", "where the informative features lie")
