"""Eq. 5 as a function of one classifier, all others and the auxiliary variables held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from bench_models.problem import Problem, auxiliaries, quadratic_price, relaxed_cost, sigmoid

from bench_core.arrays import FloatArray, IntArray
from bench_methods.cstc.tree import (
    NONE,
    Flow,
    Penalty,
    Shape,
    Terminal,
    Tree,
    copies,
    squares,
    terminals,
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


def node_objective(
    problem: Problem,
    penalty: Penalty,
    tree: Tree,
    flow: Flow,
    k: int,
    rows: IntArray,
    columns: IntArray,
    *,
    constant: bool,
) -> NodeObjective:
    """Eq. 5 around ``tree`` as a function of node ``k``; ``columns`` have a weight there."""
    shape = tree.shape
    reach = flow.reach[k, rows]
    ends = [end for end in terminals(shape) if end.node in shape.below(k)]
    fixed, onward = np.zeros(len(ends)), np.zeros((len(ends), len(rows)))
    for j, end in enumerate(ends):
        upward, share = _onward(shape, flow, k, end, rows)
        mass = problem.share[rows] * reach * share
        if upward is None:
            fixed[j] = mass.sum()
        else:
            onward[j] = mass if upward else -mass
            fixed[j] = 0.0 if upward else mass.sum()
    used = [squares(tree, end.node) for end in ends]
    roots = [auxiliaries(problem, squared) for squared in used]
    start = tree.weights[k][columns]
    arriving = problem.weight[rows] * reach
    return NodeObjective(
        columns=problem.columns[np.ix_(columns, rows)].astype(np.float64),
        y=problem.y[rows],
        weight=problem.weight[rows],
        reach=reach,
        copies=copies(shape)[k],
        later=arriving
        * (
            _risk(problem, shape, flow, shape.upper[k], rows)
            - _risk(problem, shape, flow, shape.lower[k], rows)
        ),
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


def _risk(problem: Problem, shape: Shape, flow: Flow, k: int, rows: IntArray) -> FloatArray:
    """The risk of node ``k`` and all below, for a row that is there, (m,)."""
    if k == NONE:
        return np.zeros(len(rows))
    own = 0.5 * (problem.y[rows] - flow.scores[k, rows]) ** 2
    total: FloatArray = flow.risk_count[k, rows] * own
    if not shape.is_leaf(k):
        gate = flow.gate[k, rows]
        total += gate * _risk(problem, shape, flow, shape.upper[k], rows)
        total += (1.0 - gate) * _risk(problem, shape, flow, shape.lower[k], rows)
    return total


def _onward(
    shape: Shape, flow: Flow, k: int, end: Terminal, rows: IntArray
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
        gate = flow.gate[node, rows]
        share = share * (gate if up else 1.0 - gate)
    return (turns[0] if turns else None), share
