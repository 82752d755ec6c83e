"""Cyclic optimisation of one classifier at a time, never raising the true loss.

``NodeObjective`` is eq. 5 as a function of one classifier, all others and the auxiliary variables
held fixed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from bench_models.descent import DescentSettings, cyclic_descent, minimise_gated
from bench_models.least_squares import NEGLIGIBLE
from bench_models.logistic import sigmoid
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost

from bench_core.arrays import FloatArray, IntArray
from bench_methods.cstc.tree import (
    NONE,
    Flow,
    Place,
    Shape,
    Tree,
    TreePenalty,
    copies,
    flow,
    scores_of,
    squares,
    terminals,
    true_loss,
)


@dataclass(frozen=True, slots=True, eq=False)
class NodeObjective:
    """What node k = (b, constant, theta) changes of eq. 5, square roots as quadratic forms.

    Only rows that reach the node (m) and columns with a weight there (c)::

        columns  (c, m)  float64                  y, weight, reach  (m,)  labels, weights and p
        later    (m,)    risk above the gate less that below it, with weight and p
        fixed    (J,)    of J terminals: fixed + onward @ gate is p^l, the share that ends there
        onward   (J, m)  with p and the rows' share
        cost     (J,)    relaxed cost of each terminal's path with the weights ``start`` (c,)
        price    (J, c)  what b^2 / 2 adds to it
        l1       (c,)    rho / sigma, which multiplies b^2 / 2

    ``copies`` of the classifier stand behind its upper and lower side. ``gated`` is false for a
    leaf, whose gate is 1.
    """

    columns: FloatArray
    y: FloatArray
    weight: FloatArray
    reach: FloatArray
    copies: FloatArray
    later: FloatArray
    fixed: FloatArray
    onward: FloatArray
    cost: FloatArray
    price: FloatArray
    start: FloatArray
    l1: FloatArray
    lam: float
    slope: float
    gated: bool
    constant: bool

    @property
    def ridge(self) -> FloatArray:
        """The diagonal of the quadratic form (c,), were every gate half open."""
        ending = self.fixed + 0.5 * self.onward.sum(axis=1)
        diagonal: FloatArray = self.l1 + self.lam * (ending @ self.price)
        return diagonal

    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), constant and threshold."""
        score = weights @ self.columns + (bias if self.constant else 0.0)
        gate = sigmoid(self.slope * (score - threshold)) if self.gated else np.ones(len(score))
        upper, lower = self.copies
        count = 1.0 + upper * gate + lower * (1.0 - gate)
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


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """A tree with its rows' flow and its true loss (5)."""

    tree: Tree
    rows: Flow
    loss: float


def position(
    problem: Problem, penalty: TreePenalty, tree: Tree, scores: FloatArray | None = None
) -> Position:
    """Evaluate a tree, from scratch where its nodes' ``scores`` (K, n) are not known."""
    if scores is None:
        scores = scores_of(problem.columns, tree.weights, tree.bias)
    rows = flow(problem, tree.shape, tree.threshold, scores)
    return Position(tree, rows, true_loss(problem, penalty, tree, rows))


def node_objective(
    problem: Problem,
    penalty: TreePenalty,
    at: Position,
    k: int,
    rows: IntArray,
    columns: IntArray,
    *,
    constant: bool,
) -> NodeObjective:
    """Eq. 5 around ``at`` as a function of node ``k``; ``columns`` have a weight there."""
    tree, shape, reach = at.tree, at.tree.shape, at.rows.reach[k, rows]
    ends = [end for end in terminals(shape) if end.node in shape.below(k)]
    fixed, onward = np.zeros(len(ends)), np.zeros((len(ends), len(rows)))
    for j, end in enumerate(ends):
        upward, share = _onward(shape, at.rows, k, end, rows)
        mass = problem.share[rows] * reach * share
        if upward is not None:
            onward[j] = mass if upward else -mass
        fixed[j] = 0.0 if upward else mass.sum()
    used = [squares(tree, end.node) for end in ends]
    roots = [auxiliaries(problem, squared) for squared in used]
    start = tree.weights[k][columns]
    risks = [_risk(problem, shape, at.rows, child, rows) for _, child in shape.sides(k)]
    return NodeObjective(
        columns=problem.columns[np.ix_(columns, rows)].astype(np.float64),
        y=problem.y[rows],
        weight=problem.weight[rows],
        reach=reach,
        copies=copies(shape)[k],
        later=problem.weight[rows] * reach * (risks[0] - risks[1]),
        fixed=fixed,
        onward=onward,
        cost=np.array([relaxed_cost(problem, squared) for squared in used]),
        price=np.array([quadratic_price(problem, *z)[columns] for z in roots]),
        start=start,
        l1=penalty.rho / np.abs(start),
        lam=penalty.lam,
        slope=problem.slope,
        gated=not shape.is_leaf(k),
        constant=constant,
    )


def _risk(problem: Problem, shape: Shape, state: Flow, k: int, rows: IntArray) -> FloatArray:
    """The risk of node ``k`` and all below, for a row that is there, (m,)."""
    if k == NONE:
        return np.zeros(len(rows))
    own = 0.5 * (problem.y[rows] - state.scores[k, rows]) ** 2
    total: FloatArray = state.risk_count[k, rows] * own
    if not shape.is_leaf(k):
        gate = state.gate[k, rows]
        total += gate * _risk(problem, shape, state, shape.upper[k], rows)
        total += (1.0 - gate) * _risk(problem, shape, state, shape.lower[k], rows)
    return total


def _onward(
    shape: Shape, state: Flow, k: int, end: Place, rows: IntArray
) -> tuple[bool | None, FloatArray]:
    """Whether the way from node ``k`` to a terminal begins upward (None: ``k`` is a leaf), and the
    probability that a row which takes this first turn ends there, (m,)."""
    way = shape.path(end.node)
    way = way[way.index(k) :]
    turns = [shape.upper[a] == b for a, b in pairwise(way)]
    if end.side is not None:
        turns.append(end.side)
    share = np.ones(len(rows))
    for node, up in list(zip(way, turns, strict=False))[1:]:
        gate = state.gate[node, rows]
        share = share * (gate if up else 1.0 - gate)
    return (turns[0] if turns else None), share


def optimise(
    problem: Problem,
    penalty: TreePenalty,
    start: Tree,
    settings: DescentSettings,
    progress: Callable[[int], None] = lambda done: None,
) -> Position:
    """Cycle over the nodes until the true loss stops improving.

    Every accepted update lowers eq. 5 as it stands, with small weights already at exact zero.
    Weights that are zero stay zero. ``progress`` is called with the number of node updates done.
    """
    return cyclic_descent(
        position(problem, penalty, start),
        start.shape.nodes,
        lambda at, k: improve_node(problem, penalty, at, k, settings),
        cycles=settings.cycles,
        tolerance=settings.tolerance,
        progress=progress,
    )


def improve_node(
    problem: Problem, penalty: TreePenalty, at: Position, k: int, settings: DescentSettings
) -> Position:
    """Fit node ``k`` and the auxiliary variables in turns; a step that raises eq. 5 is dropped."""
    for _ in range(settings.reweightings):
        new = _descend(problem, penalty, at, k, settings)
        if new is None or new.loss >= at.loss:
            break
        at, gain = new, at.loss - new.loss
        if gain <= settings.tolerance * abs(at.loss):
            break
    return at


def _descend(
    problem: Problem, penalty: TreePenalty, at: Position, k: int, settings: DescentSettings
) -> Position | None:
    """Fix the auxiliary variables, minimise over (b^k, constant, theta^k), cut small weights."""
    tree = at.tree
    rows = np.flatnonzero(at.rows.reach[k] > NEGLIGIBLE).astype(np.int64)
    columns = np.flatnonzero(tree.weights[k]).astype(np.int64)
    if len(rows) == 0:
        return None
    objective = node_objective(problem, penalty, at, k, rows, columns, constant=settings.constant)
    found, bias, threshold = minimise_gated(
        objective,
        tree.weights[k][columns],
        float(tree.bias[k]),
        float(tree.threshold[k]),
        settings.steps,
        settings.threads,
    )
    weights = np.zeros(problem.trees)
    weights[columns] = np.where(np.abs(found) >= settings.cut_off, found, 0.0)
    moved = tree.replaced(k, weights, bias if settings.constant else 0.0, threshold)
    scores = at.rows.scores.copy()
    scores[k] = problem.score(weights, float(moved.bias[k]))
    return position(problem, penalty, moved, scores)
