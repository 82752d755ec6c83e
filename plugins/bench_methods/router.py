"""``router``: one call for each row, chosen from free cells (``Task.CHOICE``).

It predicts the score of each source and calls the source of the largest score - lambda * price,
with the row's own price where it is quoted. Scores are relative to the row's mean, as only
differences count. A column of texts first gets a tree of its texts' means (``prior`` rows of the
overall mean added); boosted trees correct them, as many as have the least squared error on
validation rows.

Departures
- RouteLLM learns from preferences between two models and embeddings of prompts; here are scores of
  any number of sources, and the free columns of the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, ClassVar

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.call_router import CallRouter, price_of_calls
from bench_models.dictionary import leaves, sums
from bench_trees.ensemble import Ensemble

from bench_core import Examples, FitContext, Prices, Task, param, provide_learners
from bench_core.arrays import FloatArray

Binned = tuple[Any, Any]
"""Bins of columns, and the rows' words."""


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
        """Boost the scores on ``train``, with as many trees as are best on ``valid``, and spread
        lambda."""
        splits, calls = context.splits, context.splits.calls
        free = prices.feature_price() == 0
        rows = replace(train, X=np.where(free, train.X, np.float32(np.nan)))
        starts = np.cumsum([0, *(len(e.features) for e in splits.encodings)])
        coded = [
            columns
            for start, e in zip(starts.tolist(), splits.encodings, strict=False)
            if e.texts and free[columns := [*range(start, start + len(e.features))]].all()
        ]
        bins, grown = binned(rows, coded, context.threads), list[Ensemble]()
        for k in range(len(calls)):
            grown.append(self._grown(k, rows, bins, valid, context.threads))
            context.progress(k + 1, len(calls))
        base = np.concatenate([trees.base for trees in grown])
        width = [replace(t, base=base, output=t.output + k) for k, t in enumerate(grown)]
        scores = Ensemble.concat(width)
        paid = price_of_calls(prices, train.prices, len(train), calls)
        worth = lambdas(sums(scores, rows.X), paid, self.points)
        return CallRouter(scores, calls, prices, worth)

    def _grown(
        self, k: int, train: Examples, bins: Sequence[Binned], valid: Examples, threads: int
    ) -> Ensemble:
        """Return the trees of source k: the tables, and as many others as are best."""
        from bench_trees import Settings, boost
        from bench_trees.losses import Squared

        y, tables = train.y[:, k] - train.y.mean(axis=1), len(bins) - 1
        base, least = np.array([np.average(y, weights=train.weights)]), 0
        table = Settings(trees=1, learning_rate=1.0, max_leaves=255, max_depth=None,
                         min_rows=1, l2=self.prior)  # fmt: skip
        trees = Settings(trees=self.trees, learning_rate=self.learning_rate,
                         max_leaves=self.leaves, min_rows=self.min_rows)  # fmt: skip
        grown = Ensemble.of_trees([], [], base, train.X.shape[1])
        for stage, (edges, words) in enumerate(bins):
            least = grown.trees
            more = boost(
                words, edges, y, loss=Squared(), settings=table if stage < tables else trees,
                start=sums(grown, train.X).T, multiplicity=train.multiplicity, threads=threads,
            )  # fmt: skip
            parts = [replace(grown, base=0 * base), replace(more, diverged=False)]
            grown = replace(Ensemble.concat(parts), base=base)
        outputs = np.cumsum(leaves(grown.layout, valid.X), axis=1)
        scores = base + np.hstack([np.zeros((len(valid), 1)), outputs])[:, least:]
        missed = valid.y[:, [k]] - valid.y.mean(axis=1, keepdims=True) - scores
        best = least + int(np.argmin(valid.weights @ missed**2))
        return grown.select(np.arange(best))


def binned(rows: Examples, coded: Sequence[list[int]], threads: int) -> list[Binned]:
    """Return bins and words of each column of categories alone, then of all columns."""
    from bench_trees import find_bins

    tables = []
    for columns in (*coded, [*range(rows.X.shape[1])]):
        X = np.full_like(rows.X, np.nan)
        X[:, columns] = rows.X[:, columns]
        bins = find_bins(X, 255, rows.multiplicity, threads)
        tables.append((bins, bins.words(X, threads)))
    return tables


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
