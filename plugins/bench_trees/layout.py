"""Trees laid out for walking 64 rows at once.

The nodes of each tree stand in preorder, left child first, so that a walk goes through them
once from front to back and jumps over a subtree that no row has reached::

    node   0      1      2     3     4            column     compact feature, -1 at a leaf
           root   left   leaf  leaf  leaf         right      first node of the right subtree
           |------+------------------|  after     after      first node beyond this subtree
                  |------------|  after

Leaves know what their path costs in splits; sensors are noted at the split itself, where one
word says which of the 64 rows pay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_trees.ensemble import LEAF, Ensemble

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Which sensors a feature needs, in row-compressed form, and what a split on it multiplies.

    Feature j needs the sensors ``needed[start[j]:start[j + 1]]``; ``multiplier`` is (d,).
    """

    start: Ints
    needed: Ints
    multiplier: Floats
    sensors: int

    @classmethod
    def plain(cls, features: int) -> Needs:
        """Every feature is its own sensor and every split counts 1."""
        own = np.arange(features + 1, dtype=np.int32)
        return cls(own, own[:-1], np.ones(features), features)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Chosen trees of an ensemble in walking order, weights included.

    ``root`` (T+1,) bounds the nodes of each tree. Node arrays: ``column`` position in
    ``columns`` (-1 at a leaf), ``threshold``, ``missing_left``, ``right``, ``after``, ``value``
    (leaf output times the tree's weight), ``splits`` (at a leaf the sum of the multipliers on
    its path, 0 where the tree is not billed). ``output`` (T,). ``columns`` (u,) are the features
    used; compact column c needs the sensors ``needed[start[c]:start[c + 1]]`` of ``sensors``.
    """

    root: Longs
    column: Ints
    threshold: Float32s
    missing_left: Bools
    right: Ints
    after: Ints
    value: Floats
    splits: Floats
    output: Ints
    columns: Ints
    start: Ints
    needed: Ints
    sensors: int

    def __len__(self) -> int:
        return len(self.output)

    @property
    def words(self) -> int:
        """Number of 64-bit words that hold one bit per sensor (at least 1)."""
        return max(1, -(-self.sensors // 64))


def lay_out(
    ensemble: Ensemble,
    needs: Needs,
    chosen: Sequence[int] | NDArray[np.integer] | None = None,
    weights: Floats | None = None,
    billed: Bools | None = None,
) -> Layout:
    """Lay out ``chosen`` trees (default all) with ``weights`` (default ones).

    ``billed`` (same length) says for which of them splits are counted.
    """
    picked = np.arange(ensemble.trees) if chosen is None else np.asarray(chosen)
    picked = picked.astype(np.int64)
    weight = np.ones(len(picked)) if weights is None else np.asarray(weights, dtype=np.float64)
    pays = np.ones(len(picked), dtype=bool) if billed is None else np.asarray(billed, dtype=bool)
    sizes = np.diff(ensemble.start)[picked].astype(np.int64)
    root = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    node = np.zeros(root[-1], dtype=np.int64)
    right = np.full(root[-1], -1, dtype=np.int32)
    path = np.zeros(root[-1])
    nodes = (ensemble.start, ensemble.feature, ensemble.left, ensemble.right)
    multiplier = np.asarray(needs.multiplier, dtype=np.float64)
    _preorder(nodes, multiplier, picked, root, node, right, path)
    columns, column = _compact(ensemble.feature[node])
    starts, needed = _rows(needs, columns)
    return Layout(
        root=root,
        column=column,
        threshold=ensemble.threshold[node].astype(np.float32),
        missing_left=ensemble.missing_left[node].astype(np.bool_),
        right=right,
        after=_after(right),
        value=ensemble.value[node] * np.repeat(weight, sizes),
        splits=path * np.repeat(pays, sizes),
        output=ensemble.output[picked].astype(np.int32),
        columns=columns,
        start=starts,
        needed=needed,
        sensors=needs.sensors,
    )


@njit(cache=True, nogil=True)
def _preorder(
    nodes: tuple[Ints, Ints, Ints, Ints],
    multiplier: Floats,
    picked: Longs,
    root: Longs,
    node: Longs,
    right_place: Ints,
    path: Floats,
) -> None:
    """Fill for each place: its source ``node``, its right child's place, its path's splits."""
    start, feature, left, right = nodes
    for t in range(len(picked)):
        room = root[t + 1] - root[t]
        source = np.empty(room, dtype=np.int64)
        parent = np.empty(room, dtype=np.int64)
        source[0] = start[picked[t]]
        parent[0] = -1
        path[root[t]] = 0.0
        waiting = 1
        place = root[t]
        while waiting > 0:
            waiting -= 1
            here = source[waiting]
            if parent[waiting] >= 0:
                right_place[parent[waiting]] = place
                path[place] = path[parent[waiting]]
            node[place] = here
            if feature[here] >= 0:
                path[place] += multiplier[feature[here]]
                path[place + 1] = path[place]
                source[waiting], parent[waiting] = right[here], place
                source[waiting + 1], parent[waiting + 1] = left[here], -1
                waiting += 2
            place += 1


@njit(cache=True, nogil=True)
def _after(right: Ints) -> Ints:
    """The first place beyond each node's subtree."""
    after = np.empty(len(right), dtype=np.int32)
    for place in range(len(right) - 1, -1, -1):
        after[place] = place + 1 if right[place] < 0 else after[right[place]]
    return after


def _compact(feature: Ints) -> tuple[Ints, Ints]:
    """The features in use, and each node's place among them (-1 stays -1)."""
    columns = np.unique(feature[feature != LEAF]).astype(np.int32)
    column = np.searchsorted(columns, feature).astype(np.int32)
    column[feature == LEAF] = -1
    return columns, column


def _rows(needs: Needs, columns: Ints) -> tuple[Ints, Ints]:
    """The sensors of ``columns`` only, in row-compressed form."""
    parts = [needs.needed[needs.start[c] : needs.start[c + 1]] for c in columns]
    start = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int32)
    return start, np.concatenate([np.zeros(0, dtype=np.int32), *parts]).astype(np.int32)
