"""Compiled sums of trees under all sets of purchases at once."""

# mypy: disallow-untyped-decorators=False
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
