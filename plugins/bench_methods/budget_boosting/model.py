"""The fitted model: boosters on nested sets of features, and routes of rows through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from bench_models.staged import END, Point, Stage, StagedModel
from bench_models.staged.exits import ExitModel, ExitRule
from bench_models.states import nest, unnest

from bench_core import Features, Prediction, Prices
from bench_core.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

    from bench_core.serving import Program


@dataclass(frozen=True)
class Route:
    """Stages that a row visits in this order, and who goes on at each but the last.

    ``values`` hold a list per setting: with ``kind`` ``"class"`` rows go on whose likeliest class
    has at most that probability, with ``"rank"`` documents that rank within it. ``points`` name
    the settings; ``full``, where it is not empty, the whole way, which nobody leaves.
    """

    stages: Sequence[int]
    full: Mapping[str, int | float] = field(default_factory=dict)
    kind: str = "class"
    values: Sequence[Sequence[float]] = ()
    points: Sequence[Mapping[str, int | float]] = ()


@dataclass(frozen=True, eq=False)
class NestedBoosters:
    """Boosters, each a model of its own, and the routes that make up the path.

    Stage 0 is the constant; stage k adds to the constant the mean of ``members[k]`` boosters on
    the k-th set of features, whose trees are ``start[k]:start[k + 1]``. ``facts`` are JSON.
    """

    ensemble: Ensemble
    start: IntArray
    members: IntArray
    prices: Prices
    routes: Sequence[Route]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def chain(self, stages: Sequence[int]) -> StagedModel:
        """These stages one after the other, each afresh."""
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

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        return {
            **nest("trees", self.ensemble.state()),
            **nest("prices", self.prices.state()),
            "start": self.start,
            "members": self.members,
            "routes": [asdict(route) for route in self.routes],
            "facts": dict(self.facts),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        from bench_trees import Ensemble

        return cls(
            Ensemble.from_state(unnest("trees", state)),
            state["start"],
            state["members"],
            Prices.from_state(unnest("prices", state)),
            [Route(**route) for route in state["routes"]],
            state["facts"],
        )

    @cached_property
    def _models(self) -> list[ExitModel]:
        return [
            ExitModel(
                chain=self.chain(route.stages),
                rule=ExitRule(route.kind, _values(route)),
                points=route.points,
                full=route.full,
            )
            for route in self.routes
        ]


def _values(route: Route) -> FloatArray:
    shape = (len(route.points), len(route.stages) - 1)
    return np.array(route.values, dtype=np.float64).reshape(shape)
