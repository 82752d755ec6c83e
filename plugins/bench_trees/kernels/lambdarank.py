"""Gradients of LambdaRank, several queries of like length at a time."""

import math
from typing import NamedTuple

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels import exponentials
from bench_trees.kernels.calling import calling, inner, inner_dividing
from bench_trees.kernels.exponentials import _exponentials

LANES = 16  # queries at a time
# Where the LANES numbers of each kind begin in the WIDTH numbers of a position.
SCORE, SHARE, POWER, LIVE, SLOPE, CURVE, WIDTH = (LANES * k for k in range(7))
# Those of ``own``: a position's that holds still, and of each query the sum of its gradients'
# sizes, and what is added to a distance.
SIZES, FLOOR, OWN = (LANES * k for k in range(6, 9))
LOWEST = -700.0  # exponent; below it a power were not a normal number
LONG = 256  # rows: a longer query is sorted before, as insertion takes their square at worst


class Ranking(NamedTuple):
    """What the gradients of a fit have in common; a row takes a position for each of its copies."""

    queries: Int64Array  # (q+1,) row boundaries
    lengths: Int64Array  # (q,) positions
    by_length: Int64Array  # (q,) the shortest query first
    copies: Int64Array  # (n,)
    share: Float64Array  # (n,) gain times sigma by the query's ideal DCG, 0 where that is 0
    discount: Float64Array  # of each position
    order: Int64Array  # (n,) each query's rows by falling score, as last seen: updated


@calling(exponentials)
def lambdas(
    scores: Float64Array,
    ranking: Ranking,
    part: tuple[int, int],
    settings: tuple[int, float, bool],
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """LambdaRank gradients of the queries ``part`` of those by length, means over a row's copies.

    ``settings``: truncation, sigma, normalise. LANES queries are worked on side by side, so that a
    pair of positions is one step for all of them, and no sum depends on which queries these are.
    """
    truncation, sigma, normalise = settings
    start, stop = part
    longest = ranking.lengths[ranking.by_length[stop - 1]]
    block, own = np.empty(longest * WIDTH), np.ones(OWN)
    key = np.empty(longest)
    for first in range(start, stop, LANES):
        lanes = ranking.by_length[first : min(first + LANES, stop)]
        n = ranking.lengths[lanes[-1]]
        for k in range(n * WIDTH):
            block[k] = 0.0
        for lane in range(len(lanes)):
            order = ranking.order[ranking.queries[lanes[lane]] : ranking.queries[lanes[lane] + 1]]
            _sort(scores, order, key)
            _fill(block[: n * WIDTH], lane, order, scores, ranking)
            apart = len(order) > 0 and scores[order[0]] != scores[order[-1]]
            own[FLOOR + lane] = 0.01 if normalise and apart else 1.0
        _raise_powers(block, n, sigma)
        top = min(truncation, n - 1)
        _add_pairs(block, own, n, top, ranking.discount, sigma, 1.0 if normalise else 0.0)
        for lane in range(len(lanes)):
            order = ranking.order[ranking.queries[lanes[lane]] : ranking.queries[lanes[lane] + 1]]
            total = 2.0 * own[SIZES + lane]
            scale = math.log2(1 + total) / total if normalise and total > 0 else 1.0
            _empty(block, lane, order, scale, ranking.copies, gradient, hessian)


@inner
def _sort(scores: Float64Array, rows: Int64Array, key: Float64Array) -> None:
    """Sort rows by falling score, ties by number: by insertion, as they are nearly sorted."""
    for i in range(len(rows)):
        value, row, place = scores[rows[i]], rows[i], i
        while place > 0 and (
            key[place - 1] < value or (key[place - 1] == value and rows[place - 1] > row)
        ):
            key[place], rows[place] = key[place - 1], rows[place - 1]
            place -= 1
        key[place], rows[place] = value, row


@inner
def _fill(
    block: Float64Array, lane: int, order: Int64Array, scores: Float64Array, ranking: Ranking
) -> None:
    """Scores and shares of the rows in ``order``, each in as many positions as it has copies; where
    a shorter query has none, the least score."""
    at = lane
    for row in order:
        for _ in range(ranking.copies[row]):
            block[at + SCORE], block[at + SHARE] = scores[row], ranking.share[row]
            block[at + LIVE] = 1.0
            at += WIDTH
    for rest in range(at, len(block), WIDTH):
        block[rest + SCORE] = scores[order[-1]] if len(order) > 0 else 0.0


@inner
def _raise_powers(block: Float64Array, n: int, sigma: float) -> None:
    """e^(sigma (f - the query's highest)) of all positions: of two of them, that of one by the sum
    of both is the logistic function of the distance."""
    z, bits = np.empty(LANES), np.empty(LANES, np.int64)
    for i in range(n):
        here = block[i * WIDTH : (i + 1) * WIDTH]
        for k in range(LANES):
            z[k] = max(sigma * (here[SCORE + k] - block[SCORE + k]), LOWEST)
        _exponentials(z, bits, here[POWER : POWER + LANES])


@inner_dividing
def _add_pairs(
    block: Float64Array,
    own: Float64Array,
    n: int,
    top: int,
    discount: Float64Array,
    sigma: float,
    distance: float,
) -> None:
    """Add what every pair of positions of which one is among the first ``top`` gives to the
    gradients and hessians of both, and the sizes of gradients to ``own``. A pair is divided by
    FLOOR plus ``distance`` times that of its scores.

    A difference of shares is a change of NDCG per difference of discount.
    """
    for k in range(LANES):
        own[SIZES + k] = 0.0
    for i in range(top):
        here = block[i * WIDTH : (i + 1) * WIDTH]
        for k in range(SLOPE):
            own[k] = here[k]
        for k in range(SLOPE, SIZES):
            own[k] = 0.0
        for j in range(i + 1, n):  # without branches: several queries at a time
            to = block[j * WIDTH : (j + 1) * WIDTH]
            nearer = discount[i] - discount[j]
            for k in range(LANES):
                e, o = own[POWER + k], to[POWER + k]
                apart = own[FLOOR + k] + distance * (own[SCORE + k] - to[SCORE + k])
                change = (own[SHARE + k] - to[SHARE + k]) * (nearer * to[LIVE + k])
                r = 1.0 / ((e + o) * apart)
                slope = change * ((o if change > 0.0 else e) * r)
                curve = abs(change) * (sigma * (e * r)) * (o * r * apart)
                to[SLOPE + k] += slope
                to[CURVE + k] += curve
                own[SLOPE + k] += slope
                own[CURVE + k] += curve
                own[SIZES + k] += abs(slope)
        for k in range(LANES):
            here[SLOPE + k] -= own[SLOPE + k]
            here[CURVE + k] += own[CURVE + k]


@inner
def _empty(
    block: Float64Array,
    lane: int,
    order: Int64Array,
    scale: float,
    copies: Int64Array,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """Means over each row's positions of gradients and hessians, times ``scale``."""
    at = lane
    for row in order:
        g, h = 0.0, 0.0
        for _ in range(copies[row]):
            g += block[at + SLOPE]
            h += block[at + CURVE]
            at += WIDTH
        gradient[row], hessian[row] = g * (scale / copies[row]), h * (scale / copies[row])
