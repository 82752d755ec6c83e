"""The learner ``budget-prune``, see the docstring of the package, and compiling its kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.tradeoff import LossPrices

from bench_core import BudgetedLearner, Examples, FitContext, InputError, Prices, Task, param
from bench_methods.budget_forest.forest import Model, Prunable, prunable
from bench_methods.budget_forest.path import PrunedPath, even_tradeoffs, prefixes_at_jumps
from bench_methods.budget_forest.problem import PruningProblem, build, first_points
from bench_methods.budget_forest.rf import BudgetRF

if TYPE_CHECKING:
    from bench_trees.threads import Workers

    from bench_methods.budget_forest.solver import Search

SECONDS = 4
"""About how long the first compilation takes."""


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
        with workers(context.threads) as crew:
            made = prunable(self.base, context, train, crew)
            unit = LossPrices.of(prices, 1.0, made.loss.constant(made.trees))
            problem = build(made.trees, made.loss, valid, prices, unit, crew)
            found = self._searched(problem, crew, context)
        facts = {"gap": found.gap, "passes": found.passes}
        if made.trees.trees == 0:  # boosting found nothing to split
            return made.serve(np.zeros(0, dtype=bool), prices, facts)
        if self.tradeoff is None:
            return _path(made, found, prices, facts)
        kept = (found.critical > self.tradeoff) | (self.tradeoff == 0)
        objective = float(found.objective[0]) / problem.unit
        facts |= {"lambda": self.tradeoff * unit.tau, "objective": objective}
        return made.serve(kept, prices, {**facts, "pruned": int((~kept).sum())})

    def _searched(self, problem: PruningProblem, crew: Workers, context: FitContext) -> Search:
        from bench_methods.budget_forest.solver import search

        def at_one(critical: Any, lost: Any, paid: Any) -> Any:
            return np.array([self.tradeoff])

        def progress(done: int) -> None:
            context.progress(done, self.iterations)

        return search(
            problem,
            crew,
            choice=even_tradeoffs if self.tradeoff is None else at_one,
            tolerance=self.tolerance,
            passes=self.iterations,
            progress=progress,
        )


def _path(made: Prunable, found: Search, prices: Prices, facts: dict[str, Any]) -> PrunedPath:
    """The prunings at the tradeoffs found, then the whole trees at 0."""
    tradeoffs, trees = found.tradeoffs[found.tradeoffs > 0], made.trees
    rank = np.full(trees.nodes, len(tradeoffs) + 1, np.int32)
    rank[trees.feature >= 0] = first_points(found.critical, tradeoffs)
    whole = made.whole(prices, facts)
    prefixes = prefixes_at_jumps(found.paid, trees.trees, whole.per_round)
    return PrunedPath(whole, rank, np.append(tradeoffs, 0.0), prefixes)


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
    model: Any = BudgetPrune(base=BudgetRF(trees=2)).fit(rows, rows, prices, context)
    list(model.predict_path(rows.features))
