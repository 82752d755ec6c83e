"""Random policies of trees, prices of every rule, and their actions, a row and a tree at a time."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core import STOP, DiscountGroup, Evaluated, Purchases, SensorPrices, price_list
from bench_core.serving import Folder, PolicyProgram
from helpers.random_trees import path, random_ensemble, random_rows

ROWS = 40


@dataclass
class TreePolicy:
    """A policy that processes one row, one tree and one purchase at a time."""

    prices: SensorPrices
    values: list[Ensemble]
    answer: Ensemble
    marked: list[int]
    rule: str
    least: float
    skip: bool
    each_act: Evaluated
    each_answer: Evaluated
    stops: ClassVar[Any] = {"at": (1.0,)}

    def act(self, cells, bought, left, stop):
        rows = zip(cells, bought, left.tolist(), strict=True)
        return np.array([self.choose(*row) for row in rows], dtype=int)

    def predict(self, cells, bought):
        found = [self.scores(x, b) for x, b in zip(cells, bought, strict=True)]
        width = len(self.answer.base)
        return np.array(found).reshape((-1, width) if width > 1 else -1)

    def scores(self, cells, bought):
        return summed(self.answer, [*cells, *(float(bought[j]) for j in self.marked)])

    def choose(self, cells, bought, left):
        x = [*cells, *(float(bought[j]) for j in self.marked)]
        levels = [summed(trees, x) for trees in self.values]
        value = [max(level[j] for level in levels) for j in range(len(levels[0]))]
        sets = [set(np.flatnonzero(own).tolist()) for own in Purchases.of(self.prices).sets]
        have = set().union(*(own for own, there in zip(sets, bought, strict=True) if there))
        best, worth = STOP, -math.inf
        for j, own in enumerate(sets):
            price = sum(self.prices.sensor[s] for s in sorted(own - have))
            if bought[j] or (self.skip and price > left):
                continue
            now = value[j]
            if self.rule == "rate":
                now = max(now, 0.0)
                now = now / price if price else math.inf
            if now > worth:
                best, worth = j, now
        least = value[len(sets)] if self.rule == "class" else self.least
        return best if worth >= least else STOP

    def program(self, prices, stop):
        """The same as a program."""
        return PolicyProgram.of(
            self.values,
            self.answer,
            prices,
            np.array(self.marked, dtype=int),
            self.rule,
            least=self.least,
            skip=self.skip,
        )


def summed(trees, x):
    """Base and trees, in order."""
    total, vectors = trees.base.tolist(), trees.vectors
    for t in range(trees.trees):
        value = path(trees, t, np.array(x)).value
        if vectors is None:
            total[trees.output[t]] += value
        else:
            total = [a + b for a, b in zip(total, vectors[int(value)].tolist(), strict=True)]
    return total


def random_prices(rng, d, evaluation):
    """Some features share a sensor, some are cheaper together, one is derived, some are free."""
    order = rng.permutation(d).tolist()
    cost = rng.choice([0.0, 0.5, 1.0, 1.25, 3.0], size=d, p=[0.15, 0.25, 0.25, 0.25, 0.1])
    shared, discounted, derived = [], [], {}
    if d >= 4 and rng.random() < 0.6:
        shared = [[order.pop(), order.pop()]]
        cost[shared[0]] = 1.5
    if len(order) >= 3 and rng.random() < 0.6:
        group = tuple(order.pop() for _ in range(2))
        cost[list(group)] = 2.0, 1.75
        discounted = [DiscountGroup(group, (1.0, 0.75))]
    if len(order) >= 2 and rng.random() < 0.6:
        derived = {order.pop(): tuple({int(j) for j in rng.integers(0, d, 2)} - {order[-1]})}
        derived = {j: parents for j, parents in derived.items() if parents and j not in parents}
    more = {"split": 0.01, "tree": 0.02} if evaluation else {}
    return price_list(cost, shared=shared, discounted=discounted, derived=derived, **more)


def random_policy(seed, evaluation=False):
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 3, 4, 5, 6, 7, 8, 9]))
    prices = random_prices(rng, d, evaluation)
    k = len(Purchases.of(prices))
    marked = sorted(rng.permutation(k)[: int(rng.integers(0, 3))].tolist())
    rule = str(rng.choice(["rate", "class"]))
    outputs, width = k + (rule == "class"), d + len(marked)
    values = []
    for _ in range(int(rng.integers(1, 3))):
        count = int(rng.choice([0, 4, 6, 6, 6])) * outputs
        trees = random_ensemble(rng, trees=count, features=width, outputs=max(1, outputs))
        trees.base[:] = 0.3 * trees.base - 0.3
        if rng.random() < 0.5 and outputs:
            leaf, base = trees.feature < 0, np.linspace(-0.1, 0.2, outputs)
            number = np.where(leaf, np.cumsum(leaf) - 1.0, 0.0)
            vectors = rng.normal(size=(int(leaf.sum()), outputs))
            trees = replace(trees, value=number, base=base).with_vectors(vectors)
        values.append(trees)
    answer = random_ensemble(rng, trees=6, features=width, outputs=int(rng.choice([1, 1, 3])))
    return TreePolicy(
        prices,
        values,
        answer,
        marked,
        rule,
        least=float(rng.choice([0.0, 0.2, 0.3, 0.5])),
        skip=bool(rng.random() < 0.5),
        each_act=Evaluated(5.0, 3.0),
        each_answer=Evaluated(2.5, 6.0),
    )


def rows_for(policy, seed):
    return random_rows(np.random.default_rng(seed), ROWS, policy.prices.features)


def policy_folder(policy, program, **about):
    names = tuple(f"feature {j}" for j in range(policy.prices.features))
    return Folder(program, policy.prices, names, {"task": "regression", **about})
