"""Who goes on at a gate, and what rows answer that a gate ended, in one query or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.serving.links import linked
from bench_core.serving.program import Finish
from bench_core.serving.tables import Lists, Row, StepTables


def passing(
    step: StepTables, here: Sequence[Row], rows: Sequence[Row], grouped: bool
) -> Sequence[bool]:
    """Which of the rows ``here`` pass; ``rows`` are all of the query, where ``grouped``."""
    kind, value = step.step.gate, step.step.value
    if kind == "always" or not here:
        return [True] * len(here)
    if kind == "score":
        return [row.score[0] >= value for row in here]
    if kind == "class":
        likeliest = largest_probability(np.array([row.score for row in here]))
        return (likeliest <= value).tolist()  # type: ignore[no-any-return]
    if not grouped:  # each row is the only one of its query
        return [_alone(step, row) for row in here]
    return _in_query(step, here, rows)


def _alone(step: StepTables, row: Row) -> bool:
    return bool(_in_query(step, [row], [row])[0])


def _in_query(step: StepTables, here: Sequence[Row], rows: Sequence[Row]) -> Sequence[bool]:
    gate, value = step.step.gate, step.step.value
    scores = np.array([row.score[0] for row in here])
    if gate == "rank":
        passed = ranks(scores) <= value
    elif gate == "proximity":
        best = np.sort(scores)[::-1]
        passed = scores >= (best[step.step.k - 1] if len(best) >= step.step.k else -inf) - value
    elif gate == "capacity":
        passed = among_seen(scores, value)
    else:
        passed = _by_classifier(step, here, rows)
    return passed.tolist()  # type: ignore[no-any-return]


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


def _by_classifier(step: StepTables, here: Sequence[Row], rows: Sequence[Row]) -> BoolArray:
    """Rows that left count with the score they left with; the splits evaluated are the row's."""
    classifier = step.sentinel
    assert classifier is not None
    scores = np.array([row.score[0] for row in rows])
    low, high = scores.min(), scores.max()
    inputs = np.empty((len(rows), 4), dtype=np.float32)
    inputs[:, 0] = scores
    inputs[:, 1] = (scores - low) / (high - low if high > low else 1.0)
    inputs[:, 2] = ranks(scores)
    inputs[:, 3] = len(rows)
    place = {id(row): i for i, row in enumerate(rows)}
    found = np.zeros(len(here))
    for i, row in enumerate(here):
        found[i] = _classified(
            classifier, inputs[place[id(row)]].tolist(), row, step.step.sentinel_base
        )
    return np.asarray(1.0 / (1.0 + np.exp(-found)) >= step.step.value)


def _classified(trees: Lists, inputs: Sequence[float], row: Row, base: float) -> float:
    total = base
    for root in trees.root:
        node, path = root, 0.0
        while (f := trees.feature[node]) >= 0:
            goes_left = inputs[f] <= trees.threshold[node]
            node = trees.left[node] if goes_left else trees.right[node]
            path += 1.0
        row.splits += path
        row.trees += path > 0
        total += trees.value[node]
    return total


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
        found[i] = worst - 1.0 - (level - 1)
    return found


def finished(finish: Finish, score: FloatArray) -> FloatArray:
    """The answer (n, K) of scores (n, K)."""
    raw = linked(np.array(finish.base) + score / finish.rounds, finish.link)
    answer = np.asarray(finish.slope * raw + finish.intercept)
    return answer if finish.onward is None else finished(finish.onward, answer)
