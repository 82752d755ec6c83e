"""Thresholds of a chain's early exits, searched on held-out rows.

For classes a row goes on from stage k if its largest class probability p_ik is at most t_k. For a
price lambda the thresholds are found from the last exit to the first (optimal stopping). Let V_i be
the loss and cost of row i if it goes on under the later thresholds. Then

    t_k = argmax_t  sum over rows i with p_ik <= t of  (loss_ik + lambda cost_ik) - V_i

exactly, along the sorted p_ik. Later sweeps leave out rows that stop at earlier exits, until the
thresholds no longer change. Lambda alone reaches only points on the convex hull. So chains without
exits before a stage, or ending at one, are searched too. Settings that are not dominated on
held-out rows are kept, unless the run's metric is worse than that of a set alone at no higher cost.

In ranking two stages form a route: documents that the first ranks low in their query leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from bench_models.nested_sets.routes import NestedBoosters, Route

from bench_core import Examples, Features, Metric, Queries
from bench_core.arrays import FloatArray, IntArray
from bench_core.serving.gates import largest_probability
from bench_core.serving.query_ranks import QueryGroups, below, ranks

ALL, NONE = 2.0, -1.0
"""Probability thresholds above and below every row."""
LAMBDAS = 12
"""Prices of cost tried for a chain."""

TOPS = (3, 5, 8, 12, 20, 40)
"""Documents of a query that go on, in ranking."""

LONGEST = 6
"""Stages of a chain if evaluation has a price, paid at each stage; twice as many are paired in
ranking."""


@dataclass(frozen=True)
class Held:
    """Held-out rows and their scores (S, K, n) at each of the model's S stages."""

    rows: Examples
    scores: FloatArray
    model: NestedBoosters
    metric: Metric

    @property
    def weight(self) -> FloatArray:
        """Weights of the rows in means, (n,), summing to 1."""
        share: FloatArray = self.rows.weights / self.rows.weights.sum()
        return share

    def costs(self, stages: Sequence[int]) -> FloatArray:
        """Cost (S, n) of each row that leaves a chain of these stages at each of them."""
        chain, n, costs = self.model.chain(stages), len(self.rows), []
        for walked in chain.stage_by_stage(Features(self.rows.X)):
            bill = chain.bills(walked)["path"]
            cost = bill.feature_cost(self.model.prices, n) + bill.evaluation_cost(
                self.model.prices, n
            )
            costs.append(np.broadcast_to(cost, n).copy())
        return np.array(costs)

    def quality(self, scores: FloatArray) -> float:
        """The run's metric of scores (K, n); higher is better."""
        rows, own = self.rows, scores[0] if len(scores) == 1 else scores.T
        value = self.metric.values(own, rows.y, rows.queries, rows.multiplicity).mean
        return value if self.metric.higher_is_better else -value


def joined(parts: Sequence[Examples]) -> Examples:
    """The rows of all parts."""
    copies, queries = None, None
    if parts[0].multiplicity is not None:
        copies = np.concatenate([examples.multiplicity for examples in parts])
    if parts[0].queries is not None:
        sizes = [examples.queries.sizes for examples in parts if examples.queries is not None]
        queries = Queries.from_sizes(np.concatenate(sizes))
    X, y = (np.concatenate([getattr(examples, name) for examples in parts]) for name in ("X", "y"))
    return Examples(X, y, queries, copies)


def stopping_losses(held: Held) -> FloatArray:
    """Loss of stopping at each stage, (S, n).

    Log-loss, or for accuracy the mean of the error by the label and the error expected under the
    best stage's probabilities, which is less noisy.
    """
    y = held.rows.y.astype(np.int64)
    shares = np.array([probabilities(scores) for scores in held.scores])  # (S, K, n)
    own = -np.log(np.maximum(shares[:, y, np.arange(len(y))], 1e-15))
    if "accuracy" not in held.metric.name:
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
    """Values of a route's exits, with mean cost and loss on held-out rows, and the rows' stages."""

    values: FloatArray
    cost: float
    loss: float
    route: int = 0
    end: IntArray | None = None


def kept(policies: Sequence[Policy], most: int) -> list[Policy]:
    """Policies that no other dominates, at most ``most``, spread evenly in log cost."""
    best: list[Policy] = []
    for policy in sorted(policies, key=lambda p: (p.cost, p.loss)):
        if not best or policy.loss < best[-1].loss:
            best.append(policy)
    if len(best) <= most:
        return best
    # logarithmic scale, linear near 0
    place = np.log(np.array([p.cost for p in best]) + 1e-3 * best[-1].cost)
    wanted = np.linspace(place[0], place[-1], most)
    return [best[k] for k in np.unique(np.abs(place - wanted[:, None]).argmin(axis=1))]


def by_class(held: Held, routes: Sequence[Sequence[int]], most: int) -> list[Route]:
    """Chains of stages with exits by the largest class probability."""
    lost, weight = stopping_losses(held), held.weight
    sure = np.array([largest_probability(scores.T) for scores in held.scores])
    order = np.argsort(sure, axis=1, kind="stable")
    found: list[Policy] = []
    chains = []
    alone = [
        (float(held.costs([k])[0] @ weight), held.quality(s)) for k, s in enumerate(held.scores)
    ]
    for number, route in enumerate(routes):
        if held.model.prices.tree + held.model.prices.split > 0 and len(route) > LONGEST:
            picked = np.unique(np.linspace(0, len(route) - 1, LONGEST).round().astype(int))
            route = [route[k] for k in picked]
        chains.append(list(route))
        search = Search(lost[route], held.costs(route), sure[route], order[route], weight)
        found += [replace(policy, route=number) for policy in search.policies()]
    better = []
    for policy in kept(found, most):
        of_rows = np.array(chains[policy.route])[policy.end]
        scores = held.scores[of_rows, :, np.arange(len(of_rows))].T
        plain = max((quality for cost, quality in alone if cost <= policy.cost), default=-np.inf)
        if held.quality(scores) >= plain:
            better.append(policy)
    made = []
    for number, chain in enumerate(chains):
        own = [policy for policy in better if policy.route == number]
        extra = {"direct": number} if number else {}
        points = [{"stage": chain[-1], "expected_cost": p.cost, **extra} for p in own]
        if own:
            made.append(Route(chain, values=[p.values.tolist() for p in own], points=points))
    return made


@dataclass(frozen=True)
class Search:
    """Thresholds of one chain of S stages: losses, costs and certainty of rows, all (S, n)."""

    lost: FloatArray
    cost: FloatArray
    sure: FloatArray
    order: IntArray
    weight: FloatArray

    def policies(self) -> list[Policy]:
        """Policies for all costs."""
        last, weight = len(self.cost) - 1, self.weight
        # loss of the constant per unit of the total cost
        unit = float(self.lost[0] @ weight) / max(float(self.cost[-1] @ weight), 1e-300)
        spans = {(0, end) for end in range(1, last + 1)}
        spans |= {(first, last) for first in range(last)}
        prices = np.geomspace(1e-3, 10, LAMBDAS) * unit
        return [self.searched(*span, lam) for span in sorted(spans) for lam in prices]

    def searched(self, first: int, last: int, lam: float) -> Policy:
        """Thresholds for the price ``lam``; rows leave between stages ``first`` and ``last``."""
        stages, rows = np.arange(len(self.cost) - 1), np.arange(self.cost.shape[1])
        values = np.where(stages < last, ALL, NONE)
        here = self.lost + lam * self.cost
        reached = np.ones(self.cost.shape, dtype=bool)
        for _ in stages:
            before = values.copy()
            # V: loss and cost of each row from the next stage on
            later = here[last]
            for k in range(last - 1, first - 1, -1):
                saved = np.where(reached[k], (here[k] - later) * self.weight, 0.0)
                values[k] = threshold(self.sure[k], saved, self.order[k])
                later = np.where(self.sure[k] <= values[k], later, here[k])
            if np.array_equal(values, before):
                break
            for k in range(last):
                reached[k + 1] = reached[k] & (self.sure[k] <= values[k])
        end = reached[: last + 1].sum(axis=0) - 1
        cost, loss = (float(of[end, rows] @ self.weight) for of in (self.cost, self.lost))
        return Policy(values, cost, loss, end=end)


def threshold(sure: FloatArray, saved: FloatArray, order: IntArray) -> float:
    """The threshold below which the total ``saved`` is largest."""
    values = sure[order]
    total = np.concatenate([[0.0], np.cumsum(saved[order])])
    # thresholds are between two different values
    divides = np.concatenate([[True], values[1:] > values[:-1], [True]])
    place = int(np.argmax(np.where(divides, total, -np.inf)))
    if place == 0:
        return NONE
    return ALL if place == len(values) else float(values[place - 1] + values[place]) / 2


def by_rank(held: Held, stages: Sequence[int], most: int) -> list[Route]:
    """Routes of two stages, with the number of documents of a query that go on to the second."""
    queries, everyone = held.rows.queries, np.ones((1, len(held.rows)), dtype=bool)
    assert queries is not None  # ranking tasks have queries
    groups = QueryGroups.over(len(held.rows), queries)
    picked = [
        stages[k]
        for k in np.unique(np.linspace(1, len(stages) - 1, 2 * LONGEST).round().astype(int))
    ]
    pairs = [(first, last) for i, first in enumerate(picked) for last in picked[i:]]
    policies: list[Policy] = []
    for k, (first, last) in enumerate(pairs):
        cost = (
            held.costs([first, last])
            if first != last
            else np.repeat(held.costs([first]), 2, axis=0)
        )
        rank = ranks(held.scores[first, 0], everyone, groups)[0]
        for top in TOPS if first != last else TOPS[:1]:
            on = rank <= top if first != last else np.ones_like(everyone[0])
            # documents that go on have the score of the later stage
            mixed = np.where(on, held.scores[last, 0], held.scores[first, 0])
            scores = below(mixed, ~on, np.where(on, 1, 0), QueryGroups(queries.boundaries))
            mean = float(np.where(on, cost[1], cost[0]) @ held.weight)
            policies.append(Policy(np.array([float(top)]), mean, -held.quality(scores[None]), k))
    routes = []
    best = kept(policies, most)
    for k, pair in enumerate(pairs):
        tops = [policy.values.tolist() for policy in best if policy.route == k]
        if pair[0] < pair[1] and tops:
            points = [{"stage": pair[1], "after": pair[0], "best": int(top)} for (top,) in tops]
            routes.append(Route(list(pair), kind="rank", values=tops, points=points))
    return routes
