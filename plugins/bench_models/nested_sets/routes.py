"""Boosters on nested sets of features as a fitted model, and routes of rows through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bench_core import Features, Prediction, Prices
from bench_core.arrays import IntArray
from bench_models.staged import END, Point, Stage, StagedModel
from bench_models.staged.exits import ExitModel, ExitRule
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program


@dataclass(frozen=True)
class Route(Stored):
    """Stages that a row visits in this order, and the rule for leaving before the last.

    ``values`` hold a list per setting. With ``kind`` ``"class"`` a row goes on if its likeliest
    class has at most that probability; with ``"score"``, if its score is at least the value. A row
    that leaves keeps its score. ``points`` name the settings. ``full``, if not empty, names the
    route that no row leaves early.
    """

    stages: Sequence[int]
    full: Mapping[str, int | float] = field(default_factory=dict)
    kind: str = "class"
    values: Sequence[Sequence[float]] = ()
    points: Sequence[Mapping[str, int | float]] = ()


@dataclass(frozen=True, eq=False)
class NestedBoosters(Stored):
    """Boosters of an ``Ensemble``, each a separate model, and routes that make up the path.

    Stage 0 is the constant. Stage k adds to it the mean of ``members[k]`` boosters on the k-th set
    of features, whose trees are ``start[k]:start[k + 1]``. ``facts`` are JSON.
    """

    independent_rows: ClassVar[bool] = True

    ensemble: Any
    start: IntArray
    members: IntArray
    prices: Prices
    routes: Sequence[Route]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def chain(self, stages: Sequence[int]) -> StagedModel:
        """Chain these stages; each starts from the constant."""
        chain = []
        for place, k in enumerate(stages):
            trees = np.arange(self.start[k], self.start[k + 1])
            weights = np.full(len(trees), 1 / self.members[k])
            then = END if place + 1 == len(stages) else place + 1
            chain.append(Stage(trees, weights, self.ensemble.base, then=then))
        return StagedModel(chain, [Point(len(chain) - 1, {})], self.prices, self.ensemble)

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The points of all routes, the full model last."""
        for model in self._models:
            for prediction in model.predict_path(features):
                if prediction.point:
                    yield prediction

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The route of a point at its setting, for serving."""
        own = [m for m in self._models if point in [*m.points, m.full]]
        return (own or self._models)[0].program(point)

    @cached_property
    def _models(self) -> list[ExitModel]:
        models = []
        for route in self.routes:
            shape = len(route.points), len(route.stages) - 1  # a value for each exit
            rule = ExitRule(route.kind, np.array(route.values, dtype=np.float64).reshape(shape))
            chain = self.chain(route.stages)
            models.append(ExitModel(chain, rule, route.points, route.full, rejected="score"))
        return models
