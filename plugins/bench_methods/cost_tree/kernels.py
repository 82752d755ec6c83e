"""The best cut of a node's rows on each feature; compiled.

Rows of arrays are added by loops: for array expressions numba also compiles the error message on
unequal shapes, which takes seconds.
"""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import inner, kernel
from numpy.typing import NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray


@inner
def _score(sums: FloatArray, classes: int) -> float:
    """Purity of rows with these ``sums`` (C,); higher is better.

    Classes: minus the number of rows times their entropy in bits, from the rows of each class.
    Numbers: S^2 / n from (n, S), the reduction of the sum of squares by the mean.
    """
    if classes == 0:
        return sums[1] * sums[1] / sums[0] if sums[0] > 0.0 else 0.0
    total, purity = 0.0, 0.0
    for rows in sums:
        if rows > 0.0:
            total += rows
            purity += rows * np.log2(rows)
    return purity - total * np.log2(total) if total > 0.0 else 0.0


@inner
def _rows(sums: FloatArray, classes: int) -> float:
    if classes == 0:
        return float(sums[0])
    total = 0.0
    for rows in sums:
        total += rows
    return total


@inner
def _best_cut(
    table: FloatArray, low: int, high: int, whole: FloatArray, classes: int, least: float
) -> tuple[float, int, bool]:
    """Best cut of one feature with sums ``table`` (257, C) of bins low..high, missing last."""
    gain, cut, side = 0.0, -1, False
    left, right, kept = np.zeros(len(whole)), np.zeros(len(whole)), np.zeros(len(whole))
    # copies in the node, with a missing cell, in the bins so far
    rows, absent, below = _rows(whole, classes), _rows(table[256], classes), 0.0
    before = _score(whole, classes)
    for b in range(low, high + 1):
        filled = _rows(table[b], classes)
        if filled == 0.0:
            continue
        below += filled
        for k in range(len(whole)):
            left[k] += table[b, k]
        for way in range(2 if absent > 0.0 else 1):  # missing cells on the right, then on the left
            on_left = below + way * absent
            if min(on_left, rows - on_left) < least:
                continue
            for k in range(len(whole)):
                right[k] = whole[k] - left[k] - way * table[256, k]
                kept[k] = whole[k] - right[k]
            added = _score(kept, classes) + _score(right, classes) - before
            if added > gain:
                gain, cut = added, b
                side = way == 1 if absent > 0.0 else 2 * on_left >= rows
    return gain, cut, side


@kernel
def best_cuts(
    codes: NDArray[np.uint8],
    missing: IntArray,
    data: tuple[IntArray, IntArray, FloatArray, FloatArray],
    how: tuple[float, int, float],
    out: tuple[FloatArray, IntArray, BoolArray],
) -> None:
    """Write to ``out``, each (d,), every feature's best cut: gain in ``_score`` (0 if none), bin,
    and True if missing values go left.

    ``codes`` (d, n) have the code ``missing[f]`` for missing cells. ``data``: the node's rows, then
    for all rows the class, the number and the copies. ``how``: offset of all numbers, number of
    classes (0: numbers), least copies on each side.
    """
    rows, label, value, weight = data
    mean, classes, least = how
    # the last row is for missing cells
    table = np.zeros((257, max(classes, 2)))
    whole = np.zeros(max(classes, 2))
    # numba would compile ``_best_cut`` again for literals
    first, last = int(np.int64(256)), int(np.int64(-1))
    for f in range(len(codes)):
        low, high = first, last
        for i in rows:
            code = int(codes[f, i])
            if code == missing[f]:
                code = 256
            else:
                low, high = min(low, code), max(high, code)
            if classes > 0:
                table[code, label[i]] += weight[i]
            else:
                table[code, 0] += weight[i]
                table[code, 1] += weight[i] * (value[i] - mean)
        for k in range(len(whole)):
            whole[k] = table[256, k]
            for b in range(low, high + 1):
                whole[k] += table[b, k]
        out[0][f], out[1][f], out[2][f] = _best_cut(table, low, high, whole, classes, least)
        for k in range(len(whole)):
            table[256, k] = 0.0
            for b in range(low, high + 1):
                table[b, k] = 0.0
