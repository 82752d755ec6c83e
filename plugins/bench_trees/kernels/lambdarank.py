"""Gradients of LambdaRank, one query after another, vectorised over the documents of a pair.

Sixteen queries of similar length at a time, so that a pair of positions is one step for all, take
0.7 to 0.75 times as long with 10 to 25 documents per query, and 1.2 to 1.5 times with 100 to 200.
"""

import math
from typing import NamedTuple

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels.compiling import calling, inner, inner_dividing_and_summing
from bench_trees.kernels.gradients import _raise_powers

LONG = 256  # positions: longer queries are ranked before, as counting takes their square


class Ranking(NamedTuple):
    """Constants of the gradients of a fit; a row takes a position for each of its copies."""

    queries: Int64Array  # (q+1,) row boundaries
    lengths: Int64Array  # (q,) positions
    copies: Int64Array  # (n,), or (0,) if all are 1
    share: Float64Array  # (n,) gain by the query's ideal DCG, 0 if that is 0
    discount: Float64Array  # of each position
    place: Int64Array  # (n,) first position of each row: updated


class Positions(NamedTuple):
    """A query's documents by position, with their gradients and hessians."""

    score: Float64Array
    share: Float64Array
    power: Float64Array
    slope: Float64Array
    curve: Float64Array


@calling()
def lambdas(
    scores: Float64Array,
    ranking: Ranking,
    span: tuple[int, int],
    truncation: int,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """LambdaRank gradients of the queries ``span``, means over a row's copies. Rows of queries
    longer than LONG have their ``place`` already."""
    queries, copies, place = ranking.queries, ranking.copies, ranking.place
    longest: int = 0
    for q in range(span[0], span[1]):
        longest = max(longest, ranking.lengths[q])
    table = np.empty((5, longest))
    at = Positions(table[0], table[1], table[2], table[3], table[4])
    first = queries[span[0]]
    # one row's power by the sum of two is the logistic function of their distance
    powers = np.empty(queries[span[1]] - first)
    for q in range(span[0], span[1]):
        best = -np.inf
        for row in range(queries[q], queries[q + 1]):
            best = max(best, scores[row])
        for row in range(queries[q], queries[q + 1]):
            powers[row - first] = scores[row] - best
    _raise_powers(powers)
    for q in range(span[0], span[1]):
        n = ranking.lengths[q]
        if n <= LONG:
            _rank(scores, queries[q], queries[q + 1], copies, place)
        for row in range(queries[q], queries[q + 1]):
            many = copies[row] if len(copies) > 0 else 1
            for k in range(place[row], place[row] + many):
                at.score[k], at.share[k] = scores[row], ranking.share[row]
                at.power[k] = powers[row - first]
        size = _add_pairs(at, n, min(truncation, n - 1), ranking.discount)
        scale = math.log2(1 + size) / size if size > 0 else 1.0
        for row in range(queries[q], queries[q + 1]):
            first_of_row, factor = place[row], scale
            g, h = at.slope[first_of_row], at.curve[first_of_row]
            if len(copies) > 0:
                for k in range(first_of_row + 1, first_of_row + copies[row]):
                    g += at.slope[k]
                    h += at.curve[k]
                factor = scale / copies[row]
            gradient[row], hessian[row] = g * factor, h * factor


@inner
def _rank(
    scores: Float64Array, begin: int, end: int, copies: Int64Array, place: Int64Array
) -> None:
    """Positions of rows begin:end by falling score, ties by number: count the copies ahead. Without
    branches, which would be unpredictable."""
    for row in range(np.uint64(begin), np.uint64(end)):
        ahead, score = np.int64(0), scores[row]
        if len(copies) > 0:
            for other in range(np.uint64(begin), row):
                ahead += copies[other] if scores[other] >= score else 0
            for other in range(row + np.uint64(1), np.uint64(end)):
                ahead += copies[other] if scores[other] > score else 0
        else:
            for other in range(np.uint64(begin), row):
                ahead += scores[other] >= score
            for other in range(row + np.uint64(1), np.uint64(end)):
                ahead += scores[other] > score
        place[row] = ahead


@inner_dividing_and_summing
def _add_pairs(at: Positions, n: int, top: int, discount: Float64Array) -> float:
    """Add up gradients and hessians over pairs of n positions, one of them among the first ``top``;
    return twice the sum of the sizes of gradients.

    A pair is divided by the distance of its scores, plus .01 unless all are equal. A difference of
    shares is a change of NDCG per difference of discount.
    """
    score, share, power, slopes, curves = at
    for j in range(n):
        slopes[j], curves[j] = 0.0, 0.0
    floor = 0.01 if score[0] != score[n - 1] else 1.0
    total = 0.0
    for i in range(top):
        f, w, e, d = score[i] + floor, share[i], power[i], discount[i]
        slope_i, curve_i, size = 0.0, 0.0, 0.0
        for j in range(np.uint64(i + 1), np.uint64(n)):  # without branches
            o, apart = power[j], f - score[j]
            change = (w - share[j]) * (d - discount[j])
            r = 1.0 / ((e + o) * apart)
            p, q = e * r, o * r
            slope = change * (q if change > 0.0 else p)
            curve = (abs(change) * p) * (q * apart)
            slopes[j] += slope
            curves[j] += curve
            slope_i += slope
            curve_i += curve
            size += abs(slope)
        slopes[i] -= slope_i
        curves[i] += curve_i
        total += size
    return 2.0 * total
