"""Who leaves early: settings of a chain's exits, searched on held-out rows.

For classes a row goes on from stage k if its likeliest class has at most the probability t_k. For
a price lambda the thresholds are found from the last exit to the first (optimal stopping): with
V_i what row i loses and pays if it goes on and keeps to the later thresholds, t_k is the value at
which the rows below it save most,

    t_k = argmax_t  sum over rows i with p_ik <= t of  (loss_ik + lambda cost_ik) - V_i

exactly, along the sorted p_ik. Rows that earlier thresholds keep away do not count, in a second
and third sweep. Lambda alone reaches only points on the convex hull; so chains that leave no row
before a stage, or end at one, are searched too, and what is not dominated on held-out rows is kept.

In ranking two stages make a route: documents that the first ranks low in their query leave.
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
"""Thresholds of probability that every row and no row is below."""
LAMBDAS = 12
SWEEPS = 3
TOPS = (3, 5, 8, 12, 20, 40)
PAIRED = 12
"""Most stages that are tried in pairs."""
MOST_ON = 0.95
"""Share of the documents that go on, beyond which a gate saves nothing."""


@dataclass(frozen=True)
class Held:
    """Held-out rows and, at each of S stages, their scores (S, K, n), the price of the features so
    far and that of evaluating the stage itself, both (S, n)."""

    rows: Examples
    scores: FloatArray
    features: FloatArray
    evaluation: FloatArray
    metric: Metric

    @property
    def weight(self) -> FloatArray:
        """Shares of the rows in every mean (n,)."""
        share: FloatArray = self.rows.weights / self.rows.weights.sum()
        return share

    @property
    def cost(self) -> FloatArray:
        """Of the way through all stages up to each (S, n)."""
        return self.features + np.cumsum(self.evaluation, axis=0)

    def only(self, stages: Sequence[int]) -> Held:
        """A chain of these stages."""
        chosen = list(stages)
        parts = self.scores[chosen], self.features[chosen], self.evaluation[chosen]
        return Held(self.rows, *parts, self.metric)


def stopping_losses(held: Held) -> FloatArray:
    """What it loses to stop at each stage, (S, n).

    Log-loss where that is the metric. Otherwise errors: half counted by the label, half expected
    by the probabilities of the best stage, which are less noisy.
    """
    y = held.rows.y.astype(np.int64)
    shares = np.array([probabilities(scores) for scores in held.scores])  # (S, K, n)
    own = -np.log(np.maximum(shares[:, y, np.arange(len(y))], 1e-15))
    if held.metric.name.startswith("log_loss"):
        return np.asarray(own)
    best = shares[int(np.argmin(own @ held.rows.weights))]  # the stage whose labels are most likely
    guess = shares.argmax(axis=1)
    wrong = (guess != y).astype(np.float64)
    expected = 1 - best[guess, np.arange(len(y))]
    return np.asarray((wrong + expected) / 2)


def probabilities(scores: FloatArray) -> FloatArray:
    """Of the classes, (K, n), from log-odds (1, n) or scores (K, n)."""
    if len(scores) == 1:
        scores = np.concatenate([np.zeros_like(scores), scores])
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


@dataclass(frozen=True)
class Policy:
    """Values of the exits, what the held-out rows then cost on average, and how good they are."""

    values: FloatArray
    cost: float
    quality: float


def kept(policies: Sequence[Policy], most: int) -> list[Policy]:
    """Those that no other dominates, at most so many, their costs spread evenly by factor."""
    best: list[Policy] = []
    for policy in sorted(policies, key=lambda p: (p.cost, -p.quality)):
        if not best or policy.quality > best[-1].quality:
            best.append(policy)
    if len(best) <= most:
        return best
    # costs by factor; near 0 by difference
    place = np.log(np.array([p.cost for p in best]) + 1e-3 * best[-1].cost)
    wanted = np.linspace(place[0], place[-1], most)
    return [best[k] for k in np.unique(np.abs(place - wanted[:, None]).argmin(axis=1))]


def by_class(held: Held) -> list[Policy]:
    """Settings of the thresholds of probability, of any cost."""
    lost, count = stopping_losses(held), len(held.features)
    sure = np.array([largest_probability(scores.T) for scores in held.scores])
    order = np.argsort(sure, axis=1, kind="stable")
    weight, cost = held.weight, held.cost
    ends = (*static(count), np.full(count - 1, ALL))
    found = [
        Policy(values, float(cost[k] @ weight), -float(lost[k] @ weight))
        for k, values in enumerate(ends)
    ]
    # loss of the constant per unit of the whole cost
    unit = float(lost[0] @ weight) / max(float(cost[-1] @ weight), 1e-300)
    spans = {(first, count - 1) for first in range(count - 1)}
    spans |= {(0, last) for last in range(1, count)}
    for first, last in sorted(spans):
        for lam in np.geomspace(1e-3, 10, LAMBDAS) * unit:
            found.append(_searched(first, last, lam, lost, cost, sure, order, weight))
    return found


def static(stages: int) -> list[FloatArray]:
    """The thresholds with which all rows leave at the first, second, ... last stage but one."""
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
    """The thresholds for a price; no row leaves before stage ``first``, none passes ``last``."""
    stages, n = np.arange(len(cost) - 1), cost.shape[1]
    values = np.where(stages < last, ALL, NONE)
    here = lost + lam * cost
    reached = np.ones(cost.shape, dtype=bool)
    for _ in range(SWEEPS):
        # V: what each row loses and pays from the next stage on
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
    """Rows below it save most together."""
    values = sure[order]
    total = np.concatenate([[0.0], np.cumsum(saved[order])])
    # a threshold lies between two different values
    divides = np.concatenate([[True], values[1:] > values[:-1], [True]])
    place = int(np.argmax(np.where(divides, total, -np.inf)))
    if place == 0:
        return NONE
    return ALL if place == len(values) else float(values[place - 1] + values[place]) / 2


def by_rank(held: Held) -> list[tuple[int, int, Policy]]:
    """Pairs of stages and how many documents of a query go on; also, as pairs of one, each stage
    by itself."""
    queries, everyone = held.rows.queries, np.ones((1, len(held.rows)), dtype=bool)
    groups = QueryGroups.over(len(held.rows), queries)
    stages = range(len(held.features))
    found = [(k, k, _ranked(held, k, k, 0, everyone[0])) for k in stages]
    picked = np.unique(np.linspace(1, stages[-1], PAIRED).round().astype(np.int64)).tolist()
    for first in picked[:-1]:
        rank = ranks(held.scores[first, 0], everyone, groups)[0]
        for top in TOPS:
            on = rank <= top
            if on.mean() <= MOST_ON:
                later = (last for last in picked if last > first)
                found += [(first, last, _ranked(held, first, last, top, on)) for last in later]
    return found


def _ranked(held: Held, first: int, last: int, top: int, on: BoolArray) -> Policy:
    rows, queries = held.rows, held.rows.queries
    assert queries is not None  # those of a ranking task
    # who goes on has the score of the later stage
    mixed = np.where(on, held.scores[last, 0], held.scores[first, 0])
    scores = below(mixed, ~on, np.where(on, 1, 0), QueryGroups(queries.boundaries))
    early = held.features[first] + held.evaluation[first]
    late = held.features[last] + held.evaluation[[*{first, last}]].sum(axis=0)
    cost = np.where(on, late, early) @ held.weight
    quality = held.metric.values(scores, rows.y, queries, rows.multiplicity).mean
    sign = 1 if held.metric.higher_is_better else -1
    return Policy(np.array([float(top)]), float(cost), sign * quality)
