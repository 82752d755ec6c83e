"""``budget-prune``, see the docstring of the package: the learner, and all prunings as one path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.staged.program import place_of
from bench_models.states import Stored
from bench_models.tradeoff import LossPrices
from bench_models.tree_average import TreeAverage

from bench_core import (
    Acquired,
    Bill,
    BudgetedLearner,
    Examples,
    Features,
    FitContext,
    InputError,
    Prediction,
    Prices,
    Task,
    param,
)
from bench_core.arrays import Float32Array, FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.forest import Model, Prunable, prunable
from bench_methods.budget_forest.pruning import PruningSearch, build, first_points, search
from bench_methods.budget_forest.rf import BudgetRF

if TYPE_CHECKING:
    from bench_core.serving import Program, Trees

PRUNINGS = 60
"""At most so many points of a path are prunings, the whole trees included."""
PREFIXES = 40
"""At most so many are first trees of a pruning."""
JUMP = 0.05
"""A share of the whole cost: where the next pruning costs more than that, first trees are shown."""

STOPS = 20
"""Of a pruning that is served: after so many equal numbers of trees a cap may end a row's way."""


@dataclass(frozen=True, eq=False)
class PrunedPath(Stored):
    """Trees pruned at falling ``tradeoffs`` (P,): first to mere roots, last not at all.

    ``rank`` (nodes,) is the first pruning in which a node is split, P for leaves. ``whole`` are the
    trees, whose ``vectors`` have a row for each node. The points are the lines of ``prefixes``
    (M, 2), a pruning and how many of its trees, and the prunings; each after its own prefixes. A
    row pays at each point for its paths through the trees of that point only.
    """

    concurrent: ClassVar[bool] = True
    independent_rows: ClassVar[bool] = True

    whole: TreeAverage
    rank: Int32Array
    tradeoffs: FloatArray
    prefixes: IntArray

    @property
    def marks(self) -> tuple[str, ...]:
        """Those of the trees."""
        return self.whole.numbers.marks

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per pruning, and per number of its first trees where asked for."""
        trees = self.whole.numbers.ensemble
        assert trees is not None
        # one walk for all prunings: a row only ever goes further down
        walk = _Walk(self, features.X, 0, trees.trees)
        for pruning, tradeoff in enumerate(self.tradeoffs.tolist()):
            most = self.prefixes[self.prefixes[:, 0] == pruning, 1].tolist()
            so_far = None
            for first, last in pairwise([0, *most]):
                so_far = _Walk(self, features.X, first, last, so_far)
                so_far.go_on(pruning)
                yield so_far.shown({"tradeoff": tradeoff, "first": last})
            walk.go_on(pruning)
            yield walk.shown({"tradeoff": tradeoff})

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The trees at a pruning, or the first of them, for serving."""
        from bench_core.serving import compact

        pruning = place_of(
            {"tradeoff": point.get("tradeoff")}, [{"tradeoff": t} for t in self.tradeoffs.tolist()]
        )
        trees, per_round, apart = _split_at(self, pruning), self.whole.per_round, "first" in point
        split = trees.feature[trees.start[:-1]] >= 0
        if apart:  # each stretch is summed by itself
            ends = [0, *self.prefixes[self.prefixes[:, 0] == pruning, 1].tolist()]
            ends = ends[: place_of(point, [{**point, "first": end} for end in ends]) + 1]
        else:
            every = (
                max(1, len(trees) // per_round // STOPS) * per_round if split.any() else len(trees)
            )
            ends = [*range(0, len(trees), every), len(trees)]
        program = self.whole.served(trees, self.whole.vectors, ends)
        steps = []
        for k, step in enumerate(program.steps):
            if apart:
                step = replace(step, carry=False, combine="add" if k else "last")
            if not split[step.trees].any() and (apart or len(program.steps) == 1):
                roots = self.whole.vectors[trees.start[step.trees]]
                none = step.trees[:0]
                step = replace(
                    step, trees=none, weights=np.zeros(0), fresh=none > 0, bias=roots.sum(axis=0)
                )
            steps.append(step)
        return compact(replace(program, steps=steps))


def _split_at(path: PrunedPath, pruning: int) -> Trees:
    """The trees at a pruning; a leaf numbers itself."""
    from bench_core.serving import Trees

    trees = path.whole.numbers.dictionary
    inner = np.asarray(path.rank <= pruning)
    return replace(
        Trees.joined([trees]),
        feature=np.where(inner, trees.feature, -1).astype(np.int32),
        left=np.where(inner, trees.left, -1).astype(np.int32),
        right=np.where(inner, trees.right, -1).astype(np.int32),
        value=np.arange(trees.nodes, dtype=np.float64),
    )


class _Walk:
    """Rows on their way down the trees from number ``first`` to ``last``, and what they have paid,
    all that they paid ``before`` included."""

    def __init__(
        self, path: PrunedPath, X: Float32Array, first: int, last: int, before: _Walk | None = None
    ) -> None:
        self.whole, self.prices, self.last = path.whole, path.whole.numbers.prices, last
        trees, prices, n = path.whole.numbers.ensemble, self.prices, len(X)
        assert trees is not None
        # plain arrays, as kernels take them, whatever was loaded
        plain, start = np.asarray, trees.start
        nodes = trees.feature, trees.threshold, trees.missing_left, trees.left, trees.right
        self.X = plain(X)
        self.shape: Any = tuple(map(plain, (start[first : last + 1], *nodes)))
        self.rank, self.vectors = plain(path.rank), plain(path.whole.vectors)
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
        """Down to the leaves of a pruning, not before that of the last call."""
        from bench_methods.budget_forest.kernels import descend

        rows = (self.at, self.bits, self.splits, self.begun)
        descend(self.X, self.shape, self.rank, pruning, self.needs, rows, self.vectors, self.total)

    def shown(self, point: dict[str, int | float]) -> Prediction:
        """The prediction at a point; its arrays are its own."""
        acquired = Acquired(self.bits.copy(), self.prices.sensors)
        bill = Bill(acquired, self.splits.copy(), self.begun.copy())
        return Prediction(
            point, self.whole.scores(self.before + self.total, self.last), {"path": bill}
        )


def even_tradeoffs(critical: FloatArray, lost: FloatArray, paid: FloatArray) -> FloatArray:
    """Of falling ``critical`` tradeoffs (K,) all or ``PRUNINGS`` - 1, the first and last included.

    Those taken divide the way from ``lost`` and ``paid`` (K,) of the first to those of the last
    evenly, half of it being the cost and half what is lost.
    """
    if len(critical) < PRUNINGS:
        return critical
    # both parts rise from 0 to 1
    way = _share(lost[0] - lost) + _share(paid)
    chosen = np.searchsorted(way, np.linspace(0, 1, PRUNINGS - 1) * way[-1])
    taken: FloatArray = critical[np.unique(np.minimum(chosen, len(critical) - 1))]
    return taken


def _share(risen: FloatArray) -> FloatArray:
    return np.asarray(risen / risen[-1] if risen[-1] > 0 else np.zeros(len(risen)))


def prefixes_at_jumps(paid: FloatArray, trees: int, per_round: int) -> IntArray:
    """Prunings and numbers of their first trees (M, 2) where ``paid`` (P,) jumps: the more, the
    farther, and densest at the first tree."""
    jump, rounds = np.diff(_share(paid), prepend=0.0), trees // per_round
    found: list[tuple[int, int]] = []
    for pruning in np.flatnonzero(jump > JUMP) if rounds > 1 else ():
        wanted = np.geomspace(1, rounds - 1, int(PREFIXES * jump[pruning]))
        found += [(int(pruning), int(r) * per_round) for r in np.unique(np.round(wanted))]
    return np.array(found, dtype=np.int64).reshape(len(found), 2)


@dataclass(frozen=True)
class BudgetPrune(OnTrees):
    """Trees pruned to the best trade-off between what each of them loses and the cost of rows."""

    name: ClassVar[str] = "budget-prune"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")  # logarithms of shares
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    base: BudgetedLearner = param(
        BudgetRF(), "learner whose trees are pruned: a forest, boosted trees, an imported model"
    )
    tradeoff: float | None = param(
        None,
        "price of all features in units of the training loss of all trees as mere roots; "
        "none: a path of tradeoffs, from everything pruned to the whole trees",
        least=0,
    )
    tolerance: float = param(1e-3, "stop at this gap between objective and bound", least=0)
    iterations: int = param(100, "passes over the validation rows at most", least=1)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Model | PrunedPath:
        """Prune ``base``: ``train`` rows decide what nodes lose, ``valid`` rows pay the cost."""
        from bench_trees.threads import workers

        if len(valid) == 0:
            raise InputError(f"{self.name}: it needs validation rows to count their cost")
        made = prunable(self.base, context, train)
        unit = LossPrices.of(prices, 1.0, made.loss.constant(made.trees))
        problem = build(made.trees, made.loss, valid, prices, unit, context.threads)
        tradeoff = self.tradeoff
        with workers(context.threads) as crew:
            found = search(
                problem,
                crew,
                choice=even_tradeoffs if tradeoff is None else lambda *_: np.array([tradeoff]),
                tolerance=self.tolerance,
                passes=self.iterations,
                progress=lambda done: context.progress(done, self.iterations),
            )
        facts = {"gap": found.gap, "passes": found.passes}
        if made.trees.trees == 0:  # boosting found nothing to split
            return made.pruned(np.zeros(0, dtype=bool), prices, facts)
        if tradeoff is None:
            return _path(made, found, prices, facts)
        # a node is kept up to its critical tradeoff
        kept = (found.critical > tradeoff) | (tradeoff == 0)
        objective = float(found.objective[0]) / problem.unit
        facts |= {"lambda": tradeoff * unit.tau, "objective": objective}
        return made.pruned(kept, prices, {**facts, "pruned": int((~kept).sum())})


def _path(
    made: Prunable, found: PruningSearch, prices: Prices, facts: dict[str, Any]
) -> PrunedPath:
    """The prunings at the tradeoffs found, then the whole trees at 0."""
    tradeoffs, trees = found.tradeoffs[found.tradeoffs > 0], made.trees
    rank = np.full(trees.nodes, len(tradeoffs) + 1, np.int32)  # leaves are never split
    rank[trees.feature >= 0] = first_points(found.critical, tradeoffs)
    whole = made.whole(prices, facts)
    prefixes = prefixes_at_jumps(found.paid, trees.trees, whole.per_round)
    return PrunedPath(whole, rank, np.append(tradeoffs, 0.0), prefixes)
