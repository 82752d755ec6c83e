"""A tree while it grows: its settings, leaves, pairs of siblings, and the nodes so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal

from bench_trees.arrays import Int64Array, UInt32Array

_CHOICES = {"order": ("best", "level"), "stop": ("net", "raw"), "charge": ("tree", "node")}


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of ``boost``. Raises ValueError on values out of range.

    ``second_order``: Newton steps from the loss's hessians; otherwise every row has hessian 1
    (times weight and multiplicity), which is least squares on the residuals.
    ``order``: ``"best"`` splits the open leaf of highest net gain next; ``"level"`` the first one
    with positive net gain, level by level and left to right.
    ``stop``: ``"net"`` ends a tree when no net gain is positive, and training when a root is
    left unsplit; ``"raw"`` goes on while a raw gain is positive, choosing by net gain.
    ``charge``: ``"tree"`` pays a coupled sensor once, effective at once; ``"node"`` charges at
    every node of the first tree that uses it and always splits (level order only).
    """

    trees: int = 300  # boosting iterations, each of one tree per output
    learning_rate: float = 0.1
    max_depth: int | None = 4  # split levels, None = no limit
    max_leaves: int | None = 16  # None = no limit
    min_rows: int = 20  # least multiplicity in a child
    min_hessian: float = 1e-3  # least sum of hessians in a child, second order only
    l2: float = 0.0  # added to every denominator
    second_order: bool = True
    order: Literal["best", "level"] = "best"
    stop: Literal["net", "raw"] = "net"
    charge: Literal["tree", "node"] = "tree"

    def __post_init__(self) -> None:
        for name, least in (("trees", 0), ("max_depth", 0), ("max_leaves", 1), ("min_rows", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if self.max_depth is None and self.max_leaves is None:
            raise ValueError("max_depth and max_leaves cannot both be without limit")
        if not (self.learning_rate > 0 and self.l2 >= 0 and self.min_hessian >= 0):
            raise ValueError("learning_rate must be positive, l2 and min_hessian not negative")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if self.charge == "node" and self.order != "level":
            raise ValueError('charge="node" needs order="level"')


@dataclass(slots=True, eq=False)
class Leaf:
    """A leaf: rows at positions begin:end of the row order."""

    node: int
    depth: int
    path: int  # its number within the level, left to right
    begin: int
    end: int
    packed: int  # the sum of its rows in fixed point, as ``hessian``
    hessian: int
    count: int
    floor: float  # a raw gain below it is rounding
    unpaid: Int64Array | None = None  # (s,), None where nothing is lazy
    slot: int = -1  # of its histogram
    row: int = -1  # of its gains, -1 before they are computed
    best: tuple[float, int] | None = None  # net gain, feature; None: unknown or stale


Siblings = tuple[Leaf, Leaf | None]
"""The smaller and the larger one, whose slot is still the parent's; or a root alone."""


@dataclass(slots=True, eq=False)
class GrownTree:
    """A tree in lists, children by their number in the tree, and its leaves' rows."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    # node, rows; valid until the next tree is grown
    leaves: list[tuple[int, UInt32Array]] = field(default_factory=list)

    def add_node(self) -> int:
        """A new leaf's number."""
        for numbers in (self.feature, self.left, self.right):
            numbers.append(-1)
        for values in (self.threshold, self.value):
            values.append(0.0)
        self.missing_left.append(False)
        return len(self.feature) - 1

    def renumber(self, order: list[int]) -> dict[int, int]:
        """Give node order[i] the number i; the new numbers by the old ones."""
        number = {old: new for new, old in enumerate(order)} | {-1: -1}
        for name in ("feature", "threshold", "left", "right", "missing_left", "value"):
            setattr(self, name, [getattr(self, name)[old] for old in order])
        self.left, self.right = ([number[i] for i in side] for side in (self.left, self.right))
        return number


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
