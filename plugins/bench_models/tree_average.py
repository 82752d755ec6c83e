"""Trees with vector leaves, with averaged sums, or with a link function on the sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import Acquired, Bill, Features, Prediction, Prices
from bench_core.arrays import FloatArray
from bench_models.boosting import prefixes
from bench_models.dictionary import layout_of, sensor_bits
from bench_models.staged.program import place_of
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Finish, Program
    from bench_core.serving.block_walk import BlockWalk


@dataclass(frozen=True, eq=False)
class TreeAverage(Stored):
    """Scores are link(base + sum over trees of their leaves' vectors); ``average`` divides the sum.

    Averages and points count rounds. A row pays for its paths through all trees so far.
    """

    independent_rows: ClassVar[bool] = True

    trees: Ensemble  # with vectors
    prices: Prices
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
        average: bool,
        link: str,
        facts: Mapping[str, Any],
        counts: FloatArray | None = None,
        whole: bool = False,
    ) -> Self:
        """Build from trees with vectors or values. ``whole``: all trees are one round, the only
        point."""
        per_round = len(trees.base) if trees.vectors is None else 1
        vectors = _with_vectors(trees) if trees.vectors is None else trees
        if whole:
            if average and vectors.vectors is not None:
                vectors = replace(vectors, vectors=vectors.vectors * (per_round / trees.trees))
            average, per_round = False, trees.trees
        return cls(vectors, prices, average, link, per_round, facts, counts)

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks in its ``facts``."""
        return tuple(self.facts.get("marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per reported number of trees."""
        sensors = self.prices.sensors
        for (point, scores, rows), (bits, splits, trees) in zip(
            self._walk.path(features), self._whole, strict=True
        ):
            path = Bill(Acquired(rows.bits, sensors), rows.splits, rows.trees)
            model = Bill(Acquired(bits[None].copy(), sensors), splits, trees)
            yield Prediction(point, scores, {"path": path, "model": model})

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The first trees, for serving; every reported number of trees is a stop."""
        ends = self._ends[: place_of(point, [{"trees": end} for end in self._ends]) + 1]
        return self.served(self.trees, [0, *ends])

    @property
    def _ends(self) -> list[int]:
        """The reported numbers of trees."""
        ends = prefixes(self.trees.trees // self.per_round) * self.per_round
        return [int(end) for end in ends]

    @cached_property
    def _whole(self) -> list[tuple[Any, float, float]]:
        """The most that each reported number of trees costs: sensors (w,), splits of the longest
        paths, and trees with a split."""
        trees, last = self.trees, np.array(self._ends) - 1
        bits = np.bitwise_or.accumulate(sensor_bits(trees, self.prices))
        splits = np.cumsum(layout_of(trees, self.prices.multiplier).paths()[1])
        split = np.cumsum(np.diff(trees.start) > 1)
        return [(bits[t], float(splits[t]), float(split[t])) for t in last]

    @cached_property
    def _walk(self) -> BlockWalk:
        """The program of all points, in one walk."""
        from bench_core.serving.block_walk import BlockWalk

        return BlockWalk.at_stops(self.served(self.trees, [0, *self._ends]), self.prices)

    def served(self, trees: Ensemble, ends: Sequence[int]) -> Program:
        """Such trees, one step for each stretch of ``ends``."""
        from bench_core.serving import END, Program, Step, Stop

        outputs, steps, last = trees.outputs_count, [], len(ends) - 2
        for k, (first, end) in enumerate(pairwise(ends)):
            step = Step(
                trees=np.arange(first, end),
                weights=np.ones(end - first),
                fresh=np.ones(end - first, dtype=bool),
                bias=np.zeros(outputs),
                carry=k > 0,
                then=END if k == last else k + 1,
                finish=self.finish(end),
            )
            steps.append(step)
        stops = [Stop(k, {"trees": end}) for k, end in enumerate(ends[1:])]
        return Program(outputs, steps, trees, self.prices.multiplier, stops)

    def finish(self, trees: int) -> Finish:
        """From the sum of the first ``trees`` trees' vectors to scores."""
        from bench_core.serving import Finish

        rounds = trees // self.per_round if self.average else 1
        return Finish(tuple(self.trees.base.tolist()), float(rounds), self.link)

    @property
    def ensemble(self) -> Ensemble | None:
        """The full model as trees that add up to its scores; None where that is impossible."""
        trees = self.trees
        if self.link != "identity" or trees.outputs_count != 1 or trees.vectors is None:
            return None
        share = 1.0 / trees.trees if self.average else 1.0
        value = np.where(trees.feature < 0, share * trees.vectors[trees.value.astype(int), 0], 0.0)
        return replace(trees, value=value, output=np.zeros_like(trees.output), vectors=None)


def _with_vectors(trees: Ensemble) -> Ensemble:
    """Trees whose leaf values are vectors, in the column of the tree's output."""
    column = np.repeat(trees.output, np.diff(trees.start))
    rows = np.zeros((trees.nodes, len(trees.base)))
    rows[np.arange(trees.nodes), column] = trees.value
    vectors, number = np.unique(rows, axis=0, return_inverse=True)
    value = np.where(trees.feature < 0, number.reshape(-1).astype(np.float64), 0.0)
    return replace(trees, value=value).with_vectors(vectors)
