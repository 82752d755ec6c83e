"""Trees with vector leaves, with averaged sums, or with a link function on the sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bench_core import Features, Prediction, Prices
from bench_core.arrays import FloatArray
from bench_models.boosting import prefixes
from bench_models.staged import END, Point, Stage, StagedModel
from bench_models.staged.program import place_of
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_trees import Ensemble

    from bench_core.serving import Finish, Program
    from bench_core.serving.block_walk import BlockWalk


@dataclass(frozen=True, eq=False)
class TreeAverage(Stored):
    """Scores are link(base + sum over trees of a row of ``vectors``); ``average`` divides the sum.

    Averages and points count rounds. A row pays for its paths through all trees so far.
    """

    independent_rows: ClassVar[bool] = True

    numbers: StagedModel  # a stage per tree that scores its leaf's row in ``vectors``
    vectors: FloatArray  # (m, K)
    base: FloatArray  # (K,)
    average: bool
    link: str
    per_round: int  # trees
    facts: Mapping[str, Any]
    counts: FloatArray | None = None  # (nodes, K) training rows by class, if the learner has them

    @classmethod
    def of(
        cls,
        trees: Ensemble,
        prices: Prices,
        *,
        vectors: FloatArray | None,
        average: bool,
        link: str,
        facts: Mapping[str, Any],
        counts: FloatArray | None = None,
        whole: bool = False,
    ) -> Self:
        """Build from trees whose leaves number rows of ``vectors`` or, with None, hold values.
        ``whole``: all trees are one round, the only point."""
        base, per_round, last = trees.base, 1, trees.trees - 1
        if vectors is None:
            per_round = len(base)
            trees, vectors = _with_vectors(trees)
        if whole:
            vectors = vectors * (per_round / trees.trees) if average else vectors
            average, per_round = False, trees.trees
        number = np.where(trees.feature < 0, trees.value, 0.0)
        forest = replace(trees, value=number, output=np.zeros_like(trees.output), base=np.zeros(1))
        stages = [
            Stage(np.array([t]), np.ones(1), np.zeros(1), then=END if t == last else t + 1)
            for t in range(trees.trees)
        ]
        numbers = StagedModel(stages, [Point(last, {})], prices, forest)
        return cls(numbers, vectors, base, average, link, per_round, facts, counts)

    def of_leaves(self, trees: Ensemble, leaves: FloatArray, facts: Mapping[str, Any]) -> Self:
        """The same with other trees, as many, whose leaves number the rows of ``leaves`` (m, K)."""
        return replace(
            self, numbers=replace(self.numbers, ensemble=trees), vectors=leaves, facts=facts
        )

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks in its ``facts``."""
        return tuple(self.facts.get("marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per reported number of trees."""
        for point, scores, rows in self._walk.path(features):
            last = np.full(len(features), point["trees"] - 1, dtype=np.int64)
            yield Prediction(point, scores, self.numbers.bills(rows, last))

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The first trees, for serving; every reported number of trees is a stop."""
        ends = self._ends[: place_of(point, [{"trees": end} for end in self._ends]) + 1]
        return self.served(self.numbers.dictionary, self.vectors, [0, *ends])

    @property
    def _ends(self) -> list[int]:
        """The reported numbers of trees."""
        ends = prefixes(len(self.numbers.stages) // self.per_round) * self.per_round
        return [int(end) for end in ends]

    @cached_property
    def _walk(self) -> BlockWalk:
        """The program of all points, in one walk."""
        from bench_core.serving.block_walk import BlockWalk

        program = self.served(self.numbers.dictionary, self.vectors, [0, *self._ends])
        return BlockWalk.at_stops(program, self.numbers.prices)

    def served(self, trees: Ensemble, vectors: FloatArray, ends: Sequence[int]) -> Program:
        """Trees whose leaves number rows of ``vectors``, one step for each stretch of ``ends``."""
        from bench_core.serving import END, VECTOR, Program, Step, Stop

        steps, last = [], len(ends) - 2
        for k, (first, end) in enumerate(pairwise(ends)):
            step = Step(
                trees=np.arange(first, end),
                weights=np.ones(end - first),
                fresh=np.ones(end - first, dtype=bool),
                bias=np.zeros(len(self.base)),
                carry=k > 0,
                then=END if k == last else k + 1,
                finish=self.finish(end),
            )
            steps.append(step)
        return Program(
            outputs=len(self.base),
            steps=steps,
            trees=replace(trees, output=np.full_like(trees.output, VECTOR)),
            multiplier=self.numbers.prices.multiplier,
            stops=[Stop(k, {"trees": end}) for k, end in enumerate(ends[1:])],
            vectors=vectors,
        )

    def finish(self, trees: int) -> Finish:
        """From the sum of the first ``trees`` trees' vectors to scores."""
        from bench_core.serving import Finish

        rounds = trees // self.per_round if self.average else 1
        return Finish(tuple(self.base.tolist()), float(rounds), self.link)

    @property
    def ensemble(self) -> Ensemble | None:
        """The full model as trees that add up to its scores; None where that is impossible."""
        if self.link != "identity" or len(self.base) != 1:
            return None
        trees = self.numbers.ensemble
        assert trees is not None
        share = 1.0 / trees.trees if self.average else 1.0
        value = share * self.vectors[trees.value.astype(np.int64), 0]
        return replace(trees, value=np.where(trees.feature < 0, value, 0.0), base=self.base)


def _with_vectors(trees: Ensemble) -> tuple[Ensemble, FloatArray]:
    """Leaf values as rows of a table, in the column of the tree's output."""
    column = np.repeat(trees.output, np.diff(trees.start))
    rows = np.zeros((trees.nodes, len(trees.base)))
    rows[np.arange(trees.nodes), column] = trees.value
    vectors, number = np.unique(rows, axis=0, return_inverse=True)
    return replace(trees, value=number.reshape(-1).astype(np.float64)), vectors
