"""Compiled sums of trees under many sets of purchases at once."""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import kernel

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray


@kernel
def add_all_sets(
    X: Float32Array,
    marks: int,
    shown_by: IntArray,
    start: IntArray,
    feature: IntArray,
    threshold: Float32Array,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
    value: FloatArray,
    output: IntArray,
    nodes: IntArray,
    total: FloatArray,
) -> None:
    """Add trees to ``total`` (n, 2^k, K) for rows X (n, d) with every set of k purchases.

    Purchase j is bit j of a set's number. Feature f can be read once ``shown_by[f]`` is bought, -1:
    always. Otherwise it is NaN, or 0 if it is one of the last ``marks``. A leaf is reached by all
    sets that have some purchases and lack others. ``nodes`` (3, m) is room for a tree's m nodes.
    """
    plain, every = X.shape[1] - marks, total.shape[1] - 1
    for i in range(len(X)):
        for t in range(len(output)):
            nodes[0, 0] = start[t]
            nodes[1, 0] = nodes[2, 0] = 0  # purchases made and not made on the way
            count = 1
            while count > 0:
                count -= 1
                at, bought, never = nodes[0, count], nodes[1, count], nodes[2, count]
                while feature[at] >= 0:
                    f = feature[at]
                    x, by = X[i, f], shown_by[f]
                    goes = x <= threshold[at] or (missing_left[at] and x != x)
                    shown = left[at] if goes else right[at]
                    goes = threshold[at] >= 0 if f >= plain else missing_left[at]
                    hidden = left[at] if goes else right[at]
                    bit = 1 << by if by >= 0 else 0
                    if never & bit:
                        at = hidden
                    elif shown == hidden or bit == 0 or bought & bit:
                        at = shown
                    else:
                        nodes[0, count] = hidden
                        nodes[1, count] = bought
                        nodes[2, count] = never | bit
                        count += 1
                        at, bought = shown, bought | bit
                free = every & ~(bought | never)
                some = free
                while some >= 0:
                    total[i, bought | some, output[t]] += value[at]
                    some = (some - 1) & free if some > 0 else -1


WORD, TOGETHER = 64, 64  # sets of a word, one bit each; words that a tree is walked for in turn
_U = np.uint64
_ALL = _U(2**64 - 1)
_DE_BRUIJN = _U(0x03F79D71B4CB0A89)  # shifted left, it begins with other 6 bits each time
_PLACE = np.zeros(WORD, dtype=np.int64)  # of a word's only bit, by the first bits of the product
for _bit in range(WORD):
    _PLACE[(int(_DE_BRUIJN) << _bit) % 2**64 >> 58] = _bit


@kernel
def add_sets(
    X: Float32Array,
    marks: int,
    shown_by: IntArray,
    row: IntArray,
    bought: BoolArray,
    start: IntArray,
    feature: IntArray,
    threshold: Float32Array,
    left: IntArray,
    right: IntArray,
    missing_left: BoolArray,
    value: FloatArray,
    output: IntArray,
    total: FloatArray,
) -> None:
    """Add trees to ``total`` (K, p) for rows ``row`` (p,) of X (n, d) with purchases (p, k).

    Arguments are those of ``add_all_sets``. Neighbours in ``row`` that are the same row are walked
    together: a node divides their sets into those that show its feature and others.
    """
    p, d = len(row), X.shape[1]
    plain = _U(d - marks)
    begin = np.zeros(TOGETHER + 1, dtype=np.int64)  # of words
    showing = np.empty((TOGETHER, d), dtype=np.uint64)  # the sets that show a feature
    nodes, sets = np.empty((2, len(feature)), dtype=np.uint64)
    leaf = np.empty(WORD)
    while begin[0] < p:
        words = 0
        while words < TOGETHER and begin[words] < p:
            first = begin[words]
            count = 1
            while count < WORD and first + count < p and row[first + count] == row[first]:
                count += 1
            for j in range(d):
                showing[words, j] = _ALL if shown_by[j] < 0 else _U(0)
                if shown_by[j] >= 0:
                    for b in range(count):
                        showing[words, j] |= _U(bought[first + b, shown_by[j]]) << _U(b)
            words += 1
            begin[words] = first + count
        for t in range(len(output)):  # a tree's nodes stay in the nearest cache
            for w in range(words):
                first, count = begin[w], begin[w + 1] - begin[w]
                i, reached, waiting = _U(row[first]), False, _U(1)
                nodes[0], sets[0] = _U(start[t]), _ALL >> _U(WORD - count)
                while waiting > _U(0):
                    waiting -= _U(1)
                    at, some = nodes[waiting], sets[waiting]
                    while feature[at] >= 0:
                        f = _U(feature[at])
                        x, cut, missing = X[i, f], threshold[at], missing_left[at]
                        less, more = left[at], right[at]
                        shown = less if x <= cut or (missing and x != x) else more
                        hidden = less if (cut >= 0 if f >= plain else missing) else more
                        seen = some & showing[_U(w), f]
                        if shown == hidden or seen == some:
                            at = _U(shown)
                        elif seen == _U(0):
                            at = _U(hidden)
                        else:
                            nodes[waiting], sets[waiting] = _U(shown), seen
                            waiting += _U(1)
                            at, some = _U(hidden), some ^ seen
                    if not reached:  # others follow
                        reached = True
                        for b in range(count):
                            leaf[_U(b)] = value[at]
                    else:
                        while some != _U(0):
                            low = some & (~some + _U(1))
                            leaf[_U(_PLACE[(low * _DE_BRUIJN) >> _U(58)])] = value[at]
                            some ^= low
                sums = total[output[t]]
                for b in range(count):
                    sums[_U(first + b)] += leaf[_U(b)]
        begin[0] = begin[words]
