"""``router``: one call for each row, chosen from free cells (``Task.CHOICE``).

It predicts the score of each source and calls the source of the largest score - lambda * price,
with the row's own price where it is quoted. Scores are relative to the row's mean, as only
differences count. A column of categories first gets a tree of its categories' means (``prior`` rows
of the overall mean added); boosted trees correct them, as many as have the least squared error by
cross-validation on training rows.

Departures
- RouteLLM learns from preferences between two models and embeddings of prompts; here are scores of
  any number of sources, and the free columns of the table.
"""

from dataclasses import dataclass, replace
from itertools import permutations
from typing import ClassVar

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.call_router import CallRouter, price_of_calls
from bench_models.dictionary import sums
from bench_trees.ensemble import Ensemble

from bench_core import Examples, FitContext, Prices, Task, param, provide_learners
from bench_core.arrays import BoolArray, FloatArray

FOLDS = 4
CHUNK = 20
"""Trees added at a time; their number is a multiple, or as asked."""


@dataclass(frozen=True)
class Router(OnEngine):
    """Calls one source, of the largest predicted score - lambda * price."""

    name: ClassVar[str] = "router"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CHOICE})

    trees: int = param(100, "most trees of each source after its tables of categories", least=0)
    learning_rate: float = param(0.05, "shrinkage of every tree's output", above=0)
    leaves: int = param(8, "leaves of a tree", least=2)
    min_rows: int = param(20, "least rows on each side of a split", least=1)
    prior: float = param(5.0, "rows of the overall mean added to each category", least=0)
    points: int = param(60, "values of lambda", least=3, most=99)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CallRouter:
        """Boost the scores on ``train``, with a number of trees by cross-validation, and spread
        lambda; ``valid`` is not used."""
        splits, calls = context.splits, context.splits.calls
        free = prices.feature_price() == 0
        rows = replace(train, X=np.where(free, train.X, np.float32(np.nan)))
        codes = np.cumsum([0, *(len(e.features) for e in splits.encodings)])[:-1]
        coded = [
            int(j)
            for j, e in zip(codes, splits.encodings, strict=True)
            if e.texts and not e.one_hot and free[j]
        ]
        part, grown = np.random.default_rng([context.seed, 5]).permutation(len(train)) % FOLDS, []
        folds = [(taken(rows, part != f), taken(rows, part == f)) for f in range(FOLDS)]
        for k in range(len(calls)):
            errors: FloatArray = np.zeros(1)  # too few rows: tables alone
            for others, held in folds if len(train) >= 10 * FOLDS else ():
                errors = errors + self._grown(k, coded, others, held, self._chunks, context)[1]
            length = int(np.argmin(errors))
            grown.append(self._grown(k, coded, rows, None, length, context)[0])
            context.progress(k + 1, len(calls))
        base = np.concatenate([trees.base for trees in grown])
        width = [replace(t, base=base, output=t.output + k) for k, t in enumerate(grown)]
        scores = Ensemble.concat(width)
        paid = price_of_calls(prices, train.prices, len(train), calls)
        worth = lambdas(sums(scores, rows.X), paid, self.points)
        return CallRouter(scores, calls, prices, worth)

    @property
    def _chunks(self) -> int:
        """Number of times that trees are added, a few at a time."""
        return -(-self.trees // CHUNK)

    def _grown(
        self,
        k: int,
        coded: list[int],
        train: Examples,
        held: Examples | None,
        chunks: int,
        context: FitContext,
    ) -> tuple[Ensemble, FloatArray]:
        """Return the trees of source k, and the squared errors on ``held`` after the tables and
        after each chunk of trees."""
        from bench_trees import Settings, boost, find_bins
        from bench_trees.losses import Squared

        y, weights = train.y[:, k] - train.y.mean(axis=1), train.weights
        base, errors = np.array([np.average(y, weights=weights)]), list[float]()
        parts = [Ensemble.of_trees([], [], base, train.X.shape[1])]
        table = Settings(trees=1, learning_rate=1.0, max_leaves=255, max_depth=None,
                         min_rows=1, l2=self.prior)  # fmt: skip
        trees = Settings(trees=min(CHUNK, self.trees), learning_rate=self.learning_rate,
                         max_leaves=self.leaves, min_rows=self.min_rows)  # fmt: skip
        every = [*range(train.X.shape[1])]
        stages = [*(([j], table) for j in coded), *[(every, trees)] * chunks]
        at = np.full((1, len(train)), base[0])
        for stage in range(len(stages) + 1):
            if held is not None and stage >= len(coded):
                missed = held.y[:, k] - held.y.mean(axis=1)
                for grown in parts:
                    missed = missed - sums(grown, held.X)[:, 0]
                errors.append(float(held.weights @ missed**2))
            if stage == len(stages):
                break
            columns, settings = stages[stage]
            X = np.full_like(train.X, np.nan)
            X[:, columns] = train.X[:, columns]
            bins = find_bins(X, 255, train.multiplicity, context.threads)
            more = boost(
                bins.words(X, context.threads), bins, y, loss=Squared(), settings=settings,
                start=at, multiplicity=train.multiplicity, threads=context.threads,
            )  # fmt: skip
            parts.append(replace(more, base=np.zeros(1), diverged=False))
            at += sums(parts[-1], train.X).T
        return replace(Ensemble.concat(parts), base=base), np.array(errors)


def taken(rows: Examples, chosen: BoolArray) -> Examples:
    """Return some rows."""
    copies = None if rows.multiplicity is None else rows.multiplicity[chosen]
    return Examples(rows.X[chosen], rows.y[chosen], multiplicity=copies)


def lambdas(scores: FloatArray, paid: FloatArray, most: int) -> FloatArray:
    """Return descending values of lambda, from one at which every row gets its cheapest source down
    to 0: quantiles of those at which a row changes from one source to another."""
    k, turns = scores.shape[1], list[FloatArray]()
    for a, b in permutations(range(k), 2):
        gain, price = scores[:, b] - scores[:, a], paid[:, b] - paid[:, a]
        useful = (gain > 0) & (price > 0)
        turns.append(gain[useful] / price[useful])
    every = np.concatenate(turns)
    if not len(every):
        return np.zeros(1)
    spread = np.quantile(every, np.linspace(0, 1, most - 2))
    return np.unique([*spread, 0.0, 2 * spread[-1]])[::-1]


bench_learners = provide_learners(Router, family="choice among services")
