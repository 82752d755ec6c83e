"""Scores on their way through a program: columns, combinations, gates and the finish.

Plain numpy over the rows of one step, for all walkers but the compiled one of single rows.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.serving.program import END, Columns, Finish, Kernel, Program, Step, Trees
from bench_core.serving.row_state import REJECTED, Rows

LEAST_SHARE, LARGEST_EXPONENT = 1e-6, 700.0


def linked(raw: FloatArray, link: str) -> FloatArray:
    """The link of scores (n, K): as they are, e to that, log-odds of shares, for K > 1 their
    logarithms, or logarithms of sigmoids, which a softmax divides by their sum."""
    if link == "exp":
        return np.asarray(np.exp(np.minimum(raw, LARGEST_EXPONENT)))
    if link == "probability":
        shares = np.clip(raw, LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(np.log(shares) - (np.log(1.0 - shares) if raw.shape[1] == 1 else 0.0))
    if link == "sigmoid":
        return np.asarray(-np.logaddexp(0.0, -raw))
    return raw


def finished(finish: Finish, score: FloatArray) -> FloatArray:
    """The answer (n, K) of scores (n, K)."""
    raw = linked(np.array(finish.base) + score / finish.rounds, finish.link)
    answer = np.asarray(finish.slope * raw + finish.intercept)
    return answer if finish.onward is None else finished(finish.onward, answer)


def answers(program: Program, rows: Rows, boundaries: IntArray | None) -> FloatArray:
    """What rows that have come to their ends answer, (n,) or (n, K)."""
    found, rejected = rows.final_score.copy(), rows.how == REJECTED
    if isinstance(program.rejected, float | int):
        found[rejected] = program.rejected
    elif program.rejected == "below" and boundaries is not None:
        for start, stop in pairwise(boundaries.tolist()):
            if rejected[start:stop].any():
                part = found[start:stop, 0], rejected[start:stop], rows.last[start:stop]
                found[start:stop, 0] = below(*part)
    for number in np.unique(rows.final_step).tolist():
        here, finish = rows.final_step == number, program.steps[number].finish
        if number == END:
            found[here] = np.nan if program.nothing is None else program.nothing
        elif finish is not None:
            found[here] = finished(finish, found[here])
    return found[:, 0] if program.outputs == 1 else found


def below(scores: FloatArray, rejected: BoolArray, last: IntArray) -> FloatArray:
    """Rejected rows of a query below its worst survivor, in steps of one, by the step they ended
    at and by score; equal ones together."""
    kept = ~rejected
    worst = float(scores[kept].min()) if kept.any() else 0.0
    found, level = scores.copy(), 0
    before = None
    for i in sorted(np.flatnonzero(rejected).tolist(), key=lambda i: (-last[i], -scores[i])):
        level += (own := (last[i], scores[i])) != before
        before = own
        found[i] = worst - level
    return found


def combined(how: str, before: FloatArray, own: FloatArray) -> FloatArray:
    """The score after a step, (n, K)."""
    if how == "min":
        return np.minimum(before, own)
    if how == "add":
        return before + own
    if how == "and":
        return np.asarray(-np.logaddexp(np.logaddexp(-before, -own), -before - own))
    return own


def with_columns(step: Step, own: FloatArray, X: Float32Array) -> FloatArray:
    """The step's sums (n, K) of trees with those of its columns, or of its kernel, for rows
    (n, d)."""
    if step.kernel is not None:
        return kernel_sums(step.kernel, step.bias, X)
    add_columns(own, step.columns, X)
    return own


def add_columns(own: FloatArray, columns: Columns, X: Float32Array) -> None:
    """Add the weighted cells of rows (n, d) to ``own`` (n, K), column by column."""
    for j, feature in enumerate(columns.feature.tolist()):
        x = X[:, feature].astype(np.float64)
        if columns.scaled[j]:
            x = _scaled(x, columns.mean[j], columns.factor[j])
        else:
            x = np.where(np.isnan(x), 0.0, x)
        own[:, columns.output[j]] += columns.weight[j] * x


def kernel_sums(kernel: Kernel, bias: FloatArray, X: Float32Array) -> FloatArray:
    """See ``Kernel``: (n, K) of rows (n, d)."""
    z = _scaled(X[:, kernel.features].astype(np.float64), kernel.mean, kernel.factor)
    total = np.zeros((len(X), len(bias)))
    for i, row in enumerate(z):
        squares = (row[:, None] - kernel.vectors) ** 2
        distance = np.add.reduceat(squares, kernel.start[:-1], axis=0)
        total[i] = kernel.coefficients @ np.exp(-kernel.gamma[:, None] * distance).sum(axis=0)
    return total + bias


def _scaled(x: FloatArray, mean: FloatArray, factor: FloatArray) -> FloatArray:
    return np.where(np.isfinite(x), (x - mean) * factor, 0.0)


def leave(
    program: Program, number: int, here: IntArray, rows: Rows, boundaries: IntArray | None
) -> None:
    """Rows ``here`` combine their score after a step, and go where its gate leads."""
    step = program.steps[number]
    rows.score[here] = combined(step.combine, rows.score[here], rows.own[here])
    rows.last[here] = number
    passed = _passing(step, here, rows, boundaries)
    rows.go_on(here[passed], number, step.then, passes=True)
    rows.go_on(here[~passed], number, step.otherwise, passes=False)


def _passing(step: Step, here: IntArray, rows: Rows, boundaries: IntArray | None) -> BoolArray:
    """Which rows ``here`` pass the gate. ``boundaries`` cut all rows into queries, else each row is
    the only one of its query."""
    score = rows.score[here]
    if step.gate == "always":
        return np.ones(len(here), dtype=bool)
    if step.gate == "score":
        return np.asarray(score[:, 0] >= step.value)
    if step.gate == "class":
        return np.asarray(largest_probability(score) <= step.value)
    bounds = np.arange(len(rows.score) + 1) if boundaries is None else boundaries
    query = np.searchsorted(bounds, here, side="right") - 1
    passed = np.zeros(len(here), dtype=bool)
    for q in np.unique(query).tolist():
        own = np.flatnonzero(query == q)
        passed[own] = _in_query(step, here[own], rows, slice(bounds[q], bounds[q + 1]))
    return passed


def _in_query(step: Step, here: IntArray, rows: Rows, members: slice) -> BoolArray:
    """Which rows ``here`` of one query pass; ``members`` are all its rows, also those that left."""
    scores, value = rows.score[here, 0], step.value
    if step.gate == "rank":
        return np.asarray(ranks(scores) <= value)
    if step.gate == "proximity":
        best = np.sort(scores)[::-1]
        return np.asarray(scores >= (best[step.k - 1] if len(best) >= step.k else -inf) - value)
    if step.gate == "capacity":
        return among_seen(scores, value)
    assert step.sentinel is not None
    every = rows.score[members, 0]  # rows that left count with the score they left with
    low, high = every.min(), every.max()
    inputs = np.empty((len(every), 4), dtype=np.float32)
    inputs[:, 0] = every
    inputs[:, 1] = (every - low) / (high - low if high > low else 1.0)
    inputs[:, 2] = ranks(every)
    inputs[:, 3] = len(every)
    total, splits, trees = _classified(step.sentinel, inputs[here - members.start])
    rows.splits[here] += splits
    rows.trees[here] += trees
    return np.asarray(1.0 / (1.0 + np.exp(-(step.sentinel_base + total))) >= value)


def _classified(trees: Trees, inputs: Float32Array) -> tuple[FloatArray, IntArray, IntArray]:
    """Sums of leaves, splits and trees with a split, (n,), of inputs without missing values."""
    total, splits, used = np.zeros((3, len(inputs)))
    every = np.arange(len(inputs))
    for root in trees.start[:-1]:
        node = np.full(len(inputs), root)
        used += trees.feature[root] >= 0
        while (inner := trees.feature[node] >= 0).any():
            left = inputs[every, trees.feature[node]] <= trees.threshold[node]
            node = np.where(inner, np.where(left, trees.left[node], trees.right[node]), node)
            splits += inner
        total += trees.value[node]
    return total, splits.astype(np.int64), used.astype(np.int64)


def ranks(scores: FloatArray) -> IntArray:
    """1 + how many score higher, (n,)."""
    higher = len(scores) - np.searchsorted(np.sort(scores), scores, side="right")
    return np.asarray(higher + 1)


def among_seen(scores: FloatArray, most: float) -> BoolArray:
    """Which are among the best ``most`` of those up to and with them, (n,)."""
    best = [-inf] * int(min(most, len(scores)))
    passed = np.zeros(len(scores), dtype=bool)
    for i, score in enumerate(scores.tolist()):
        if best and score >= min(best):
            passed[i] = True
            best[best.index(min(best))] = score
    return passed


def largest_probability(scores: FloatArray) -> FloatArray:
    """Of the likeliest class, (n,), from log-odds (n, 1) or one score per class (n, K)."""
    if scores.shape[1] == 1:
        others = np.exp(-np.abs(scores))[:, 0]
    else:
        others = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1) - 1.0
    return np.asarray(1.0 / (1.0 + others))
