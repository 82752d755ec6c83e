"""A tree of classifiers with soft routing, its loss, and descent node by node.

Classifiers are numbered so that children follow their parents::

              0                  node k has weights b^k over the columns, a constant and a
        up  /   \\  low           threshold; f^k = phi.b^k + constant; a row goes up with
           1     2               probability g^k = sigmoid(slope (f^k - theta^k))
          / \\   / \\
         3   4 5   6             terminals: one below each leaf, one at each missing side

``p^k``, the product of the gates on the path, is the probability of reaching node k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from bench_models.descent import (
    Classifiers,
    DescentSettings,
    GatedObjective,
    Position,
    improve_in_turns,
)
from bench_models.least_squares import NEGLIGIBLE, Growing
from bench_models.links import sigmoid
from bench_models.priced_squares import RelaxedPenalty, solve_screened
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost

from bench_core.arrays import Float32Array, FloatArray, IntArray

_SAME = 1e-9
"""Scores closer than this share of their range are treated as equal."""
_CHUNK = 4_000_000
"""Values converted to float64 at a time (32 MB)."""

Solve = Callable[[], tuple[FloatArray, float]]
"""The weights (T,) and the constant of a node."""

NONE = -1
"""As a child: a terminal."""


class TreePlace(NamedTuple):
    """A node (``side`` None), or its upper or lower side. Rows end at terminals."""

    node: int
    side: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """``upper`` and ``lower`` (K,): the children of each node, or ``NONE``."""

    upper: tuple[int, ...]
    lower: tuple[int, ...]

    @classmethod
    def balanced(cls, depth: int) -> Shape:
        """A full binary tree of ``depth`` levels of classifiers."""
        count, inner = 2**depth - 1, 2 ** (depth - 1) - 1
        ends = (NONE,) * (count - inner)
        return cls(
            tuple(2 * k + 1 for k in range(inner)) + ends,
            tuple(2 * k + 2 for k in range(inner)) + ends,
        )

    @classmethod
    def chain(cls, stages: int) -> Shape:
        """A chain: a row goes up to the next classifier or ends."""
        return cls((*range(1, stages), NONE), (NONE,) * stages)

    @property
    def nodes(self) -> int:
        """Number of classifiers K."""
        return len(self.upper)

    def sides(self, k: int) -> list[tuple[bool, int]]:
        """Sides of node ``k``, the upper one (True) first, each with its child or ``NONE``."""
        return [(True, self.upper[k]), (False, self.lower[k])]

    def after(self, k: int, up: bool) -> TreePlace:
        """Place of the rows that node ``k`` sends to one side."""
        child = (self.upper if up else self.lower)[k]
        return TreePlace(k, up) if child == NONE else TreePlace(child)

    def children(self, k: int) -> list[int]:
        """Children of node ``k``."""
        return [child for _, child in self.sides(k) if child != NONE]

    def is_leaf(self, k: int) -> bool:
        """True if node ``k`` has no children, hence no threshold."""
        return not self.children(k)

    def parents(self) -> list[int]:
        """The parent of each node, ``NONE`` for the root."""
        parents = [NONE] * self.nodes
        for k in range(self.nodes):
            for child in self.children(k):
                parents[child] = k
        return parents

    def path(self, k: int) -> list[int]:
        """The classifiers from the root to ``k``, both included."""
        parent, way = self.parents(), [k]
        while parent[way[-1]] != NONE:
            way.append(parent[way[-1]])
        return way[::-1]

    def below(self, k: int) -> set[int]:
        """Node ``k`` and all its descendants."""
        found = {k}
        for child in self.children(k):
            found |= self.below(child)
        return found

    def without(self, gone: set[int]) -> tuple[Shape, list[int]]:
        """The shape without these nodes and their descendants, and the nodes that stay."""
        lost = {j for k in gone for j in self.below(k)}
        kept = [k for k in range(self.nodes) if k not in lost]
        number = {NONE: NONE, **dict.fromkeys(lost, NONE), **{k: i for i, k in enumerate(kept)}}
        shape = Shape(
            tuple(number[self.upper[k]] for k in kept), tuple(number[self.lower[k]] for k in kept)
        )
        return shape, kept


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierTree(Classifiers):
    """Classifiers in a ``shape``; thresholds of leaves are unused."""

    shape: Shape

    def without(self, gone: set[int]) -> ClassifierTree:
        """The tree without these nodes and their descendants."""
        shape, kept = self.shape.without(gone)
        return ClassifierTree(self.weights[kept], self.bias[kept], self.threshold[kept], shape)


@dataclass(frozen=True, slots=True, eq=False)
class TreeFlow:
    """Soft routing of rows: scores f, gates g and reach p, all (K, n). A leaf's gate is 1.

    ``risk_count`` (K, n): multiplier of a row's risk at a node, 1 if all paths have equal length.
    """

    scores: FloatArray
    gate: FloatArray
    reach: FloatArray
    risk_count: FloatArray


def flow(problem: Problem, shape: Shape, threshold: FloatArray, scores: FloatArray) -> TreeFlow:
    """Gates and reach for the scores (K, n) of all nodes."""
    gate = sigmoid(problem.slope * (scores - threshold[:, None]))
    reach = np.ones_like(gate)
    for k in range(shape.nodes):
        if shape.is_leaf(k):
            gate[k] = 1.0
        pass_on(shape, k, reach, gate[k])
    upper, lower = copies(shape).T[:, :, None]
    return TreeFlow(scores, gate, reach, 1.0 + upper * gate + lower * (1.0 - gate))


def pass_on(shape: Shape, k: int, reach: FloatArray, gate: FloatArray) -> None:
    """Set ``reach`` (K, n) of the children of node ``k`` from its ``gate`` (n,)."""
    for up, child in shape.sides(k):
        if child != NONE:
            reach[child] = reach[k] * (gate if up else 1.0 - gate)


def scores_of(columns: Float32Array, weights: FloatArray, bias: FloatArray) -> FloatArray:
    """Scores (K, n) of K classifiers, weights (K, T) and bias (K,), for columns (T, n)."""
    used = np.flatnonzero(weights.any(axis=0))
    scores = np.empty((len(weights), columns.shape[1]))
    step = max(1, _CHUNK // max(1, len(used)))
    for i in range(0, columns.shape[1], step):
        piece = columns[used, i : i + step].astype(np.float64)
        scores[:, i : i + step] = weights[:, used] @ piece
    return scores + bias[:, None]


def terminals(shape: Shape) -> list[TreePlace]:
    """All terminals in the order of their nodes: leaves, and sides without a child."""
    places = []
    for k in range(shape.nodes):
        ends = [TreePlace(k)] if shape.is_leaf(k) else [shape.after(k, up) for up in (True, False)]
        places += [end for end in ends if end.node == k]
    return places


def arrival(rows: TreeFlow, end: TreePlace) -> FloatArray:
    """Probability of each row of ending at a terminal, (n,)."""
    gate = rows.gate[end.node]
    arriving: FloatArray = rows.reach[end.node] * (1.0 - gate if end.side is False else gate)
    return arriving


def squares(tree: ClassifierTree, k: int) -> FloatArray:
    """``sum_j (b^j_t)^2`` over the path to node ``k``, itself included, shape (T,)."""
    total: FloatArray = (tree.weights[tree.shape.path(k)] ** 2).sum(axis=0)
    return total


@dataclass(frozen=True, slots=True)
class TreePenalty:
    """``lam``: price of one cost unit in loss. ``rho``: l1 weight."""

    lam: float
    rho: float


def copies(shape: Shape) -> FloatArray:
    """Copies of each classifier behind its upper and its lower side, (K, 2).

    Where paths differ in length, a terminal represents a chain of copies of its parent, up to the
    longest path: see the departures of ``bench_methods.cstc``.
    """
    # classifiers from the root to each node
    levels = np.array([len(shape.path(k)) for k in range(shape.nodes)])
    missing = np.array([shape.upper, shape.lower]).T == NONE
    return np.where(missing, (levels.max() - levels)[:, None], 0).astype(np.float64)


def true_loss(
    problem: Problem, penalty: TreePenalty, tree: ClassifierTree, rows: TreeFlow
) -> float:
    """Eq. 5: expected risk of every node, l1, and mixed norms of the expected cost."""
    error = (problem.y - rows.scores) ** 2
    count = rows.reach * rows.risk_count
    risk = 0.5 * float(np.einsum("i,ki,ki->", problem.weight, count, error))
    l1 = penalty.rho * float(np.abs(tree.weights).sum())
    return risk + l1 + penalty.lam * expected_cost(problem, tree, rows)  # eq. 5


def expected_cost(problem: Problem, tree: ClassifierTree, rows: TreeFlow) -> float:
    """Relaxed cost of each terminal's path, weighted by the share of rows that end there."""
    return sum(
        float(problem.share @ arrival(rows, end)) * relaxed_cost(problem, squares(tree, end.node))
        for end in terminals(tree.shape)
    )


def stump(problem: Problem, value: float) -> ClassifierTree:
    """A single classifier that predicts ``value`` for every row."""
    none = np.zeros((1, problem.trees))
    return ClassifierTree(none, np.array([value]), np.zeros(1), Shape.balanced(1))


def initialise(
    problem: Problem,
    penalty: TreePenalty,
    shape: Shape,
    *,
    upward: float,
    constant: bool,
    cut_off: float,
    iterations: int,
    threads: int = 1,
    shared: Callable[[int, Solve], tuple[FloatArray, float]] = lambda level, solve: solve(),
    progress: Callable[[int], None] = lambda done: None,
) -> ClassifierTree:
    """Fit every node as if it were a leaf, top down; each threshold sends about the share
    ``upward`` to the upper child.

    A leaf's sub-problem is convex. A node with equal scores for all rows becomes a leaf. ``shared``
    solves the node of each level that only upper sides lead to: it depends on no other node.
    """
    count = shape.nodes
    weights = np.zeros((count, problem.trees))
    bias, threshold = np.zeros(count), np.zeros(count)
    reach = np.zeros((count, len(problem.y)))
    reach[0] = 1.0
    gone: set[int] = set()
    for k in range(count):
        if k not in gone:
            path = shape.path(k)
            # columns bought on the path are cheaper
            before = (weights[path[:-1]] ** 2).sum(axis=0)

            def solve(k: int = k, before: FloatArray = before) -> tuple[FloatArray, float]:
                growing = Growing(problem, problem.weight * reach[k], threads, centred=constant)
                price = penalty.lam * float(problem.share @ reach[k])
                solution = solve_screened(
                    problem,
                    growing,
                    RelaxedPenalty(penalty.rho, price, 1.0, before),
                    np.zeros(problem.trees),
                    cut_off=cut_off,
                    iterations=iterations,
                )
                return solution, growing.normal.bias(solution[growing.normal.trees])

            upper = all(shape.upper[j] == child for j, child in pairwise(path))
            weights[k], bias[k] = shared(len(path), solve) if upper else solve()
            scores = problem.score(weights[k], float(bias[k]))
            cut = splitting_threshold(scores, problem.share * reach[k], 1.0 - upward)
            if cut is None:
                gone |= shape.below(k) - {k}
            else:
                threshold[k] = cut
                pass_on(shape, k, reach, sigmoid(problem.slope * (scores - cut)))
        progress(k + 1)
    return ClassifierTree(weights, bias, threshold, shape).without(gone)


def splitting_threshold(scores: FloatArray, mass: FloatArray, share: float) -> float | None:
    """The middle of the two neighbouring scores (n,) that leave most nearly the ``share`` of the
    ``mass`` (n,) below; None if all scores are equal."""
    rows = np.flatnonzero(mass > NEGLIGIBLE * mass.max())
    order = rows[np.argsort(scores[rows])]  # equal scores in any order: only gaps are cut
    z, below = scores[order], np.cumsum(mass[order])  # mass at or below each score
    gaps = np.flatnonzero(np.diff(z) > _SAME * max(abs(z[0]), abs(z[-1])))
    if len(gaps) == 0:
        return None
    off = np.abs(below[gaps] - share * below[-1])
    # equally good cuts may differ by rounding: take the first
    best = gaps[np.flatnonzero(off <= off.min() + _SAME * below[-1])[0]]
    return 0.5 * float(z[best] + z[best + 1])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeObjective(GatedObjective):
    """Terms of eq. 5 that depend on node k = (b, constant, theta), by lemma 1::

        later    (m,)    risk of the upper side minus risk of the lower one, with weight and p
        fixed    (J,)    of J terminals: fixed + onward @ gate is p^l, the share that ends there
        onward   (J, m)  with p and the rows' share
        cost     (J,)    relaxed cost of each terminal's path with the weights ``start`` (c,)
        price    (J, c)  factor of b^2 / 2 in it
        l1       (c,)    rho / sigma, factor of b^2 / 2

    ``copies`` of the classifier are behind its upper and lower side. A leaf's gate is 1.
    ``ridge`` is the diagonal of the quadratic form with every gate half open.
    """

    copies: FloatArray
    later: FloatArray
    fixed: FloatArray
    onward: FloatArray
    cost: FloatArray
    price: FloatArray
    start: FloatArray
    l1: FloatArray
    constant: bool

    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), constant and threshold."""
        score = weights @ self.columns + (bias if self.constant else 0.0)
        gate = sigmoid(self.slope * (score - threshold)) if self.gated else np.ones(len(score))
        upper, lower = self.copies
        count = 1.0 + upper * gate + lower * (1.0 - gate)  # multiplier of the row's risk
        arriving, miss = self.weight * self.reach, score - self.y
        risk = 0.5 * arriving * miss**2
        cost = self.cost + 0.5 * (self.price @ (weights**2 - self.start**2))  # lemma 1
        ending = self.fixed + self.onward @ gate  # p^l
        value = 0.5 * float(self.l1 @ weights**2)
        value += float(self.later @ gate)
        value += float((count * risk).sum())
        value += self.lam * float(ending @ cost)
        by_gate = self.later + (upper - lower) * risk + self.lam * (cost @ self.onward)
        through_gate = by_gate * (self.slope * gate * (1.0 - gate))
        by_score = count * arriving * miss + through_gate
        by_weights = self.columns @ by_score
        by_weights += (self.l1 + self.lam * (ending @ self.price)) * weights
        by_bias = float(by_score.sum()) if self.constant else 0.0
        return value, by_weights, by_bias, -float(through_gate.sum())


Fitted = Position[ClassifierTree, TreeFlow]


def node_objective(
    problem: Problem,
    penalty: TreePenalty,
    at: Fitted,
    k: int,
    rows: IntArray,
    trees: IntArray,
    columns: FloatArray,
    *,
    constant: bool,
) -> NodeObjective:
    """Eq. 5 around ``at`` as a function of node ``k`` and its weights of ``trees`` (c,), whose
    outputs on ``rows`` (m,) are ``columns`` (c, m)."""
    tree, shape = at.model, at.model.shape
    weight, share = problem.weight[rows], problem.share[rows]
    below = sorted(shape.below(k) - {k})
    ends = [end for end in terminals(shape) if end.node in shape.below(k)]
    risk = 0.5 * (problem.y[rows] - at.rows.scores[:, rows]) ** 2 * at.rows.risk_count[:, rows]

    def were(gate_of_k: float) -> tuple[FloatArray, FloatArray]:
        """Risk below the node (m,), and share ending at its terminals (J, m), at this gate."""
        gate, reach = at.rows.gate[:, rows], at.rows.reach[:, rows]
        gate[k] = gate_of_k
        for node in [k, *below]:
            pass_on(shape, node, reach, gate[node])
        flow = replace(at.rows, gate=gate, reach=reach)
        arriving = np.array([share * arrival(flow, end) for end in ends])
        return weight * (reach[below] * risk[below]).sum(axis=0), arriving

    # both are linear in the node's gate
    (later, upward), (sooner, downward) = were(1.0), were(0.0)
    leaf = shape.is_leaf(k)
    fixed = upward.sum(axis=1) if leaf else downward.sum(axis=1)
    onward = np.zeros_like(upward) if leaf else upward - downward
    used = [squares(tree, end.node) for end in ends]
    roots = [auxiliaries(problem, squared) for squared in used]
    start = tree.weights[k][trees]
    price = np.array([quadratic_price(problem, *z)[trees] for z in roots])
    l1 = penalty.rho / np.abs(start)
    return NodeObjective(
        columns=columns,
        y=problem.y[rows],
        weight=weight,
        reach=at.rows.reach[k, rows],
        copies=copies(shape)[k],
        later=later - sooner,
        fixed=fixed,
        onward=onward,
        cost=np.array([relaxed_cost(problem, squared) for squared in used]),
        price=price,
        start=start,
        l1=l1,
        ridge=l1 + penalty.lam * ((fixed + 0.5 * onward.sum(axis=1)) @ price),
        lam=penalty.lam,
        slope=problem.slope,
        gated=not leaf,
        constant=constant,
    )


def optimise(
    problem: Problem,
    penalty: TreePenalty,
    start: ClassifierTree,
    settings: DescentSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Fitted:
    """Fit the nodes in turns from ``start``; ``progress`` gets the number of updates."""

    def evaluated(tree: ClassifierTree, scores: FloatArray) -> Fitted:
        rows = flow(problem, tree.shape, tree.threshold, scores)
        return Position(tree, rows, true_loss(problem, penalty, tree, rows))

    begin = evaluated(start, scores_of(problem.columns, start.weights, start.bias))
    objective = partial(node_objective, problem, penalty, constant=settings.constant)
    return improve_in_turns(problem, begin, settings, objective, evaluated, progress)
