"""A row through a program, as the docstring of ``Program`` says it, for comparison."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bench_core.serving import END, REJECT, VECTOR, Columns, Finish, Kernel, Program


class Walked(NamedTuple):
    """What a row by itself answers, which features it read, and what was evaluated for it."""

    score: list[float]
    features: set[int]
    splits: float
    trees: int
    step: int


def walked(program: Program, x: Any) -> Walked:
    """The row ``x`` (d,) to its end, without a cap."""
    tree, features, splits, trees = program.trees, set(), 0.0, 0
    own = score = [0.0] * program.outputs
    at, last, onward = 0, END, 0
    while at >= 0:
        step = program.steps[at]
        own = [(a if step.carry else 0.0) + b for a, b in zip(own, step.bias.tolist(), strict=True)]
        for t, weight, fresh in zip(step.trees, step.weights, step.fresh, strict=True):
            node, path = int(tree.start[t]), []
            while (f := int(tree.feature[node])) >= 0:
                path.append(f)
                left = tree.missing_left[node] if math.isnan(x[f]) else x[f] <= tree.threshold[node]
                node = int((tree.left if left else tree.right)[node])
            features |= set(path)
            if fresh:
                splits, trees = splits + sum(program.multiplier[path]), trees + (len(path) > 0)
            if tree.output[t] == VECTOR:
                own = [
                    a + b for a, b in zip(own, program.vectors[int(tree.value[node])], strict=True)
                ]
            else:
                own[tree.output[t]] += tree.value[node] * weight
        features |= set(step.columns.feature.tolist())
        _add_columns(own, step.columns, x)
        if step.kernel is not None:
            features |= set(step.kernel.features.tolist())
            own = [a + b for a, b in zip(_kernel(step.kernel, x), step.bias, strict=True)]
        score = [_combined(step.combine, a, b) for a, b in zip(score, own, strict=True)]
        likeliest = 1 / (1 + math.exp(-abs(score[0]))) if len(score) == 1 else _softmax(score)
        value = {"always": True, "score": score[0] >= step.value, "class": likeliest <= step.value}
        last, onward = at, step.then if value[step.gate] else step.otherwise
        at = onward
    if onward == REJECT and not isinstance(program.rejected, str):
        score = [float(program.rejected)] * program.outputs
    finish = program.steps[last].finish
    while finish is not None:
        score, finish = _finished(finish, score), finish.onward
    return Walked(score, features, splits, trees, last)


def _add_columns(own: list[float], columns: Columns, x: Any) -> None:
    for j, f in enumerate(columns.feature):
        if columns.scaled[j]:
            scaled = (float(x[f]) - columns.mean[j]) * columns.factor[j]
            own[columns.output[j]] += columns.weight[j] * (scaled if np.isfinite(x[f]) else 0.0)
        elif not math.isnan(x[f]):
            own[columns.output[j]] += columns.weight[j] * float(x[f])


def _kernel(kernel: Kernel, x: Any) -> list[float]:
    z = [float(x[f]) if np.isfinite(x[f]) else None for f in kernel.features]
    centred = zip(z, kernel.mean, kernel.factor, strict=True)
    z = [0.0 if v is None else (v - m) * s for v, m, s in centred]
    total = [0.0] * len(kernel.coefficients)
    for i in range(kernel.vectors.shape[1]):
        for g, gamma in enumerate(kernel.gamma):
            places = range(kernel.start[g], kernel.start[g + 1])
            distance = sum((z[j] - kernel.vectors[j, i]) ** 2 for j in places)
            for k, own in enumerate(kernel.coefficients[:, i]):
                total[k] += own * math.exp(-gamma * distance)
    return total


def _combined(how: str, before: float, own: float) -> float:
    if how == "and":
        both = 1 / (1 + math.exp(-before)) / (1 + math.exp(-own))
        return math.log(both / (1 - both))
    return {"last": own, "min": min(before, own), "add": before + own}[how]


def _softmax(score: list[float]) -> float:
    return math.exp(max(score)) / sum(map(math.exp, score))


def _finished(finish: Finish, score: list[float]) -> list[float]:
    raw = [b + s / finish.rounds for b, s in zip(finish.base, score, strict=True)]
    if finish.link == "exp":
        raw = [math.exp(min(r, 700.0)) for r in raw]
    if finish.link == "probability":
        raw = [min(max(r, 1e-6), 1 - 1e-6) for r in raw]
        raw = [math.log(r) - (math.log(1 - r) if len(raw) == 1 else 0.0) for r in raw]
    return [finish.slope * r + finish.intercept for r in raw]
