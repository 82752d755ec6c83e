"""How often the intervals of a board hold the truth: simulated, where it is known.

    pytest -m slow -s tests/core/leaderboard/test_coverage.py

A reference and a worse learner with points of rising cost, on units that are hard for both alike.
The truth is the mean over all boards, or of a saving that of the points that would be chosen if the
means of all units were known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from bench_core.leaderboard.board import SHARE
from bench_core.leaderboard.certainty import _edges, _log_savings
from bench_core.statistics.bootstrap import Candidates, Units, draw_all
from bench_core.statistics.choices import at_budget, at_matched_cost, best, keeping
from bench_core.statistics.comparison import interval
from bench_core.statistics.levels import of_units
from bench_core.statistics.pools import _condensed

BOARDS, BUDGET = 2000, 4.0
COST = np.exp(np.linspace(0, 3, 6))
SKILL = np.stack([0.7 - 0.12 * np.exp(-0.9 * np.arange(6)), 0.698 - 0.05 * np.exp(-np.arange(6.0))])


class Found(NamedTuple):
    """By kind of figure its value and the two ends of its interval, of one board."""

    own: tuple[float, float, float]
    difference: tuple[float, float, float]
    saving: tuple[float, float, float]


def split(rng: np.random.Generator, m: int, blocks: int) -> list[Units]:
    hard, ones = rng.normal(0, 0.25, m), np.ones(m)
    made = []
    for skill in SKILL:
        noise = rng.normal(0, 0.1, m) + rng.normal(0, 0.05, (len(COST), m))
        cost = COST[:, None] * rng.lognormal(-0.125, 0.5, (len(COST), m))
        units = Units(skill[:, None] + hard + noise, cost, ones, ones)
        made.append(_condensed(units, blocks))
    return made


def board(rng: np.random.Generator, valid: int, test: int, blocks: int) -> Found:
    pairs = zip(split(rng, valid, blocks), split(rng, test, blocks), strict=True)
    ways = [
        best(higher=True),
        keeping(SHARE, 0, higher=True),
        at_budget(BUDGET, higher=True),
        at_matched_cost(BUDGET, higher=True),
    ]
    seed = int(rng.integers(1 << 30))
    quality, cost = draw_all([Candidates(v, t) for v, t in pairs], ways, 1000, seed)
    units = min(test, blocks)
    within, matched = of_units(quality[2], units), of_units(quality[3], units)
    logs = of_units(_log_savings(cost, 0), units)
    gap = np.array([1.0, -1.0])
    return Found(
        (float(within.observed[1]), *interval(within, np.array([0.0, 1.0]))),
        (float(gap @ matched.observed), *interval(matched, gap)),
        (saving := float(np.exp(logs.observed[1])), *_edges(logs, 1, saving, 0.95)),
    )


def true_saving() -> float:
    """Of the point that the population chooses."""
    enough = SHARE * SKILL[0].max()
    return float(COST[SKILL[0].argmax()] / COST[SKILL[1] >= enough].min())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("valid", "test", "blocks"),
    [(60, 60, 512), (300, 300, 512), (400, 400, 512), (400, 400, 128)],
)
def test_intervals_hold_the_truth(valid: int, test: int, blocks: int) -> None:
    rng = np.random.default_rng(valid)
    found = [board(rng, valid, test, blocks) for _ in range(BOARDS)]
    share = {}
    for kind in Found._fields:
        value, low, high = np.array([getattr(one, kind) for one in found]).T
        truth = true_saving() if kind == "saving" else float(value.mean())
        share[kind] = float(((low <= truth) & (truth <= high)).mean())
        print(f"{valid:>5}{test:>5}{blocks:>5} {kind:<11} truth {truth:.4f} held {share[kind]:.4f}")
    assert share["own"] == pytest.approx(0.95, abs=0.015)
    assert share["difference"] == pytest.approx(0.95, abs=0.015)
    assert share["saving"] >= 0.935
