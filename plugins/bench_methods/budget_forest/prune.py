"""The learner ``budget-prune``, see the docstring of the package, and the points of its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.pruned_path import PrunedPath
from bench_models.tradeoff import LossPrices

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    InputError,
    Prices,
    param,
)
from bench_core.arrays import FloatArray, IntArray
from bench_methods.budget_forest.forest import Model, Prunable, prunable
from bench_methods.budget_forest.pruning import PruningSearch, build, first_points, search
from bench_methods.budget_forest.rf import BudgetRF

PRUNINGS = 60
"""Maximum prunings in a path, the unpruned trees included."""
PREFIXES = 40
"""Maximum prefixes (first trees of a pruning) in a path."""
JUMP = 0.05
"""Cost step, as a share of the total cost, above which prefixes are added."""


def even_tradeoffs(critical: FloatArray, lost: FloatArray, paid: FloatArray) -> FloatArray:
    """All or ``PRUNINGS`` - 1 of the falling ``critical`` tradeoffs (K,), both ends included.

    They are evenly spaced in the mean of normalised loss ``lost`` and cost ``paid`` (K,).
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
    """Prunings and lengths of their prefixes (M, 2) where ``paid`` (P,) jumps. Larger jumps get
    more prefixes, geometrically spaced."""
    jump, rounds = np.diff(_share(paid), prepend=0.0), trees // per_round
    prefixes: list[tuple[int, int]] = []
    for pruning in np.flatnonzero(jump > JUMP) if rounds > 1 else ():
        wanted = np.geomspace(1, rounds - 1, int(PREFIXES * jump[pruning]))
        prefixes += [(int(pruning), int(r) * per_round) for r in np.unique(np.round(wanted))]
    return np.array(prefixes, dtype=np.int64).reshape(len(prefixes), 2)


@dataclass(frozen=True)
class BudgetPrune(OnTrees):
    """Trees pruned to the best trade-off between their loss and the cost of rows."""

    name: ClassVar[str] = "budget-prune"

    base: BudgetedLearner = param(
        BudgetRF(), "learner whose trees are pruned: a forest, boosted trees, an imported model"
    )
    tradeoff: float | None = param(
        None,
        "price of all features in units of the training loss of all trees pruned to roots; "
        "none: a path of tradeoffs, from everything pruned to nothing",
        least=0,
    )
    tolerance: float = param(1e-3, "stop at this gap between objective and bound", least=0)
    iterations: int = param(100, "passes over the validation rows at most", least=1)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Model | PrunedPath:
        """Prune ``base`` by losses on ``train`` rows and costs of ``valid`` rows."""
        from bench_trees.threads import workers

        if len(valid) == 0:
            raise InputError(f"{self.name}: it needs validation rows to count their cost")
        ensemble = prunable(self.base, context, train)
        unit = LossPrices.of(prices, 1.0, ensemble.loss.constant(ensemble.trees))
        problem = build(ensemble.trees, ensemble.loss, valid, prices, unit, context.threads)
        tradeoff = self.tradeoff
        with workers(context.threads) as pool:
            result = search(
                problem,
                pool,
                choice=even_tradeoffs if tradeoff is None else lambda *_: np.array([tradeoff]),
                tolerance=self.tolerance,
                passes=self.iterations,
                progress=lambda done: context.progress(done, self.iterations),
            )
        facts = {"gap": result.gap, "passes": result.passes}
        if ensemble.trees.trees == 0:  # boosting found nothing to split
            return ensemble.pruned(np.zeros(0, dtype=bool), prices, facts)
        if tradeoff is None:
            return _path(ensemble, result, prices, facts)
        # a node is kept up to its critical tradeoff
        kept = (result.critical > tradeoff) | (tradeoff == 0)
        objective = float(result.objective[0]) / problem.unit
        facts |= {"lambda": tradeoff * unit.tau, "objective": objective}
        return ensemble.pruned(kept, prices, {**facts, "pruned": int((~kept).sum())})


def _path(
    ensemble: Prunable, result: PruningSearch, prices: Prices, facts: dict[str, Any]
) -> PrunedPath:
    """The prunings at the tradeoffs found, then the unpruned trees at 0."""
    tradeoffs, trees = result.tradeoffs[result.tradeoffs > 0], ensemble.trees
    rank = np.full(trees.nodes, len(tradeoffs) + 1, np.int32)  # leaves are never split
    rank[trees.feature >= 0] = first_points(result.critical, tradeoffs)
    whole = ensemble.whole(prices, facts)
    prefixes = prefixes_at_jumps(result.paid, trees.trees, whole.per_round)
    names = [{"tradeoff": t} for t in [*tradeoffs.tolist(), 0.0]]
    return PrunedPath(whole, rank, names, prefixes)
