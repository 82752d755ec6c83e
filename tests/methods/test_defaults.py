"""Every registered learner with its defaults, on made data whose features differ much in price."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.every_learner_cases import LEARNERS
from helpers.rare_classes import rare_classes

from bench_core import Examples, Queries, Splits, Task, price_list
from bench_core.conformance.tasks import fit, with_learners
from bench_core.contracts import learner_of
from bench_core.metrics import default_metric

GIVEN = {"imported"}  # has no default: its model is a user's
CUTS = (slice(0, 1200), slice(1200, 1600), slice(1600, 2400))


def splits_of(X: Any, y: Any, cost: Any, task: Task) -> Splits:
    parts = []
    for rows in CUTS:
        sizes = np.full((rows.stop - rows.start) // 20, 20)
        queries = Queries.from_sizes(sizes) if task is Task.RANKING else None
        parts.append(Examples(X[rows].astype(np.float32), y[rows].astype(float), queries))
    classes = int(y.max()) + 1 if task in (Task.BINARY, Task.MULTICLASS) else 0
    return Splits(*parts, prices=price_list(cost), task=task, classes=classes)


def cheap_noise(task: Task, *limits: float) -> Splits:
    """Twenty cheap features of noise beside five expensive ones; labels are cut at ``limits``."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(CUTS[-1].stop, 25))
    told = np.sin(2 * X[:, 20]) + X[:, 21] * X[:, 22] + 0.8 * X[:, 23]
    told += 0.5 * rng.normal(size=len(X))
    return splits_of(X, np.digitize(told, limits), np.repeat([1.0, 30], [20, 5]), task)


def dear_numbers() -> Splits:
    """The dearer a feature, the more it tells of a number."""
    rng = np.random.default_rng(8)
    X, sizes = rng.normal(size=(CUTS[-1].stop, 20)), [12, 5, 3]
    y = X @ np.repeat([0.1, 0.5, 1.5], sizes) + 0.5 * rng.normal(size=len(X))
    return splits_of(X, y, np.repeat([1.0, 10, 50], sizes), Task.REGRESSION)


MADE: dict[Task, Callable[[], Splits]] = {
    Task.BINARY: lambda: cheap_noise(Task.BINARY, 0.6),
    Task.MULTICLASS: lambda: rare_classes((2, 4, 9, 20), 1500),
    Task.RANKING: lambda: cheap_noise(Task.RANKING, 0.6, 1.5, 2.5),
    Task.REGRESSION: dear_numbers,
}
made = cache(lambda task: MADE[task]())


def reached(learner: Any, splits: Splits) -> Any:
    """Test values, by query or row, at the point of best validation quality; more is better."""
    metric = default_metric(splits.task)
    sign = 1 if metric.higher_is_better else -1
    model = fit(learner, splits)

    def values(part: Examples) -> list[Any]:
        return [
            metric.values(p.scores, part.y, part.queries, part.multiplicity)
            for p in model.predict_path(part.features)
        ]

    best = int(np.argmax([sign * own.mean for own in values(splits.valid)]))
    return sign * values(splits.test)[best].mean


constant = cache(lambda task: reached(LEARNERS["constant"](), made(task)))
DEFAULTS = {name: with_learners(LEARNERS[name]()) for name in sorted(LEARNERS.keys() - GIVEN)}
PAIRS = [
    (name, task)
    for name, learner in DEFAULTS.items()
    for task in sorted(learner.tasks)
    if all(task in base.tasks for base in learner_of(learner).needs())  # else a run leaves it out
]


@pytest.mark.slow
@pytest.mark.parametrize("task", Task)
def test_on_the_made_data_gbrt_is_clearly_above_the_constant(task: Task) -> None:
    floor = constant(task)
    assert reached(LEARNERS["gbrt"](), made(task)) > floor + 0.08 * abs(floor)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_no_learners_default_is_below_the_constant(name: str, task: Task) -> None:
    assert reached(DEFAULTS[name], made(task)) > constant(task) - 0.02 * abs(constant(task))
