"""A chain that rows may leave at any of its stages, served for many settings from one walk.

Whether a row leaves changes nothing of what it has seen and paid so far. So all rows are walked
through the whole chain once, for the full model, and every setting only picks the stage
at which each row left: twenty settings cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction, Queries
from bench_core.arrays import FloatArray, IntArray
from bench_models.staged.exit_rules import ExitRule, ExitState, Sentinels
from bench_models.staged.model import StagedModel
from bench_models.staged.routing import QueryGroups, below
from bench_models.staged.stages import MOST_POINTS
from bench_models.states import nest, unnest

if TYPE_CHECKING:
    from bench_trees import Ensemble


@dataclass(frozen=True, eq=False)
class ExitModel:
    """A chain of always-pass stages, a rule for its exits, and one operating point per setting.

    The exits are all stages but the last. ``points`` name the settings of the rule; at the end
    the full model, from which nobody leaves, is added as ``full``. ``combine`` says what a row
    scores after a stage: ``"last"`` the stage's score; ``"min"`` the smallest so far; ``"and"``
    the log-odds of the product of the stages' probabilities so far. In queries, rows that left
    score below all that did not, by exit and then by score.
    """

    chain: StagedModel
    rule: ExitRule | Sentinels
    points: Sequence[Mapping[str, int | float]]
    full: Mapping[str, int | float]
    combine: str = "last"

    def __post_init__(self) -> None:
        if any(s.gate.kind != "always" for s in self.chain.stages):
            raise ValueError("the stages of a chain with exits must let all rows pass")
        if len(self.points) >= MOST_POINTS or self.combine not in _COMBINE:
            raise ValueError(f"at most {MOST_POINTS - 1} settings; combine: {list(_COMBINE)}")

    @property
    def ensemble(self) -> Ensemble | None:
        """The trees, where the full model adds them up."""
        return self.chain.ensemble if self.combine == "last" and self.chain.adds_up else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the learner wants kept."""
        return self.chain.facts

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per setting, and the full model's."""
        n, last = len(features), len(self.chain.stages) - 1
        groups = QueryGroups.over(n, features.queries)
        combine = _COMBINE[self.combine]
        words = Acquired.nothing(self.chain.prices.sensors).bits.shape[1]
        ended, score = ExitState(len(self.points), n, self.chain.outputs, words), np.zeros(0)
        for stage, (found, bits, splits) in enumerate(self.chain.stage_by_stage(features)):
            score = found if stage == 0 else combine(score, found)
            out = ended.on.copy()
            if stage < last:
                out &= ~self.rule.stays(stage, score, ended, groups)
            ended.leave(out, stage, score, bits, splits)
        for p, point in enumerate(self.points):
            scores = _shown(ended.scores[p], ended.stage[p], last, features.queries)
            yield Prediction(dict(point), scores, self._bills(ended, p))
        everywhere = np.full(n, last)
        scores = _shown(score.copy(), everywhere, last, None)
        bills = self.chain.bills(everywhere, bits.copy(), splits.copy())
        yield Prediction(dict(self.full), scores, bills)

    def _bills(self, ended: ExitState, p: int) -> dict[str, Bill]:
        stage = ended.stage[p]
        bills = self.chain.bills(stage, ended.bits[p], ended.splits[p])
        own = self.rule.trees[np.minimum(stage + 1, len(self.chain.stages) - 1)]
        return {name: replace(bill, trees=bill.trees + own) for name, bill in bills.items()}

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        own = {
            "points": [dict(p) for p in self.points],
            "full": dict(self.full),
            "combine": self.combine,
        }
        return {**self.chain.state(), **nest("rule", self.rule.state()), "exits": own}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        rule = unnest("rule", state)
        kind = Sentinels if "sentinels" in rule else ExitRule
        return cls(StagedModel.from_state(state), kind.from_state(rule), **state["exits"])


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise ValueError where they cannot be the operating points of a rule."""
    count = len(thresholds)
    if not 0 < len(set(thresholds)) == count < MOST_POINTS or not np.isfinite(thresholds).all():
        raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different finite numbers")


def _shown(scores: FloatArray, stage: IntArray, last: int, queries: Queries | None) -> FloatArray:
    if scores.shape[1] > 1:
        return scores
    left = stage < last
    if queries is None or not left.any():
        return scores[:, 0]
    return below(scores[:, 0], left, stage, queries)


def _and(before: FloatArray, found: FloatArray) -> FloatArray:
    """The log-odds of p q from those of p and q: 1 / (pq) - 1 = e^-a + e^-b + e^-(a+b)."""
    odds: FloatArray = -np.logaddexp(np.logaddexp(-before, -found), -before - found)
    return odds


_COMBINE: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "last": lambda before, found: found,
    "min": np.minimum,
    "and": _and,
}
