"""Why a served model answers a row as it does: its steps, their purchases and scores, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.sequential import StoredPolicy
from bench_core.serving.gates import largest_probability
from bench_core.serving.policy_program import PolicyProgram, ServedProgram
from bench_core.serving.program import Program
from bench_core.serving.row_state import Answer, FeatureNeeds

Watch = Callable[[int, Any, float, FloatArray, Sequence[int]], None]
"""Function that a walk of one row calls after each step, with the step's number, the answer if the
row ended there, its cost so far, the score (K,) that the step's gate compares, and the features
that a cap forbade."""

_AMONG = {
    "rank": "the {v:.6g} best documents that are left of its query",
    "proximity": "the documents of its query with a score at most {v:.6g} below the best",
    "capacity": "the {v:.6g} best documents of its query so far",
    "sentinel": "the documents that may still change the ranking",
}


@dataclass(frozen=True, slots=True)
class ExplainedStep:
    """A step of a row: a stage, some trees, or the purchase of a policy.

    ``bought``: the columns requested since the step before, in order. ``cost``: what the row paid
    since then, evaluations included. ``score``: the answer if the row had ended here, None for a
    step that the cap cut short.
    """

    step: int
    bought: tuple[str, ...]
    cost: float
    score: Any


@dataclass(frozen=True, slots=True)
class Explanation:
    """The way of a row through a model, its answer, and why it bought no more, in words."""

    steps: tuple[ExplainedStep, ...]
    answer: Answer
    why: str

    def __repr__(self) -> str:
        """Return a line for each step with purchases and for the steps between, and the end."""
        lines = []
        for _, group in groupby(enumerate(self.steps), lambda item: item[1].bought and item[0]):
            run = [step for _, step in group]
            first, last, price = run[0], run[-1], sum(step.cost for step in run)
            bought = ", ".join(first.bought)
            place = f"step {first.step}" if first is last else f"steps {first.step} to {last.step}"
            score = f"score {_short(last.score)}" if last.score is not None else "cut short"
            lines.append(f"{place}: bought {bought or 'nothing'} for {price:.6g}, {score}")
        total = f"score {_short(self.answer.score)} for {self.answer.spent:.6g}"
        return "\n".join([*lines, f"{total}; {self.why}"])


def plain(scores: FloatArray) -> Any:
    """Return the score of the first row, a number if it has one output."""
    return float(scores[0]) if scores.ndim == 1 else scores[0].copy()


def _rounded(cost: float) -> float:
    """Return a difference of two costs without the digits that are errors of rounding."""
    return float(f"{cost:.12g}")


def _short(score: Any) -> str:
    return np.array2string(np.asarray(score), precision=4)


class Record:
    """Record of a walk of one row: ``watch`` is its ``Watch``. ``requested`` are the columns
    requested so far and ``features`` their features, which the walk extends."""

    def __init__(self, requested: Sequence[str], needs: FeatureNeeds) -> None:
        self.requested, self.needs, self.steps = requested, needs, list[ExplainedStep]()
        self.features: list[int] = []
        self.refused: Sequence[int] = ()  # by a cap
        self.gated: FloatArray | None = None
        self._columns, self._spent = 0, 0.0

    def watch(
        self, step: int, score: Any, spent: float, gated: FloatArray, refused: Sequence[int]
    ) -> None:
        """Add a step."""
        bought, self.refused = tuple(self.requested[self._columns :]), refused
        self.steps.append(ExplainedStep(step, bought, _rounded(spent - self._spent), score))
        self._columns, self._spent, self.gated = len(self.requested), spent, gated

    def explained(self, answer: Answer, program: ServedProgram, cap: str) -> Explanation:
        """Return the record of a row with this answer. ``cap``: why a cap ended it, in words, "" if
        there is none."""
        if answer.stopped == "cap":
            why = cap
        elif not isinstance(program, Program):
            why = _end_of_policy(program, self.requested, " within the rest of the cap" * bool(cap))
            left = {*program.features.tolist()}.difference(self.features)
            price = min((self._price([feature]) for feature in left), default=0.0)
            why += self._refused("the cheapest one left costs", price)
        else:
            why = _end(program, answer, self.gated)
            step = program.steps[answer.step]
            if step.gate != "always" and (next_step := max(step.then, step.otherwise)) >= 0:
                price = self._price(program.features_of([program.steps[next_step]]).tolist())
                why += self._refused(f"the purchases of step {next_step} cost at most", price)
        if self.steps:  # a policy pays for its last decision, too
            last = self.steps[-1]
            self.steps[-1] = replace(last, cost=_rounded(last.cost + answer.spent - self._spent))
        return Explanation((*self.steps,), answer, why)

    def _price(self, features: Iterable[int]) -> float:
        """Return the price of features beyond those that the row has, NaN if it is unknown."""
        return self.needs.price_beyond(self.features, features)

    def beyond_cap(self, columns: Sequence[str], cap: str) -> str:
        """Return that the purchase of the refused features, of these columns, would exceed a cap,
        in words."""
        if not (price := self._price(self.refused)) > 0:
            return f"the next purchase or evaluation would exceed {cap}"
        means, prices = " at mean prices" * bool(self.needs.by_row), self.needs.prices
        more = " and evaluations" * (prices is not None and prices.split + prices.tree > 0)
        return f"{', '.join(columns)} for {price:.6g}{means}{more} would exceed {cap}"

    def _refused(self, what: str, price: float) -> str:
        """Return the price of purchases that the row declined, in words; "" without a price."""
        means = " at mean prices" * bool(self.needs.by_row)
        return f"; {what} {price:.6g}{means}" if price > 0 else ""


def _end(program: Program, answer: Answer, score: FloatArray | None) -> str:
    """Return why a row ended at its last step, at whose gate it had a ``score`` (K,)."""
    step = program.steps[answer.step]
    gate, value = f"the gate of step {answer.step}", step.value
    if step.gate == "always" or score is None:
        return "the model has no further step"
    if step.gate == "score":
        side = "at least" if score[0] >= value else "below"
        return f"its score {score[0]:.6g} is {side} {value:.6g}, {gate}"
    if step.gate == "class":
        likeliest = float(largest_probability(score[None])[0])
        side = "at most" if likeliest <= value else "above"
        return (
            f"its likeliest class has the probability {likeliest:.6g}, {side} {value:.6g}, {gate}"
        )
    among = _AMONG[step.gate].format(v=value)
    return f"it is {'not ' if answer.stopped == 'gate' else ''}among {among}, {gate}"


def _end_of_policy(
    program: PolicyProgram | StoredPolicy, requested: Sequence[str], within: str
) -> str:
    if len(requested) == len(program.features):
        return "everything is bought"
    if isinstance(program, StoredPolicy):
        return f"the policy makes no further purchase{within}"
    what = f"purchase{within if program.skip else ''}"
    if program.rule == "class":
        return f"no {what} is as likely to be the best action as an answer"
    return f"no {what} has a value of at least {program.least:.6g} per price"
