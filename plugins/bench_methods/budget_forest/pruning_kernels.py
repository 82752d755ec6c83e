"""Kernels of the solvers: cells, blocking flows, shares of costs, closures and projections.

The graph of the minimum cut, whose capacities are int64, is not stored arc by arc::

    source -> node u          supply[u]       keeping u gains something
    node u -> sink            drain[u]        keeping u costs something by itself
    node u -> parent(u)       unlimited       u needs its parent
    node u -> cell c          unlimited       u is the first to need the cell's sensor on the row
    cell c -> sink            drain[D + c]    the row pays the sensor

Only flows are kept: ``up`` (D,) from a node to its parent, ``along`` (pins,) from node to cell.
The others are explained in ``solvers``.
"""

import numpy as np
from numba import njit

from bench_core.arrays import BitArray, BoolArray, FloatArray, Int32Array, IntArray

Purchases = tuple[Int32Array, FloatArray, FloatArray, IntArray, Int32Array, Int32Array]
"""``leaf``, ``weight``, ``price``, ``first``, ``sensor`` and ``node`` of a ``PruningProblem``."""
Tree = tuple[Int32Array, Int32Array, Int32Array]
"""Of each node its parent, its left and its right inner child."""
Pins = tuple[IntArray, Int32Array]
"""Where each cell's pins start, and the node of each pin."""
ByNode = tuple[IntArray, Int32Array, Int32Array]
"""Where each node's pins start in their order by nodes, and there the pin's number and its cell."""
Graph = tuple[Tree, Pins, ByNode, tuple[IntArray, IntArray]]
"""The last are the flows ``up`` and ``along``."""


@njit(cache=True, nogil=True)
def cells(
    purchases: Purchases, own: FloatArray, start: IntArray, pin: Int32Array, cost: FloatArray
) -> int:
    """Collect, per row and sensor, the nodes that need it first; returns the number of cells.

    A cell with a single node is that node's ``own`` cost instead. ``start``, ``pin`` and ``cost``
    have room for all; cell c holds pin[start[c]:start[c + 1]].
    """
    leaf, weight, price, first, sensor, node = purchases
    sensors, trees = len(price), leaf.shape[1]
    size = np.zeros(sensors, np.int64)
    members = np.empty((sensors, trees), np.int32)
    count, used = 0, 0
    start[0] = 0
    for i in range(len(leaf)):
        for at in leaf[i]:
            for e in range(first[at], first[at + 1]):
                s = sensor[e]
                members[s, size[s]] = node[e]
                size[s] += 1
        for s in range(sensors):
            if size[s] == 1:
                own[members[s, 0]] += weight[i] * price[s]
            elif size[s] > 1:
                pin[used : used + size[s]] = members[s, : size[s]]
                used += size[s]
                cost[count] = weight[i] * price[s]
                count += 1
                start[count] = used
            size[s] = 0
    return count


@njit(cache=True, nogil=True)
def levels(
    graph: Graph, supply: IntArray, drain: IntArray, level: Int32Array, queue: Int32Array
) -> bool:
    """Distance of nodes and cells from the source, -1 out of reach; whether it reaches the sink."""
    (parent, left, right), cell, by_node, (up, along) = graph
    nodes = len(parent)
    level[:] = -1
    head, tail, reached = 0, 0, False
    for u in range(nodes):
        if supply[u] > 0:
            level[u] = 0
            queue[tail] = u
            tail += 1
    while head < tail:
        v = queue[head]
        head += 1
        reached = reached or drain[v] > 0
        step = level[v] + 1
        if v >= nodes:
            for p in range(cell[0][v - nodes], cell[0][v - nodes + 1]):
                w = cell[1][p]
                if along[p] > 0 and level[w] < 0:
                    level[w] = step
                    queue[tail] = w
                    tail += 1
            continue
        for w in (parent[v], left[v], right[v]):
            if w >= 0 and level[w] < 0 and (w == parent[v] or up[w] > 0):
                level[w] = step
                queue[tail] = w
                tail += 1
        for at in range(by_node[0][v], by_node[0][v + 1]):
            w = nodes + by_node[2][at]
            if level[w] < 0:
                level[w] = step
                queue[tail] = w
                tail += 1
    return reached


@njit(cache=True, nogil=True)
def _onward(v: int, graph: Graph, level: Int32Array, turn: IntArray) -> int:
    """The next vertex along a usable arc, one level on; -1 if none. ``turn[v]`` is that arc."""
    (parent, left, right), cell, by_node, (up, along) = graph
    nodes = len(parent)
    step = level[v] + 1
    if v >= nodes:
        begin, end = cell[0][v - nodes], cell[0][v - nodes + 1]
        while begin + turn[v] < end:
            p = begin + turn[v]
            if along[p] > 0 and level[cell[1][p]] == step:
                return int(cell[1][p])
            turn[v] += 1
        return -1
    begin, end = by_node[0][v], by_node[0][v + 1]
    while turn[v] < 3 + end - begin:
        k = turn[v]
        if k == 0:
            w = int(parent[v])
        elif k == 1:
            w = int(left[v])
        elif k == 2:
            w = int(right[v])
        else:
            w = nodes + int(by_node[2][begin + k - 3])
        if w >= 0 and level[w] == step and (k == 0 or k > 2 or up[w] > 0):
            return w
        turn[v] += 1
    return -1


@njit(cache=True, nogil=True)
def block(
    graph: Graph,
    supply: IntArray,
    drain: IntArray,
    level: Int32Array,
    turn: IntArray,
    path: Int32Array,
) -> None:
    """Send flow along arcs that go one level on, until no such path is left."""
    nodes = len(supply)
    _, cell, by_node, (up, along) = graph
    turn[:] = 0
    for source in range(nodes):
        if supply[source] == 0 or level[source] != 0:
            continue
        depth = 0
        path[0] = source
        while supply[source] > 0:
            v = path[depth]
            if drain[v] == 0:
                w = _onward(v, graph, level, turn)
                if w >= 0:
                    depth += 1
                    path[depth] = w
                    continue
                if depth == 0:
                    break
                depth -= 1
                turn[path[depth]] += 1
                continue
            most = min(supply[source], drain[v])
            for k in range(depth):  # arcs back to where flow came from carry no more than it
                a, b = path[k], path[k + 1]
                if a >= nodes:
                    most = min(most, along[cell[0][a - nodes] + turn[a]])
                elif 1 <= turn[a] <= 2:
                    most = min(most, up[b])
            supply[source] -= most
            drain[v] -= most
            stays = depth
            for k in range(depth - 1, -1, -1):
                a, b = path[k], path[k + 1]
                if a >= nodes:
                    p = cell[0][a - nodes] + turn[a]
                    along[p] -= most
                    if along[p] == 0:
                        stays = k
                elif turn[a] == 0:
                    up[a] += most
                elif turn[a] <= 2:
                    up[b] -= most
                    if up[b] == 0:
                        stays = k
                else:
                    along[by_node[1][by_node[0][a] + turn[a] - 3]] += most
            depth = stays


@njit(cache=True, nogil=True)
def split_cost(
    purchases: Purchases, part: FloatArray, start: int, stop: int, out: FloatArray
) -> None:
    """Split the price of each (row, sensor) among the nodes that need it, in proportion to part.

    Adds what each node is to pay for the rows start:stop to ``out`` (D,); ``part`` (E,) > 0.
    """
    leaf, weight, price, first, sensor, node = purchases
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
def spent(purchases: Purchases, mask: BitArray, start: int, stop: int) -> float:
    """What rows start:stop pay in all where each leaf needs the sensors in ``mask`` (leaves, w)."""
    leaf, weight, price, _, _, _ = purchases
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
