"""Kernels of pruning: shares and sums of costs, closures and projections.

A cell is a row and a sensor; the nodes that need the sensor first, in any tree, are its entries.
"""

import numpy as np
from numba import njit

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray

Purchases = tuple[Int32Array, FloatArray, FloatArray, IntArray, Int32Array, Int32Array]
"""``leaf``, ``weight``, ``price``, ``first``, ``sensor`` and ``node`` of a ``PruningProblem``."""

_DOWN = np.ldexp(1.0, -np.arange(64))  # 2 ** -k; less is as good as nothing


@njit(cache=True, nogil=True)
def split_cost(
    purchases: Purchases,
    entries: tuple[FloatArray, Int32Array],
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """Split the price of each cell among its entries, in proportion to part * 2 ** power.

    Adds what each node is to pay for the rows start:stop to ``out`` (D,). ``entries`` are part
    (E,) in [1, 2) and power (E,): parts of one cell may be of any two sizes.
    """
    leaf, weight, price, first, sensor, node = purchases
    part, power = entries
    sensors, trees = len(price), leaf.shape[1]
    rate, top = np.empty(sensors), np.empty(sensors, np.int32)
    longest = 0
    for k in range(len(first) - 1):
        longest = max(longest, first[k + 1] - first[k])
    most = trees * longest  # entries of a row: listed once, they lie side by side
    entry, of, own = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most)
    for i in range(start, stop):
        rate[:], top[:], many = 0.0, -(2**31), 0
        for t in range(trees):
            for e in range(first[leaf[i, t]], first[leaf[i, t] + 1]):
                s = np.uint32(sensor[e])  # unsigned: no look at whether it is negative
                top[s] = max(top[s], power[e])
                entry[many], of[many] = e, s
                many += 1
        for j in range(many):
            e, s = entry[j], of[j]
            own[j] = part[e] * _DOWN[np.uint32(min(top[s] - power[e], 63))]
            rate[s] += own[j]
        for k in range(sensors):
            if rate[k] > 0.0:
                rate[k] = price[k] * weight[i] / rate[k]
        for j in range(many):
            out[np.uint32(node[entry[j]])] += own[j] * rate[of[j]]


@njit(cache=True, nogil=True)
def first_bought(
    purchases: Purchases, rank: Int32Array, start: int, stop: int, out: FloatArray
) -> None:
    """Add the price of each cell of the rows start:stop to ``out`` (K + 1,), where the least
    ``rank`` (E,) of its entries, 0 to K, says."""
    leaf, weight, price, first, sensor, _ = purchases
    none = len(out)
    least = np.empty(len(price), np.int32)
    for i in range(start, stop):
        least[:] = none
        for at in leaf[i]:
            for e in range(first[at], first[at + 1]):
                s = sensor[e]
                least[s] = min(least[s], rank[e])
        for s in range(len(price)):
            if least[s] < none:
                out[least[s]] += price[s] * weight[i]


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
    mass, sums = weight.copy(), weight.copy()
    for u in range(nodes):
        sums[u] *= target[u]
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
