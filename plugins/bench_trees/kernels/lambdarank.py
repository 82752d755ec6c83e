"""Gradients of LambdaRank, query by query."""

import math

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels import exponentials
from bench_trees.kernels.calling import calling, inner
from bench_trees.kernels.exponentials import exponential


@calling(exponentials)
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
        ideal = gain[_falling(gain, copies, begin, end)]
        n = len(ideal)
        discount = np.empty(n)
        best = 0.0
        for k in range(n):
            discount[k] = 1 / math.log2(2.0 + k)
            if k < truncation:
                best += ideal[k] * discount[k]
        if best == 0:
            continue
        docs = _falling(scores, copies, begin, end)
        top = min(truncation, n - 1)
        G, H = np.zeros(n), np.zeros(n)
        share = gain[docs] * (sigma / best)
        total = _add_pairs(scores[docs], share, discount, top, sigma, normalise, G, H)
        scale = math.log2(1 + total) / total if normalise and total > 0 else 1.0
        for k in range(n):
            r = docs[k]
            gradient[r] += G[k] * (scale / copies[r])
            hessian[r] += H[k] * (scale / copies[r])


@inner
def _add_pairs(
    f: Float64Array,
    share: Float64Array,
    discount: Float64Array,
    top: int,
    sigma: float,
    normalise: bool,
    G: Float64Array,
    H: Float64Array,
) -> float:
    """Add what every pair of which one is among the first ``top`` gives to the gradients G and
    hessians H of both, all by falling score f; the sum of the gradients' sizes.

    ``share``: gains, of which a pair's difference is its change of NDCG per difference of discount.
    """
    n = len(f)
    apart = np.empty(top * n - top * (top + 1) // 2)
    at = 0
    for i in range(top):
        for j in range(i + 1, n):
            apart[at] = f[i] - f[j]
            at += 1
    e = exponential(sigma * apart)
    if normalise and f[0] != f[n - 1]:
        apart += 0.01
    else:
        apart[:] = 1.0
    slope, curve = np.empty(n), np.empty(n)
    total, at = 0.0, 0
    for i in range(top):
        for j in range(i + 1, n):  # without branches: several at a time
            p = 1.0 / (1.0 + e[at])  # that the pair stays as it is
            change = (share[i] - share[j]) * (discount[i] - discount[j]) / apart[at]
            slope[j] = change * (p * (e[at] if change > 0.0 else 1.0))
            curve[j] = abs(change) * (sigma * e[at] * p * p)
            at += 1
        g, h = 0.0, 0.0
        for j in range(i + 1, n):
            g += slope[j]
            h += curve[j]
            total += 2 * abs(slope[j])
            G[j] += slope[j]
            H[j] += curve[j]
        G[i] -= g
        H[i] += h
    return total


@inner
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
