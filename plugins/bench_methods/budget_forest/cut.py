"""The pruning problem solved exactly, as one minimum cut between source and sink.

A node belongs to the source's side iff its split is kept (``flow`` draws the graph). The largest
flow is found with J. Dinic's blocking flows. Of all best prunings the one that keeps least is
returned, so that prunings at rising penalties are nested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.problem import PruningProblem

_BITS = 51  # of the sum of all gains: the unit depends on them alone, not on the penalty


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
        from bench_methods.budget_forest.flow import cells

        p = problem
        pins = p.pins
        start, cost = np.empty(pins // 2 + 1, np.int64), np.empty(pins // 2)
        pin, own = np.empty(pins, np.int32), np.zeros(p.nodes)
        entries = (p.first, p.sensor, p.node)
        count = cells(p.leaf, p.weight, p.price, entries, own, start, pin, cost)
        return cls(start[: count + 1].copy(), pin[: start[count]].copy(), cost[:count].copy(), own)


def cut(problem: PruningProblem) -> BoolArray:
    """Which inner nodes the best pruning keeps (D,); the smallest such set."""
    from bench_methods.budget_forest.flow import block, levels

    cell = Cells.of(problem)
    nodes, count = problem.nodes, len(cell.cost)
    if nodes == 0:
        return np.zeros(0, dtype=bool)
    supply, drain = _capacities(problem, cell)
    tree = (problem.parent, *_children(problem.parent))
    members = (cell.start, cell.pin)
    by_node = _by_node(cell, nodes)
    flows = (np.zeros(nodes, np.int64), np.zeros(len(cell.pin), np.int64))
    level, queue = np.empty(nodes + count, np.int32), np.empty(nodes + count, np.int32)
    turn, path = np.empty(nodes + count, np.int64), np.empty(nodes + count, np.int32)
    while levels(tree, members, by_node, flows, supply, drain, level, queue):
        block(tree, members, by_node, flows, supply, drain, level, turn, path)
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
