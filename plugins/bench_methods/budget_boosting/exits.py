"""Exits from a chain of stages: the settings that held-out rows prefer to cheaper points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from bench_models.nested_sets.held_out import Fits, joined
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.staged import MOST_POINTS

from bench_core import Examples, Features, Metric, Task
from bench_core.arrays import FloatArray
from bench_core.serving.gates import largest_probability

SHARES = 16
"""Thresholds of a chain, between so many equal shares of its stages' largest probabilities, or of
the scores of its first stage in ranking."""

LONGEST = 6
"""Stages of a chain if evaluation has a price, paid at each stage; twice as many are paired in
ranking."""


Setting = tuple[int, int, float]
"""A chain, the place of its last stage, and the threshold of the stages before."""


def with_exits(
    model: NestedBoosters,
    stages: Sequence[Fits],
    chains: Sequence[Sequence[int]],
    metric: Metric,
    task: Task,
) -> NestedBoosters:
    """The model with points that leave a chain early. ``stages`` are its fits on held-out rows."""
    rows = joined([fit.held for fit in stages[0]])
    scores = np.array([np.concatenate([fit.held_scores for fit in of], axis=1) for of in stages])
    weight, each = rows.weights / rows.weights.sum(), np.arange(len(rows))
    ranking, sign = task is Task.RANKING, 1.0
    sure = np.array([largest_probability(of_stage.T) for of_stage in scores])
    if ranking:  # documents of low score leave; small sets spread scores less, hence pairs
        sure, sign = -scores[:, 0], -1.0
        chains = [list(pair) for pair in combinations(evenly(chains[-1], 2 * LONGEST), 2)]

    def point(cost: FloatArray, scores: FloatArray, *setting: Setting) -> tuple[float, float, Any]:
        """Mean cost and quality of scores (K, n); higher is better."""
        columns = scores[0] if len(scores) == 1 else scores.T
        value = metric.values(columns, rows.y, rows.queries, rows.multiplicity).mean
        return float(cost @ weight), value if metric.higher_is_better else -value, setting

    points = [point(costs(model, [k], rows)[0], own) for k, own in enumerate(scores)]
    if model.prices.tree or model.prices.split:
        chains = [evenly(chain, LONGEST) for chain in chains]
    for c, chain in enumerate(chains):
        cost = costs(model, chain, rows)
        for last in range(1, len(chain)):
            before = sure[chain[:last]]
            for t in between(before, rows.weights):
                leave = np.vstack([before > t, np.ones((1, len(rows)), dtype=bool)]).argmax(axis=0)
                reached = scores[np.array(chain)[leave], :, each].T
                points.append(point(cost[leave, each], reached, (c, last, t)))
    best, routes = evenly(frontier(points), MOST_POINTS - len(model.routes)), list(model.routes)
    for c, chain in enumerate(chains):
        exits = [(last, sign * t) for of, last, t in best if of == c]
        if exits:
            of_chain = {"after": chain[0]} if ranking else {"chain": c}
            values = [[t if k < last else 0.0 for k in range(len(chain) - 1)] for last, t in exits]
            names = [{"stage": chain[last], "threshold": t, **of_chain} for last, t in exits]
            kind = "score" if ranking else "class"
            routes.insert(-1, Route(chain, kind=kind, values=values, points=names))
    return replace(model, routes=routes)


def between(sure: FloatArray, weights: FloatArray) -> list[float]:
    """Thresholds between equal shares of the rows' values (S, n), copies counted."""
    values, count = np.unique(sure, return_inverse=True)
    share = np.cumsum(np.bincount(count.ravel(), np.tile(weights, len(sure))))
    places = np.unique(np.searchsorted(share, share[-1] * np.arange(1, SHARES) / SHARES))
    middle = (values[:-1] + values[1:]) / 2  # never a row's own value
    return [float(value) for value in middle[places[places < len(middle)]]]


def costs(model: NestedBoosters, stages: Sequence[int], rows: Examples) -> FloatArray:
    """Cost (S, n) of each row that leaves a chain of these stages at each of them."""
    chain, n, paid = model.chain(stages), len(rows), []
    for walked in chain.stage_by_stage(Features(rows.X)):
        bill = chain.bills(walked)["path"]
        cost = bill.feature_cost(model.prices, n) + bill.evaluation_cost(model.prices, n)
        paid.append(np.broadcast_to(cost, n))
    return np.array(paid)


def frontier(points: Sequence[tuple[float, float, Any]]) -> list[Setting]:
    """Settings that are better than all points of lower cost."""
    reached, kept = -np.inf, []
    for _, quality, setting in sorted(points, key=lambda point: (point[0], -point[1])):
        if quality > reached:
            reached = quality
            kept += setting
    return kept


def evenly(values: Sequence[Any], most: int) -> list[Any]:
    """At most ``most`` of the values, at equal distances."""
    places = np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)
    return [values[k] for k in places]
