"""Cyclic optimisation of one classifier at a time, never raising the true loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from bench_models.descent import Settings, cyclic_descent, minimise_gated
from bench_models.least_squares import NEGLIGIBLE
from bench_models.problem import Problem

from bench_methods.cstc.node import node_objective
from bench_methods.cstc.tree import Flow, Penalty, Tree, flow, scores_of, true_loss


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """A tree with its rows' flow and its true loss (5)."""

    tree: Tree
    rows: Flow
    loss: float


def position(problem: Problem, penalty: Penalty, tree: Tree) -> Position:
    """Evaluate a tree from scratch."""
    scores = scores_of(problem.columns, tree.weights, tree.bias)
    rows = flow(problem, tree.shape, tree.threshold, scores)
    return Position(tree, rows, true_loss(problem, penalty, tree, rows))


def optimise(
    problem: Problem,
    penalty: Penalty,
    start: Tree,
    settings: Settings,
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
    problem: Problem, penalty: Penalty, at: Position, k: int, settings: Settings
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
    problem: Problem, penalty: Penalty, at: Position, k: int, settings: Settings
) -> Position | None:
    """Fix the auxiliary variables, minimise over (b^k, constant, theta^k), cut small weights."""
    tree = at.tree
    rows = np.flatnonzero(at.rows.reach[k] > NEGLIGIBLE).astype(np.int64)
    columns = np.flatnonzero(tree.weights[k]).astype(np.int64)
    if len(rows) == 0:
        return None
    objective = node_objective(
        problem, penalty, tree, at.rows, k, rows, columns, constant=settings.constant
    )
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
    onward = flow(problem, tree.shape, moved.threshold, scores)
    return Position(moved, onward, true_loss(problem, penalty, moved, onward))
