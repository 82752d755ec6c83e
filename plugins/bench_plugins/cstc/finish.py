"""After training: rows are routed hard, predictors are fitted anew, needless nodes pruned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, FitContext, Prices
from bench_plugins.cronus.normal import normal_equations, solve_positive
from bench_plugins.cronus.objective import Float32Array, FloatArray, Problem, weighted_sum
from bench_plugins.cstc.inputs import Inputs, per_label
from bench_plugins.cstc.tree import NONE, Terminal, Tree, terminals

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """What a node or a terminal element predicts: weights (T,) over the columns and a bias."""

    weights: FloatArray
    bias: float

    def scores(self, columns: Float32Array) -> FloatArray:
        """Predictions for columns (T, n), shape (n,)."""
        return self.bias + weighted_sum(columns, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A tree that routes, and its predictors.

    ``nodes[k]`` predicts for all rows at node k, as if it were a leaf, and ``sides[k, up]`` for
    those that node k sends to one side, as if no classifier were there.
    """

    tree: Tree
    nodes: list[Predictor]
    sides: dict[tuple[int, bool], Predictor]

    def of(self, end: Terminal) -> Predictor:
        """What a terminal element returns."""
        return self.nodes[end.node] if end.side is None else self.sides[end.node, end.side]

    def without(self, k: int) -> Finished:
        """Without node ``k`` and all below it."""
        shape, kept = self.tree.shape.without({k})
        number = {old: new for new, old in enumerate(kept)}
        return Finished(
            self.tree.without({k}),
            [self.nodes[j] for j in kept],
            {
                (number[j], up): predictor
                for (j, up), predictor in self.sides.items()
                if j in number and not shape.is_leaf(number[j])
            },
        )


def routes(tree: Tree, columns: Float32Array) -> Bools:
    """Which rows (n,) reach which nodes by hard gates, (K, n): up iff the score is above theta."""
    reach = np.zeros((tree.shape.nodes, columns.shape[1]), dtype=bool)
    reach[0] = True
    for k in range(tree.shape.nodes):
        if tree.shape.is_leaf(k):
            continue
        up = Predictor(tree.weights[k], float(tree.bias[k])).scores(columns) > tree.threshold[k]
        for child, side in ((tree.shape.upper[k], up), (tree.shape.lower[k], ~up)):
            if child != NONE:
                reach[child] = reach[k] & side
    return reach


def finished(
    problem: Problem, tree: Tree, *, refit: bool, constant: bool, threads: int
) -> Finished:
    """Fit the predictors of all nodes, and of both sides of all inner ones."""
    reach = routes(tree, problem.columns)

    def fitted(k: int, rows: Bools) -> Predictor:
        known = Predictor(tree.weights[k], float(tree.bias[k]))
        if not refit or not rows.any():
            return known
        return least_squares(problem, known.weights, rows, constant=constant, threads=threads)

    nodes = [fitted(k, reach[k]) for k in range(tree.shape.nodes)]
    sides = {}
    for k in range(tree.shape.nodes):
        if not tree.shape.is_leaf(k):
            known = Predictor(tree.weights[k], float(tree.bias[k]))
            up = known.scores(problem.columns) > tree.threshold[k]
            sides[k, True] = fitted(k, reach[k] & up)
            sides[k, False] = fitted(k, reach[k] & ~up)
    return Finished(tree, nodes, sides)


def least_squares(
    problem: Problem, weights: FloatArray, rows: Bools, *, constant: bool, threads: int
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
    free = np.zeros(len(normal.trees))
    solved = solve_positive(normal.gram, free, normal.moment)
    # once more for what the jitter left
    solved = solved + solve_positive(normal.gram, free, normal.moment - normal.gram @ solved)
    found = np.zeros(problem.trees)
    found[support[normal.trees]] = solved
    return Predictor(found, normal.bias(solved))


def predictions(model: Finished, columns: Float32Array) -> FloatArray:
    """What every row (n,) ends with."""
    reach = routes(model.tree, columns)
    out = np.zeros(columns.shape[1])
    for end in terminals(model.tree.shape):
        k = end.node
        rows = reach[k]
        if end.side is not None:
            known = Predictor(model.tree.weights[k], float(model.tree.bias[k]))
            up = known.scores(columns) > model.tree.threshold[k]
            rows = rows & (up if end.side else ~up)
        out[rows] = model.of(end).scores(columns)[rows]
    return out


def prune(
    model: Finished, columns: Float32Array, quality: Callable[[FloatArray], float]
) -> Finished:
    """Remove, from the leaves up, every node whose removal does not lower the ``quality`` of the
    validation rows' predictions."""
    best = quality(predictions(model, columns))
    for k in reversed(range(1, model.tree.shape.nodes)):
        smaller = model.without(k)
        now = quality(predictions(smaller, columns))
        if now >= best:
            model, best = smaller, now
    return model


def pruned(
    model: Finished, found: Inputs, valid: Examples, prices: Prices, context: FitContext
) -> Finished:
    """Pruned by the run's metric on the validation rows; as it is where there are none."""
    if len(valid) == 0:
        return model
    sign = 1.0 if context.metric.higher_is_better else -1.0
    factor = per_label(context.task)

    def quality(scores: FloatArray) -> float:
        values = context.metric.values(factor * scores, valid.y, valid.queries, valid.multiplicity)
        return sign * values.mean

    return prune(model, found.of(valid.X, prices, context.threads), quality)
