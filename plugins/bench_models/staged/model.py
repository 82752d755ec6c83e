"""The staged model: one prediction loop and one meter for all learners of this form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bench_core import DIVERGED, Acquired, Bill, Features, Prediction, Prices
from bench_core.arrays import IntArray
from bench_models.scaling import Scaling
from bench_models.staged.stage_costs import StageCosts
from bench_models.staged.stages import (
    Point,
    Rejected,
    Stage,
    stages_from,
    stages_state,
)
from bench_models.states import nest, unnest

if TYPE_CHECKING:
    from bench_trees import Ensemble

    from bench_core.serving import Program, Step, Stop
    from bench_core.serving.block_walk import BlockWalk
    from bench_core.serving.row_state import WalkedRows


@dataclass(frozen=True, eq=False)
class StagedModel:
    """Stages over the trees of ``ensemble`` and columns, billed by ``prices``.

    ``points`` rise by stage and end with the last stage; at most 100. ``rejected`` defines the
    score of rows that failed a gate. ``"score"``: the score of their last stage. ``"below"``: below
    every survivor of their query, by exit stage and then by stage score (rows without queries keep
    their stage's score). A number: that value. Columns are standardised by ``scaling``; without it
    they are raw, a missing or infinite cell 0. ``facts`` are JSON values kept for the learner.

    Bills. ``path`` follows the row through every tree evaluated for it. It charges the sensors, the
    multipliers of the splits, and the trees; each once per row. ``model`` charges every tree of
    non-zero weight in the stages reached: all its sensors and the splits of its longest path.
    Columns cost their sensors in both. A tree without a split is a constant and costs nothing.
    """

    concurrent: ClassVar[bool] = True

    stages: Sequence[Stage]
    points: Sequence[Point]
    prices: Prices
    ensemble: Ensemble | None = None
    rejected: Rejected = "score"
    scaling: Scaling | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def outputs(self) -> int:
        """Number of outputs K."""
        return len(self.stages[0].bias)

    @property
    def independent_rows(self) -> bool:
        """True if all rows take one route: scores of rejected rows may depend on other rows."""
        return all(stage.bar is None for stage in self.stages)

    @property
    def adds_up(self) -> bool:
        """True if every row's score is the base plus all trees, each once with weight 1."""
        trees, later = self.ensemble, self.stages[1:]
        if trees is None or not self.independent_rows or not all(stage.carry for stage in later):
            return False
        return (
            np.array_equal(np.concatenate([s.entries for s in self.stages]), np.arange(trees.trees))
            and bool(np.all(np.concatenate([s.weights for s in self.stages]) == 1.0))
            and np.array_equal(sum(s.bias for s in self.stages), trees.base)
        )

    @property
    def marks(self) -> tuple[str, ...]:
        """``DIVERGED`` if its trees diverged, and the marks in its ``facts``."""
        diverged = self.ensemble is not None and self.ensemble.diverged
        return (*((DIVERGED,) if diverged else ()), *self.facts.get("marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per point; ``features.X`` is (n, d), n may be 0."""
        self.check(features)
        for place, (point, scores, rows) in enumerate(self._walk.path(features)):
            bills = self._charge(self.points[place].stage, rows)
            yield Prediction(point, scores, bills)

    def stage_by_stage(self, features: Features) -> Iterator[WalkedRows]:
        """All rows after every stage, for chains that always pass; the next iteration changes
        them."""
        self.check(features)
        yield from self._every_stage.walk(self._every_stage.begin(len(features)), features.X)

    def bills(self, rows: WalkedRows, last: IntArray | None = None) -> dict[str, Bill]:
        """The bills of n rows that ended at the stages ``last`` (n,), by default their own."""
        costs, sensors = self._costs, self.prices.sensors
        last = rows.last if last is None else last
        return {
            "path": Bill(Acquired(rows.bits, sensors), rows.splits, rows.trees),
            "model": Bill(Acquired(costs.bits[last], sensors), costs.splits[last], rows.trees),
        }

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The stages up to a point, for serving; the points before it are stops."""
        from bench_core.serving import Stop
        from bench_models.staged.program import first_steps, place_of

        last = self.points[place_of(point, [p.values for p in self.points])].stage
        stops = [Stop(p.stage, dict(p.values)) for p in self.points if p.stage <= last]
        return self.program_of(first_steps(self.steps, last), stops)

    def program_of(
        self, steps: Sequence[Step], stops: Sequence[Stop] = (), rejected: Rejected | None = None
    ) -> Program:
        """Steps over the model's trees as a program; ``rejected`` is by default the model's."""
        from bench_core.serving import Program

        rejected = self.rejected if rejected is None else rejected
        parts = self.outputs, steps, self.dictionary, self.prices.multiplier
        return Program(*parts, stops=stops, rejected=rejected)

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        trees = {} if self.ensemble is None else self.ensemble.state()
        return {
            **nest("trees", trees),
            **stages_state(self.stages),
            **nest("prices", self.prices.state()),
            **nest("scaling", {} if self.scaling is None else self.scaling.state()),
            "points": [{"stage": p.stage, "values": dict(p.values)} for p in self.points],
            "rejected": self.rejected,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        ensemble = None
        if "trees.start" in state:
            from bench_trees import Ensemble

            ensemble = Ensemble.from_state(unnest("trees", state))
        scaling = unnest("scaling", state)
        return cls(
            stages=stages_from(state),
            points=[Point(int(p["stage"]), p["values"]) for p in state["points"]],
            prices=Prices.from_state(unnest("prices", state)),
            ensemble=ensemble,
            rejected=state["rejected"],
            scaling=Scaling.from_state(scaling) if scaling else None,
            facts=state["facts"],
        )

    @cached_property
    def dictionary(self) -> Ensemble:
        """The trees; an empty ensemble if there are none."""
        from bench_trees import Ensemble

        none = np.zeros(self.outputs)
        return self.ensemble or Ensemble.of_trees([], [], none, self.prices.features)

    @property
    def steps(self) -> list[Step]:
        """The stages as steps of a program over ``dictionary``."""
        return self._costs.steps

    @cached_property
    def _costs(self) -> StageCosts:
        scaling = self.scaling or Scaling.identity(self.prices.features)
        return StageCosts(self.stages, self.dictionary, scaling, self.prices)

    @cached_property
    def _walk(self) -> BlockWalk:
        """The program of all points, in one walk."""
        from bench_core.serving import Stop
        from bench_core.serving.block_walk import BlockWalk

        stops = [Stop(point.stage, dict(point.values)) for point in self.points]
        return BlockWalk.at_stops(self.program_of(self.steps, stops), self.prices)

    @cached_property
    def _every_stage(self) -> BlockWalk:
        from bench_core.serving.block_walk import BlockWalk

        return BlockWalk(self.program_of(self.steps), self.prices, range(len(self.stages)))

    def check(self, features: Features) -> None:
        """Raise ValueError if rows do not have the features of the prices."""
        X = features.X
        if X.ndim != 2 or X.shape[1] != self.prices.features:
            raise ValueError(f"expected X (n, {self.prices.features}), got {X.shape}")

    def _charge(self, stage: int, rows: WalkedRows) -> dict[str, Bill]:
        if not self.independent_rows:
            return self.bills(rows)
        costs, sensors = self._costs, self.prices.sensors
        trees, splits = float(costs.trees[stage]), float(costs.splits[stage])
        whole = costs.bits[stage : stage + 1].copy()
        path = Bill(Acquired(rows.bits, sensors), rows.splits, trees)
        return {"path": path, "model": Bill(Acquired(whole, sensors), splits, trees)}
