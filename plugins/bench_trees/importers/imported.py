"""What an importer returns, and how trees of any numbering become a flat ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Float32Array, Float64Array, Int64Array
from bench_trees.ensemble import LEAF, Ensemble

MOST_NODES = 50_000_000


class ModelError(ValueError):
    """A model that cannot be imported: one line with the fault and its reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A foreign model. Its raw outputs (n, K) are sums over trees plus ``ensemble.base``.

    ``kind`` is "regression", "binary", "multiclass", "ranking", or "" where the model names none
    (a user's own objective). With ``vectors`` (m, K) leaf values number rows of ``vectors``,
    these are what is summed, and all trees belong to output 0. ``average``: the sum of trees is
    divided by their number. ``link`` turns raw outputs into those of our tasks: ``"identity"``;
    ``"exp"`` for a logarithm of the label; ``"probability"`` for (averaged) probabilities, of class
    1 where K = 1.
    """

    ensemble: Ensemble
    kind: str
    source: str
    names: tuple[str, ...] = ()
    vectors: Float64Array | None = None
    average: bool = False
    link: str = "identity"

    @property
    def outputs(self) -> int:
        """Number of raw outputs K."""
        return self.ensemble.outputs_count


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Nodes of one tree, numbered in any way with the root first; ``left`` < 0 at a leaf."""

    feature: NDArray[Any]
    threshold: Float32Array
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]

    @classmethod
    def leaf(cls, value: float) -> Tree:
        """A constant."""
        none, zero = np.array([LEAF]), np.zeros(1)
        return cls(none, zero.astype(np.float32), none, none, zero > 0, np.array([value]))


def flat(trees: Sequence[Tree], output: Sequence[int], base: Any, features: int) -> Ensemble:
    """The ensemble of these trees; nodes that no way leads to are dropped.

    Raises ModelError where one is no tree, or holds values that are not finite.
    """
    if sum(len(t.left) for t in trees) > MOST_NODES:
        raise ModelError(f"it has more than {MOST_NODES:,} nodes")
    ready = [_in_order(tree, t) for t, tree in enumerate(trees)]
    try:
        return Ensemble.of_trees(ready, output, base, features)
    except ValueError as error:
        raise ModelError(str(error)) from error


def _in_order(tree: Tree, number: int) -> Tree:
    """The tree renumbered so that children follow their parents and all nodes are reached."""
    inner = tree.left >= 0
    own = np.arange(len(tree.left))
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    rising = bool(np.all(tree.left[inner] > own[inner]) and np.all(tree.right[inner] > own[inner]))
    if rising and np.array_equal(np.sort(children), own[1:]):
        return tree
    order = _walk(tree, number)
    place = np.full(len(own) + 1, LEAF)
    place[order] = np.arange(len(order))
    return Tree(
        tree.feature[order],
        tree.threshold[order],
        np.where(tree.left[order] >= 0, place[tree.left[order]], LEAF),
        np.where(tree.left[order] >= 0, place[tree.right[order]], LEAF),
        tree.missing_left[order],
        tree.value[order],
    )


def _walk(tree: Tree, number: int) -> Int64Array:
    """The reachable nodes, parents first."""
    left, right = tree.left.tolist(), tree.right.tolist()
    order: list[int] = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if not 0 <= node < len(left) or len(order) >= len(left):
            raise ModelError(f"the nodes of tree {number} do not form a tree")
        order.append(node)
        if left[node] >= 0:
            waiting += [right[node], left[node]]
    if len(set(order)) != len(order):
        raise ModelError(f"the nodes of tree {number} do not form a tree")
    return np.array(order, dtype=np.int64)


def at_most(threshold: Any) -> Float32Array:
    """The largest float32 not above each float64: for float32 x the same side of ``x <=``."""
    exact = np.asarray(threshold, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
        lower = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded.astype(np.float64) > exact, lower, rounded).astype(np.float32)


def below(threshold: Any) -> Float32Array:
    """The float32 just below each float32: ``x <= below(t)`` is ``x < t``."""
    limits = np.asarray(threshold, dtype=np.float32)
    with np.errstate(over="ignore"):
        return np.nextafter(limits, np.float32(-np.inf)).astype(np.float32)


def interleaved(output: Sequence[int], outputs: int) -> list[int]:
    """An order of trees in which each run of K has one of every output.

    Raises ModelError where outputs have different numbers of trees.
    """
    of = [[t for t, k in enumerate(output) if k == own] for own in range(outputs)]
    if len({len(own) for own in of}) != 1 or sum(map(len, of)) != len(output):
        raise ModelError(f"its {len(output)} trees do not share out evenly over {outputs} outputs")
    return list(chain.from_iterable(zip(*of, strict=True)))


def array(values: Any, dtype: Any, length: int, what: str) -> NDArray[Any]:
    """A one-dimensional array of numbers of that length, or ModelError."""
    try:
        found = np.asarray(values, dtype=np.float64 if dtype is np.float64 else dtype)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} holds something that is no number") from None
    if found.shape != (length,):
        raise ModelError(f"{what} has {found.size} values instead of {length}")
    return found


def whole(value: Any, what: str, least: int = 0, most: int = 10_000_000) -> int:
    """A whole number within bounds, or ModelError."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{what} is no whole number") from None
    if not least <= number <= most:
        raise ModelError(f"{what} is {number}, not {least} to {most}")
    return number
