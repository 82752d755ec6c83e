"""A tree while it grows: leaves, pairs of siblings, and the nodes so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from bench_trees.arrays import Int64Array, UInt32Array


@dataclass(slots=True, eq=False)
class Leaf:
    """A leaf: rows at positions begin:end of the row order.

    ``path`` numbers the leaf within its level, left to right. ``packed`` and ``hessian`` are the
    sums of its rows in fixed point. ``slot`` holds its histogram and ``row`` its gains, -1
    before they are computed. ``unpaid`` (s,) is None where nothing is lazy. ``best`` is its
    highest net gain and feature, None if unknown or stale after a purchase.
    """

    node: int
    depth: int
    path: int
    begin: int
    end: int
    packed: int
    hessian: int
    count: int
    floor: float
    unpaid: Int64Array | None = None
    slot: int = -1
    row: int = -1
    best: tuple[float, int] | None = None


@dataclass(slots=True, eq=False)
class Pair:
    """Siblings (or a root alone) without histograms of their own."""

    small: Leaf
    large: Leaf | None
    slot: int  # where the parent's histogram is


@dataclass(slots=True, eq=False)
class GrownTree:
    """A tree in lists, children by their number in the tree, and its leaves' rows.

    ``leaves``: (node, rows) with rows uint32, valid until the next tree is grown.
    """

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    leaves: list[tuple[int, UInt32Array]] = field(default_factory=list)

    def add_node(self) -> int:
        """A new leaf's number."""
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.left.append(-1)
        self.right.append(-1)
        self.missing_left.append(False)
        self.value.append(0.0)
        return len(self.feature) - 1

    def renumber(self, order: list[int]) -> None:
        """Give node order[i] the number i."""
        number = {old: new for new, old in enumerate(order)} | {-1: -1}
        self.feature = [self.feature[old] for old in order]
        self.threshold = [self.threshold[old] for old in order]
        self.left = [number[self.left[old]] for old in order]
        self.right = [number[self.right[old]] for old in order]
        self.missing_left = [self.missing_left[old] for old in order]
        self.value = [self.value[old] for old in order]


def best_first(tree: GrownTree, gains: Mapping[int, float]) -> list[int]:
    """The nodes in the order in which they appear when the open leaf of highest gain, on ties the
    one that appeared first, is always split next. ``gains``: of every inner node."""
    order = [0]
    open_ = [(-gains[0], 0, 0)] if 0 in gains else []
    while open_:
        node = heappop(open_)[2]
        for child in (tree.left[node], tree.right[node]):
            if child in gains:
                heappush(open_, (-gains[child], len(order), child))
            order.append(child)
    return order
