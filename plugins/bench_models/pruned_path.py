"""All prunings of trees as one path: rows go down the trees from one pruning to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bench_core import DIVERGED, Acquired, Bill, Features, Prediction
from bench_core.arrays import Float32Array, FloatArray, Int32Array, IntArray
from bench_core.serving.gates import finished
from bench_models.staged.program import place_of
from bench_models.states import Stored
from bench_models.tree_average import TreeAverage

if TYPE_CHECKING:
    from bench_trees import Ensemble

    from bench_core.serving import Program

STOPS = 20
"""Stops of a served pruning: between these equal groups of trees a cap may stop a row."""


@dataclass(frozen=True, eq=False)
class PrunedPath(Stored):
    """P prunings of trees, each with more splits than the one before.

    ``rank`` (nodes,) is the first pruning in which a node is split, P for leaves. ``whole`` are the
    trees, whose vectors have a row for each node. The points are the prunings, named by
    ``names``. Each follows its own ``prefixes`` (M, 2), a pruning and a number of its trees. A row
    pays at each point only for its paths through that point's trees.
    """

    concurrent: ClassVar[bool] = True
    independent_rows: ClassVar[bool] = True

    whole: TreeAverage
    rank: Int32Array
    names: Sequence[Mapping[str, int | float]]
    prefixes: IntArray

    @property
    def marks(self) -> tuple[str, ...]:
        """``DIVERGED`` if the trees diverged."""
        return (DIVERGED,) if self.whole.trees.diverged else ()

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per pruning, preceded by its requested prefixes of trees."""
        # one walk for all prunings: a row only moves further down
        walk = _Walk(self, features.X, 0, self.whole.trees.trees)
        for pruning, name in enumerate(self.names):
            most = self.prefixes[self.prefixes[:, 0] == pruning, 1].tolist()
            so_far = None
            for first, last in pairwise([0, *most]):
                so_far = _Walk(self, features.X, first, last, so_far)
                so_far.go_on(pruning)
                yield so_far.shown({**name, "first": last})
            walk.go_on(pruning)
            yield walk.shown(name)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The trees at a pruning, or its first trees, for serving."""
        name = {key: value for key, value in point.items() if key != "first"}
        pruning = place_of(name, self.names)
        trees, per_round, apart = _split_at(self, pruning), self.whole.per_round, "first" in point
        split = trees.feature[trees.start[:-1]] >= 0
        if apart:  # each stretch is summed separately
            ends = [0, *self.prefixes[self.prefixes[:, 0] == pruning, 1].tolist()]
            ends = ends[: place_of(point, [{**point, "first": end} for end in ends]) + 1]
        else:
            count = trees.trees
            every = max(1, count // per_round // STOPS) * per_round if split.any() else count
            ends = [*range(0, count, every), count]
        program, vectors, steps = self.whole.served(trees, ends), _vectors(self), []
        for k, step in enumerate(program.steps):
            if apart:
                step = replace(step, carry=False, combine="add" if k else "last")
            if not split[step.trees].any() and (apart or len(program.steps) == 1):
                roots = vectors[trees.value[trees.start[step.trees]].astype(np.int64)]
                none = step.trees[:0]
                step = replace(
                    step, trees=none, weights=np.zeros(0), fresh=none > 0, bias=roots.sum(axis=0)
                )
            steps.append(step)
        return replace(program, steps=steps)


def _split_at(path: PrunedPath, pruning: int) -> Ensemble:
    """The trees at a pruning; a leaf keeps its number in the unpruned trees."""
    trees, kept = path.whole.trees.pruned(path.rank <= pruning)
    return replace(trees, value=np.where(trees.feature < 0, np.flatnonzero(kept), 0.0))


def _vectors(path: PrunedPath) -> FloatArray:
    """The vectors (nodes, K)."""
    vectors = path.whole.trees.vectors
    assert vectors is not None
    return vectors


class _Walk:
    """Rows on their way down the trees from number ``first`` to ``last``, and their payments, with
    the payments ``before`` included."""

    def __init__(
        self, path: PrunedPath, X: Float32Array, first: int, last: int, before: _Walk | None = None
    ) -> None:
        self.whole, self.prices, self.last = path.whole, path.whole.prices, last
        trees, prices, n = path.whole.trees, self.prices, len(X)
        # plain arrays for the kernels, whatever was loaded
        plain, start = np.asarray, trees.start
        nodes = trees.feature, trees.threshold, trees.missing_left, trees.left, trees.right
        self.X = plain(X)
        self.shape: Any = tuple(map(plain, (start[first : last + 1], *nodes)))
        self.rank, self.vectors = plain(path.rank), plain(_vectors(path))
        self.needs: Any = tuple(map(plain, (prices.start, prices.needed, prices.multiplier)))
        self.at = np.tile(start[first:last], (n, 1))
        self.total = np.tile(self.vectors[start[first:last]].sum(axis=0), (n, 1))
        if before is None:
            self.bits = Acquired.nothing(prices.sensors).rows(n).bits.copy()
            self.splits, self.begun = np.zeros(n), np.zeros(n)
            self.before = np.zeros_like(self.total)
        else:
            self.bits = before.bits.copy()
            self.splits, self.begun = before.splits.copy(), before.begun.copy()
            self.before = before.before + before.total

    def go_on(self, pruning: int) -> None:
        """Move down to the leaves of a pruning, which must not precede the last call's."""
        from bench_models.pruned_walk import descend

        rows = (self.at, self.bits, self.splits, self.begun)
        descend(self.X, self.shape, self.rank, pruning, self.needs, rows, self.vectors, self.total)

    def shown(self, point: Mapping[str, int | float]) -> Prediction:
        """The prediction at a point, with its own arrays."""
        acquired = Acquired(self.bits.copy(), self.prices.sensors)
        bill = Bill(acquired, self.splits.copy(), self.begun.copy())
        scores = finished(self.whole.finish(self.last), self.before + self.total)
        return Prediction(point, scores[:, 0] if scores.shape[1] == 1 else scores, {"path": bill})
