"""``lear``: at a few sentinels a learned classifier says which documents go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from bench_models.boosting import check_base
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.staged.early_exits import Ended, ExitPath
from bench_models.staged.exit_rules import Groups, ranks
from bench_models.staged.prefix_chain import ensemble_of, partial_scores, prefix_chain
from bench_models.staged.stage_costs import Bools
from bench_models.staged.stages import Floats, Ints

from bench_core import Bill, BudgetedLearner, Examples, FitContext, Prices, Task, param

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.layout import Layout

INPUTS = 4
"""Partial score, the same scaled to [0, 1] in the query, rank, size of the query."""

_USUAL = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Lear:
    """Another learner's trees in their order, which documents leave at learned sentinels."""

    name: ClassVar[str] = "lear"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING})

    base: BudgetedLearner = param("gbrt", "learner whose boosted trees are left early")
    sentinels: tuple[int, ...] = param((50, 100, 200), "documents may leave after so many trees")
    thresholds: tuple[float, ...] = param(
        _USUAL, "operating points: the least probability with which a document goes on"
    )
    k: int = param(10, "documents to keep: relevant ones that end among the best k")
    relevant_grade: int = param(1, "a document is relevant iff its grade is at least this")
    trees: int = param(10, "trees of each classifier")
    leaves: int = param(8, "most leaves of a classifier's tree")

    def __post_init__(self) -> None:
        check_base(self.base)
        rising = list(self.sentinels) == sorted(set(self.sentinels))
        if not (self.sentinels and rising and self.sentinels[0] >= 1):
            raise ValueError("sentinels must be at least 1 and rise")
        some = self.thresholds
        if not (0 < len(set(some)) == len(some) < MOST_POINTS and 0 <= min(some) <= max(some) <= 1):
            raise ValueError(f"thresholds must be 1 to {MOST_POINTS - 1} different numbers in 0..1")
        if min(self.k, self.relevant_grade, self.trees) < 1 or self.leaves < 2:
            raise ValueError("k, relevant_grade and trees must be at least 1, leaves at least 2")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The trees."""
        return (self.base,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LearPath:
        """Train one classifier per sentinel on the training documents; ``valid`` is not used."""
        ensemble = ensemble_of(self.name, self.base, context)
        ends = [*(s for s in self.sentinels if s < ensemble.trees), ensemble.trees]
        chain = prefix_chain(ensemble, ends, prices, {"exits": ends})
        thresholds = self.thresholds if len(ends) > 1 else ()
        return LearPath(
            chain=chain,
            rule=Sentinels(self._classifiers(chain, train, context), np.array(thresholds)),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"trees": ensemble.trees},
        )

    def _classifiers(
        self, chain: StagedModel, train: Examples, context: FitContext
    ) -> tuple[Ensemble, ...]:
        partial = np.empty((len(chain.stages), len(train)))
        for rows, scores in partial_scores(chain, train):
            partial[:, rows] = scores[:, :, 0]
        groups, everybody = Groups.over(len(train), train.queries), np.ones((1, len(train)), bool)
        final = ranks(partial[-1], everybody, groups, train.multiplicity)[0]
        keep = (final <= self.k) & (train.y >= self.relevant_grade)
        found = []
        for own in partial[:-1]:
            inputs = describe(own[None], groups, train.multiplicity)[0]
            found.append(self._classifier(inputs, keep, train, context))
            context.progress(len(found), len(partial) - 1)
        return tuple(found)

    def _classifier(
        self, inputs: Any, keep: Bools, train: Examples, context: FitContext
    ) -> Ensemble:
        from bench_trees import Settings, boost, find_bins

        bins = find_bins(inputs, 255, train.multiplicity, context.threads)
        return boost(
            bins.codes(inputs, context.threads),
            bins,
            keep.astype(np.float64),
            loss="logistic",
            settings=Settings(
                trees=self.trees,
                learning_rate=0.3,
                max_depth=None,
                max_leaves=self.leaves,
                min_rows=20,
                order="best",
            ),
            multiplicity=train.multiplicity,
            threads=context.threads,
            seed=context.seed,
        )


def describe(scores: Floats, groups: Groups, weights: Ints | None = None) -> Any:
    """The classifier's inputs float32 (P, n, 4) from each setting's scores (P, n).

    Ranks are among all documents of the query, by these scores. ``weights`` (n,): how many
    documents a row stands for.
    """
    inputs = np.empty((*scores.shape, INPUTS), dtype=np.float32)
    sizes = groups.sizes
    if weights is not None:
        sizes = np.add.reduceat(weights, groups.starts) if len(weights) else weights
    for p, own in enumerate(scores):
        low = np.minimum.reduceat(own, groups.starts) if len(own) else own
        high = np.maximum.reduceat(own, groups.starts) if len(own) else own
        reach = np.where(high > low, high - low, 1.0)
        inputs[p, :, 0] = own
        inputs[p, :, 1] = (own - low[groups.of]) / reach[groups.of]
        inputs[p, :, 2] = ranks(own, np.ones((1, len(own)), bool), groups, weights)[0]
        inputs[p, :, 3] = sizes[groups.of]
    return inputs


@dataclass(frozen=True, eq=False)
class Sentinels:
    """One classifier per sentinel, and the probabilities ``least`` (P,) that it must reach."""

    classifiers: tuple[Ensemble, ...]
    least: Floats

    def judge(self, exit: int, scores: Floats, on: Bools, groups: Groups) -> tuple[Bools, Floats]:
        """Which rows go on, and the splits evaluated to find out, both (P, n), by scores (P, n)."""
        from bench_trees.inference import Steps, Walked, walk

        classifier, layout = self.classifiers[exit], self._layouts[exit]
        inputs = describe(scores, groups)
        steps = Steps.prefixes([classifier.trees], classifier.base)
        setting, row = np.nonzero(on)
        start = Walked.begin(len(row), 1, layout.words)
        done = walk(layout, steps, inputs[setting, row], start)
        stays, splits = on.copy(), np.zeros(on.shape)
        probability = 1.0 / (1.0 + np.exp(-done.scores[-1, :, 0]))
        stays[setting, row] = probability >= self.least[setting]
        splits[setting, row] = done.splits[-1]
        return stays, splits

    @cached_property
    def _layouts(self) -> list[Layout]:
        from bench_trees.inference import Needs, lay_out

        nothing = np.zeros(INPUTS + 1, dtype=np.int32)  # the inputs need no sensor
        free = Needs(nothing, nothing[:0], np.ones(INPUTS), 0)
        return [lay_out(classifier, free) for classifier in self.classifiers]

    @cached_property
    def trees(self) -> Floats:
        """Trees with a split among the classifiers of the first 0, 1, ... sentinels."""
        own = [int((np.diff(c.start) > 1).sum()) for c in self.classifiers]
        return np.concatenate([[0.0], np.cumsum(own)])

    def state(self) -> dict[str, Any]:
        """Arrays and JSON."""
        parts = {
            f"rule.{i}.{name}": value
            for i, classifier in enumerate(self.classifiers)
            for name, value in classifier.to_state().items()
        }
        return {**parts, "rule.least": self.least, "rule": {"sentinels": len(self.classifiers)}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""
        from bench_trees import Ensemble

        marks = [f"rule.{i}." for i in range(state["rule"]["sentinels"])]
        parts = [
            {k.removeprefix(mark): v for k, v in state.items() if k.startswith(mark)}
            for mark in marks
        ]
        return cls(tuple(Ensemble.from_state(part) for part in parts), state["rule.least"])


@dataclass(frozen=True, eq=False)
class LearPath(ExitPath):
    """A chain left where a classifier says so; the classifiers' own trees are billed."""

    rule_type: ClassVar[type] = Sentinels

    def _judged(self, exit: int, scores: Floats, ended: Ended, groups: Groups) -> Bools:
        standing = np.where(ended.on, scores[:, 0], ended.scores[:, :, 0])
        stays, splits = self.rule.judge(exit, standing, ended.on, groups)
        ended.splits[...] += splits
        return np.asarray(stays)

    def _bills(self, ended: Ended, p: int) -> dict[str, Bill]:
        bills = super()._bills(ended, p)
        last = len(self.chain.stages) - 1
        judges = self.rule.trees[np.minimum(ended.stage[p] + 1, last)]
        return {
            name: Bill(bill.acquired, bill.splits, bill.trees + judges)
            for name, bill in bills.items()
        }
