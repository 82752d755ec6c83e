"""``early-exit``: exits by a rule with one swept threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.staged.early_exits import ExitModel
from bench_models.staged.exit_rules import ExitRule
from bench_models.staged.prefix_chain import ensemble_of, partial_scores, prefix_chain

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, UsageError, param
from bench_core.arrays import FloatArray

RuleName = Literal["auto", "proximity", "score", "rank", "capacity", "class"]

_RULES: Mapping[Task, tuple[str, ...]] = {  # the first is "auto"
    Task.RANKING: ("proximity", "score", "rank", "capacity"),
    Task.BINARY: ("class",),
    Task.MULTICLASS: ("class",),
}

_MOST = (5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
_USUAL: Mapping[str, Sequence[float]] = {  # from the most to the least eager to let rows leave
    "proximity": (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4),
    "score": (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05),
    "rank": _MOST,
    "capacity": _MOST,
    "class": (
        *(0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95),
        *(0.98, 0.99, 0.995, 0.999),
    ),
}


@dataclass(frozen=True)
class EarlyExit(OnTrees):
    """Another learner's trees in their order, which rows leave when a rule says so."""

    name: ClassVar[str] = "early-exit"
    tasks: ClassVar[frozenset[Task]] = frozenset(_RULES)

    base: BudgetedLearner = param("gbrt", "learner whose boosted trees are left early")
    rule: RuleName = param(
        "auto", "who leaves; auto: proximity for ranking, class for classification"
    )
    thresholds: tuple[float, ...] | None = param(
        None, "operating points of the rule; none: its usual ones", least=0
    )
    every: int = param(
        10, "an exit after every so many trees (for K classes K times as many)", least=1
    )
    k: int = param(
        5, "proximity: the document that others must stay close to; rank: the last rank", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        some = self.thresholds
        if some is not None and not (0 < len(set(some)) == len(some) < MOST_POINTS):
            raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different numbers")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ExitModel:
        """Place the exits; the training scores set the thresholds' unit. ``valid`` is not used."""
        kind = self._rule(context.task)
        ensemble = ensemble_of(self.name, self.base, context, single=False)
        outputs = ensemble.outputs_count
        ends = exits(ensemble.trees, self.every * outputs)
        chain = prefix_chain(ensemble, ends, prices, {})
        thresholds = self._thresholds(kind, max(2, outputs)) if len(ends) > 1 else ()
        values, spread = self._values(kind, np.array(thresholds), chain, train)
        facts = {"rule": kind, "spread": spread, "exits": ends}
        context.progress(1, 1)
        return ExitModel(
            chain=replace(chain, facts=facts),
            rule=ExitRule(kind, values, self.k),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"trees": ensemble.trees},
        )

    def _rule(self, task: Task) -> str:
        fitting = _RULES[task]
        chosen = fitting[0] if self.rule == "auto" else self.rule
        if chosen not in fitting:
            raise UsageError(f"early-exit: rule={chosen}: {task} takes {' or '.join(fitting)}")
        return chosen

    def _thresholds(self, kind: str, classes: int) -> tuple[float, ...]:
        if self.thresholds is not None:
            return self.thresholds
        return tuple(t for t in _USUAL[kind] if kind != "class" or t > 1 / classes)

    def _values(
        self, kind: str, thresholds: FloatArray, chain: StagedModel, train: Examples
    ) -> tuple[FloatArray, float]:
        """What the rule compares with, per threshold and exit, and the unit of proximity."""
        count = len(chain.stages)
        left = np.arange(count - 1, 0, -1) / max(1, count - 1)  # (E - i) / (E - 1)
        same = np.repeat(thresholds[:, None], count - 1, axis=1)
        if kind == "proximity":
            spread = _spread(chain, train)
            return thresholds[:, None] * spread * left, spread
        if kind in ("rank", "capacity"):
            return self.k + np.maximum(same - self.k, 0) * left, 1.0
        if kind == "score":
            return _quantiles(chain, train, thresholds), 1.0
        return same, 1.0


def exits(trees: int, every: int) -> list[int]:
    """After how many trees a row may leave; the last is the end."""
    return [*range(every, trees, every), trees]


def _spread(chain: StagedModel, train: Examples) -> float:
    """Standard deviation of the final scores on the training rows, copies counted; 1 for 0."""
    final = np.concatenate([scores[-1, :, 0] for _, scores in partial_scores(chain, train)])
    mean = np.average(final, weights=train.weights)
    return float(np.sqrt(np.average((final - mean) ** 2, weights=train.weights))) or 1.0


def _quantiles(chain: StagedModel, train: Examples, shares: FloatArray) -> FloatArray:
    """The partial score below which each share of the training rows is, (P, E - 1)."""
    partial = np.empty((len(chain.stages) - 1, len(train)))
    for rows, scores in partial_scores(chain, train):
        partial[:, rows] = scores[:-1, :, 0]
    mass = train.weights
    columns = [_quantile(own, mass, shares) for own in partial]
    return np.stack(columns, axis=1) if columns else np.zeros((len(shares), 0))


def _quantile(values: FloatArray, mass: FloatArray, shares: FloatArray) -> FloatArray:
    """The smallest value with more than a share of the mass at or below it; the last at 1."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(mass[order])
    place = np.searchsorted(below, shares * below[-1], side="right")
    found: FloatArray = values[order][np.minimum(place, len(values) - 1)]
    return found
