"""The learner ``budget-prune``; see the docstring of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.tradeoff import LossPrices

from bench_core import BudgetedLearner, Examples, FitContext, InputError, Prices, Task, param
from bench_core.arrays import FloatArray
from bench_methods.budget_forest.forest import Model, Prunable, prunable
from bench_methods.budget_forest.path import PrunedPath, even_tradeoffs, prefixes_at_jumps
from bench_methods.budget_forest.pruning import Search, build, first_points, search
from bench_methods.budget_forest.rf import BudgetRF


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
        with workers(context.threads) as crew:
            found = search(
                problem,
                crew,
                choice=even_tradeoffs if self.tradeoff is None else self._at_one,
                tolerance=self.tolerance,
                passes=self.iterations,
                progress=lambda done: context.progress(done, self.iterations),
            )
        facts = {"gap": found.gap, "passes": found.passes}
        if made.trees.trees == 0:  # boosting found nothing to split
            return made.pruned(np.zeros(0, dtype=bool), prices, facts)
        if self.tradeoff is None:
            return _path(made, found, prices, facts)
        kept = (found.critical > self.tradeoff) | (self.tradeoff == 0)
        objective = float(found.objective[0]) / problem.unit
        facts |= {"lambda": self.tradeoff * unit.tau, "objective": objective}
        return made.pruned(kept, prices, {**facts, "pruned": int((~kept).sum())})

    def _at_one(self, critical: FloatArray, lost: FloatArray, paid: FloatArray) -> FloatArray:
        return np.array([self.tradeoff], dtype=np.float64)


def _path(made: Prunable, found: Search, prices: Prices, facts: dict[str, Any]) -> PrunedPath:
    """The prunings at the tradeoffs found, then the whole trees at 0."""
    tradeoffs, trees = found.tradeoffs[found.tradeoffs > 0], made.trees
    rank = np.full(trees.nodes, len(tradeoffs) + 1, np.int32)
    rank[trees.feature >= 0] = first_points(found.critical, tradeoffs)
    whole = made.whole(prices, facts)
    prefixes = prefixes_at_jumps(found.paid, trees.trees, whole.per_round)
    return PrunedPath(whole, rank, np.append(tradeoffs, 0.0), prefixes)
