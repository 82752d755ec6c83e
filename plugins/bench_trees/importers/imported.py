"""The result of an importer, and conversion of trees of any numbering to a flat ensemble."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Float32Array, Float64Array
from bench_trees.ensemble import LEAF, Ensemble


class ModelError(ValueError):
    """A model that cannot be imported: one line with the fault and its reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A foreign model. Its raw outputs (n, K) are sums over trees plus ``ensemble.base``.

    ``link`` maps raw outputs to our tasks' scores: ``"identity"``; ``"exp"`` for a
    logarithm of the label; ``"probability"`` for (averaged) probabilities, of class 1 if K = 1;
    ``"sigmoid"`` for log-odds of each class against the rest. The file may give ``names`` (d,),
    ``ranges`` (d, 2) of the values in training, NaN if unknown, and ``classes`` (K,); otherwise
    each is () or None.
    """

    ensemble: Ensemble
    limits: Float64Array  # (nodes,) thresholds before they were rounded to float32
    kind: str  # "regression", "binary", "multiclass", "ranking", or "" if not given
    source: str
    names: tuple[str, ...] = ()
    average: bool = False  # the sum of trees is divided by their number
    link: str = "identity"
    ranges: Float64Array | None = None
    classes: tuple[str, ...] = ()
    # for features of categories: the names by code, () if cells are the codes
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    # such names, in the order of their features, if the file does not number these
    listed: tuple[tuple[Any, ...], ...] = ()
    # the ensemble and its limits, with categories by these chains, over this number of features;
    # thresholds on the codes of features with these numbers of categories become sets
    spell: Callable[[Any, int, Mapping[int, int]], tuple[Ensemble, Float64Array]] | None = None

    @property
    def outputs(self) -> int:
        """Number of raw outputs K."""
        return self.ensemble.outputs_count


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Nodes of one tree, numbered in any order with the root first; ``left`` < 0 at a leaf."""

    feature: NDArray[Any]
    threshold: NDArray[Any]  # float64, or float32
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]

    @classmethod
    def of_nodes(cls, nodes: Sequence[Sequence[Any]]) -> Tree:
        """Build from the fields of one node after another."""
        kinds = (np.int64, np.float64, np.int64, np.int64, np.bool_, np.float64)
        columns = zip(zip(*nodes, strict=True), kinds, strict=True)
        return cls(*(np.array(column, dtype=kind) for column, kind in columns))


@contextmanager
def complete(library: str) -> Iterator[None]:
    """Raise ModelError if a document lacks an entry or has it in another form."""
    try:
        yield
    except ModelError:
        raise
    except (
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise ModelError(f"it is not a complete {library} model ({error!r})") from None


def kinds_of(**objectives: str) -> dict[str, str]:
    """Kind of task by objective, from a line of objectives for each kind."""
    return {name: kind for kind, line in objectives.items() for name in line.split()}


def flat(
    trees: Sequence[Tree], output: Sequence[int], base: Any, features: int
) -> tuple[Ensemble, Float64Array]:
    """The ensemble of these trees, its thresholds rounded down to float32, and the thresholds in
    float64; unreachable nodes are dropped.

    Raises ModelError if a tree is invalid or holds values that are not finite.
    """
    ready = [_in_order(tree, t) for t, tree in enumerate(trees)]
    limits = np.concatenate([np.zeros(0), *(tree.threshold for tree in ready)])
    rounded = [replace(tree, threshold=at_most(tree.threshold)) for tree in ready]
    try:
        return Ensemble.of_trees(rounded, output, base, features), limits
    except ValueError as error:
        raise ModelError(str(error)) from None


def _in_order(tree: Tree, number: int) -> Tree:
    """The tree renumbered so that children follow their parents and all nodes are reached."""
    inner, ids = tree.left >= 0, np.arange(len(tree.left))
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    rising = bool(np.all(tree.left[inner] > ids[inner]) and np.all(tree.right[inner] > ids[inner]))
    if rising and np.array_equal(np.sort(children), ids[1:]):
        return tree
    left, right = tree.left.tolist(), tree.right.tolist()
    order: dict[int, None] = {}
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if not 0 <= node < len(left) or node in order:
            raise ModelError(f"the nodes of tree {number} do not form a tree")
        order[node] = None
        if left[node] >= 0:
            waiting += [right[node], left[node]]
    reached = list(order)
    place = np.full(len(left) + 1, LEAF)
    place[reached] = np.arange(len(reached))
    ordered = {column.name: getattr(tree, column.name)[reached] for column in fields(tree)}
    inner = ordered["left"] >= 0
    for side in ("left", "right"):
        ordered[side] = np.where(inner, place[ordered[side]], LEAF)
    return Tree(**ordered)


def at_most(threshold: Any) -> Float32Array:
    """The largest float32 not above each float64: for float32 x the same side of ``x <=``."""
    exact = np.asarray(threshold, dtype=np.float64)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
        return np.where(rounded > exact, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def at_most_written(threshold: Any) -> Float32Array:
    """The same for decimals that were rounded to float32: the largest float32 whose shortest
    decimal is not above each float64. Thresholds that are float32 stay."""
    exact, low = np.asarray(threshold, dtype=np.float64), at_most(threshold)
    with np.errstate(over="ignore"):
        around = [low, np.nextafter(low, np.float32(np.inf))]
        left, high_left = (x.astype(str).astype(np.float64) <= exact for x in around)
        found = np.where(left, low, np.nextafter(low, np.float32(-np.inf)))
    return np.where(low == exact, low, np.where(high_left, around[1], found))


def below(threshold: Any) -> Float32Array:
    """The float32 just below each float32: ``x <= below(t)`` is ``x < t``."""
    with np.errstate(over="ignore"):
        return np.nextafter(np.asarray(threshold, np.float32), np.float32(-np.inf))


def interleaved(output: Sequence[int], outputs: int) -> list[int]:
    """An order of trees in which each run of K has one of every output.

    Raises ModelError if outputs have different numbers of trees.
    """
    of: list[list[int]] = [[] for _ in range(min(outputs, len(output) + 1))]
    for t, k in enumerate(output):
        if 0 <= k < len(of):
            of[k].append(t)
    if len({len(own) for own in of}) != 1 or sum(map(len, of)) != len(output):
        raise ModelError(
            f"its {len(output)} trees cannot be divided evenly among {outputs} outputs"
        )
    return list(chain.from_iterable(zip(*of, strict=True)))
