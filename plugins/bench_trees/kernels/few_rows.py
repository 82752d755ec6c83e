"""The best splits of leaves that have few rows for each bin.

Writing, reading and subtracting histograms then takes longer than counting the rows of every leaf.
So leaves are counted eight features at a time, with sums in the nearest cache. Only words whose
features may have the best split get histograms, for ``best_cuts``::

    counted[channel, 8 * b + k]   sums of the rows in bin b of feature 8 g + k, of word g
    below[channel, 8 * b + k]     sums of the rows in the bins below it
"""

import numpy as np

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array
from bench_trees.kernels.compiling import calling, inner
from bench_trees.kernels.growth import (
    BEGIN,
    END,
    HESSIAN,
    PACKED,
    SCORED,
    SLOT,
    STATE,
    Nodes,
    Rows,
)
from bench_trees.kernels.splitting import (
    Cuts,
    Owed,
    Rules,
    Sums,
    Units,
    _own_term,
    _terms,
    best_cuts,
)
from bench_trees.kernels.task_queue import LENGTH, _end_part, _hand_out, _take_part

LANES = 8  # features of a word


@calling()
def search(
    rows: Rows,
    nodes: Nodes,
    pairs: Int64Array,
    groups: Int64Array,
    sums: Sums,
    rules: Rules,
    owed: Owed,
    cuts: Cuts,
    queue: Int64Array,
    me: int,
) -> None:
    """Like ``best_cuts``, for all features in the words ``groups``, from the rows of the nodes,
    which become ``SCORED``.

    Histograms of features that may be split are in the nodes' slots afterwards. Threads of the
    ``queue`` except the first receive all of ``pairs``, use the current ones, and help until they
    are stopped.
    """
    channels, gain = sums.hist.shape[1], cuts.gain
    counted = np.zeros((channels, 256 * LANES), np.int64)
    below, lost = (
        np.zeros((channels, 257 * LANES), np.int64),
        np.zeros((channels, LANES), np.int64),
    )
    pair = np.zeros((1, 7), np.int64)  # a node in the form for ``best_cuts``
    pair[0, 3] = pair[0, 6] = -1
    lanes = np.zeros(LANES, np.int64)
    mask = (np.int64(1) << sums.count_bits) - 1
    alone = len(queue) == 0
    if me == 0 and not alone:
        _hand_out(queue, 0, len(groups), len(pairs))
    current, index, new = pairs, -1, True
    while True:
        if alone:
            index += 1
            new = index == 0
            if index == len(groups):
                break
        else:
            _, index, new = _take_part(queue, me)
            if index < 0:
                break
            current = pairs[: queue[LENGTH]]
        if new:
            for i in range(len(current)):
                for column in range(5, 7):
                    if current[i, column] >= 0:
                        cuts.reached[current[i, column]] = -np.inf
        g, units = groups[index], Units(sums.count_bits, sums.units[0], sums.units[1])
        first = sums.first[LANES * g : LANES * (g + 1) + 1]
        features = lanes[: len(first) - 1]
        bins = 0
        for k in range(len(features)):
            features[k] = LANES * g + k
            bins = max(bins, first[k + 1] - first[k])
        for which in range(2 * len(current)):
            i = current[which // 2, 5 + which % 2]
            if i < 0:
                continue
            node, count = nodes.integers[i], nodes.integers[i, PACKED] & mask
            lowest = np.inf
            for j in features:
                gain[i, j] = -np.inf
                charge = owed.coupled[j] + owed.split[j] * count  # eq. 13
                lowest = min(lowest, charge + owed.lazy[i, j] if len(owed.lazy) else charge)
            if count < 2 * rules.min_rows:
                continue
            _count(rows.words[g], rows.order[node[BEGIN] : node[END]], rows.values, counted)
            missing = False
            for k in range(len(features)):
                for channel in range(channels):
                    lost[channel, k] = counted[channel, LANES * (first[k + 1] - first[k] - 1) + k]
                missing |= lost[0, k] != 0
            total = (node[PACKED] >> units.count_bits) * units.gradient
            weight = float(count) if channels == 1 else node[HESSIAN] * units.hessian
            least = _terms(cuts.reached[i], lowest, _own_term(total, weight, rules.l2))
            above = least == 0
            for side in range(2 if missing else 1):  # NaN right, then NaN left
                if not above:
                    for channel in range(channels):
                        _cumulate(counted[channel], side * lost[channel], bins, below[channel])
                    whole = total, weight, count
                    above = _may_exceed(below, bins, whole, units, rules, least)
            if above:
                for k in range(len(features)):
                    for channel in range(channels):
                        for b in range(first[k + 1] - first[k]):
                            sums.hist[node[SLOT], channel, first[k] + b] = counted[
                                channel, LANES * b + k
                            ]
                pair[0, 2], pair[0, 5] = node[SLOT], i
                best_cuts(sums, pair, features, rules, owed, cuts)
            for channel in range(channels):
                for b in range(LANES * bins):
                    counted[channel, b] = 0
        if not alone:
            _end_part(queue)
    if me == 0:
        for i in range(len(pairs)):
            for column in range(5, 7):
                if pairs[i, column] >= 0:
                    nodes.integers[pairs[i, column], STATE] = SCORED


@inner
def _count(words: UInt64Array, rows: UInt32Array, values: Int64Array, counted: Int64Array) -> None:
    """Add the values of rows to the bins of eight features."""
    gradients, hessians, plain = counted[0], counted[-1], len(counted) == 1
    for r in rows:
        c, v, h = words[r], values[r, 0], values[r, -1]
        for k in range(LANES):
            code = (c >> np.uint64(8 * k)) & np.uint64(255)
            gradients[code * np.uint64(LANES) + np.uint64(k)] += v
            if not plain:
                hessians[code * np.uint64(LANES) + np.uint64(k)] += h


@inner
def _cumulate(counted: Int64Array, start: Int64Array, bins: int, below: Int64Array) -> None:
    """Sums below every bin, ``start`` (LANES,) below the first."""
    for k in range(LANES):
        below[k] = start[k]
    for i in range(np.uint64(LANES * bins)):
        below[i + np.uint64(LANES)] = below[i] + counted[i]


@inner
def _may_exceed(
    below: Int64Array,
    bins: int,
    node: tuple[float, float, int],
    units: Units,
    rules: Rules,
    least: float,
) -> bool:
    """Like ``splitting._exceeds``, for any cut of eight features with enough rows on both sides."""
    V, W, plain = below[0], below[-1], len(below) == 1
    g, h, rows = node
    mask, l2 = (np.int64(1) << units.count_bits) - 1, rules.l2
    fewest, most = rules.min_rows, rows - rules.min_rows
    above = 0
    for i in range(np.uint64(LANES), np.uint64(LANES * bins)):
        n = V[i] & mask
        gl = (V[i] >> units.count_bits) * units.gradient
        hl = float(n) if plain else W[i] * units.hessian
        gr, dl, dr = g - gl, hl + l2, h - hl + l2
        exceeds = not gl * gl * dr + gr * gr * dl <= least * (dl * dr)
        above += int(exceeds & (n >= fewest) & (n <= most))
    return above > 0
