"""Thresholds of a chain's early exits, searched on held-out rows.

For classes a row goes on from stage k if its largest class probability p_ik is at most t_k. For a
price lambda the thresholds are found from the last exit to the first (optimal stopping). Let V_i be
the loss and cost of row i if it goes on under the later thresholds. Then

    t_k = argmax_t  sum over rows i with p_ik <= t of  (loss_ik + lambda cost_ik) - V_i

exactly, along the sorted p_ik. Second and third sweeps leave out rows that stop at earlier exits.
Lambda alone reaches only points on the convex hull. So chains without exits before a stage, or
ending at one, are searched too. Settings that are not dominated on held-out rows are kept.

In ranking two stages form a route: documents that the first ranks low in their query leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_core import Examples, Metric
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.serving.gates import largest_probability
from bench_core.serving.query_ranks import QueryGroups, below, ranks

ALL, NONE = 2.0, -1.0
"""Probability thresholds above and below every row."""
LAMBDAS = 12
SWEEPS = 3
TOPS = (3, 5, 8, 12, 20, 40)
PAIRED = 12
"""Maximum number of stages tried in pairs."""
MOST_ON = 0.95
"""Maximum share of documents that go on; above it a gate saves too little."""


@dataclass(frozen=True)
class Held:
    """Held-out rows, their scores (S, K, n) at each of S stages, the cumulative cost of features,
    and the cost of evaluating each stage, both (S, n)."""

    rows: Examples
    scores: FloatArray
    features: FloatArray
    evaluation: FloatArray
    metric: Metric

    @property
    def weight(self) -> FloatArray:
        """Weights of the rows in means, (n,), summing to 1."""
        share: FloatArray = self.rows.weights / self.rows.weights.sum()
        return share

    @property
    def cost(self) -> FloatArray:
        """Cumulative cost through each stage, (S, n)."""
        return self.features + np.cumsum(self.evaluation, axis=0)

    def only(self, stages: Sequence[int]) -> Held:
        """The chain of these stages."""
        chosen = list(stages)
        parts = self.scores[chosen], self.features[chosen], self.evaluation[chosen]
        return Held(self.rows, *parts, self.metric)


def stopping_losses(held: Held) -> FloatArray:
    """Loss of stopping at each stage, (S, n).

    Log-loss if that is the metric. Otherwise the mean of the error by the label and the error
    expected under the best stage's probabilities, which is less noisy.
    """
    y = held.rows.y.astype(np.int64)
    shares = np.array([probabilities(scores) for scores in held.scores])  # (S, K, n)
    own = -np.log(np.maximum(shares[:, y, np.arange(len(y))], 1e-15))
    if held.metric.name.startswith("log_loss"):
        return np.asarray(own)
    best = shares[int(np.argmin(own @ held.rows.weights))]  # the stage of least log-loss
    guess = shares.argmax(axis=1)
    wrong = (guess != y).astype(np.float64)
    expected = 1 - best[guess, np.arange(len(y))]
    return np.asarray((wrong + expected) / 2)


def probabilities(scores: FloatArray) -> FloatArray:
    """Class probabilities (K, n) from log-odds (1, n) or scores (K, n)."""
    if len(scores) == 1:
        scores = np.concatenate([np.zeros_like(scores), scores])
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


@dataclass(frozen=True)
class Policy:
    """Values of the exits, with mean cost and quality on held-out rows; higher is better."""

    values: FloatArray
    cost: float
    quality: float


def kept(policies: Sequence[Policy], most: int) -> list[Policy]:
    """Policies that no other dominates, at most ``most``, spread evenly in log cost."""
    best: list[Policy] = []
    for policy in sorted(policies, key=lambda p: (p.cost, -p.quality)):
        if not best or policy.quality > best[-1].quality:
            best.append(policy)
    if len(best) <= most:
        return best
    # logarithmic scale, linear near 0
    place = np.log(np.array([p.cost for p in best]) + 1e-3 * best[-1].cost)
    wanted = np.linspace(place[0], place[-1], most)
    return [best[k] for k in np.unique(np.abs(place - wanted[:, None]).argmin(axis=1))]


def by_class(held: Held) -> list[Policy]:
    """Policies with probability thresholds, for all costs."""
    lost, count = stopping_losses(held), len(held.features)
    sure = np.array([largest_probability(scores.T) for scores in held.scores])
    order = np.argsort(sure, axis=1, kind="stable")
    weight, cost = held.weight, held.cost
    ends = (*static(count), np.full(count - 1, ALL))
    policies = [
        Policy(values, float(cost[k] @ weight), -float(lost[k] @ weight))
        for k, values in enumerate(ends)
    ]
    # loss of the constant per unit of the total cost
    unit = float(lost[0] @ weight) / max(float(cost[-1] @ weight), 1e-300)
    spans = {(first, count - 1) for first in range(count - 1)}
    spans |= {(0, last) for last in range(1, count)}
    for first, last in sorted(spans):
        for lam in np.geomspace(1e-3, 10, LAMBDAS) * unit:
            policies.append(_searched(first, last, lam, lost, cost, sure, order, weight))
    return policies


def static(stages: int) -> list[FloatArray]:
    """Thresholds at which all rows leave at the first, second, ... last stage but one."""
    exits = np.arange(stages - 1)
    return [np.where(exits < k, ALL, NONE) for k in range(stages - 1)]


def _searched(
    first: int,
    last: int,
    lam: float,
    lost: FloatArray,
    cost: FloatArray,
    sure: FloatArray,
    order: IntArray,
    weight: FloatArray,
) -> Policy:
    """Thresholds for the price ``lam``; all rows leave between stages ``first`` and ``last``."""
    stages, n = np.arange(len(cost) - 1), cost.shape[1]
    values = np.where(stages < last, ALL, NONE)
    here = lost + lam * cost
    reached = np.ones(cost.shape, dtype=bool)
    for _ in range(SWEEPS):
        # V: loss and cost of each row from the next stage on
        later = here[last]
        for k in range(last - 1, first - 1, -1):
            saved = np.where(reached[k], (here[k] - later) * weight, 0.0)
            values[k] = _threshold(sure[k], saved, order[k])
            later = np.where(sure[k] <= values[k], later, here[k])
        for k in range(last):
            reached[k + 1] = reached[k] & (sure[k] <= values[k])
    end = reached[: last + 1].sum(axis=0) - 1
    return Policy(
        values, float(cost[end, np.arange(n)] @ weight), -float(lost[end, np.arange(n)] @ weight)
    )


def _threshold(sure: FloatArray, saved: FloatArray, order: IntArray) -> float:
    """The threshold below which the total ``saved`` is largest."""
    values = sure[order]
    total = np.concatenate([[0.0], np.cumsum(saved[order])])
    # thresholds are between two different values
    divides = np.concatenate([[True], values[1:] > values[:-1], [True]])
    place = int(np.argmax(np.where(divides, total, -np.inf)))
    if place == 0:
        return NONE
    return ALL if place == len(values) else float(values[place - 1] + values[place]) / 2


def by_rank(held: Held) -> list[tuple[int, int, Policy]]:
    """Policies of stages ``first`` and ``last``, with the number of documents of a query that go
    on; also each stage alone, as a pair of itself."""
    queries, everyone = held.rows.queries, np.ones((1, len(held.rows)), dtype=bool)
    groups = QueryGroups.over(len(held.rows), queries)
    stages = range(len(held.features))
    policies = [(k, k, _ranked(held, k, k, 0, everyone[0])) for k in stages]
    picked = np.unique(np.linspace(1, stages[-1], PAIRED).round().astype(np.int64)).tolist()
    for first in picked[:-1]:
        rank = ranks(held.scores[first, 0], everyone, groups)[0]
        for top in TOPS:
            on = rank <= top
            if on.mean() <= MOST_ON:
                later = (last for last in picked if last > first)
                policies += [(first, last, _ranked(held, first, last, top, on)) for last in later]
    return policies


def _ranked(held: Held, first: int, last: int, top: int, on: BoolArray) -> Policy:
    rows, queries = held.rows, held.rows.queries
    assert queries is not None  # ranking tasks have queries
    # documents that go on have the score of the later stage
    mixed = np.where(on, held.scores[last, 0], held.scores[first, 0])
    scores = below(mixed, ~on, np.where(on, 1, 0), QueryGroups(queries.boundaries))
    early = held.features[first] + held.evaluation[first]
    late = held.features[last] + held.evaluation[[*{first, last}]].sum(axis=0)
    cost = np.where(on, late, early) @ held.weight
    quality = held.metric.values(scores, rows.y, queries, rows.multiplicity).mean
    sign = 1 if held.metric.higher_is_better else -1
    return Policy(np.array([float(top)]), float(cost), sign * quality)
