"""Evaluation of scores in a program: columns, combinations, gates and the finish.

Plain numpy over the rows of one step. Single rows without a cap have the same in compiled code.
"""

from __future__ import annotations

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.serving.program import END, GATES, Finish, Kernel, Program, Step
from bench_core.serving.query_ranks import (
    QueryGroups,
    among_seen,
    below,
    describe,
    kth_best,
    ranks,
)
from bench_core.serving.row_state import REJECTED, Rows

LEAST_SHARE, LARGEST_EXPONENT = 1e-6, 700.0


def linked(raw: FloatArray, link: str) -> FloatArray:
    """Return the link of scores (n, K): identity; exp; log-odds of probabilities, for K > 1 their
    logarithms; or logarithms of sigmoids, to be normalised by a softmax."""
    if link == "exp":
        return np.asarray(np.exp(np.minimum(raw, LARGEST_EXPONENT)))
    if link == "probability":
        shares = np.clip(raw, LEAST_SHARE, 1 - LEAST_SHARE)
        return np.asarray(np.log(shares) - (np.log(1.0 - shares) if raw.shape[1] == 1 else 0.0))
    if link == "sigmoid":
        return np.asarray(-np.logaddexp(0.0, -raw))
    return raw


def finished(finish: Finish, score: FloatArray) -> FloatArray:
    """Return the answer (n, K) of scores (n, K)."""
    raw = linked(np.array(finish.base) + score / finish.rounds, finish.link)
    answer = np.asarray(finish.slope * raw + finish.intercept)
    return answer if finish.onward is None else finished(finish.onward, answer)


def answers(program: Program, rows: Rows, boundaries: IntArray | None) -> FloatArray:
    """Return the answers of rows at their ends, (n,) or (n, K)."""
    groups = None if boundaries is None else QueryGroups(boundaries)
    rejected, last = rows.how == REJECTED, rows.final_step
    scores = settled(rows.final_score, rejected, rows.last, program.rejected, groups)
    numbers = (np.flatnonzero(np.bincount(last - END)) + END).tolist()
    if len(numbers) == 1 and numbers != [END]:
        finish = program.steps[numbers[0]].finish
        scores = scores if finish is None else finished(finish, scores)
    else:
        scores = scores.copy()
        for number in numbers:
            here, finish = last == number, program.steps[number].finish
            if number == END:
                scores[here] = np.nan if program.nothing is None else program.nothing
            elif finish is not None:
                scores[here] = finished(finish, scores[here])
    return scores[:, 0] if program.outputs == 1 else scores


def settled(
    scores: FloatArray,
    rejected: BoolArray,
    last: IntArray,
    rule: str | float,
    groups: QueryGroups | None,
) -> FloatArray:
    """Return scores (n, K), with ``Program.rejected`` applied to ``rejected`` rows (n,)."""
    if rule == "score" or not rejected.any():
        return scores
    if not isinstance(rule, str):
        return np.where(rejected[:, None], float(rule), scores)
    return scores if groups is None else below(scores[:, 0], rejected, last, groups)[:, None]


def with_columns(step: Step, own: FloatArray, X: Float32Array, here: IntArray) -> FloatArray:
    """Add the step's columns, or its kernel, to its sums of trees (n, K) for the rows ``here`` (n,)
    of X."""
    if step.kernel is not None:
        return kernel_sums(step.kernel, step.bias, X[here])
    columns = step.columns
    for j, feature in enumerate(columns.feature.tolist()):
        x = X[here, feature].astype(np.float64)
        if columns.scaled[j]:
            x = _scaled(x, columns.mean[j], columns.factor[j])
        else:
            x = np.where(np.isnan(x), 0.0, x)
        own[:, columns.output[j]] += columns.weight[j] * x
    return own


def kernel_sums(kernel: Kernel, bias: FloatArray, X: Float32Array) -> FloatArray:
    """Return the sums of a ``Kernel`` (n, K) for rows (n, d)."""
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
    """Move rows ``here`` on by the gate of a step."""
    step = program.steps[number]
    passed = _passing(step, here, rows, boundaries)
    rows.go_on(here[passed], number, step.then, passes=True)
    rows.go_on(here[~passed], number, step.otherwise, passes=False)


def _passing(step: Step, here: IntArray, rows: Rows, boundaries: IntArray | None) -> BoolArray:
    """True for rows ``here`` that pass the gate. ``boundaries`` cut all rows into queries; by
    default each row is its own query."""
    if step.gate == "always":
        return np.ones(len(here), dtype=bool)
    groups = QueryGroups(np.arange(len(rows.score) + 1) if boundaries is None else boundaries)
    if step.gate != "sentinel":
        groups = groups.among(here) if step.gate in GATES[3:] else groups
        on, value = np.ones((1, len(here)), dtype=bool), np.array([step.value])
        return np.asarray(passing(step.gate, value, step.k, rows.score[here], on, groups)[0])
    assert step.sentinel is not None
    inputs = describe(rows.score[None, :, 0], groups)[0]  # rows that left keep their last score
    total, splits, trees = _classified(step.sentinel, inputs[here])
    rows.splits[here] += splits
    rows.trees[here] += trees
    return np.asarray(1.0 / (1.0 + np.exp(-(step.sentinel.base[0] + total))) >= step.value)


def passing(
    gate: str, value: FloatArray, k: int, scores: FloatArray, on: BoolArray, groups: QueryGroups
) -> BoolArray:
    """True for rows that pass a gate (see ``GATES``) of each ``value`` (P,), (P, n), by their
    ``scores`` (n, K) among rows that are ``on`` (P, n)."""
    if gate == "class":
        return np.asarray(largest_probability(scores) <= value[:, None])
    own = scores[:, 0]
    if gate == "score":
        return np.asarray(own >= value[:, None])
    if gate == "capacity":
        return np.asarray(among_seen(own, on, groups, value))
    if gate == "rank":
        return np.asarray(ranks(own, on, groups) <= value[:, None])
    return np.asarray(own >= kth_best(own, on, groups, k)[:, groups.of] - value[:, None])


def _classified(trees: Ensemble, inputs: Float32Array) -> tuple[FloatArray, IntArray, IntArray]:
    """Return sums of leaves, of splits and of trees with a split, (n,), for inputs without NaN."""
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


def largest_probability(scores: FloatArray) -> FloatArray:
    """Return the probability of the most likely class (n,), from log-odds (n, 1) or scores
    (n, K)."""
    if scores.shape[1] == 1:
        others = np.exp(-np.abs(scores))[:, 0]
    else:
        others = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1) - 1.0
    return np.asarray(1.0 / (1.0 + others))
