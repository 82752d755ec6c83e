"""The learner ``budget-prune``, see the docstring of the package, and compiling its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.tradeoff import LossPrices

from bench_core import BudgetedLearner, Examples, FitContext, InputError, Prices, Task, log, param
from bench_core.arrays import BoolArray
from bench_methods.budget_forest.forest import Model, prunable
from bench_methods.budget_forest.problem import PruningProblem, build
from bench_methods.budget_forest.rf import BudgetRF

if TYPE_CHECKING:
    from bench_trees.threads import Workers

CUT_PINS = 20_000_000
"""(row, tree, sensor) met up to which ``auto`` cuts: about 600 MB and some minutes."""
SECONDS = 8
"""About how long the first compilation takes."""


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
        search=log(0.03, 3),
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
        from bench_methods.budget_forest.solvers import cut, smoothed_dual, subgradient

        def progress(done: int) -> None:
            context.progress(done, self.iterations)

        solver, passes = self.solver, self.iterations
        if solver == "auto":
            solver = "cut" if problem.pins <= CUT_PINS else "streamed"
        if solver == "cut":
            kept = cut(problem)
            context.progress(1, 1)
            return kept, {"solver": solver, "gap": 0.0}
        if solver == "subgradient":
            search = subgradient(problem, crew, iterations=passes, progress=progress)
        else:
            search = smoothed_dual(
                problem, crew, tolerance=self.tolerance, passes=passes, progress=progress
            )
        return search.kept, {"solver": solver, "gap": search.gap, "passes": search.passes}


def warm_up(say: Callable[[str], None]) -> None:
    """Compile what is not in numba's cache, after one line to ``say``; else return at once."""
    # numba itself says whether what it stored is of this source; it has no public name for it
    if all(bool(kernel._cache._cache_file._load_index()) for kernel in kernels()):
        return
    say(f"compiling the kernels of forests, once per machine, about {SECONDS} s")
    _use_every_kernel()


def kernels() -> list[Any]:
    """The public ones; those with an underscore are compiled into their callers."""
    from bench_methods.budget_forest import pruning_kernels, tree_kernels

    found = [*vars(pruning_kernels).items(), *vars(tree_kernels).items()]
    return [kernel for name, kernel in found if hasattr(kernel, "py_func") and name[0] != "_"]


def _use_every_kernel() -> None:
    from bench_core import price_list

    X = (np.arange(60, dtype=np.float32).reshape(20, 3) * 7) % 11
    rows, prices = Examples(X, (X[:, 0] > X[:, 1]).astype(np.float64)), price_list(np.ones(3))
    context: Any = SimpleNamespace(
        task=Task.BINARY,
        classes=2,
        seed=0,
        threads=1,
        fitted=lambda learner: learner.fit(rows, rows, prices, context),
        shared=lambda name, build: build(),
        progress=lambda done, total: None,
    )
    for solver in ("cut", "streamed"):
        BudgetPrune(base=BudgetRF(trees=2), solver=solver).fit(rows, rows, prices, context)
