"""After training: rows are routed hard, predictors are fitted anew, needless nodes pruned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from bench_models.least_squares import normal_equations, solve_positive
from bench_models.problem import Problem

from bench_core import Examples, FitContext
from bench_core.arrays import BoolArray, Float32Array, FloatArray
from bench_methods.cstc.inputs import Inputs, per_label
from bench_methods.cstc.tree import NONE, Shape, Tree, scores_of, terminals

_RIDGE = 1e-7

Side = tuple[int, bool]
"""A node, and whether its upper side is meant."""


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """What a node or a terminal element predicts: weights (T,) over the columns and a bias."""

    weights: FloatArray
    bias: float


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A tree that routes, and its predictors.

    ``nodes[k]`` predicts for all rows at node k, as if it were a leaf, and ``sides[k, up]`` for
    those that node k sends to one side, as if no classifier were there.
    """

    tree: Tree
    nodes: list[Predictor]
    sides: dict[Side, Predictor]

    def without(self, gone: set[int]) -> Finished:
        """Without these nodes and all below them."""
        shape, kept = self.tree.shape.without(gone)
        number = {old: new for new, old in enumerate(kept)}
        sides = {
            (number[k], up): predictor for (k, up), predictor in self.sides.items() if k in number
        }
        return Finished(
            self.tree.without(gone),
            [self.nodes[k] for k in kept],
            {side: sides[side] for side in _sides(shape)},
        )


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """By hard gates: ``reach`` (K, n), which rows reach each node, and ``up`` (K, n), which score
    above its threshold there."""

    reach: BoolArray
    up: BoolArray

    def side(self, side: Side) -> BoolArray:
        """Which rows node k sends to one side, (n,)."""
        k, up = side
        sent: BoolArray = self.reach[k] & (self.up[k] if up else ~self.up[k])
        return sent


def routes(tree: Tree, scores: FloatArray) -> Routes:
    """Where rows go whose scores at the nodes are these (K, n)."""
    up = scores > tree.threshold[:, None]
    found = Routes(np.zeros(up.shape, dtype=bool), up)
    found.reach[0] = True
    for k in range(tree.shape.nodes):
        for child, side in ((tree.shape.upper[k], True), (tree.shape.lower[k], False)):
            if child != NONE:
                found.reach[child] = found.side((k, side))
    return found


def _sides(shape: Shape) -> list[Side]:
    return [(k, up) for k in range(shape.nodes) if not shape.is_leaf(k) for up in (True, False)]


def finished(
    problem: Problem, tree: Tree, *, refit: bool, constant: bool, threads: int
) -> Finished:
    """Fit the predictors of all nodes, and of both sides of all inner ones, on the rows there."""
    if not refit:
        own = [Predictor(w, float(b)) for w, b in zip(tree.weights, tree.bias, strict=True)]
        return Finished(tree, own, {side: own[side[0]] for side in _sides(tree.shape)})
    way = routes(tree, scores_of(problem.columns, tree.weights, tree.bias))

    def fitted(k: int, rows: BoolArray) -> Predictor:
        if not rows.any():
            return Predictor(tree.weights[k], float(tree.bias[k]))
        return least_squares(problem, tree.weights[k], rows, constant=constant, threads=threads)

    nodes = [fitted(k, way.reach[k]) for k in range(tree.shape.nodes)]
    return Finished(tree, nodes, {s: fitted(s[0], way.side(s)) for s in _sides(tree.shape)})


def least_squares(
    problem: Problem, weights: FloatArray, rows: BoolArray, *, constant: bool, threads: int
) -> Predictor:
    """Fit the non-zero ``weights`` (T,) anew on ``rows`` (n,) without any penalty."""
    support = np.flatnonzero(weights)
    part = replace(
        problem,
        columns=problem.columns[support],
        tree_cost=problem.tree_cost[support],
        needs=problem.needs[:, support],
    )
    normal = normal_equations(part, problem.weight * rows, threads, centred=constant)
    # fewer rows than columns have no one answer: a ridge chooses, a second step removes its bias
    ridge = _RIDGE * normal.gram.diagonal()
    solved = solve_positive(normal.gram, ridge, normal.moment)
    solved = solved + solve_positive(normal.gram, ridge, normal.moment - normal.gram @ solved)
    found = np.zeros(problem.trees)
    found[support[normal.trees]] = solved
    return Predictor(found, normal.bias(solved))


def pruned(model: Finished, found: Inputs, valid: Examples, context: FitContext) -> Finished:
    """Pruned by the run's metric on the validation rows; as it is where there are none."""
    if len(valid) == 0 or model.tree.shape.nodes == 1:
        return model
    sign = 1.0 if context.metric.higher_is_better else -1.0
    factor = per_label(context.task)

    def quality(scores: FloatArray) -> float:
        values = context.metric.values(factor * scores, valid.y, valid.groups, valid.multiplicity)
        return sign * values.mean

    return prune(model, found.of(valid.X, context.threads), quality)


def prune(
    model: Finished, columns: Float32Array, quality: Callable[[FloatArray], float]
) -> Finished:
    """Remove, from the leaves up, every node whose removal does not lower the ``quality`` of the
    validation rows' predictions (columns (T, n))."""
    shape = model.tree.shape
    gates, by_node, by_side = _scores(model, columns)
    way = routes(model.tree, gates)
    out = np.empty(columns.shape[1])
    for end in terminals(shape):
        if end.side is None:
            out[way.reach[end.node]] = by_node[end.node][way.reach[end.node]]
        else:
            rows = way.side((end.node, end.side))
            out[rows] = by_side[end.node, end.side][rows]
    best, gone = quality(out), set[int]()
    parents = shape.parents()
    for k in reversed(range(1, shape.nodes)):
        parent = parents[k]
        rows, instead = way.reach[k], by_side[parent, shape.upper[parent] == k]
        if set(shape.children(parent)) <= gone | {k}:  # the parent becomes a leaf
            rows, instead = way.reach[parent], by_node[parent]
        smaller = out.copy()
        smaller[rows] = instead[rows]
        now = quality(smaller)
        if now >= best:
            out, best = smaller, now
            gone.add(k)
    return model.without(gone)


def _scores(
    model: Finished, columns: Float32Array
) -> tuple[FloatArray, list[FloatArray], dict[Side, FloatArray]]:
    """The scores (K, n) of the gates, and what nodes and sides predict, (n,) each."""
    tree = model.tree
    fitted = {id(p): p for p in (*model.nodes, *model.sides.values())}  # equal ones are one object
    weights = np.concatenate([tree.weights, [p.weights for p in fitted.values()]])
    found = scores_of(columns, weights, np.append(tree.bias, [p.bias for p in fitted.values()]))
    of = dict(zip(fitted, found[len(tree.bias) :], strict=True))
    by_side = {side: of[id(p)] for side, p in model.sides.items()}
    return found[: len(tree.bias)], [of[id(p)] for p in model.nodes], by_side
