"""Three solvers of the pruning problem: exact, to a certified gap, and the authors' relaxation.

``cut``: the exact solution is a minimum cut between source and sink. A node belongs to the source's
side iff its split is kept (``pruning_kernels`` draws the graph). The largest flow is found with
J. Dinic's blocking flows. Of all best prunings the one that keeps least is returned, so that
prunings at rising penalties are nested.

``smoothed_dual`` reads the rows once per pass. Relax "kept" to x in [0, 1], falling from parent to
child. What a cell (i, s) costs is then weight price max_t x_u over the nodes u that need it first,
and the dual shares that price among these nodes; any sharing gives a lower bound, from the best
closure of each tree alone. Sharings are as many as (row, sensor, tree), but smoothing the maximum,

    max_t x_u  ~  mu log sum_t exp(x_u / mu),   share_u = exp(x_u / mu) / sum_t exp(x_t / mu),

makes them a function of x: one number per node. So nothing is stored per cell, a pass computes all
shares from the rows' leaves, and its sums per node are both the gradient and a feasible dual
point. The smoothed problem is descended by Y. Nesterov's accelerated steps, node u scaled by the
Lipschitz bound (share sum of u) / mu of its derivative, restarted where momentum points uphill
(B. O'Donoghue and E. Candes, 2015); the projection is isotonic least squares on the tree. mu is
halved on the way. Level sets of x, and the best closures, are prunings; their objectives are exact.

``subgradient`` has a multiplier for every purchase of a tree. With beta_tc >= 0 on w^t_c <= w_c for
cell c and tree t, every tree is pruned by itself, its node u charged the beta of the cells it needs
first, and cell c is bought iff its betas exceed its price.
The step is not the released one (see the package): it falls like 1 / sqrt(k) in units of the cell's
price; the authors take 50 to 100. The best pruning on the way is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.problem import PIECES, PruningProblem
from bench_methods.budget_forest.pruning_kernels import (
    Graph,
    best_closures,
    block,
    cells,
    levels,
    split_cost,
    tree_isotonic,
)

if TYPE_CHECKING:
    from bench_trees.threads import Workers

_BITS = 51  # of the sum of all gains: the unit depends on them alone, not on the penalty
FIRST_MU = 0.05  # mu at the start, in units of x
HALVE_EVERY = 40  # passes with one mu
LEAST_MU = 5e-3
CHECK_EVERY = 5  # passes between evaluations of prunings
LEVELS = (0.1, 0.5, 0.9)
LEAST_SHARE = 1e-3  # misclassified rows: keeps the constant of nodes without cost above 0
LEAST_EXPONENT = -600.0  # exp of less is 0


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """(row, sensor) that more than one tree needs, and costs that fall to one node alone.

    Cell c costs ``cost[c]`` as soon as one of the nodes ``pin[start[c]:start[c + 1]]`` is kept;
    ``own`` (D,) is what keeping a node costs besides.
    """

    start: IntArray
    pin: Int32Array
    cost: FloatArray
    own: FloatArray

    @classmethod
    def of(cls, problem: PruningProblem) -> Cells:
        """Collect them; memory grows with rows x trees x sensors."""
        p = problem
        pins = p.pins
        start, cost = np.empty(pins // 2 + 1, np.int64), np.empty(pins // 2)
        pin, own = np.empty(pins, np.int32), np.zeros(p.nodes)
        count = cells(p.purchases, own, start, pin, cost)
        return cls(start[: count + 1].copy(), pin[: start[count]].copy(), cost[:count].copy(), own)


def cut(problem: PruningProblem) -> BoolArray:
    """Which inner nodes the best pruning keeps (D,); the smallest such set."""
    cell = Cells.of(problem)
    nodes, count = problem.nodes, len(cell.cost)
    if nodes == 0:
        return np.zeros(0, dtype=bool)
    supply, drain = _capacities(problem, cell)
    graph: Graph = (
        (problem.parent, *_children(problem.parent)),
        (cell.start, cell.pin),
        _by_node(cell, nodes),
        (np.zeros(nodes, np.int64), np.zeros(len(cell.pin), np.int64)),
    )
    level, queue = np.empty(nodes + count, np.int32), np.empty(nodes + count, np.int32)
    turn, path = np.empty(nodes + count, np.int64), np.empty(nodes + count, np.int32)
    while levels(graph, supply, drain, level, queue):
        block(graph, supply, drain, level, turn, path)
    return level[:nodes] >= 0


def _capacities(problem: PruningProblem, cell: Cells) -> tuple[IntArray, IntArray]:
    """What the source supplies per node, and what each node and cell can drain, as integers.

    Gains and costs are rounded apart, so that each falls or rises with the penalty.
    """
    most = float(np.abs(problem.gain).sum()) + 1.0
    unit = 2.0 ** (_BITS - np.ceil(np.log2(most)))
    worth = np.rint(problem.gain * unit) - np.rint((problem.evaluation + cell.own) * unit)
    supply = np.maximum(worth, 0)
    drain = np.concatenate([np.maximum(-worth, 0), np.rint(cell.cost * unit)])
    ceiling = supply.sum() + 1.0
    return supply.astype(np.int64), np.minimum(drain, ceiling).astype(np.int64)


def _children(parent: Int32Array) -> tuple[Int32Array, Int32Array]:
    """The inner children of each node, -1 where there are fewer than two."""
    sides = np.full((2, len(parent)), -1, np.int32)
    order = np.flatnonzero(parent >= 0)
    order = order[np.argsort(parent[order], kind="stable")]
    second = np.concatenate([[False], parent[order][1:] == parent[order][:-1]])[: len(order)]
    sides[second.astype(np.int64), parent[order]] = order
    return sides[0], sides[1]


def _by_node(cell: Cells, nodes: int) -> tuple[IntArray, Int32Array, Int32Array]:
    """Pins in the order of their nodes: where each node's begin, the pins, and their cells."""
    order = np.argsort(cell.pin, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(cell.pin, minlength=nodes))])
    owner: Int32Array = np.repeat(np.arange(len(cell.cost), dtype=np.int32), np.diff(cell.start))
    return start.astype(np.int64), order, owner[order]


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
        best = self.objective
        return max(0.0, (best - self.bound) / best) if best > 0.0 else 0.0


def smoothed_dual(
    problem: PruningProblem,
    crew: Workers,
    *,
    tolerance: float,
    passes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """Search until the gap is at most ``tolerance`` or ``passes`` passes are done."""
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
    p = problem
    above = exponent - exponent.max(initial=LEAST_EXPONENT)
    part = np.exp(np.maximum(above, LEAST_EXPONENT))[p.node]
    purchases, paid = p.purchases, np.zeros((PIECES, p.nodes))

    def split(piece: int, start: int, stop: int) -> None:
        split_cost(purchases, part, start, stop, paid[piece])

    p.in_pieces(split, crew)
    return np.asarray(paid.sum(axis=0))


def subgradient(
    problem: PruningProblem,
    crew: Workers,
    *,
    iterations: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Search:
    """The best of as many prunings as there are iterations, and the best bound."""
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
