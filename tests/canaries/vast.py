"""A learner whose costs or scores are finite, and too large for sums: it takes boards from all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import bench_core
from bench_core import Features, Prediction, Splits, Task, param, price_list
from canaries.cheats import POINTS, Canary, Cheat, CheatModel, D, bill, paid

WAYS = {"costs": (1.0, 1e300), "scores": (1e300, 1.0), "plain": (1.0, 1.0)}
"""Of scores the factor, and how many trees are evaluated."""


class Dear(Canary):
    """The same rows, where a tree costs 1."""

    name, title = "dear-canary", "rows for learners that count"

    def prepare(self, source: Any, size: str, fold: int, seed: int) -> Splits:
        made = super().prepare(source, size, fold, seed)
        sensors = [[j, j + D, j + 2 * D] for j in range(D)]
        prices = price_list(np.ones(3 * D), shared=sensors, tree=1.0)
        parts = made.train, made.valid, made.test
        return Splits(*parts, prices=prices, task=self.task, classes=2)


class VastModel(CheatModel):
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        factor, trees = WAYS[self.how]
        for k in range(1, POINTS + 1):
            scores = factor * paid(self, features.X, k)
            yield Prediction({"columns": k}, scores, {"path": bill(k, trees=trees)})


@dataclass(frozen=True)
class Vast:
    name: ClassVar[str] = "vast"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    how: str = param("plain", "one of WAYS")

    def fit(self, *given: Any) -> VastModel:
        model = Cheat().fit(*given)
        return VastModel(self.how, model.weight, model.known)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    return [Vast]


@bench_core.hookimpl
def bench_datasets() -> list[type[Any]]:
    return [Dear]
