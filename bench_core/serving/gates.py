"""Evaluation of scores in a program: columns, combinations, gates and the finish.

Plain numpy over the rows of one step. Single rows without a cap have the same in compiled code.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.serving.program import END, Finish, Kernel, Program, Step
from bench_core.serving.query_ranks import (
    INPUTS,
    QueryGroups,
    among_seen,
    below,
    describe,
    kth_best,
    ranks,
)
from bench_core.serving.row_state import REJECTED, WalkedRows

if TYPE_CHECKING:
    from bench_trees.ensemble import Ensemble
    from bench_trees.inference import Layout

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


def answers(program: Program, rows: WalkedRows, boundaries: IntArray | None) -> FloatArray:
    """Return the answers of rows at their ends, (n,) or (n, K)."""
    scores, last, rule = rows.final_score, rows.final_step, program.rejected
    rejected = rows.how == REJECTED
    if not isinstance(rule, str):
        scores = np.where(rejected[:, None], float(rule), scores)
    elif rule == "below" and boundaries is not None and rejected.any():
        scores = below(scores[:, 0], rejected, rows.last, QueryGroups(boundaries))[:, None]
    numbers = (np.flatnonzero(np.bincount(last - END)) + END).tolist()
    if len(numbers) == 1 and numbers != [END]:
        finish = program.steps[numbers[0]].finish
        scores = scores if finish is None else finished(finish, scores)
    else:
        scores = scores.copy()
        for number in numbers:
            if number == END:
                scores[last == END] = np.nan if program.nothing is None else program.nothing
            elif (finish := program.steps[number].finish) is not None:
                here = last == number
                scores[here] = finished(finish, scores[here])
    return scores[:, 0] if program.outputs == 1 else scores


def with_columns(step: Step, sums: FloatArray, X: Float32Array, here: IntArray) -> FloatArray:
    """Add the step's columns, or its kernel, to its sums of trees (n, K) for the rows ``here`` (n,)
    of X."""
    if step.kernel is not None:
        return kernel_sums(step.kernel, step.bias, X[here])
    columns = step.columns
    for j, feature in enumerate(columns.feature.tolist()):
        x = _scaled(X[here, feature].astype(np.float64), columns.mean[j], columns.factor[j])
        sums[:, columns.output[j]] += columns.weight[j] * x
    return sums


def with_prices(
    step: Step, sums: FloatArray, prices: FloatArray | None, here: IntArray
) -> FloatArray:
    """Add the step's prices to its sums (n, K) for the rows ``here`` (n,) of the known prices
    (m, s), None for the means."""
    paid = step.prices
    for j, sensor in enumerate(paid.sensor.tolist()):
        price = paid.mean[j] if prices is None else prices[here, sensor]
        sums[:, paid.output[j]] += paid.weight[j] * price
    return sums


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
    program: Program, number: int, here: IntArray, rows: WalkedRows, boundaries: IntArray | None
) -> None:
    """Move rows ``here`` on by the gate of a step. ``boundaries`` cut all rows into queries; by
    default each row is its own query."""
    step, passed = program.steps[number], np.ones(len(here), dtype=bool)
    if step.gate != "always":
        n = len(rows.score)
        groups = QueryGroups(np.arange(n + 1) if boundaries is None else boundaries)
        on, value = np.zeros((1, n), dtype=bool), np.array([step.value])
        on[0, here] = True
        passed = passing(step, value, rows.score, on, groups, rows)[0, here]
    rows.go_on(here[passed], number, step.then, passes=True)
    rows.go_on(here[~passed], number, step.otherwise, passes=False)


def passing(
    step: Step,
    value: FloatArray,
    scores: FloatArray,
    on: BoolArray,
    groups: QueryGroups,
    ends: WalkedRows,
) -> BoolArray:
    """True for rows that pass the gate of a step (see ``GATES``) at each ``value`` (P,), (P, n), by
    their ``scores`` (n, K) among rows that are ``on`` (P, n).

    ``ends`` are the P n rows: a sentinel sees the last score of those that left, and is billed.
    """
    first = scores[:, 0]
    if step.gate == "class":
        return np.asarray(largest_probability(scores) <= value[:, None])
    if step.gate == "score":
        return np.asarray(first >= value[:, None])
    if step.gate == "largest":
        return np.asarray(scores.argmax(axis=1) == value[:, None])
    if step.gate == "capacity":
        return np.asarray(among_seen(first, on, groups, value))
    if step.gate == "rank":
        return np.asarray(ranks(first, on, groups) <= value[:, None])
    if step.gate == "proximity":
        return np.asarray(
            first >= kth_best(first, on, groups, step.k)[:, groups.of] - value[:, None]
        )
    from bench_trees.inference import Steps, Walked, walk

    assert step.sentinel is not None
    layout, here, passes = _laid_out(step.sentinel), np.flatnonzero(on), on.copy()
    inputs = describe(np.where(on, first, ends.score[:, 0].reshape(on.shape)), groups)
    steps = Steps.prefixes([layout.trees], step.sentinel.base)
    done = walk(layout, steps, inputs[on], Walked.begin(len(here), 1, layout.words))
    ends.splits[here] += done.splits[0]
    ends.trees[here] += (layout.levels > 0).sum()
    passes[on] = 1.0 / (1.0 + np.exp(-done.scores[0, :, 0])) >= np.repeat(value, on.sum(axis=1))
    return passes


@lru_cache(32)
def _laid_out(classifier: Ensemble) -> Layout:
    from bench_trees.inference import Needs, lay_out

    return lay_out(classifier, Needs.nothing(INPUTS, np.ones(INPUTS)))


def largest_probability(scores: FloatArray) -> FloatArray:
    """Return the probability of the most likely class (n,), from log-odds (n, 1) or scores
    (n, K)."""
    if scores.shape[1] == 1:
        others = np.exp(-np.abs(scores))[:, 0]
    else:
        others = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1) - 1.0
    return np.asarray(1.0 / (1.0 + others))
