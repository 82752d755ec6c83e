"""The pruning problem solved to a certified gap, reading the rows once per pass.

Relax "kept" to x in [0, 1], falling from parent to child. What a cell (i, s) costs is then
weight price max_t x_u over the nodes u that need it first, and the dual shares that price among
these nodes; any sharing gives a lower bound, from the best closure of each tree alone. Sharings
are as many as (row, sensor, tree), but smoothing the maximum,

    max_t x_u  ~  mu log sum_t exp(x_u / mu),   share_u = exp(x_u / mu) / sum_t exp(x_t / mu),

makes them a function of x: one number per node. So nothing is stored per cell, a pass computes all
shares from the rows' leaves, and its sums per node are both the gradient and a feasible dual
point. The smoothed problem is descended by Y. Nesterov's accelerated steps, node u scaled by the
bound (share sum of u) / mu of its curvature, restarted where momentum points uphill (B. O'Donoghue
and E. Candes, 2015); the projection is least squares falling along the tree. mu is halved on the
way. Level sets of x, and the best closures, are prunings; their objectives are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from bench_methods.budget_forest.problem import PIECES, Bools, Floats, Problem

if TYPE_CHECKING:
    from bench_trees.threads import Workers


SMOOTH = 0.05  # mu at the start, in units of x
HALVE = 40  # passes with one mu
SHARPEST = 5e-3
LOOK = 5  # passes between looks at prunings
LEVELS = (0.1, 0.5, 0.9)
FAINT = 1e-3  # misclassified rows: keeps the scale of nodes that share nothing above zero
LEAST = -600.0  # exponent: exp of less is zero


@dataclass(slots=True)
class Search:
    """The best bound and the best pruning so far; ``gap`` is relative to its objective."""

    kept: Bools
    objective: float = np.inf
    bound: float = -np.inf
    passes: int = 0

    @property
    def gap(self) -> float:
        """(objective - bound) / objective, at least 0."""
        if self.objective <= 0.0:
            return 0.0
        return max(0.0, (self.objective - self.bound) / self.objective)


def stream(
    problem: Problem,
    crew: Workers,
    *,
    tolerance: float,
    passes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """Search until the gap is at most ``tolerance`` or ``passes`` passes are done."""
    from bench_methods.budget_forest.smoothed_dual_kernels import best_closures, falling

    p, worth = problem, problem.worth
    x = np.full(p.nodes, 0.5)
    search = Search(np.zeros(p.nodes, dtype=bool))
    ahead, momentum, mu = x, 1.0, SMOOTH
    scale = np.zeros(p.nodes)
    while search.passes < passes:
        search.passes += 1
        shares = share(p, ahead / mu, crew)
        closure = np.zeros(p.nodes, dtype=bool)
        search.bound = max(search.bound, p.base - best_closures(p.parent, worth - shares, closure))
        scale = np.maximum(scale, (shares + FAINT) / mu)
        new = np.empty(p.nodes)
        falling(p.parent, ahead + (worth - shares) / scale, scale, new)
        np.clip(new, 0.0, 1.0, out=new)
        if ((ahead - new) * scale * (new - x)).sum() > 0.0:
            momentum, ahead = 1.0, new
            scale = (shares + FAINT) / mu
        else:
            following = (1.0 + sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = new + (momentum - 1.0) / following * (new - x)
            momentum = following
        x = new
        if search.passes % LOOK == 0 or search.passes == passes:
            for kept in (closure, *(x > level for level in LEVELS)):
                value = p.objective(kept, crew)
                if value < search.objective:
                    search.objective, search.kept = value, kept
            progress(search.passes)
            if search.gap <= tolerance:
                break
        if search.passes % HALVE == 0 and mu > SHARPEST:
            mu, momentum, ahead = mu / 2.0, 1.0, x
            scale = np.zeros(p.nodes)
    return search


def share(problem: Problem, exponent: Floats, crew: Workers) -> Floats:
    """What each node pays (D,) when a cell's price is shared in proportion to exp(exponent)."""
    from bench_methods.budget_forest.smoothed_dual_kernels import share_out

    p = problem
    pull = np.exp(np.maximum(exponent - exponent.max(initial=LEAST), LEAST))[p.node]
    entries = (p.first, p.sensor, p.node)
    paid = np.zeros((PIECES, p.nodes))

    def piece(start: int, stop: int) -> None:
        for k in range(start, stop):
            a, b = p.rows(k)
            share_out(p.leaf, p.weight, p.price, entries, pull, a, b, paid[k])

    crew.run(piece, PIECES, 1)
    return np.asarray(paid.sum(axis=0))
