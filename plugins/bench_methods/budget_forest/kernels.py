"""Compiled loops: growing a tree by the threshold-pairs impurity, and the sums, closures and
projections of pruning.

While a tree grows, the bag's rows are in one array. A node is a range of it, and a split is a
stable partition of that range. Labels and copies move with the rows, so only codes are read out of
order. Rows of arrays are added and filled by loops: numba takes seconds to compile array
expressions.

In pruning a cell is a row and a sensor. Its entries are the nodes that need the sensor first, in
any tree.
"""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import calling, inner, kernel
from bench_trees.kernels.table_cuts import (
    MISSING,
    PAIRS,
    Codes,
    Members,
    best_cut,
    clear,
    fill,
    pairs,
    rows_in,
)

from bench_core.arrays import BoolArray, FloatArray, Int32Array, IntArray

PruningArrays = tuple[Int32Array, FloatArray, FloatArray, IntArray, Int32Array, Int32Array]
"""``leaf``, ``weight``, ``price``, ``first``, ``sensor`` and ``node`` of a ``PruningProblem``."""

_DOWN = np.ldexp(1.0, -np.arange(64))  # 2 ** -k; smaller factors are negligible
_TIE = 1e-9  # ratios of rounded prices that are closer count as equal


@inner
def _tells(
    table: IntArray, low: int, cut: int, missing_left: bool, whole: IntArray, least: FloatArray
) -> bool:
    """True if the likelihood ratio statistic of classes and sides is at least ``least[c]``, with
    c + 1 classes in the node ``whole`` (K,)."""
    left = np.zeros_like(whole)
    for k in range(len(whole)):
        for at in range(low, cut + 1):
            left[k] += table[at, k]
        if missing_left:
            left[k] += table[MISSING, k]
    n, n_left = rows_in(whole, PAIRS), rows_in(left, PAIRS)
    ratio, others = 0.0, -1
    for k in range(len(whole)):
        a, b, both = float(left[k]), float(whole[k] - left[k]), float(whole[k])
        others += both > 0.0
        if a > 0.0:
            ratio += a * np.log(a * n / (n_left * both))
        if b > 0.0:
            ratio += b * np.log(b * n / ((n - n_left) * both))
    return bool(2.0 * ratio >= least[others])


@inner
def _partition(
    codes: Codes,
    missing: int,
    cut: int,
    default: bool,
    bag: Members,
    room: Members,
    begin: int,
    end: int,
) -> int:
    """Partition rows stably, left ones first; return the first position on the right.

    ``default``: missing values go left.
    """
    rows, label, copies, _ = bag
    place, other = begin, 0
    for i in range(begin, end):
        code = codes[rows[i]]
        if default if code == missing else code <= cut:
            rows[place], label[place], copies[place] = rows[i], label[i], copies[i]
            place += 1
        else:
            room[0][other], room[1][other], room[2][other] = rows[i], label[i], copies[i]
            other += 1
    for i in range(other):
        rows[place + i], label[place + i], copies[place + i] = room[0][i], room[1][i], room[2][i]
    return place


@calling()
def grow(
    codes: Codes,
    bins: IntArray,
    bag: Members,
    price: FloatArray,
    alpha: float,
    depth: int,
    min_rows: int,
    least: FloatArray,
    nodes: tuple[Int32Array, Int32Array, BoolArray, Int32Array, Int32Array],
    counts: IntArray,
) -> int:
    """Grow one tree and return its number of nodes.

    ``codes`` (d, n), the code ``bins[f]`` is missing; ``bag`` all rows, in any order;
    ``price`` (d,); ``least`` (K,), see ``_tells``. Outputs are ``nodes``: feature (-1 at a leaf),
    bin, missing goes left, left and right child; and ``counts`` (., K), classes in each node. All
    have room for the largest tree.
    """
    feature, cut, missing_left, left, right = nodes
    rows, label, copies, number = bag
    room = (np.empty_like(rows), np.empty_like(label), np.empty_like(copies), number)
    table = np.zeros((MISSING + 1, counts.shape[1]), np.int64)
    # node, first row, last row, level
    stack: list[tuple[int, int, int, int]] = [(0, 0, len(rows), 0)]
    used = 1
    while len(stack) > 0:
        node, begin, end, level = stack.pop()
        whole = counts[node]
        whole[:] = 0
        for i in range(begin, end):
            whole[label[i]] += copies[i]
        feature[node], left[node], right[node] = -1, -1, -1
        cut[node], missing_left[node] = 0, False
        impurity = pairs(whole, alpha)
        if impurity <= 0.0 or level == depth or rows_in(whole, PAIRS) < 2 * min_rows:
            continue
        ratio, gain, significant = np.inf, 0.0, False
        for f in range(len(price)):
            low, high = fill(codes[f], bins[f], bag, begin, end, table)
            larger, at, side = best_cut(table, low, high, whole, PAIRS, alpha, min_rows)
            gained = impurity - larger
            tells = gained > 0.0 and _tells(table, low, at, side, whole, least)
            clear(table, low, high)
            if gained <= 0.0 or (significant and not tells):
                continue
            if tells and not significant:  # drop earlier, insignificant features
                ratio, gain, significant = np.inf, 0.0, True
            price_per_gain = price[f] / gained
            if price_per_gain < ratio * (1 - _TIE) or (
                price_per_gain <= ratio * (1 + _TIE) and gained > gain
            ):
                ratio, gain = price_per_gain, gained
                feature[node], cut[node], missing_left[node] = f, at, side
        f = feature[node]
        if f < 0:
            continue
        middle = _partition(codes[f], bins[f], cut[node], missing_left[node], bag, room, begin, end)
        left[node], right[node] = used, used + 1
        stack.append((used, begin, middle, level + 1))
        stack.append((used + 1, middle, end, level + 1))
        used += 2
    return used


@kernel
def first_needs(
    above: Int32Array,
    parent: Int32Array,
    feature: Int32Array,
    needs: tuple[Int32Array, Int32Array],
    wanted: BoolArray,
) -> tuple[IntArray, Int32Array, Int32Array]:
    """Sensors on the path to each leaf and the topmost inner node that needs each.

    ``above`` (L,) is each leaf's parent, ``parent`` (D,) each inner node's, -1 at roots. Feature f
    needs ``needs[1][needs[0][f]:needs[0][f + 1]]``. Only ``wanted`` sensors are returned.
    Returns start (L + 1,), sensor, node.
    """
    start = np.zeros(len(above) + 1, np.int64)
    first = np.full(len(wanted), -1, np.int32)
    met = np.empty(len(wanted), np.int32)
    sensor = np.empty(16, np.int32)
    node = np.empty(16, np.int32)
    used = 0
    for leaf in range(len(above)):
        count = 0
        u = above[leaf]
        while u >= 0:
            for at in range(needs[0][feature[u]], needs[0][feature[u] + 1]):
                s = needs[1][at]
                if wanted[s]:
                    if first[s] < 0:
                        met[count] = s
                        count += 1
                    first[s] = u
            u = parent[u]
        if used + count > len(sensor):
            sensors, nodes = sensor, node
            room = used + max(used, count)
            sensor, node = np.empty(room, np.int32), np.empty(room, np.int32)
            for k in range(used):
                sensor[k], node[k] = sensors[k], nodes[k]
        for k in range(count):
            sensor[used], node[used] = met[k], first[met[k]]
            first[met[k]] = -1
            used += 1
        start[leaf + 1] = used
    return start, sensor[:used].copy(), node[:used].copy()


@kernel
def split_cost(
    purchases: PruningArrays,
    entries: tuple[FloatArray, Int32Array],
    start: int,
    stop: int,
    out: FloatArray,
) -> None:
    """Divide the price of each cell among its entries, in proportion to mantissa * 2 ** power.

    Adds each node's cost for the rows start:stop to ``out`` (D,). ``entries`` are mantissa (E,)
    in [1, 2) and power (E,), since those of one cell may differ by any power of two.
    """
    leaf, weight, price, first, sensor, node = purchases
    mantissa, power = entries
    sensors, trees = len(price), leaf.shape[1]
    rate, top = np.empty(sensors), np.empty(sensors, np.int32)
    longest = 0
    for k in range(len(first) - 1):
        longest = max(longest, first[k + 1] - first[k])
    most = trees * longest  # entries of a row, stored contiguously
    entry, of, share = np.empty(most, np.uint32), np.empty(most, np.uint32), np.empty(most)
    for i in range(start, stop):
        rate[:], top[:], many = 0.0, -(2**31), 0  # the largest power of two of each sensor's cell
        for t in range(trees):
            for e in range(first[leaf[i, t]], first[leaf[i, t] + 1]):
                s = np.uint32(sensor[e])  # unsigned: skips the check for negative indices
                top[s] = max(top[s], power[e])
                entry[many], of[many] = e, s
                many += 1
        for j in range(many):
            e, s = entry[j], of[j]
            share[j] = mantissa[e] * _DOWN[np.uint32(min(top[s] - power[e], 63))]
            rate[s] += share[j]
        for k in range(sensors):
            if rate[k] > 0.0:
                rate[k] = price[k] * weight[i] / rate[k]
        for j in range(many):
            out[np.uint32(node[entry[j]])] += share[j] * rate[of[j]]


@kernel
def first_bought(
    purchases: PruningArrays, rank: Int32Array, start: int, stop: int, out: FloatArray
) -> None:
    """Add the price of each cell of the rows start:stop to ``out`` (K + 1,), at the smallest
    ``rank`` (E,) of its entries, 0 to K."""
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


@kernel
def best_closures(parent: Int32Array, worth: FloatArray, keep: BoolArray) -> float:
    """Largest total ``worth`` (D,) of a set of nodes that contains each member's parent.

    Parents come before children. ``keep`` becomes the smallest optimal set.
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


@kernel
def tree_isotonic(
    parent: Int32Array, target: FloatArray, weight: FloatArray, out: FloatArray
) -> None:
    """Weighted least-squares fit to ``target`` (D,) that never rises from parent to child.

    Blocks are merged from the leaves up, the highest child block first. Children of a block form a
    linked list.
    """
    nodes = len(parent)
    mass, sums = weight.copy(), weight.copy()
    for u in range(nodes):
        sums[u] *= target[u]
    # a block's first child, last child and next sibling
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
