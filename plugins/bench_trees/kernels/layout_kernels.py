"""Splits in preorder, and the leaf that each sequence of turns leads to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bench_trees.arrays import BoolArray, Float64Array, Int32Array, Int64Array


class Nodes(NamedTuple):
    """The arrays of an ``Ensemble`` that give its shape."""

    start: Int32Array
    feature: Int32Array
    left: Int32Array
    right: Int32Array


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
