"""How much faster the greedy tree is trained than the jointly optimised one, and what it loses.

    pytest -m speed tests/speed/test_astc.py

The base's boosted trees are trained beforehand and not counted. What is: ``training``, from the
trees' outputs for the rows to the tree of classifiers (``cstc``: initialisation and joint
optimisation; ``astc``: the moments of all rows and the greedy picks); ``fit``, everything, the
walk of the trees over the rows included; ``next``, one more fit on the same rows and base as a run
does it, with the arrays that both keep for it (the trees' outputs; ``astc`` its moments too). Then
quality and cost on the test rows. Both take turns.

``-k quality`` alone: what the best of a grid of trade-offs reaches on test rows within a budget,
chosen on validation. Never fails on a time. BENCH_SPEED_ROUNDS changes the rounds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_datasets.letters import Letters
from bench_datasets.thyroid import Thyroid
from bench_datasets.yahoo import YahooSim
from bench_methods.cstc import ASTC, CSTC
from bench_methods.cstc.astc import greedy_tree
from bench_methods.cstc.inputs import inputs
from bench_methods.cstc.tree import Shape
from bench_methods.gbrt import GBRT
from bench_models.least_squares import one_blas_thread
from bench_models.tradeoff import price_of_cost
from helpers.cstc_cases import synthetic, tradeoff
from helpers.fakes import FakeContext
from paired import alternate, report

from bench_core import Examples, Prices, Splits, Task
from bench_core._io.large_arrays import shared_arrays
from bench_core.datasets.data_folder import DataFolder

pytestmark = pytest.mark.speed

ROUNDS = int(os.environ.get("BENCH_SPEED_ROUNDS", "3"))


@dataclass
class RunContext(FakeContext):
    """Shares arrays through files, as a run does."""

    folder: Path = Path()

    def shared(self, name: str, build: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        return shared_arrays(self.folder / name, build)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = work()
    return time.perf_counter() - begin, found


def training(learner: Any, splits: Splits, context: Any) -> float:
    """Seconds from the columns to the tree of classifiers."""
    with one_blas_thread():
        found, problem = inputs(
            learner.name, learner.base, splits.train, splits.prices, context, standardise=False
        )
        price = price_of_cost(learner.tradeoff, problem.constant_loss, splits.prices.everything)
        if isinstance(learner, ASTC):
            shape, rule = Shape.balanced(learner.depth), learner._rule(price, splits.prices)
            return seconds(lambda: greedy_tree(problem, shape, rule, constant=True))[0]
        return seconds(lambda: learner._fitted(problem, found, price, splits.prices, context))[0]


def measured(learner: Any, splits: Splits, context: Any) -> dict[str, float]:
    """Seconds in a context that holds nothing yet, and the last point on the test rows."""

    def fit() -> Any:
        return learner.fit(splits.train, splits.valid, splits.prices, context)

    first, again = seconds(fit), seconds(fit)
    point = list(again[1].predict_path(splits.test.features))[-1]
    values = context.metric.values(
        point.scores, splits.test.y, splits.test.queries, splits.test.multiplicity
    )
    return {
        "training": training(learner, splits, context),
        "fit": first[0],
        "next": again[0],
        "quality": float(values.mean),
        "cost": float(point.bills["path"].feature_cost(splits.prices, len(splits.test)).mean()),
    }


def compare(
    name: str, benchmark: Any, splits: Splits, pair: list[Any], models: Any, folder: Path
) -> None:
    """Both learners in turns; the first round, which loads modules, is left out."""
    rounds: dict[str, list[dict[str, float]]] = {"cstc": [], "astc": []}
    for turn in range(ROUNDS + 1):
        for learner in pair:
            own = folder / f"{learner.name}-{turn}"
            context = RunContext(splits.task, 2, models=models, folder=own)
            rounds[learner.name].append(measured(learner, splits, context))
    facts = {
        f"{key}, {who}": median(r[key] for r in several[1:])
        for who, several in rounds.items()
        for key in ("quality", "cost")
    }
    for key in ("training", "fit", "next"):
        seconds = {who: [r[key] for r in rounds[who][1:]] for who in ("astc", "cstc")}
        own = facts if key == "training" else None
        report(benchmark, seconds, work=f"{name}: {key}", peers=["cstc"], facts=own)
    assert all(np.isfinite(r["quality"]) for several in rounds.values() for r in several)


@pytest.mark.benchmark(group="astc")
def test_on_the_synthetic_problem(benchmark: Any, tmp_path: Path) -> None:
    splits = synthetic(0)
    pair = [
        kind(base=None, tradeoff=tradeoff(splits, price))
        for kind, price in ((CSTC, 0.08), (ASTC, 0.035))
    ]
    compare("cstc-synthetic (mse)", benchmark, splits, pair, {}, tmp_path)


@pytest.mark.benchmark(group="astc")
@pytest.mark.parametrize("value", [0.01, 0.1])
@pytest.mark.parametrize("trees", [100, 300])
def test_on_letters(
    trees: int, value: float, benchmark: Any, real_data: Path, tmp_path: Path
) -> None:
    splits = Letters().prepare(DataFolder(real_data), "quick", 0, 0)
    on_trees(f"letters, {trees} trees", GBRT(trees=trees), value, splits, benchmark, tmp_path)


@pytest.mark.benchmark(group="astc")
@pytest.mark.parametrize(("size", "trees"), [("quick", 100), ("standard", 300)])
def test_on_ranking(size: str, trees: int, benchmark: Any, tmp_path: Path) -> None:
    splits = YahooSim().prepare(None, size, 0, 0)  # type: ignore[arg-type]
    name = f"yahoo-sim {size}, {trees} trees of depth 2"
    on_trees(name, GBRT(trees=trees, depth=2), 0.3, splits, benchmark, tmp_path)


def on_trees(
    name: str, base: GBRT, value: float, splits: Splits, benchmark: Any, folder: Path
) -> None:
    context = FakeContext(splits.task, 2, threads=2)
    models = {base: base.fit(splits.train, splits.valid, splits.prices, context)}
    pair = [kind(base=base, tradeoff=value) for kind in (CSTC, ASTC)]
    compare(f"{name}, tradeoff {value}", benchmark, splits, pair, models, folder)


# data set: its base, the trade-offs tried, and budgets per row
GRIDS: dict[str, tuple[GBRT | None, list[float], list[float]]] = {
    "cstc-synthetic": (None, [0.1, 0.2, 0.35, 0.5, 0.8, 1.12, 1.3, 2], [2, 7, 12, 42]),
    "letters": (GBRT(trees=100), [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3], [14, 15, 15.5, 16]),
    "thyroid": (
        GBRT(trees=100, depth=2),
        [0.003, 0.01, 0.03, 0.1, 0.3, 1, 3],
        [5, 25, 40, 60],
    ),
    "yahoo-sim": (
        GBRT(trees=100, depth=2),
        [0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 2, 3, 10],
        [200, 500, 1000, 2000, 5000],
    ),
}


def prepared(name: str, folder: Path) -> Splits:
    """The data at the size ``quick``; thyroid's two diseases are one class."""
    if name == "cstc-synthetic":
        return synthetic(0)
    kinds: dict[str, Any] = {"letters": Letters, "thyroid": Thyroid, "yahoo-sim": YahooSim}
    splits: Splits = kinds[name]().prepare(DataFolder(folder), "quick", 0, 0)
    if name != "thyroid":
        return splits
    parts = {
        part: replace(rows, y=(rows.y < 2).astype(float))
        for part in ("train", "valid", "test")
        for rows in [getattr(splits, part)]
    }
    return replace(splits, task=Task.BINARY, classes=2, **parts)


def judged(point: Any, rows: Examples, prices: Prices, metric: Any) -> tuple[float, float]:
    """Mean cost of a row, evaluation included, and quality."""
    bill, n = point.bills["path"], len(rows)
    cost = bill.feature_cost(prices, n) + bill.evaluation_cost(prices, n)
    values = metric.values(point.scores, rows.y, rows.queries, rows.multiplicity)
    return float(np.mean(cost)), float(values.mean)


@pytest.mark.benchmark(group="astc quality")
@pytest.mark.parametrize("name", list(GRIDS))
def test_quality_at_equal_cost(name: str, benchmark: Any, real_data: Path) -> None:
    base, grid, budgets = GRIDS[name]
    splits = prepared(name, real_data)
    context = FakeContext(splits.task, splits.classes, threads=2)
    fit = (splits.train, splits.valid, splits.prices, context)
    context.models = {} if base is None else {base: base.fit(*fit)}
    sign = 1.0 if context.metric.higher_is_better else -1.0
    points: dict[str, list[Any]] = {"astc": [], "cstc": []}
    samples: dict[str, list[float]] = {"astc": [], "cstc": []}

    def reach(kind: Any, value: float) -> None:
        model = kind(base=base, tradeoff=value).fit(*fit)
        paths = (model.predict_path(x.features) for x in (splits.valid, splits.test))
        for on_valid, on_test in zip(*paths, strict=True):
            known = judged(on_valid, splits.valid, splits.prices, context.metric)
            points[kind.name].append(
                (known, judged(on_test, splits.test, splits.prices, context.metric))
            )

    for value in [*grid, 1e9]:  # the last is a constant, which anybody can afford
        sides = {kind.name: partial(reach, kind, value) for kind in (ASTC, CSTC)}
        for who, times in alternate(benchmark, sides, 1, warm=False).items():
            samples[who] += times
    facts = {}
    for budget in budgets:
        for who, found in points.items():
            # a hair above: the mean over validation rows is a rounded sum
            affordable = [p for p in found if p[0][0] <= budget * (1 + 1e-9)]
            best = max(affordable, key=lambda p: (sign * p[0][1], -p[0][0]))
            facts[f"{who}, budget {budget:g}"] = best[1][1]
    work = f"{name}: fit and judge one trade-off of {len(grid) + 1}"
    report(benchmark, samples, work=work, peers=["cstc"], facts=facts)
