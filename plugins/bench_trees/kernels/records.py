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
    UInt64Array,
)


class Layout(NamedTuple):
    """Chosen trees of an ensemble in walking order, weights included."""

    root: Int64Array  # (T+1,) bounds the splits of each tree
    table: Int64Array  # (T+1,) bounds its leaves
    coded: BoolArray  # (T,) trees whose leaves are found by code
    # per split
    column: Int32Array  # position in ``columns``
    threshold: Float32Array
    missing_left: BoolArray
    left: Int32Array  # counted from the tree's first split, as ``right``
    right: Int32Array
    after: Int32Array  # first split beyond the subtree
    turn: Int32Array  # depth, or number of a leaf
    # per leaf
    value: Float64Array  # output times the tree's weight
    splits: Float64Array  # sum of the multipliers on its path, 0 where the tree is not billed
    output: Int32Array  # (T,)
    columns: Int32Array  # (u,) features used; column c needs needed[start[c]:start[c + 1]]
    start: Int32Array
    needed: Int32Array
    sensors: int

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.output)

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
    left: Int32Array
    right: Int32Array
    after: Int32Array
    turn: Int32Array
    leaf: Int64Array
    path: Float64Array


@njit(cache=True, nogil=True)
def depths(nodes: Nodes, picked: Int64Array) -> Int64Array:
    """The most splits on a path of each picked tree."""
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
def preorder(
    nodes: Nodes,
    multiplier: Float64Array,
    picked: Int64Array,
    root: Int64Array,
    table: Int64Array,
    coded: BoolArray,
    out: Placed,
) -> None:
    """Fill ``out``, one picked tree after the other.

    A stack holds the nodes to come; of each, the code of the turns to it, its depth, the split of
    which it is the right child (-1: of none), and the multipliers so far.
    """
    start, feature, left, right = nodes
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
                out.right[above] = place - root[t] if inner else nowhere
                out.turn[above] = depth - 1 if coded[t] else leaves
            if inner:
                out.split[place] = i
                out.left[place] = place + 1 - root[t] if feature[left[i]] >= 0 else nowhere
                for side in range(2):  # the left child is on top
                    at = height + side
                    node[at] = left[i] if side else right[i]
                    code[at] = mine | ((1 - side) << depth) if coded[t] else 0
                    level[at], spent[at] = depth + 1, cost + multiplier[feature[i]]
                    parent[at] = -1 if side else place
                height += 2
                place += 1
            elif coded[t]:  # every code that begins with these turns
                for entry in range(first + mine, first + entries, 1 << depth):
                    out.leaf[entry], out.path[entry] = i, cost
            else:
                out.leaf[first + leaves], out.path[first + leaves] = i, cost
            leaves += not inner
        for i in range(root[t + 1] - 1, root[t] - 1, -1):  # back to front: children first
            out.after[i] = i + 1
            if out.left[i] < nowhere:
                out.after[i] = out.after[i + 1]
            if out.right[i] < nowhere:
                out.after[i] = out.after[root[t] + out.right[i]]
