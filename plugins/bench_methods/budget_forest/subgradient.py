"""The authors' relaxation: a multiplier for every purchase of a tree, by subgradient steps.

With beta_tc >= 0 on w^t_c <= w_c for cell c and tree t, every tree is pruned by itself, its node u
charged the beta of the cells it needs first, and cell c is bought iff its betas exceed its price.
The step is not the released one (see the package): it falls like 1 / sqrt(k) in units of the cell's
price; the authors take 50 to 100. The best pruning on the way is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from bench_methods.budget_forest.cut import Cells
from bench_methods.budget_forest.problem import PruningProblem
from bench_methods.budget_forest.smoothed_dual import Search

if TYPE_CHECKING:
    from bench_trees.threads import Workers


def subgradient(
    problem: PruningProblem,
    crew: Workers,
    *,
    iterations: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """The best of as many prunings as there are iterations, and the best bound."""
    from bench_methods.budget_forest.smoothed_dual_kernels import best_closures

    cell = Cells.of(problem)
    worth = problem.worth - cell.own
    size = np.diff(cell.start)
    owner = np.repeat(np.arange(len(cell.cost)), size)
    price = cell.cost[owner]
    beta = price / size[owner]
    kept = np.zeros(problem.nodes, dtype=bool)
    search = Search(kept)
    for k in range(1, iterations + 1):
        charged = worth - np.bincount(cell.pin, beta, minlength=problem.nodes)
        bound = problem.base - best_closures(problem.parent, charged, kept)
        excess = np.bincount(owner, beta, minlength=len(cell.cost)) - cell.cost
        bound -= float(np.maximum(excess, 0.0).sum())
        search.bound, search.passes = max(search.bound, bound), k
        value = problem.objective(kept, crew)
        if value < search.objective:
            search.objective, search.kept = value, kept.copy()
        slope = kept[cell.pin].astype(np.float64) - (excess > 0)[owner]
        beta = np.maximum(beta + price * slope / sqrt(k), 0.0)
        progress(k)
    return search
