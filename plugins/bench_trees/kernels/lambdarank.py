"""Gradients of LambdaRank, query by query."""

import math

import numpy as np
from numba import njit

from bench_trees.arrays import Float64Array, Int64Array


@njit(cache=True, nogil=True)
def lambdas(
    scores: Float64Array,
    gain: Float64Array,
    copies: Int64Array,
    queries: Int64Array,
    truncation: int,
    sigma: float,
    normalise: bool,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """LambdaRank gradients of the rows of some queries, means over a row's copies."""
    for q in range(len(queries) - 1):
        begin, end = queries[q], queries[q + 1]
        gradient[begin:end] = 0
        hessian[begin:end] = 0
        ideal = _falling(gain, copies, begin, end)
        n = len(ideal)
        discount = np.empty(n)
        best = 0.0
        for k in range(n):
            discount[k] = 1 / math.log2(2.0 + k)
            if k < truncation:
                best += gain[ideal[k]] * discount[k]
        if best == 0:
            continue
        docs = _falling(scores, copies, begin, end)
        spread = scores[docs[0]] != scores[docs[n - 1]]
        total = 0.0
        for i in range(min(truncation, n - 1)):
            for j in range(i + 1, n):
                high, low = docs[i], docs[j]
                if gain[high] == gain[low]:
                    continue
                if gain[high] < gain[low]:
                    high, low = low, high
                delta = scores[high] - scores[low]
                change = (gain[high] - gain[low]) * abs(discount[i] - discount[j]) / best
                if normalise and spread:
                    change /= 0.01 + abs(delta)
                p = 1 / (1 + math.exp(min(sigma * delta, 500.0)))
                slope = sigma * change * p
                curve = sigma * sigma * change * p * (1 - p)
                gradient[high] -= slope
                gradient[low] += slope
                hessian[high] += curve
                hessian[low] += curve
                total += 2 * slope
        scale = math.log2(1 + total) / total if normalise and total > 0 else 1.0
        for r in range(begin, end):
            gradient[r] *= scale / copies[r]
            hessian[r] *= scale / copies[r]


@njit(cache=True, nogil=True)
def _falling(values: Float64Array, copies: Int64Array, begin: int, end: int) -> Int64Array:
    """Rows begin:end, each as often as it has copies, by falling value, ties in row order.

    Insertion: queries are short, and numba's argsort takes seconds to compile.
    """
    rows = np.empty(end - begin, np.int64)
    total = 0
    for i in range(end - begin):
        row = begin + i
        total += copies[row]
        place = i
        while place > 0 and values[rows[place - 1]] < values[row]:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = row
    out = np.empty(total, np.int64)
    filled = 0
    for i in range(end - begin):
        for _ in range(copies[rows[i]]):
            out[filled] = rows[i]
            filled += 1
    return out
