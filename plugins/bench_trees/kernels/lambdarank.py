"""Gradients of LambdaRank, several queries of similar length at a time.

One query after another takes 1.3 to 1.4 times as long with 10 to 25 documents per query (a tree of
10,000 rows 1.2 times), and .65 to .85 times with 100 to 200.
"""

import math
from typing import NamedTuple

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.kernels.compiling import calling, inner, inner_dividing

LANES = 16  # queries at a time
# Offsets of the LANES numbers of each kind within the WIDTH numbers of a position.
SCORE, SHARE, POWER, SLOPE, CURVE, WIDTH = (LANES * k for k in range(6))
# Offsets in ``own``: sums of the fixed position, and per query the sum of its gradients' sizes and
# the number added to a distance.
SIZES, FLOOR, STATE = (LANES * k for k in range(5, 8))
LOWEST = -700.0  # exponent; below it a power would not be a normal number
FAR = 1e300  # distance and power of absent positions: the quotient by both is 0
LONG = 256  # positions: longer queries are ranked before, as counting takes their square


class Ranking(NamedTuple):
    """Constants of the gradients of a fit; a row takes a position for each of its copies."""

    queries: Int64Array  # (q+1,) row boundaries
    lengths: Int64Array  # (q,) positions
    by_length: Int64Array  # (q,) the shortest query first
    copies: Int64Array  # (n,), or (0,) if all are 1
    share: Float64Array  # (n,) gain by the query's ideal DCG, 0 if that is 0
    discount: Float64Array  # of each position
    place: Int64Array  # (n,) the first position of rows ranked before: updated


class Documents(NamedTuple):
    """The documents of LANES queries side by side: document r of query k at r LANES + k."""

    score: Float64Array
    power: Float64Array
    copies: Float64Array  # 0 beyond the query's end
    place: Float64Array  # first position
    after: Float64Array  # part of it


@calling()
def lambdas(
    scores: Float64Array,
    ranking: Ranking,
    span: tuple[int, int],
    truncation: int,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """LambdaRank gradients of the queries ``span`` of ``by_length``, means over a row's copies.

    LANES queries are processed together, so that a pair of positions is one step for all of them.
    No sum depends on the choice of these queries.
    """
    start, stop = span
    longest = ranking.lengths[ranking.by_length[stop - 1]]
    block, state, tile = np.empty(longest * WIDTH), np.empty(STATE), np.empty((5, longest * LANES))
    rows = Documents(tile[0], tile[1], tile[2], tile[3], tile[4])
    for first in range(start, stop, LANES):
        lanes = ranking.by_length[first : min(first + LANES, stop)]
        n = ranking.lengths[lanes[-1]]
        count = _read(scores, ranking, lanes, rows)
        _raise_powers(rows, count)
        if n <= LONG:
            _rank(rows, count)
        _arrange(rows, ranking, lanes, n, block, state)
        _add_pairs(block, state, n, min(truncation, n - 1), ranking.discount)
        _write(rows, ranking, lanes, block, state, gradient, hessian)


@inner
def _read(scores: Float64Array, ranking: Ranking, lanes: Int64Array, rows: Documents) -> int:
    """Read scores and copies of the queries ``lanes``, and known places; return the longest's
    number of rows."""
    count: int = 0
    for q in lanes:
        count = max(count, ranking.queries[q + 1] - ranking.queries[q])
    for at in range(count * LANES):
        rows.score[at], rows.copies[at] = -np.inf, 0.0
    for lane in range(len(lanes)):
        at = lane
        for row in range(ranking.queries[lanes[lane]], ranking.queries[lanes[lane] + 1]):
            rows.score[at], rows.place[at] = scores[row], ranking.place[row]
            rows.copies[at] = ranking.copies[row] if len(ranking.copies) > 0 else 1
            at += LANES
    return count


@inner
def _raise_powers(rows: Documents, count: int) -> None:
    """e^(f - the query's highest) of all rows: one row's by the sum of both is the logistic
    function of their distance."""
    best = np.empty(LANES)
    for k in range(LANES):
        best[k] = -np.inf
    for r in range(0, count * LANES, LANES):
        for k in range(LANES):
            best[k] = max(best[k], rows.score[r + k])
    for r in range(0, count * LANES, LANES):
        for k in range(LANES):
            rows.power[r + k] = math.exp(max(rows.score[r + k] - best[k], LOWEST))


@inner
def _rank(rows: Documents, count: int) -> None:
    """Positions by falling score, ties by number: count the copies ahead. Without branches, which
    would be unpredictable; all pairs of a distance at once, in loops that are long enough."""
    size = np.uint64(count * LANES)  # unsigned places are never negative
    for r in range(size):
        rows.place[r] = rows.after[r] = 0.0
    for apart in range(np.uint64(LANES), size, np.uint64(LANES)):
        for r in range(size - apart):
            many, more = rows.copies[r], rows.copies[r + apart]
            swapped = rows.score[r + apart] > rows.score[r]
            rows.place[r] += more if swapped else 0.0
            rows.after[r + apart] += 0.0 if swapped else many
    for r in range(size):
        rows.place[r] += rows.after[r]


@inner
def _arrange(
    rows: Documents,
    ranking: Ranking,
    lanes: Int64Array,
    n: int,
    block: Float64Array,
    state: Float64Array,
) -> None:
    """Scores, shares and powers by position; a row has one for each of its copies."""
    for at in range(0, n * WIDTH, WIDTH):
        for k in range(SLOPE, WIDTH):
            block[at + k] = 0.0
    for k in range(LANES):
        state[SIZES + k], state[FLOOR + k] = 0.0, 1.0
    for lane in range(LANES):
        live = ranking.lengths[lanes[lane]] if lane < len(lanes) else 0
        for at in range(live * WIDTH + lane, n * WIDTH, WIDTH):
            block[at + SCORE], block[at + SHARE], block[at + POWER] = -FAR, 0.0, FAR
        if live > 0:
            r, q = lane, lanes[lane]
            for row in range(ranking.queries[q], ranking.queries[q + 1]):
                at, share = int(rows.place[r]) * WIDTH + lane, ranking.share[row]
                for _ in range(ranking.copies[row] if len(ranking.copies) > 0 else 1):
                    block[at + SCORE] = rows.score[r]
                    block[at + SHARE] = share
                    block[at + POWER] = rows.power[r]
                    at += WIDTH
                r += LANES
            if block[lane] != block[(live - 1) * WIDTH + lane]:
                state[FLOOR + lane] = 0.01


@inner_dividing
def _add_pairs(
    block: Float64Array, state: Float64Array, n: int, top: int, discount: Float64Array
) -> None:
    """Add up gradients and hessians over pairs of positions, one of them among the first ``top``,
    and the sizes of gradients in ``state``. A pair is divided by FLOOR plus the distance of its
    scores.

    A difference of shares is a change of NDCG per difference of discount.
    """
    for i in range(top):
        here = block[i * WIDTH : (i + 1) * WIDTH]
        for k in range(SLOPE):
            state[k] = here[k]
        for k in range(SLOPE, SIZES):
            state[k] = 0.0
        for j in range(i + 1, n):  # without branches: several queries at a time
            to = block[j * WIDTH : (j + 1) * WIDTH]
            nearer = discount[i] - discount[j]
            for k in range(LANES):
                e, o = state[POWER + k], to[POWER + k]
                apart = state[FLOOR + k] + (state[SCORE + k] - to[SCORE + k])
                change = (state[SHARE + k] - to[SHARE + k]) * nearer
                r = 1.0 / ((e + o) * apart)
                p, q = e * r, o * r
                slope = change * (q if change > 0.0 else p)
                curve = (abs(change) * p) * (q * apart)
                to[SLOPE + k] += slope
                to[CURVE + k] += curve
                state[SLOPE + k] += slope
                state[CURVE + k] += curve
                state[SIZES + k] += abs(slope)
        for k in range(LANES):
            here[SLOPE + k] -= state[SLOPE + k]
            here[CURVE + k] += state[CURVE + k]


@inner
def _write(
    rows: Documents,
    ranking: Ranking,
    lanes: Int64Array,
    block: Float64Array,
    state: Float64Array,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """Write means over each row's positions of gradients and hessians, scaled per query."""
    for lane in range(len(lanes)):
        total, at, q = 2.0 * state[SIZES + lane], lane, lanes[lane]
        scale = math.log2(1 + total) / total if total > 0 else 1.0
        for row in range(ranking.queries[q], ranking.queries[q + 1]):
            where = int(rows.place[at]) * WIDTH + lane
            g, h, factor = block[where + SLOPE], block[where + CURVE], scale
            if len(ranking.copies) > 0:
                for _ in range(1, ranking.copies[row]):
                    where += WIDTH
                    g += block[where + SLOPE]
                    h += block[where + CURVE]
                factor = scale / ranking.copies[row]
            gradient[row], hessian[row] = g * factor, h * factor
            at += LANES
