"""Eq. 5 as a function of one classifier, all others and the auxiliary variables held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from bench_models.problem import Problem, sigmoid

from bench_core.arrays import FloatArray, IntArray
from bench_methods.cronus.initialise import ridge_from
from bench_methods.cronus.objective import relaxed_cost
from bench_methods.cstc.tree import (
    NONE,
    Flow,
    Penalty,
    Shape,
    Terminal,
    Tree,
    remaining,
    squares,
    terminals,
)


@dataclass(frozen=True, slots=True, eq=False)
class NodeObjective:
    """What node k = (b, constant, theta) changes of eq. 5, square roots as quadratic forms.

    Only rows that reach the node (m) and columns with a weight there (c). ``columns`` (c, m)
    float64, ``reach`` p (m,). A row's risk here counts once, and ``more[0]`` times more as far as
    the gate is open, ``more[1]`` times as far as it is shut (both for a leaf). ``later`` (m,): the
    risk of all nodes above the gate less that of all below it, weights and p included. Of J
    terminals: ``fixed + onward @ gate`` is how much of all
    rows ends at each, ``fixed`` (J,) and ``onward`` (J, m) with p; ``cost`` (J,) is the relaxed
    cost of its path at ``start`` (c,), ``price`` (J, c) what b^2 / 2 adds there. ``l1`` (c,)
    multiplies b^2 / 2. ``gated`` is false for a leaf.
    """

    columns: FloatArray
    y: FloatArray
    weight: FloatArray
    reach: FloatArray
    more: tuple[float, float]
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
        miss = score - self.y
        arriving = self.weight * self.reach
        cost = self.cost + 0.5 * (self.price @ (weights**2 - self.start**2))
        ending, by_threshold = self.fixed, 0.0
        opened, shut = self.more
        often: FloatArray | float = 1.0 + opened
        half_square = 0.5 * arriving * miss**2
        value = 0.5 * float(self.l1 @ weights**2)
        through_gate: FloatArray | float = 0.0
        if self.gated:
            gate = sigmoid(self.slope * (score - threshold))
            ending = self.fixed + self.onward @ gate
            often = 1.0 + opened * gate + shut * (1.0 - gate)
            value += float(self.later @ gate)
            by_gate = self.later + (opened - shut) * half_square + self.lam * (cost @ self.onward)
            through_gate = by_gate * (self.slope * gate * (1.0 - gate))
            by_threshold = -float(through_gate.sum())
        by_score = often * arriving * miss + through_gate
        value += float((often * half_square).sum())
        value += self.lam * float(ending @ cost)
        by_weights = self.columns @ by_score
        by_weights += (self.l1 + self.lam * (ending @ self.price)) * weights
        by_bias = float(by_score.sum()) if self.constant else 0.0
        return value, by_weights, by_bias, by_threshold


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
    start = tree.weights[k][columns]
    arriving = problem.weight[rows] * reach
    return NodeObjective(
        columns=problem.columns[np.ix_(columns, rows)].astype(np.float64),
        y=problem.y[rows],
        weight=problem.weight[rows],
        reach=reach,
        more=_more(shape, k),
        later=arriving
        * (
            _risk(problem, shape, flow, shape.upper[k], rows)
            - _risk(problem, shape, flow, shape.lower[k], rows)
        ),
        fixed=fixed,
        onward=onward,
        cost=np.array([relaxed_cost(problem, squared) for squared in used]),
        price=np.array([_price(problem, squared)[columns] for squared in used]),
        start=start,
        l1=penalty.rho / np.abs(start),
        lam=penalty.lam,
        slope=problem.slope,
        gated=not shape.is_leaf(k),
        constant=constant,
    )


def _price(problem: Problem, squared: FloatArray) -> FloatArray:
    """What b_t^2 / 2 costs on a path whose squares are ``squared`` (T,), per column (T,)."""
    nothing = np.zeros(len(squared))
    return ridge_from(problem, rho=0.0, lam=1.0, arriving=1.0, size=nothing, squares=squared)


def _risk(problem: Problem, shape: Shape, flow: Flow, k: int, rows: IntArray) -> FloatArray:
    """The risk of node ``k`` and all below, for a row that is there, (m,)."""
    if k == NONE:
        return np.zeros(len(rows))
    own = 0.5 * (problem.y[rows] - flow.scores[k, rows]) ** 2
    gate, (opened, shut) = flow.gate[k, rows], _more(shape, k)
    if shape.is_leaf(k):
        alone: FloatArray = (1.0 + opened) * own
        return alone
    total: FloatArray = own * (1.0 + opened * gate + shut * (1.0 - gate))
    total += gate * _risk(problem, shape, flow, shape.upper[k], rows)
    total += (1.0 - gate) * _risk(problem, shape, flow, shape.lower[k], rows)
    return total


def _more(shape: Shape, k: int) -> tuple[float, float]:
    """How often more the risk of node ``k`` counts for rows that end at its upper or lower side."""
    left = float(remaining(shape)[k])
    return (left if shape.upper[k] == NONE else 0.0, left if shape.lower[k] == NONE else 0.0)


def _onward(
    shape: Shape, flow: Flow, k: int, end: Terminal, rows: IntArray
) -> tuple[bool | None, FloatArray]:
    """Whether the way from node ``k`` to a terminal begins upward (None: ``k`` is a leaf), and how
    surely a row that takes this first turn ends there, (m,)."""
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
