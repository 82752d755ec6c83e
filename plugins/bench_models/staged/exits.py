"""A chain that rows may leave at any of its stages, and rules for leaving.

An exit does not change the row's scores and payments up to there. So all rows walk through the
complete chain once. Every setting only picks the stage at which each row left. Twenty settings cost
little more than one.

A rule uses a row's partial score among the remaining rows of its query. Rows without queries are
treated alone. ``ExitRule`` compares with a value, ``Sentinels`` are classifiers on free inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction, StageTree
from bench_core.arrays import BitArray, BoolArray, FloatArray, IntArray
from bench_core.serving.gates import passing, settled
from bench_core.serving.query_ranks import INPUTS, QueryGroups, describe
from bench_core.serving.row_state import combined
from bench_models.staged.model import StagedModel
from bench_models.staged.stages import MOST_POINTS
from bench_models.states import Stored, nest, unnest

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.inference import Layout

    from bench_core.serving import Program


class ExitState:
    """The last stage, score and bill of n rows under each of P settings, filled as they leave."""

    def __init__(self, settings: int, rows: int, outputs: int, words: int) -> None:
        shape = (settings, rows)
        self.on = np.ones(shape, dtype=bool)  # still on their way
        self.stage = np.zeros(shape, dtype=np.int64)  # the last one evaluated
        # at that stage
        self.scores = np.zeros((*shape, outputs))
        self.bits = np.zeros((*shape, words), dtype=np.uint64)
        self.splits = np.zeros(shape)

    def leave(
        self, who: BoolArray, stage: int, scores: FloatArray, bits: BitArray, splits: FloatArray
    ) -> None:
        """Record that the rows ``who`` (P, n) leave after ``stage``."""
        setting, row = np.nonzero(who)
        self.stage[setting, row] = stage
        self.scores[setting, row] = scores[row]
        self.bits[setting, row] = bits[row]
        self.splits[setting, row] += splits[row]
        self.on[setting, row] = False


@dataclass(frozen=True, slots=True, eq=False)
class ExitRule(Stored):
    """Conditions for going on at exit e under setting p, with v = ``values[p, e]`` of (P, E).

    ``score``: score >= v. ``proximity``: score >= the ``k``-th best survivor's in the query - v;
    all, while fewer than k survive. ``rank``: at most v - 1 survivors of the query score higher.
    ``capacity``: at most v - 1 survivors precede it in the query. ``class``: the largest class
    probability is at most v.
    """

    kind: str
    values: FloatArray
    k: int = 1

    def stays(
        self, exit: int, scores: FloatArray, rows: ExitState, groups: QueryGroups
    ) -> BoolArray:
        """True for ``rows`` that go on, (P, n), by their ``scores`` (n, K)."""
        return passing(self.kind, self.values[:, exit], self.k, scores, rows.on, groups)

    def gate(self, setting: int, exit: int) -> dict[str, Any]:
        """The gate of an exit under one setting, in the form of a program's step."""
        return {"gate": self.kind, "value": float(self.values[setting, exit]), "k": self.k}

    @property
    def trees(self) -> FloatArray:
        """Trees evaluated to decide at the first 0, 1, ... exits: none."""
        return np.zeros(self.values.shape[1] + 1)


@dataclass(frozen=True, eq=False)
class Sentinels:
    """One classifier per sentinel."""

    classifiers: tuple[Ensemble, ...]
    least: FloatArray  # (P,) probabilities that they must reach

    def stays(
        self, exit: int, scores: FloatArray, rows: ExitState, groups: QueryGroups
    ) -> BoolArray:
        """True for ``rows`` that go on, (P, n); evaluated splits are added to them.

        Documents that left keep the score of their exit.
        """
        from bench_trees.inference import Steps, Walked, walk

        classifier, layout = self.classifiers[exit], self._layouts[exit]
        on = rows.on
        inputs = describe(np.where(on, scores[:, 0], rows.scores[:, :, 0]), groups)
        steps = Steps.prefixes([classifier.trees], classifier.base)
        setting, row = np.nonzero(on)
        start = Walked.begin(len(row), 1, layout.words)
        done = walk(layout, steps, inputs[setting, row], start)
        stays = on.copy()
        probability = 1.0 / (1.0 + np.exp(-done.scores[-1, :, 0]))
        stays[setting, row] = probability >= self.least[setting]
        rows.splits[setting, row] += done.splits[-1]
        return stays

    def gate(self, setting: int, exit: int) -> dict[str, Any]:
        """The gate of an exit under one setting, in the form of a program's step."""
        return {
            "gate": "sentinel",
            "value": float(self.least[setting]),
            "sentinel": self.classifiers[exit],
        }

    @cached_property
    def _layouts(self) -> list[Layout]:
        from bench_trees.inference import Needs, lay_out

        return [lay_out(classifier, Needs.plain(INPUTS)) for classifier in self.classifiers]

    @cached_property
    def trees(self) -> FloatArray:
        """Trees with a split among the classifiers of the first 0, 1, ... sentinels."""
        own = [int((np.diff(c.start) > 1).sum()) for c in self.classifiers]
        return np.concatenate([[0.0], np.cumsum(own)])

    def state(self) -> dict[str, Any]:
        """Arrays and JSON."""
        parts: dict[str, Any] = {}
        for i, classifier in enumerate(self.classifiers):
            parts |= nest(str(i), classifier.state())
        return {**parts, "least": self.least, "sentinels": len(self.classifiers)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""
        from bench_trees import Ensemble

        parts = (unnest(str(i), state) for i in range(state["sentinels"]))
        return cls(tuple(Ensemble.from_state(part) for part in parts), state["least"])


@dataclass(frozen=True, eq=False)
class ExitModel(Stored):
    """A chain of always-pass stages, a rule for its exits, and one operating point per setting.

    The exits are all stages except the last. ``points`` name the settings of the rule; the full
    model, which no row leaves, follows as ``full``. ``combine`` defines a row's score after a
    stage: ``"last"`` the stage's score; ``"min"`` the smallest so far; ``"and"`` the log-odds of
    the product of the stages' probabilities so far. In queries, rows that left score below all
    survivors, by exit and then by score.
    """

    chain: StagedModel
    rule: ExitRule | Sentinels
    points: Sequence[Mapping[str, int | float]]
    full: Mapping[str, int | float]
    combine: str = "last"

    @property
    def reads_order(self) -> bool:
        """True if the order of a query's rows decides the exits: the audit then keeps it."""
        return isinstance(self.rule, ExitRule) and self.rule.kind == "capacity"

    @property
    def ensemble(self) -> Ensemble | None:
        """The trees if the full model adds them up."""
        return self.chain.ensemble if self.combine == "last" and self.chain.adds_up else None

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the learner keeps."""
        return self.chain.facts

    @property
    def stage_tree(self) -> StageTree | None:
        """The chain."""
        return self.chain.ways()

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per setting, and the full model's."""
        n, last = len(features), len(self.chain.stages) - 1
        groups = QueryGroups.over(n, features.queries)
        within = None if features.queries is None else groups
        words = Acquired.nothing(self.chain.prices.sensors).bits.shape[1]
        ended, score = ExitState(len(self.points), n, self.chain.outputs, words), np.zeros(0)
        for stage, (found, bits, splits) in enumerate(self.chain.stage_by_stage(features)):
            score = found if stage == 0 else combined(self.combine, score, found)
            out = ended.on.copy()
            if stage < last:
                out &= ~self.rule.stays(stage, score, ended, groups)
            ended.leave(out, stage, score, bits, splits)
        for p, point in enumerate(self.points):
            scores = _shown(ended.scores[p], ended.stage[p], last, within)
            yield Prediction(dict(point), scores, self._bills(ended, p), ended.stage[p])
        everywhere = np.full(n, last)
        scores = _shown(score.copy(), everywhere, last, None)
        bills = self.chain.bills(everywhere, bits.copy(), splits.copy())
        yield Prediction(dict(self.full), scores, bills, everywhere)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The chain under one setting, for serving; every stage is a stop.

        Stages behind an exit that no row passes (a probability of 0) are left out.
        """
        from bench_core.serving import REJECT, Stop
        from bench_models.staged.program import first_steps, place_of, program_of

        chain, trees, last = self.chain, self.chain.dictionary, len(self.chain.stages) - 1
        setting = place_of(point, [*self.points, self.full])
        if (
            isinstance(self.rule, ExitRule)
            and self.rule.kind == "class"
            and setting < len(self.points)
        ):
            last = min([last, *np.flatnonzero(self.rule.values[setting] <= 0).tolist()])
        steps = first_steps(chain.steps, last)
        steps[1:] = [replace(step, combine=self.combine) for step in steps[1:]]
        if setting < len(self.points):
            steps[:-1] = [
                replace(step, otherwise=REJECT, **self.rule.gate(setting, exit))
                for exit, step in enumerate(steps[:-1])
            ]
        stops = [Stop(k, {"stages": k + 1}) for k in range(len(steps))]
        rejected = "below" if chain.outputs == 1 else "score"
        return program_of(trees, chain.prices, steps, stops, rejected)

    def _bills(self, ended: ExitState, p: int) -> dict[str, Bill]:
        stage = ended.stage[p]
        bills = self.chain.bills(stage, ended.bits[p], ended.splits[p])
        own = self.rule.trees[np.minimum(stage + 1, len(self.chain.stages) - 1)]
        return {name: replace(bill, trees=bill.trees + own) for name, bill in bills.items()}


def check_thresholds(thresholds: Sequence[float]) -> None:
    """Raise ValueError where they cannot be the operating points of a rule."""
    count = len(thresholds)
    if not 0 < len(set(thresholds)) == count < MOST_POINTS or not np.isfinite(thresholds).all():
        raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different finite numbers")


def _shown(
    scores: FloatArray, stage: IntArray, last: int, groups: QueryGroups | None
) -> FloatArray:
    if scores.shape[1] > 1:
        return scores
    return settled(scores, stage < last, stage, "below", groups)[:, 0]
