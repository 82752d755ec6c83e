"""The pruning problem solved to a certified gap, reading the rows once per pass.

Relax "kept" to x in [0, 1], falling from parent to child. What a cell (i, s) costs is then
weight price max_t x_u over the nodes u that need it first, and the dual shares that price among
these nodes; any sharing gives a lower bound, from the best closure of each tree alone. Sharings
are as many as (row, sensor, tree), but smoothing the maximum,

    max_t x_u  ~  mu log sum_t exp(x_u / mu),   share_u = exp(x_u / mu) / sum_t exp(x_t / mu),

makes them a function of x: one number per node. So nothing is stored per cell, a pass computes all
shares from the rows' leaves, and its sums per node are both the gradient and a feasible dual
point. The smoothed problem is descended by Y. Nesterov's accelerated steps, node u scaled by the
Lipschitz bound (share sum of u) / mu of its derivative, restarted where momentum points uphill
(B. O'Donoghue and E. Candes, 2015); the projection is isotonic least squares on the tree. mu is
halved on the way. Level sets of x, and the best closures, are prunings; their objectives are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_methods.budget_forest.problem import PIECES, PruningProblem

if TYPE_CHECKING:
    from bench_trees.threads import Workers


FIRST_MU = 0.05  # mu at the start, in units of x
HALVE_EVERY = 40  # passes with one mu
LEAST_MU = 5e-3
CHECK_EVERY = 5  # passes between evaluations of prunings
LEVELS = (0.1, 0.5, 0.9)
LEAST_SHARE = 1e-3  # misclassified rows: keeps the constant of nodes without cost above 0
LEAST_EXPONENT = -600.0  # exp of less is 0


@dataclass(slots=True)
class Search:
    """The best bound and the best pruning so far; ``gap`` is relative to its objective."""

    kept: BoolArray
    objective: float = np.inf
    bound: float = -np.inf
    passes: int = 0

    @property
    def gap(self) -> float:
        """(objective - bound) / objective, at least 0."""
        if self.objective <= 0.0:
            return 0.0
        return max(0.0, (self.objective - self.bound) / self.objective)


def smoothed_dual(
    problem: PruningProblem,
    crew: Workers,
    *,
    tolerance: float,
    passes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """Search until the gap is at most ``tolerance`` or ``passes`` passes are done."""
    from bench_methods.budget_forest.smoothed_dual_kernels import best_closures, tree_isotonic

    p, worth = problem, problem.worth
    x = np.full(p.nodes, 0.5)
    search = Search(np.zeros(p.nodes, dtype=bool))
    z, t, mu = x, 1.0, FIRST_MU
    lipschitz = np.zeros(p.nodes)  # of each node's derivative
    while search.passes < passes:
        search.passes += 1
        shares = cost_shares(p, z / mu, crew)
        closure = np.zeros(p.nodes, dtype=bool)
        search.bound = max(search.bound, p.base - best_closures(p.parent, worth - shares, closure))
        lipschitz = np.maximum(lipschitz, (shares + LEAST_SHARE) / mu)
        new = np.empty(p.nodes)
        tree_isotonic(p.parent, z + (worth - shares) / lipschitz, lipschitz, new)
        np.clip(new, 0.0, 1.0, out=new)
        if ((z - new) * lipschitz * (new - x)).sum() > 0.0:  # momentum points uphill: restart
            t, z = 1.0, new
            lipschitz = (shares + LEAST_SHARE) / mu
        else:
            t_new = (1.0 + sqrt(1.0 + 4.0 * t**2)) / 2.0
            z = new + (t - 1.0) / t_new * (new - x)
            t = t_new
        x = new
        if search.passes % CHECK_EVERY == 0 or search.passes == passes:
            for kept in (closure, *(x > level for level in LEVELS)):
                value = p.objective(kept, crew)
                if value < search.objective:
                    search.objective, search.kept = value, kept
            progress(search.passes)
            if search.gap <= tolerance:
                break
        if search.passes % HALVE_EVERY == 0 and mu > LEAST_MU:
            mu, t, z = mu / 2.0, 1.0, x
            lipschitz = np.zeros(p.nodes)
    return search


def cost_shares(problem: PruningProblem, exponent: FloatArray, crew: Workers) -> FloatArray:
    """What each node pays (D,) when a cell's price is shared in proportion to exp(exponent)."""
    from bench_methods.budget_forest.smoothed_dual_kernels import split_cost

    p = problem
    above = exponent - exponent.max(initial=LEAST_EXPONENT)
    part = np.exp(np.maximum(above, LEAST_EXPONENT))[p.node]
    entries = (p.first, p.sensor, p.node)
    paid = np.zeros((PIECES, p.nodes))

    def piece(start: int, stop: int) -> None:
        for k in range(start, stop):
            a, b = p.rows(k)
            split_cost(p.leaf, p.weight, p.price, entries, part, a, b, paid[k])

    crew.run(piece, PIECES, 1)
    return np.asarray(paid.sum(axis=0))
