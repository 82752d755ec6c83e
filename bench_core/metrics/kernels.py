"""Compiled loops over queries: ranking and evaluation. Imported only when a ranking metric is
computed (numba).

``ranked`` and its arrays: see ``built_in.Ranked``. ``top`` is the cut-off, at most the longest
query. ``terms[i]`` is the weight of place i, ``summed[i]`` the sum of ``terms[:i]``. All kernels
except ``rank`` return one value per query.

    place   0   1   2   3   4   5        every kernel walks over tie groups: a group of n
            [A] [B   C   C   D] [E]      documents of which r are relevant fills the places
                 tie group, n = 4        place .. place+n-1 in uniformly random order

If row order breaks ties, no row is ``tied``: each row is its own group, and its copies are
identical.
"""

# mypy: disallow-untyped-decorators=False
from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.metrics.built_in import Ranked

_njit: Any = njit  # its type stubs lack some options
_fast = _njit(cache=True, nogil=True, no_cfunc_wrapper=True)
_inner = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called only in this file
SHORT = 32  # largest cut-off that uses insertion sort


@_inner
def _group_end(ranked: Ranked, i: int, stop: int) -> int:
    i += 1
    while i < stop and ranked.tied[i]:
        i += 1
    return i


@_inner
def _gain(grade: float, table: FloatArray) -> Any:
    """2^grade - 1, from ``table`` for small integer grades; the grade itself without a table."""
    if len(table) == 0:
        return grade
    if grade < len(table):
        whole = int(grade)
        if whole == grade:
            return table[whole]
    return 2.0**grade - 1.0


@_inner
def _span(summed: FloatArray, terms: FloatArray, start: int, stop: int) -> Any:
    """Sum of ``terms[start:stop]``."""
    if stop - start == 1:
        return terms[start]
    return summed[stop] - summed[start]


@_fast
def dcg(
    ranked: Ranked,
    y: FloatArray,
    table: FloatArray,
    terms: FloatArray,
    summed: FloatArray,
    top: int,
) -> FloatArray:
    """Discounted gain of the first ``top`` places. The expected gain of each place in a tie group
    is the group's mean gain (McSherry and Najork, ECIR 2008)."""
    out = np.zeros(len(ranked.stop))
    for j in range(len(out)):
        i, stop, place = ranked.bounds[j], ranked.stop[j], 0
        while i < stop and place < top:
            end = _group_end(ranked, i, stop)
            n, total = 0, 0.0  # documents of the group, and the sum of their gains
            for row in ranked.order[i:end]:
                n += ranked.copies[row]
                total += ranked.copies[row] * _gain(y[row], table)
            if total > 0:
                reach = min(place + n, top)
                out[j] += total / n * _span(summed, terms, place, reach)
            i, place = end, place + n
    return out


AT_TOP, PRECISIONS, FIRST, RUN = range(4)  # values of ``what``


@_fast
def tally(
    ranked: Ranked, relevant: BoolArray, summed: FloatArray, top: int, what: int
) -> FloatArray:
    """Statistics of the relevant documents in the first ``top`` places, in one kernel to save
    compilation time.

    AT_TOP: their expected number.

    PRECISIONS: expected sum of the precisions at their places. With R relevant documents before the
    group, place + s (s = 1, 2, ...) contributes (r/n) (R + 1 + (s-1) c) / (place + s), c =
    (r-1)/(n-1). The document there is relevant with probability r/n; given this, each of the s-1
    group documents before it is relevant with probability c. Since (R + 1 + (s-1) c) / (place + s)
    = c + (R + 1 - c (place + 1)) / (place + s), long groups only need the sums of 1/place,
    ``summed``.

    FIRST: expected 1 / place of the first one, 0 beyond ``top``. In the first group with relevant
    documents, it is at step s with probability C(n-s, r-1) / C(n, r): r/n at s = 1, and
    (n-s-r+1) / (n-s) times as much at each next step.

    RUN: expected number before the first irrelevant document. Groups of only relevant documents add
    their size. In the first other group, the run reaches step s with probability
    r/n (r-1)/(n-1) ... (r-s+1)/(n-s+1).
    """
    out = np.zeros(len(ranked.stop))
    for j in range(len(out)):
        i, stop, place, before = ranked.bounds[j], ranked.stop[j], 0, 0
        while i < stop and place < top:
            end = _group_end(ranked, i, stop)
            n, r = 0, 0  # documents of the group, relevant documents
            for row in ranked.order[i:end]:
                n += ranked.copies[row]
                if relevant[row]:
                    r += ranked.copies[row]
            steps = min(n, top - place)
            if what == AT_TOP:
                out[j] += r * steps / n
            elif what == PRECISIONS and r > 0:
                c = (r - 1) / (n - 1) if n > 1 else 0.0
                precisions = 0.0
                if steps <= 16:
                    for s in range(1, steps + 1):
                        precisions += (before + 1 + (s - 1) * c) / (place + s)
                else:
                    inverse = summed[place + steps] - summed[place]
                    precisions = c * steps + (before + 1 - c * (place + 1)) * inverse
                out[j] += r / n * precisions
            elif what == FIRST and r > 0:
                chance = r / n  # P(the first relevant one is at step s)
                for s in range(1, min(n - r + 1, steps) + 1):
                    out[j] += chance / (place + s)
                    chance *= (n - s - r + 1) / (n - s) if n > s else 0.0
                break
            elif what == RUN and r < n:
                chance = 1.0
                for s in range(min(r, steps)):
                    chance *= (r - s) / (n - s)
                    out[j] += chance
                break
            elif what == RUN:
                out[j] += steps
            i, place, before = end, place + n, before + r
    return out


@_fast
def reciprocal_cascade(ranked: Ranked, satisfies: FloatArray, top: int) -> FloatArray:
    """Expected 1 / place at which the user is satisfied (Chapelle et al., CIKM 2009, eq. 6-7).

    With probability R a document satisfies the user; q = 1 - R. In a tie group, A[s] is the mean
    over all subsets of s documents of the product of their q. The user stops at step s with
    probability A[s-1] - A[s]. Adding the m-th document to the set updates
    A[s] <- (1 - s/m) A[s] + (s/m) q A[s-1], as it is among the first s with probability s/m.
    """
    out = np.zeros(len(ranked.stop))
    for j in range(len(out)):
        i, stop, place, goes_on = ranked.bounds[j], ranked.stop[j], 0, 1.0
        while i < stop and place < top and goes_on > 0:
            end = _group_end(ranked, i, stop)
            n = 0
            for row in ranked.order[i:end]:
                n += ranked.copies[row]
            steps = min(n, top - place)
            if end == i + 1:  # no tie: only copies of one document
                R = satisfies[ranked.order[i]]
                for s in range(1, steps + 1):
                    out[j] += goes_on * R / (place + s)
                    goes_on *= 1.0 - R
            else:
                mean = _mean_products(ranked, i, end, satisfies, steps)
                for s in range(1, steps + 1):
                    out[j] += goes_on * (mean[s - 1] - mean[s]) / (place + s)
                goes_on *= mean[steps]
            i, place = end, place + n
    return out


@_inner
def _mean_products(
    ranked: Ranked, i: int, end: int, satisfies: FloatArray, steps: int
) -> FloatArray:
    mean = np.zeros(steps + 1)
    mean[0] = 1.0
    m = 0
    for row in ranked.order[i:end]:
        q = 1.0 - satisfies[row]
        for _ in range(ranked.copies[row]):
            m += 1
            for s in range(min(m, steps), 0, -1):
                mean[s] += s / m * (q * mean[s - 1] - mean[s])
    return mean


@_fast
def rank(ranked: Ranked, scores: FloatArray, depth: int) -> None:
    """Order the best ``depth`` rows of each query, at most SHORT, and ties with the last.

    Equal scores keep row order. Fills ``order``, ``stop`` and ``tied``.
    """
    order, stop, tied = ranked.order, ranked.stop, ranked.tied
    for j in range(len(stop)):
        a, b = ranked.bounds[j], ranked.bounds[j + 1]
        stop[j] = _best(scores, a, b, min(depth, b - a), order)
        tied[a] = False
        for i in range(a + 1, stop[j]):
            tied[i] = scores[order[i]] == scores[order[i - 1]]


@_inner
def _insert(scores: FloatArray, order: IntArray, start: int, last: int, row: int) -> None:
    """Insert ``row`` after all rows of ``order[start:last]`` with at least its score;
    ``order[last]`` is overwritten."""
    score = scores[row]
    i = last
    while i > start and scores[order[i - 1]] < score:
        order[i] = order[i - 1]
        i -= 1
    order[i] = row


@_inner
def _best(scores: FloatArray, a: int, b: int, depth: int, order: IntArray) -> int:
    """Order the best ``depth`` of rows ``a:b`` and their ties; return the end position."""
    last = a + depth - 1
    for row in range(a, last + 1):
        _insert(scores, order, a, row, row)
    worst = scores[order[last]]  # lowest score kept so far
    for row in range(last + 1, b):
        if scores[row] > worst:
            _insert(scores, order, a, last, row)
            worst = scores[order[last]]
    end = last + 1
    while end > a and scores[order[end - 1]] == worst:
        end -= 1
    for row in range(a, b):  # rows that tie with the last one
        if scores[row] == worst:
            order[end] = row
            end += 1
    return end
