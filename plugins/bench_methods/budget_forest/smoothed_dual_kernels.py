"""Kernels of ``smoothed_dual``, whose docstring has the formulas."""

from __future__ import annotations

import numpy as np
from numba import njit

from bench_core.arrays import BitArray, BoolArray, FloatArray, Int32Array, IntArray


@njit(cache=True, nogil=True)
def split_cost(
    leaf: Int32Array,
    weight: FloatArray,
    price: FloatArray,
    entries: tuple[IntArray, Int32Array, Int32Array],
    part: FloatArray,
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """Split the price of each (row, sensor) among the nodes that need it, in proportion to part.

    Rows start:stop of ``leaf`` (n, T); leaf a has the entries ``entries[0][a]:entries[0][a + 1]``
    with sensors ``entries[1]``, nodes ``entries[2]`` and ``part`` > 0. Adds what each node is to
    pay to ``out`` (D,).
    """
    first, sensor, node = entries
    rate = np.empty(len(price))
    for i in range(start, stop):
        rate[:] = 0.0
        for at in leaf[i]:
            for e in range(first[at], first[at + 1]):
                rate[sensor[e]] += part[e]
        for s in range(len(price)):
            if rate[s] > 0.0:
                rate[s] = price[s] * weight[i] / rate[s]
        for at in leaf[i]:
            for e in range(first[at], first[at + 1]):
                out[node[e]] += part[e] * rate[sensor[e]]


@njit(cache=True, nogil=True)
def spent(
    leaf: Int32Array, weight: FloatArray, price: FloatArray, mask: BitArray, start: int, stop: int
) -> float:
    """What rows start:stop pay in all where each leaf needs the sensors in ``mask`` (leaves, w)."""
    total = 0.0
    have = np.empty(mask.shape[1], np.uint64)
    for i in range(start, stop):
        have[:] = 0
        for at in leaf[i]:
            for w in range(len(have)):
                have[w] |= mask[at, w]
        cost = 0.0
        for s in range(len(price)):
            if have[s >> 6] >> np.uint64(s & 63) & np.uint64(1):
                cost += price[s]
        total += cost * weight[i]
    return total


@njit(cache=True, nogil=True)
def best_closures(parent: Int32Array, worth: FloatArray, keep: BoolArray) -> float:
    """The sum over trees of the best kept top parts, each node with its ``worth`` (D,).

    Parents come before children. ``keep`` becomes the smallest best set.
    """
    total = 0.0
    value = worth.copy()
    for u in range(len(parent) - 1, -1, -1):
        if value[u] > 0.0:
            if parent[u] < 0:
                total += value[u]
            else:
                value[parent[u]] += value[u]
    for u in range(len(parent)):
        keep[u] = value[u] > 0.0 and (parent[u] < 0 or keep[parent[u]])
    return total


@njit(cache=True, nogil=True)
def tree_isotonic(
    parent: Int32Array, target: FloatArray, weight: FloatArray, out: FloatArray
) -> None:
    """The weighted least-squares fit to ``target`` (D,) that never rises from parent to child.

    Blocks are merged from the leaves up, the highest child block first; children of a block form
    a linked list.
    """
    nodes = len(parent)
    mass, sums = weight.copy(), weight * target
    child = np.full(nodes, -1, np.int32)
    last = np.full(nodes, -1, np.int32)
    after = np.full(nodes, -1, np.int32)
    joined = np.zeros(nodes, np.bool_)
    for u in range(nodes - 1, -1, -1):
        while child[u] >= 0:
            best, before_best, before = child[u], -1, -1
            c = child[u]
            while c >= 0:
                if sums[c] * mass[best] > sums[best] * mass[c]:
                    best, before_best = c, before
                before = c
                c = after[c]
            if sums[best] * mass[u] <= sums[u] * mass[best]:
                break
            joined[best] = True
            mass[u] += mass[best]
            sums[u] += sums[best]
            if before_best < 0:
                child[u] = after[best]
            else:
                after[before_best] = after[best]
            if last[u] == best:
                last[u] = before_best
            if child[best] >= 0:
                if child[u] < 0:
                    child[u] = child[best]
                else:
                    after[last[u]] = child[best]
                last[u] = last[best]
        p = parent[u]
        if p >= 0:
            after[u] = child[p]
            if child[p] < 0:
                last[p] = u
            child[p] = u
    for u in range(nodes):
        out[u] = out[parent[u]] if joined[u] else sums[u] / mass[u]
