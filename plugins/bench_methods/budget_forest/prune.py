"""The learner ``budget-prune``; see the docstring of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.tradeoff import LossPrices

from bench_core import BudgetedLearner, Examples, FitContext, InputError, Prices, Task, param
from bench_core.arrays import BoolArray
from bench_methods.budget_forest.adapters import Model, prunable
from bench_methods.budget_forest.problem import PruningProblem, build
from bench_methods.budget_forest.rf import BudgetRF

if TYPE_CHECKING:
    from bench_trees.threads import Workers

    from bench_methods.budget_forest.smoothed_dual import Search

CUT_PINS = 20_000_000
"""(row, tree, sensor) met up to which ``auto`` cuts: about 600 MB and some minutes."""


@dataclass(frozen=True)
class BudgetPrune(OnTrees):
    """Trees pruned to the best trade-off between what each of them loses and the cost of rows."""

    name: ClassVar[str] = "budget-prune"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    base: BudgetedLearner = param(
        BudgetRF(), "learner whose trees are pruned: a forest, boosted trees, an imported model"
    )
    tradeoff: float = param(
        0.1,
        "price of all features in units of the training loss of all trees as mere roots",
        least=0,
    )
    solver: Literal["auto", "cut", "streamed", "subgradient"] = param(
        "auto", "auto: the exact cut up to 20 million (row, tree, sensor), else streamed"
    )
    tolerance: float = param(
        1e-3, "streamed: stop at this gap between objective and bound", least=0
    )
    iterations: int = param(
        100, "subgradient: steps; streamed: passes over the rows at most", least=1
    )

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: FitContext) -> Model:
        """Prune ``base``: ``train`` rows decide what nodes lose, ``valid`` rows pay the cost."""
        from bench_trees.threads import workers

        if len(valid) == 0:
            raise InputError(f"{self.name}: it needs validation rows to count their cost")
        with workers(context.threads) as crew:
            whole = prunable(self.base, context, train, crew)
            loss_prices = LossPrices.of(prices, self.tradeoff, whole.loss.constant(whole.trees))
            problem = build(whole.trees, whole.loss, valid, prices, loss_prices, crew)
            if whole.additive and self.tradeoff == 0:  # the base itself, to the last bit
                kept, facts = np.ones(problem.nodes, dtype=bool), {"solver": "none", "gap": 0.0}
            else:
                kept, facts = self._solved(problem, crew, context)
            objective = problem.objective(kept, crew) / problem.unit
        facts |= {"lambda": loss_prices.tau, "objective": objective, "pruned": int((~kept).sum())}
        return whole.serve(kept, prices, facts)

    def _solved(
        self, problem: PruningProblem, crew: Workers, context: FitContext
    ) -> tuple[BoolArray, dict[str, Any]]:
        solver = self.solver
        if solver == "auto":
            solver = "cut" if problem.pins <= CUT_PINS else "streamed"
        if solver == "cut":
            from bench_methods.budget_forest.cut import cut

            kept = cut(problem)
            context.progress(1, 1)
            return kept, {"solver": solver, "gap": 0.0}
        search = self._searched(solver, problem, crew, context)
        return search.kept, {"solver": solver, "gap": search.gap, "passes": search.passes}

    def _searched(
        self, solver: str, problem: PruningProblem, crew: Workers, context: FitContext
    ) -> Search:
        def progress(done: int) -> None:
            context.progress(done, self.iterations)

        if solver == "subgradient":
            from bench_methods.budget_forest.subgradient import subgradient

            return subgradient(problem, crew, iterations=self.iterations, progress=progress)
        from bench_methods.budget_forest.smoothed_dual import smoothed_dual

        return smoothed_dual(
            problem, crew, tolerance=self.tolerance, passes=self.iterations, progress=progress
        )
