"""Trees laid out for a walk, what the walk fills, and the loops that lay them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
)


class Layout(NamedTuple):
    """Chosen trees of an ensemble in walking order, weights included."""

    root: Int64Array  # (T+1,) bounds the splits of each tree
    widest: int  # the most splits of a tree
    # per split
    column: Int32Array  # position in ``columns``
    of_cut: Int32Array  # position in ``cut``
    source: Int32Array  # where the rows that come to it stand: see ``inference``
    after: Int32Array  # first split beyond the subtree, 0 where that is not worth a look
    mark: Int32Array  # number of the first leaf of the right subtree
    # per distinct threshold of a column
    cut_column: Int32Array  # position in ``columns``
    cut: Float32Array
    missing_left: BoolArray
    # per leaf
    value: Float64Array  # output times the tree's weight
    splits: Float64Array  # sum of the multipliers on its path, 0 where the tree is not billed
    short: UInt8Array  # ``splits`` as bytes, if that can be; see ``traversal.trees.lengths``
    output: Int32Array  # (T,)
    columns: Int32Array  # (u,) features used; column c needs needed[start[c]:start[c + 1]]
    squares: tuple[Int64Array, Int32Array, Int64Array]  # of ``columns``, see ``traversal.trees``
    start: Int32Array
    needed: Int32Array
    sensors: int

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.output)

    @property
    def table(self) -> Int64Array:
        """(T+1,) bounds the leaves of each tree, of which it has one more than splits."""
        return self.root + np.arange(len(self.root))

    @property
    def words(self) -> int:
        """Number of 64-bit words that hold one bit per sensor (at least 1)."""
        return max(1, -(-self.sensors // 64))


class Steps(NamedTuple):
    """The reported prefixes of a walk: step p ends before tree ``ends[p]`` and is reported."""

    ends: Int64Array
    bias: Float64Array  # (p, K), added at the start of a step
    carry: BoolArray  # (p,), false where scores start afresh, not from those of the step before

    @classmethod
    def prefixes(cls, ends: Sequence[int] | Int64Array, base: Float64Array) -> Steps:
        """Prefixes of one additive ensemble whose constant is ``base`` (K,)."""
        bias = np.zeros((len(ends), len(base)))
        bias[:1] = base
        carry = np.arange(len(ends)) > 0
        return cls(np.asarray(ends, dtype=np.int64), bias, carry)


class Walked(NamedTuple):
    """The results of a walk per step p and row."""

    scores: Float64Array  # (p, n, K)
    bits: UInt64Array  # (p, n, w), the sensors bought so far
    splits: Float64Array  # (p, n), the sum of multipliers so far

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> Walked:
        """Before the first step: scores zero, nothing bought."""
        bits = np.zeros((1, rows, words), dtype=np.uint64)
        return cls(np.zeros((1, rows, outputs)), bits, np.zeros((1, rows)))


Nodes = tuple[Int32Array, Int32Array, Int32Array, Int32Array]
"""``start``, ``feature``, ``left`` and ``right`` of an ``Ensemble``."""


class Placed(NamedTuple):
    """What is filled: per split its node and the fields of ``Layout`` of the same names; per leaf
    its node and the sum of the multipliers on its path."""

    split: Int64Array
    source: Int32Array
    after: Int32Array
    mark: Int32Array
    leaf: Int64Array
    path: Float64Array


SMALL = 16  # splits of a subtree that is walked though nobody comes to it: a guess costs more


@njit(cache=True, nogil=True)
def preorder(
    nodes: Nodes, multiplier: Float64Array, picked: Int64Array, root: Int64Array, out: Placed
) -> None:
    """Fill ``out``, one picked tree after the other.

    A stack holds the nodes to come; of each, where its rows stand, the split of which it is the
    right child (-1: of none), and the multipliers so far.
    """
    start, feature, left, right = nodes
    for t in range(len(picked)):
        size = root[t + 1] - root[t]
        stack = np.zeros((3, size + 2), dtype=np.int64)
        node, source, parent = stack[0], stack[1], stack[2]
        spent = np.zeros(size + 2)
        node[0], parent[0] = start[picked[t]], -1
        height, place, leaf = 1, root[t], root[t] + t
        while height > 0:
            height -= 1
            i, cost, above = node[height], spent[height], parent[height]
            if above >= 0:
                out.mark[above] = leaf - root[t] - t
            if feature[i] < 0:
                out.leaf[leaf], out.path[leaf] = i, cost
                leaf += 1
                continue
            out.split[place], out.source[place] = i, source[height]
            for side in range(2):  # the left child is on top
                at = height + side
                node[at] = left[i] if side else right[i]
                source[at] = 2 * (place - root[t]) + 1 + side
                spent[at] = cost + multiplier[feature[i]]
                parent[at] = -1 if side else place
            height += 2
            place += 1
        within = np.ones(size, dtype=np.int32)  # splits of each subtree
        for k in range(size - 1, -1, -1):  # back to front: children first
            if within[k] >= SMALL:
                out.after[root[t] + k] = root[t] + k + within[k]
            if k > 0:
                within[(out.source[root[t] + k] - 1) // 2] += within[k]
