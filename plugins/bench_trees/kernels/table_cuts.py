"""Best cuts from a table of bins and classes, for trees that are not boosted.

A table has a row of sums for each bin, and a last one for missing cells: copies of each class, or
for numbers copies and the sum of numbers. Arrays are added by loops: for array expressions numba
also compiles the error message on unequal shapes, which takes seconds.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from bench_trees.kernels.compiling import inner, kernel

MISSING = 256
"""Row of a table for missing cells."""
PAIRS, ENTROPY, SQUARES = 0, 1, 2
"""Criteria: threshold pairs of classes, rows times their entropy in bits, sum of squares."""

Codes = NDArray[np.uint8]
TableSums = NDArray[Any]
"""Sums of copies: int64, which are added faster, or float64."""
Members = tuple[Int32Array, Int32Array, TableSums, Float64Array]
"""A node's rows (m,), with their class, copies and, for ``SQUARES``, copies times number."""


@kernel
def pairs(counts: TableSums, alpha: float) -> float:
    """Threshold-pairs impurity of class counts (K,): see ``bench_methods.budget_forest``."""
    total = 0.0
    if alpha == 0.0:
        squares = 0.0
        for c in counts:
            total += c
            squares += float(c) * float(c)
        return (total * total - squares) / 2.0
    for i in range(len(counts)):
        for j in range(i):
            product = max(counts[i] - alpha, 0.0) * max(counts[j] - alpha, 0.0)
            total += max(product - alpha * alpha, 0.0)
    return total


@inner
def _spread(sums: TableSums, criterion: int) -> float:
    """Entropy, or minus S^2 / n: the squares about the mean without the sum of all squares."""
    if criterion == SQUARES:
        return -sums[1] * sums[1] / sums[0] if sums[0] > 0.0 else 0.0
    total, purity = 0.0, 0.0
    for rows in sums:
        if rows > 0.0:
            total += rows
            purity += rows * np.log2(rows)
    return total * np.log2(total) - purity if total > 0.0 else 0.0


@inner
def rows_in(sums: TableSums, criterion: int) -> float:
    """Copies of rows with these sums (C,)."""
    if criterion == SQUARES:
        return float(sums[0])
    total = 0.0
    for rows in sums:
        total += rows
    return total


@inner
def fill(
    codes: Codes, missing: int, members: Members, begin: int, end: int, table: TableSums
) -> tuple[int, int]:
    """Add the members begin:end to ``table`` by one feature's ``codes``; return the lowest and the
    highest bin of numbers. The code ``missing`` marks missing cells."""
    rows, label, copies, number = members
    low, high = MISSING, -1
    for i in range(begin, end):
        code = int(codes[rows[i]])
        if code == missing:
            code = MISSING
        else:
            low, high = min(low, code), max(high, code)
        if len(number) == 0:
            table[code, label[i]] += copies[i]
        else:
            table[code, 0] += copies[i]
            table[code, 1] += number[i]
    return low, high


@inner
def clear(table: TableSums, low: int, high: int) -> None:
    """Set bins low..high and the row of missing cells to 0."""
    for k in range(table.shape[1]):
        table[MISSING, k] = 0.0
        for b in range(low, high + 1):
            table[b, k] = 0.0


@inner
def best_cut(
    table: TableSums,
    low: int,
    high: int,
    whole: TableSums,
    criterion: int,
    alpha: float,
    least: float,
) -> tuple[float, int, bool]:
    """The best cut of one feature among its bins low..high, of ties the first.

    Least is, for ``PAIRS``, the larger impurity of both sides, of ties their sum; otherwise the sum
    of both minus the node's, if that is negative. ``whole`` (C,) are the node's sums; each side has
    at least ``least`` copies.
    Returns this number, the bin (-1 without a cut), and True if missing values go left.
    """
    left, right, kept = np.zeros_like(whole), np.zeros_like(whole), np.zeros_like(whole)
    rows, absent, below = rows_in(whole, criterion), rows_in(table[MISSING], criterion), 0.0
    larger = criterion == PAIRS
    before = 0.0 if larger else _spread(whole, criterion)
    best, best_sum, best_bin, best_side = np.inf if larger else 0.0, np.inf, -1, False
    for b in range(low, high + 1):
        filled = rows_in(table[b], criterion)
        if filled == 0.0:
            continue
        below += filled
        for k in range(len(whole)):
            left[k] += table[b, k]
        # with missing cells on the right, then on the left
        for way in range(2 if absent > 0.0 else 1):
            on_left = below + way * absent
            if min(on_left, rows - on_left) < least:
                continue
            for k in range(len(whole)):
                right[k] = whole[k] - left[k] - way * table[MISSING, k]
                kept[k] = whole[k] - right[k]
            if larger:
                a, c = pairs(kept, alpha), pairs(right, alpha)
                value = max(a, c)
            else:
                a, c = _spread(kept, criterion), _spread(right, criterion)
                value = a + c - before
            if value < best or (larger and value == best and a + c < best_sum):
                best, best_sum, best_bin = value, a + c, b
                best_side = way == 1 if absent > 0.0 else 2 * on_left >= rows
    return best, best_bin, best_side


@kernel
def best_cuts(
    codes: Codes,
    missing: Int64Array,
    members: Members,
    criterion: int,
    classes: int,
    least: float,
    out: tuple[Float64Array, Int64Array, BoolArray],
) -> None:
    """Write to ``out``, each (d,), every feature's best cut: fall of impurity (0 without a useful
    cut), bin, and True if missing values go left.

    ``codes`` (d, n) have the code ``missing[f]`` for missing cells; ``classes`` K, for numbers 2.
    """
    table, whole = np.zeros((MISSING + 1, classes)), np.zeros(classes)
    for f in range(len(codes)):
        low, high = fill(codes[f], missing[f], members, 0, len(members[0]), table)
        for k in range(classes):
            whole[k] = table[MISSING, k]
            for b in range(low, high + 1):
                whole[k] += table[b, k]
        change, out[1][f], out[2][f] = best_cut(table, low, high, whole, criterion, 0.0, least)
        out[0][f] = -change
        clear(table, low, high)
