"""The learner ``budget-prune``; the package's docstring says what it follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    InputError,
    Prices,
    Task,
    param,
)
from bench_plugins.boosted import LossPrices
from bench_plugins.budget_forest.adopt import forest_of
from bench_plugins.budget_forest.forest import Forest, ForestModel
from bench_plugins.budget_forest.problem import Bools, Problem, build, errors, inner_nodes
from bench_plugins.budget_forest.rf import BudgetRF

if TYPE_CHECKING:
    from bench_trees.threads import Workers

    from bench_plugins.budget_forest.streamed import Search

CUT_PINS = 20_000_000
"""(row, tree, sensor) met up to which ``auto`` cuts: about 600 MB and some minutes."""


@dataclass(frozen=True)
class BudgetPrune:
    """Forest pruned to the best trade-off between its trees' errors and the cost of rows."""

    name: ClassVar[str] = "budget-prune"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS, Task.RANKING})
    code: ClassVar[tuple[str, ...]] = BudgetRF.code

    base: BudgetedLearner = param(  # noqa: RUF009 - a frozen dataclass
        BudgetRF(), "learner whose forest of classification trees is pruned"
    )
    tradeoff: float = param(0.1, "price of all features in units of the constant's training error")
    solver: Literal["auto", "cut", "streamed", "subgradient"] = param(
        "auto", "auto: the exact cut up to 20 million (row, tree, sensor), else streamed"
    )
    tolerance: float = param(1e-3, "streamed: stop at this gap between objective and bound")
    iterations: int = param(100, "subgradient: steps; streamed: passes over the rows at most")

    def __post_init__(self) -> None:
        least = {"tradeoff": 0, "tolerance": 0, "iterations": 1}
        for name, low in least.items():
            if not low <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be at least {low} and finite")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The forest."""
        return (self.base,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ForestModel:
        """Prune ``base``, whose nodes know their training rows; ``valid`` rows pay the cost."""
        from bench_trees.threads import workers

        if len(valid) == 0:
            raise InputError(f"{self.name}: it needs validation rows to count their cost")
        with workers(context.threads) as crew:
            forest = forest_of(self.base, context.fitted(self.base), train, crew)
            money = LossPrices.of(prices, self.tradeoff, constant_error(forest))
            problem = build(forest, valid, prices, money, crew)
            kept, facts = self._solved(problem, crew, context)
            objective = problem.objective(kept, crew) / problem.unit
        facts |= {"lambda": money.tau, "objective": objective, "pruned": int((~kept).sum())}
        return ForestModel(pruned(forest, kept), prices, facts)

    def _solved(
        self, problem: Problem, crew: Workers, context: FitContext
    ) -> tuple[Bools, dict[str, Any]]:
        solver = self.solver
        if solver == "auto":
            solver = "cut" if problem.pins <= CUT_PINS else "streamed"
        if solver == "cut":
            from bench_plugins.budget_forest.cut import cut

            kept = cut(problem)
            context.progress(1, 1)
            return kept, {"solver": solver, "gap": 0.0}
        search = self._searched(solver, problem, crew, context)
        return search.kept, {"solver": solver, "gap": search.gap, "passes": search.passes}

    def _searched(
        self, solver: str, problem: Problem, crew: Workers, context: FitContext
    ) -> Search:
        def progress(done: int) -> None:
            context.progress(done, self.iterations)

        if solver == "subgradient":
            from bench_plugins.budget_forest.subgradient import subgradient

            return subgradient(problem, crew, iterations=self.iterations, progress=progress)
        from bench_plugins.budget_forest.streamed import stream

        return stream(
            problem, crew, tolerance=self.tolerance, passes=self.iterations, progress=progress
        )


def constant_error(forest: Forest) -> float:
    """Share of training rows that the most frequent class misclassifies, mean over trees."""
    roots = forest.start[:-1]
    return float(errors(forest)[roots].sum() / forest.counts[roots].sum())


def pruned(forest: Forest, kept: Bools) -> Forest:
    """The forest whose splits are the ``kept`` (D,) of its inner nodes only."""
    inner, _ = inner_nodes(forest)
    stays = np.zeros(len(forest.feature), dtype=bool)
    stays[forest.start[:-1]] = True
    splits = inner[kept]
    stays[forest.left[splits]] = stays[forest.right[splits]] = True
    place = np.cumsum(stays) - 1
    split = np.zeros(len(stays), dtype=bool)
    split[splits] = True

    def child(side: Any) -> Any:
        return np.where(split, place[side], -1)[stays].astype(np.int32)

    return replace(
        forest,
        start=np.concatenate([[0], np.cumsum(stays)])[forest.start].astype(np.int32),
        feature=np.where(split, forest.feature, -1)[stays].astype(np.int32),
        threshold=np.where(split, forest.threshold, 0)[stays].astype(np.float32),
        left=child(forest.left),
        right=child(forest.right),
        missing_left=(forest.missing_left & split)[stays],
        counts=forest.counts[stays],
    )
