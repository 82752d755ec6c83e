"""The page of a run of any size, from made curves: for its size, and for how fast it re-ranks."""

from __future__ import annotations

import numpy as np
from bench_reports import views
from bench_reports.html import render
from bench_reports.payload import Content
from bench_reports.views import Certainty, Curve, View

from bench_core.leaderboard.board import Board, Pick, Row
from bench_core.metrics.frontier import frontier
from bench_core.results.operating_points import Criterion
from helpers import example

BASELINES = ("learner-0", "learner-1")


def page(learners: int, sets: int, points: int = 100) -> str:
    """``learners`` on ``sets`` data sets, each with three views of paths of ``points``."""
    rng = np.random.default_rng(7)
    names = [f"learner-{k}" for k in range(learners)]
    made = {f"data-set-{s}": _views(rng, names, points) for s in range(sets)}
    grid = views.shares([found[0] for found in made.values()])
    for found in made.values():
        for view in found[:2]:
            _certify(rng, view, grid)
    boards = [_board(name, found[0], grid) for name, found in made.items()]
    uses = tuple(example.use(name, metrics=("accuracy", "log_loss")) for name in made)
    info = example.info(datasets=uses, reference="learner-2", baselines=BASELINES)
    pairs = {name: _pairs(rng, learners) for name in made}
    return render(info, boards, Content(made, grid, pairs, {}), example.frame())


def _views(rng: np.random.Generator, names: list[str], points: int) -> list[View]:
    kinds = (("accuracy", "mean", 160), ("accuracy", "p95", 160), ("log_loss", "mean", 53))
    return [
        View(
            Criterion(metric, metric == "accuracy"),
            kind,
            100.0,
            [_curve(rng, name, points, places, metric == "accuracy") for name in names],
        )
        for metric, kind, places in kinds
    ]


def _curve(rng: np.random.Generator, name: str, points: int, places: int, higher: bool) -> Curve:
    budget = np.sort(10 ** rng.uniform(-0.5, 2, points))
    best, speed = rng.uniform(0.8, 0.95), rng.uniform(0.3, 1.5)
    truth = best - 0.4 * np.exp(-speed * budget**0.5)
    chosen = frontier(budget, truth + rng.normal(0, 0.001, points))  # on validation
    kept = np.isin(budget, views.thinned(budget[chosen], places))
    budget, quality = budget[kept], truth[kept] + rng.normal(0, 0.002, kept.sum())
    n = len(budget)
    tradeoff = np.sort(rng.choice((0.01, 0.03, 0.1, 0.3, 1.0, 3.0), n))[::-1]
    trees = 10 * np.sort(rng.integers(1, 100, n))
    words = tuple(f"trees={t} with tradeoff={c:g}" for t, c in zip(trees, tradeoff, strict=True))
    costs = budget * rng.uniform(0.98, 1.02, n)
    features = np.linspace(1, 60, n)
    settings = words if higher else ()
    return Curve(
        name, budget, quality if higher else 1 - quality, costs, 1.6 * costs, features, settings
    )


def _certify(rng: np.random.Generator, view: View, grid: list[float]) -> None:
    """Tiers of three in the order of the qualities."""
    for share in [*grid, np.inf]:
        at = {c.learner: c.held(share * view.whole) for c in view.curves}
        there = [c for c in view.curves if at[c.learner] >= 0]
        there.sort(key=lambda c: -c.quality[at[c.learner]])
        place = {c.learner: k for k, c in enumerate(there)}
        for c in view.curves:
            sure = None
            if c in there:
                value, half = c.quality[at[c.learner]], rng.uniform(0.004, 0.006)
                k = place[c.learner]
                sure = Certainty(value - half, value + half, k // 3 + 1, max(k - 2, 1), k + 3)
            view.certainty.setdefault(c.learner, []).append(sure)


def _board(name: str, view: View, grid: list[float]) -> Board:
    rows = []
    for c in view.curves:
        best = Pick(float(c.quality[-1]), float("nan"), float(c.cost[-1]), ())
        reference = c.learner == "learner-2"
        row = Row(
            c.learner, reference, "sampled", 1, best, 1, best, 1.5, (), c.learner in BASELINES
        )
        rows.append(row)
    return Board(
        name,
        "accuracy",
        True,
        "path",
        "units",
        "learner-2",
        False,
        "",
        (),
        1,
        tuple(rows),
        (),
        (),
        (),
    )


def _pairs(rng: np.random.Generator, learners: int) -> dict[str, object]:
    kinds = ("rows of a query", "cost to learner-2")
    parts = {kind: rng.normal(0, 0.01, (3, 2)).round(5).tolist() for kind in kinds}
    thirds = {f"{i}-{j}": parts for j in range(8) for i in range(j)}
    shares = rng.integers(0, 50, learners * (learners - 1)).tolist()
    return {
        "units": "queries",
        "learners": [*range(2, learners), 0, 1],
        "shares": shares,
        "thirds": thirds,
    }
