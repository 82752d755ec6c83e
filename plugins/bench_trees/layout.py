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

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from bench_trees.ensemble import Ensemble
from bench_trees.kernels.bitmask_traversal import PLANES
from bench_trees.kernels.layout_kernels import Nodes, Placed, depths, preorder
from bench_trees.kernels.records import Layout

_ROOM = 8  # entries of a table of codes per leaf, at most


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Which sensors a feature needs, in row-compressed form, and what a split on it multiplies.

    Feature j needs the sensors ``needed[start[j]:start[j + 1]]``; ``multiplier`` is (d,).
    """

    start: Int32Array
    needed: Int32Array
    multiplier: Float64Array
    sensors: int

    @classmethod
    def plain(cls, features: int) -> Needs:
        """Every feature is its own sensor and every split counts 1."""
        own = np.arange(features + 1, dtype=np.int32)
        return cls(own, own[:-1], np.ones(features), features)


def lay_out(
    ensemble: Ensemble,
    needs: Needs,
    chosen: Sequence[int] | NDArray[np.integer] | None = None,
    weights: Float64Array | None = None,
    billed: BoolArray | None = None,
) -> Layout:
    """Lay out ``chosen`` trees (default all) with ``weights`` (default ones).

    ``billed`` (same length) marks those whose splits are counted.
    """
    picked = np.arange(ensemble.trees) if chosen is None else np.asarray(chosen)
    picked = picked.astype(np.int64)
    weight = np.ones(len(picked)) if weights is None else np.asarray(weights, dtype=np.float64)
    pays = np.ones(len(picked), dtype=bool) if billed is None else np.asarray(billed, dtype=bool)
    nodes = Nodes(ensemble.start, ensemble.feature, ensemble.left, ensemble.right)
    depth = depths(nodes, picked)
    inner = (np.diff(ensemble.start)[picked].astype(np.int64) - 1) // 2
    codes = 1 << np.minimum(depth, PLANES)
    coded = (depth <= PLANES) & (codes <= _ROOM * (inner + 1))
    leaves = np.where(coded, codes, inner + 1)
    root, table = _bounds(inner), _bounds(leaves)
    left, right, after, turn = (np.zeros(root[-1], np.int32) for _ in range(4))
    split, leaf = np.zeros(root[-1], np.int64), np.zeros(table[-1], np.int64)
    placed = Placed(split, left, right, after, turn, leaf, np.zeros(table[-1]))
    multiplier = np.asarray(needs.multiplier, dtype=np.float64)
    preorder(nodes, multiplier, picked, root, table, coded, placed)
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
        splits=placed.path * np.repeat(pays, leaves),
        output=ensemble.output[picked].astype(np.int32),
        columns=columns.astype(np.int32),
        start=starts,
        needed=needed,
        sensors=needs.sensors,
    )


def _bounds(sizes: Int64Array) -> Int64Array:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _rows(needs: Needs, columns: Int32Array) -> tuple[Int32Array, Int32Array]:
    """The sensors of ``columns`` only, in row-compressed form."""
    parts = [needs.needed[needs.start[c] : needs.start[c + 1]] for c in columns]
    start = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int32)
    return start, np.concatenate([np.zeros(0, dtype=np.int32), *parts]).astype(np.int32)
