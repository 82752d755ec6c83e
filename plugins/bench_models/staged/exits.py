"""A chain that rows may leave at any of its stages, and rules for leaving.

A rule uses a row's partial score among the remaining rows of its query. Rows without queries are
treated alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import Features, Prediction
from bench_core.arrays import FloatArray
from bench_models.staged.model import StagedModel
from bench_models.staged.stages import MOST_POINTS, Rejected
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program, Step, Stop
    from bench_core.serving.block_walk import ExitWalk


@dataclass(frozen=True, slots=True, eq=False)
class ExitRule(Stored):
    """Conditions for going on at exit e under setting p, with v = ``values[p, e]`` of (P, E).

    ``score``: score >= v. ``proximity``: score >= the ``k``-th best survivor's in the query - v;
    all, while fewer than k survive. ``rank``: at most v - 1 survivors of the query score higher.
    ``capacity``: at most v - 1 survivors precede it in the query. ``class``: the largest class
    probability is at most v. ``sentinel``: the exit's classifier gives at least probability v.
    """

    kind: str
    values: FloatArray
    k: int = 1
    classifiers: Sequence[Ensemble] = ()  # (E,) of sentinels, on free inputs


@dataclass(frozen=True, eq=False)
class ExitModel(Stored):
    """A chain of always-pass stages, a rule for its exits, and one operating point per setting.

    The exits are all stages except the last. ``points`` name the settings of the rule; the full
    model, which no row leaves, follows as ``full``. ``combine`` defines a row's score after a
    stage: ``"last"`` the stage's score; ``"min"`` the smallest so far; ``"and"`` the log-odds of
    the product of the stages' probabilities so far. ``rejected`` is the score of rows that left, as
    in ``StagedModel``; with several outputs they keep theirs.
    """

    chain: StagedModel
    rule: ExitRule
    points: Sequence[Mapping[str, int | float]]
    full: Mapping[str, int | float]
    combine: str = "last"
    rejected: Rejected = "below"

    @property
    def reads_order(self) -> bool:
        """True if the order of a query's rows decides the exits: the audit then keeps it."""
        return self.rule.kind == "capacity"

    @property
    def ensemble(self) -> Ensemble | None:
        """The trees if the full model adds them up."""
        return self.chain.ensemble if self.combine == "last" and self.chain.adds_up else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the learner keeps."""
        return self.chain.facts

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per setting, and the full model's."""
        self.chain.check(features)
        found = self._walk.path(features, self.rule.values)
        for point, (scores, rows) in zip([*self.points, self.full], found, strict=True):
            yield Prediction(dict(point), scores, self.chain.bills(rows))

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The chain under one setting, for serving; every stage is a stop.

        Stages behind an exit that no row passes (a probability of 0) are left out.
        """
        from bench_core.serving import Stop
        from bench_models.staged.program import first_steps, place_of

        setting, last = place_of(point, [*self.points, self.full]), len(self.chain.stages) - 1
        values = self.rule.values[setting] if setting < len(self.points) else None
        if values is not None and self.rule.kind == "class":
            last = min([last, *np.flatnonzero(values <= 0).tolist()])
        steps = first_steps(self._steps(values), last)
        return self._program(steps, [Stop(k, {"stages": k + 1}) for k in range(len(steps))])

    @cached_property
    def _walk(self) -> ExitWalk:
        from bench_core.serving.block_walk import ExitWalk

        steps = self._steps(np.zeros(len(self.chain.stages) - 1))
        return ExitWalk(self._program(steps), self.chain.prices)

    def _steps(self, values: FloatArray | None) -> list[Step]:
        """The chain with gates at these values (E,), or without gates."""
        from bench_core.serving import REJECT

        rule, steps = self.rule, list(self.chain.steps)
        steps[1:] = [replace(step, combine=self.combine) for step in steps[1:]]
        for exit, value in enumerate([] if values is None else values.tolist()):
            gate: dict[str, Any] = {"gate": rule.kind, "value": value, "k": rule.k}
            if rule.classifiers:
                gate["sentinel"] = rule.classifiers[exit]
            steps[exit] = replace(steps[exit], otherwise=REJECT, **gate)
        return steps

    def _program(self, steps: Sequence[Step], stops: Sequence[Stop] = ()) -> Program:
        rejected = self.rejected if self.chain.outputs == 1 else "score"
        return self.chain.program_of(steps, stops, rejected)


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise ValueError where they cannot be the operating points of a rule."""
    count = len(thresholds)
    if not 0 < len(set(thresholds)) == count < MOST_POINTS or not np.isfinite(thresholds).all():
        raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different finite numbers")
