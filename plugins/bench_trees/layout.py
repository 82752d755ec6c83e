"""Trees laid out for walking 64 rows at once.

Only splits are walked. Those of a tree stand in preorder, left child first, so that a walk goes
through them once from front to back and jumps over a subtree that no row has reached::

    split  0      1      2            left, right   where the rows that turn so are noted: at the
           root   left   right                      next split, or at a place nobody looks at
           |------+------|    after   after         first split beyond this subtree
                  |      |    after

A row's turns to the right say which leaf it ends in. In a tree of at most eight levels a turn at
depth d sets bit d of a code; the ``table`` of leaves has an entry for every code, so that a leaf
above the last level has several. In deeper trees, and in those whose table would be mostly such
copies, leaves are numbered from left to right and each turn names the first one of the right
subtree: the last turn of a row holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_trees.ensemble import Ensemble
from bench_trees.kernels.bitmask_traversal import PLANES

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Bools = NDArray[np.bool_]

_ROOM = 8  # entries of a table of codes per leaf, at most


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

    ``root`` (T+1,) bounds the splits of each tree, ``table`` (T+1,) its leaves; ``coded`` (T,)
    says of which trees leaves are found by code. Per split: ``column`` position in ``columns``,
    ``threshold``, ``missing_left``, ``left``, ``right`` (counted from the tree's first split),
    ``after``, ``turn`` (depth, or number of a leaf). Per leaf: ``value`` (output times the tree's
    weight), ``splits`` (the sum of the multipliers on its path, 0 where the tree is not billed).
    ``output`` (T,). ``columns`` (u,) are the features used; compact column c needs the sensors
    ``needed[start[c]:start[c + 1]]`` of ``sensors``.
    """

    root: Longs
    table: Longs
    coded: Bools
    column: Ints
    threshold: Float32s
    missing_left: Bools
    left: Ints
    right: Ints
    after: Ints
    turn: Ints
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
    nodes = (ensemble.start, ensemble.feature, ensemble.left, ensemble.right)
    depth = _depths(nodes, picked)
    inner = (np.diff(ensemble.start)[picked].astype(np.int64) - 1) // 2
    codes = 1 << np.minimum(depth, PLANES)
    coded = (depth <= PLANES) & (codes <= _ROOM * (inner + 1))
    leaves = np.where(coded, codes, inner + 1)
    root, table = _bounds(inner), _bounds(leaves)
    split, leaf = np.zeros(root[-1], np.int64), np.zeros(table[-1], np.int64)
    path = np.zeros(table[-1])
    left, right, after, turn = (np.zeros(root[-1], np.int32) for _ in range(4))
    multiplier = np.asarray(needs.multiplier, dtype=np.float64)
    found = (split, left, right, after, turn, leaf, path)
    _preorder(nodes, multiplier, picked, root, table, coded, found)
    columns, column = np.unique(ensemble.feature[split], return_inverse=True)
    starts, needed = _rows(needs, columns.astype(np.int32))
    return Layout(
        root=root,
        table=table,
        coded=coded,
        column=column.astype(np.int32),
        threshold=ensemble.threshold[split].astype(np.float32),
        missing_left=ensemble.missing_left[split].astype(np.bool_),
        left=left,
        right=right,
        after=after,
        turn=turn,
        value=ensemble.value[leaf] * np.repeat(weight, leaves),
        splits=path * np.repeat(pays, leaves),
        output=ensemble.output[picked].astype(np.int32),
        columns=columns.astype(np.int32),
        start=starts,
        needed=needed,
        sensors=needs.sensors,
    )


def _bounds(sizes: Longs) -> Longs:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@njit(cache=True, nogil=True)
def _depths(nodes: tuple[Ints, Ints, Ints, Ints], picked: Longs) -> Longs:
    """The most splits on a path of each tree."""
    start, feature, left, right = nodes
    deepest = np.zeros(len(picked), dtype=np.int64)
    for t in range(len(picked)):
        first, end = start[picked[t]], start[picked[t] + 1]
        level = np.zeros(end - first, dtype=np.int64)
        for i in range(end - first):
            if feature[first + i] >= 0:
                level[left[first + i] - first] = level[i] + 1
                level[right[first + i] - first] = level[i] + 1
            deepest[t] = max(deepest[t], level[i])
    return deepest


@njit(cache=True, nogil=True)
def _preorder(
    nodes: Any,
    multiplier: Floats,
    picked: Longs,
    root: Longs,
    table: Longs,
    coded: Bools,
    found: Any,
) -> None:
    """Fill what ``Layout`` holds per split and, per leaf, its node and its path's splits."""
    start, feature, left, right = nodes
    split, lefts, rights, after, turn, leaf, path = found
    for t in range(len(picked)):
        nowhere = root[t + 1] - root[t]
        first, entries = table[t], table[t + 1] - table[t]
        stack = np.zeros((4, nowhere + 2), dtype=np.int64)
        node, code, level, parent = stack[0], stack[1], stack[2], stack[3]
        spent = np.zeros(nowhere + 2)
        node[0], parent[0] = start[picked[t]], -1
        height, place, leaves = 1, root[t], 0
        while height > 0:
            height -= 1
            i, mine, depth, cost = node[height], code[height], level[height], spent[height]
            above = parent[height]  # where this is a right child
            inner = feature[i] >= 0
            if above >= 0:
                rights[above] = place - root[t] if inner else nowhere
                turn[above] = depth - 1 if coded[t] else leaves
            if inner:
                split[place] = i
                lefts[place] = place + 1 - root[t] if feature[left[i]] >= 0 else nowhere
                for side in range(2):  # the left child is on top
                    at = height + side
                    node[at] = left[i] if side else right[i]
                    code[at] = mine | ((1 - side) << depth) if coded[t] else 0
                    level[at], spent[at] = depth + 1, cost + multiplier[feature[i]]
                    parent[at] = -1 if side else place
                height += 2
                place += 1
            elif coded[t]:
                for entry in range(first + mine, first + entries, 1 << depth):
                    leaf[entry], path[entry] = i, cost
            else:
                leaf[first + leaves], path[first + leaves] = i, cost
            leaves += not inner
        for i in range(root[t + 1] - 1, root[t] - 1, -1):
            after[i] = i + 1
            if lefts[i] < nowhere:
                after[i] = after[i + 1]
            if rights[i] < nowhere:
                after[i] = after[root[t] + rights[i]]


def _rows(needs: Needs, columns: Ints) -> tuple[Ints, Ints]:
    """The sensors of ``columns`` only, in row-compressed form."""
    parts = [needs.needed[needs.start[c] : needs.start[c + 1]] for c in columns]
    start = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int32)
    return start, np.concatenate([np.zeros(0, dtype=np.int32), *parts]).astype(np.int32)
