"""The page of a run of any size, from made curves: for its size, and for how fast it re-ranks.

Its figures have the spread of real ones: intervals are those of shares on test sets of 100 to
10000 rows and change where a curve steps, what is better on how many units follows from the
qualities, and learners buy more of what they buy early.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from bench_reports.page import render
from bench_reports.page_data import (
    Certainty,
    Content,
    Curve,
    Pick,
    View,
    bought,
    followed,
    groups,
    slider,
    thinned,
)

from bench_core.leaderboard.board import Board, Measure, Row, Saved
from bench_core.leaderboard.board import Pick as Chosen
from bench_core.metrics.frontier import frontier
from bench_core.results.operating_points import Criterion
from bench_core.statistics.intervals import Interval
from helpers import example

BASELINES = ("learner-0", "learner-1")


def page(learners: int, sets: int, points: int = 100) -> str:
    """``learners`` on ``sets`` data sets, each with three views of paths of ``points``."""
    rng = np.random.default_rng(7)
    names = [f"learner-{k}" for k in range(learners)]
    made = {f"data-set-{s}": _views(rng, names, points) for s in range(sets)}
    grid = slider(list(made.values()))
    for found in made.values():
        rows = 10 ** rng.uniform(2, 4)
        for view in found[:2]:
            _certify(rng, view, grid, rows)
    boards = [_board(rng, name, found[0]) for name, found in made.items()]
    uses = tuple(example.use(name, metrics=("accuracy", "log_loss")) for name in made)
    info = example.info(datasets=uses, reference="learner-2", baselines=BASELINES)
    pairs = {name: _pairs(rng, names, found[0], grid) for name, found in made.items()}
    few = Content(made, grid, {}, {}).few
    shown = {name: _bought(rng, found[0], grid, few) for name, found in made.items()}
    return render(info, boards, Content(made, grid, pairs, shown), example.frame())


def _views(rng: np.random.Generator, names: list[str], points: int) -> list[View]:
    """Accuracy by mean cost, the same points by p95 cost, and another metric."""
    accuracy, loss = Criterion("accuracy", True), Criterion("log_loss", False)
    mean = [_curve(rng, name, points, True) for name in names]
    p95 = [replace(c, budget=c.p95) for c in mean]
    return [
        View(accuracy, "mean", 100.0, mean),
        View(accuracy, "p95", 160.0, p95),
        View(loss, "mean", 100.0, [_curve(rng, name, points, False) for name in names]),
    ]


def _curve(rng: np.random.Generator, name: str, points: int, higher: bool) -> Curve:
    budget = np.unique((10 ** rng.uniform(-0.5, 2, points)).round(3))
    best, speed = rng.uniform(0.8, 0.95), rng.uniform(0.3, 1.5)
    truth = best - 0.4 * np.exp(-speed * budget**0.5)
    chosen = frontier(budget, truth + rng.normal(0, 0.001, len(budget)))  # on validation
    kept = np.isin(budget, budget[chosen])
    budget, quality = budget[kept], truth[kept] + rng.normal(0, 0.002, kept.sum())
    n = len(budget)
    tradeoff = np.sort(rng.choice((0.01, 0.03, 0.1, 0.3, 1.0, 3.0), n))[::-1]
    trees = 10 * np.sort(rng.integers(1, 100, n))
    picked = tuple(
        (Pick(0, 0, f'{{"tradeoff": {c:g}}}', f'{{"trees": {t}}}'),)
        for t, c in zip(trees, tradeoff, strict=True)
    )
    costs = budget * rng.uniform(0.98, 1.02, n)
    features = np.linspace(1, 60, n)
    p95 = np.maximum.accumulate(costs * rng.uniform(1.5, 1.7, n)).round(3)
    quality, varied = (quality, picked) if higher else (1 - quality, ())
    return Curve(name, budget, quality, costs, p95, features, varied, frozenset({"tradeoff"}))


def _certify(rng: np.random.Generator, view: View, grid: list[float], rows: float) -> None:
    """Intervals of shares of so many rows, and tiers of three in the order of the qualities."""
    halves = {
        c.learner: 1.96
        * np.sqrt(c.quality * np.abs(1 - c.quality) / rows)
        * rng.normal(1, 0.03, (2, len(c.quality)))
        for c in view.curves
    }
    for share in [*grid, np.inf]:
        at = {c.learner: c.held(share * view.whole) for c in view.curves}
        there = [c for c in view.curves if at[c.learner] >= 0]
        there.sort(key=lambda c: -c.quality[at[c.learner]])
        place = {c.learner: k for k, c in enumerate(there)}
        for c in view.curves:
            sure = None
            if c in there:
                value = c.quality[at[c.learner]]
                low, high = halves[c.learner][:, at[c.learner]]
                k = place[c.learner]
                sure = Certainty(value - low, value + high, k // 3 + 1, max(k - 2, 1), k + 3)
            view.certainty.setdefault(c.learner, []).append(sure)


def _board(rng: np.random.Generator, name: str, view: View) -> Board:
    rows = []
    for c in view.curves:
        best = Chosen(float(c.quality[-1]), float("nan"), float(c.cost[-1]), ())
        cheap = replace(best, cost=best.cost * rng.uniform(0.1, 1))
        saving = 100 / cheap.cost
        sure = Interval(saving * rng.uniform(0.5, 1), saving * 1.3)
        area = float(c.quality.mean())
        within = Interval(area - rng.uniform(0, 0.02), area + rng.uniform(0, 0.02))
        regret = float(rng.uniform(0, 0.1))
        rows.append(
            Row(
                *(c.learner, c.learner == "learner-2", "sampled", 1, best, 1, cheap, saving, ()),
                baseline=c.learner in BASELINES,
                saved=Saved(sure, sure, 1, (1, 3), False),
                area=Measure(area, within),
                regret=Measure(regret, Interval(regret * 0.8, regret * 1.2)),
                fits=20,
                seconds=float(rng.uniform(1, 100)),
            )
        )
    told = (name, "accuracy", True, "path", "units", "learner-2", False, "", (), 1)
    return Board(*told, tuple(rows), (), (), ())


def _pairs(
    rng: np.random.Generator, names: list[str], view: View, grid: list[float]
) -> dict[str, object]:
    """Where one is better: what the qualities say, and as much again by chance."""
    ranked = [curve for curve, _ in view.ranking()]
    chance = {c.learner: rng.normal(0, 3, 2 * len(c.budget)) for c in ranked}

    def won(a: Curve, b: Curve, budget: float) -> tuple[int, int]:
        at = [c.held(budget) for c in (a, b)]
        if min(at) < 0:
            return 0, 0
        gain = a.quality[at[0]] - b.quality[at[1]]
        by = abs(chance[a.learner][at[0]] - chance[b.learner][at[1]])
        both = 10 + by + 100 * np.maximum((gain, -gain), 0)
        return round(float(both[0])), round(float(both[1]))

    amounts = view.amounts(grid)
    gains = [a.quality[-1] - b.quality[-1] for a, b in combinations(ranked[:8], 2)]

    def third(gain: float) -> list[float]:
        return [round(rng.normal(gain, 0.01), 4), round(rng.gamma(9, 0.001), 4)]

    return {
        "units": "queries",
        "learners": [names.index(curve.learner) for curve in ranked],
        "best": [[won(a, b, np.inf) for b in ranked[k + 1 :]] for k, a in enumerate(ranked)],
        "first": 8,
        "within": [[won(a, b, at) for at in amounts] for a, b in combinations(ranked[:8], 2)],
        "kinds": ["rows of a query", "what learner-2 pays"],
        "thirds": [[[third(gain) for _ in range(3)] for _ in range(2)] for gain in gains],
    }


def _bought(
    rng: np.random.Generator, view: View, grid: list[float], few: bool
) -> dict[str, object]:
    """Each learner buys a sensor from a budget of its own on, soon for nearly all rows."""
    amounts = view.amounts(grid)
    whole = followed(view, "learner-2")
    sensors = int(rng.integers(10, 40))
    price = rng.choice((1.0, 2.0, 5.0, 20.0), sensors)
    group, titles = groups(price)
    of = {}
    for k, curve in enumerate(view.curves):
        begins, speed = 10 ** rng.uniform(-1, 2.5, sensors), rng.uniform(1, 4, sensors)
        budget = thinned(curve, amounts, 1).budget
        shares = 1 - np.exp(-np.maximum(budget[:, None] / begins - 1, 0) * speed)
        steps = [
            {"x": float(x), **bought(share, price, group)}
            for x, share in zip(budget, shares, strict=True)
        ]
        of[k] = steps if few or curve.learner in whole else steps[-1:]
    return {"groups": titles, "names": [f"feature {k}" for k in range(sensors)], "of": of}
