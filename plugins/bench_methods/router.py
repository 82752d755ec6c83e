"""``router``: one call for each row, chosen from free cells (``Task.CHOICE``).

It predicts the score of each source and calls the source of the largest score - lambda * price,
with the row's own price where it is quoted. Scores are relative to the row's mean, as only
differences count. A column of categories first gets a tree of its categories' means (``prior`` rows
of the overall mean added); boosted trees correct them as long as the squared error on validation
rows falls.

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
from bench_core.arrays import FloatArray


@dataclass(frozen=True)
class Router(OnEngine):
    """Calls one source, of the largest predicted score - lambda * price."""

    name: ClassVar[str] = "router"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CHOICE})

    trees: int = param(200, "most trees of each source after its tables of categories", least=0)
    learning_rate: float = param(0.05, "shrinkage of every tree's output", above=0)
    leaves: int = param(8, "leaves of a tree", least=2)
    min_rows: int = param(20, "least rows on each side of a split", least=1)
    prior: float = param(5.0, "rows of the overall mean added to each category", least=0)
    points: int = param(60, "values of lambda", least=3, most=99)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CallRouter:
        """Boost the scores on ``train``, stop by ``valid``, and spread lambda on ``train``."""
        splits, calls = context.splits, context.splits.calls
        free = prices.feature_price() == 0
        rows, held = (replace(r, X=np.where(free, r.X, np.nan)) for r in (train, valid))
        codes = np.cumsum([0, *(len(e.features) for e in splits.encodings)])[:-1]
        coded = [
            int(j)
            for j, e in zip(codes, splits.encodings, strict=True)
            if e.texts and not e.one_hot and free[j]
        ]
        grown = []
        for k in range(len(calls)):
            grown.append(self._grown(k, coded, rows, held, context))
            context.progress(k + 1, len(calls))
        base = np.concatenate([trees.base for trees in grown])
        width = [replace(t, base=base, output=t.output + k) for k, t in enumerate(grown)]
        scores = Ensemble.concat(width)
        paid = price_of_calls(prices, train.prices, len(train), calls)
        worth = lambdas(sums(scores, rows.X), paid, self.points)
        return CallRouter(scores, calls, prices, worth)

    def _grown(
        self, k: int, coded: list[int], train: Examples, valid: Examples, context: FitContext
    ) -> Ensemble:
        """Return the trees of source k."""
        from bench_trees import Settings, boost, find_bins
        from bench_trees.losses import Squared

        y, target = (rows.y[:, k] - rows.y.mean(axis=1) for rows in (train, valid))
        parts, base = list[Ensemble](), np.array([np.average(y, weights=train.weights)])
        at = [np.full((1, len(rows)), base[0]) for rows in (train, valid)]
        weights = valid.weights

        def error() -> float:
            return float(np.average((target - at[1][0]) ** 2, weights=weights))

        def add(columns: list[int] | slice, settings: Settings) -> Ensemble:
            X = np.full_like(train.X, np.nan)
            X[:, columns] = train.X[:, columns]
            bins = find_bins(X, 255, train.multiplicity, context.threads)
            return boost(
                bins.words(X, context.threads), bins, y, loss=Squared(), settings=settings,
                start=at[0], multiplicity=train.multiplicity, threads=context.threads,
            )  # fmt: skip

        def keep(trees: Ensemble) -> None:
            trees = replace(trees, base=np.zeros(1), diverged=False)
            parts.append(trees)
            for scores, rows in zip(at, (train, valid), strict=True):
                scores += sums(trees, rows.X).T

        for j in coded:
            table = Settings(trees=1, learning_rate=1.0, max_leaves=255, max_depth=None,
                             min_rows=1, l2=self.prior)  # fmt: skip
            keep(add([j], table))
        few = min(20, self.trees)
        settings = Settings(trees=few, learning_rate=self.learning_rate, max_leaves=self.leaves,
                            min_rows=self.min_rows)  # fmt: skip
        best, length, grown, now = error(), len(parts), 0, error()
        while few and grown < self.trees and len(parts) - length < 3:
            keep(add(slice(None), settings))
            grown += few
            if (now := error()) < best:
                best, length = now, len(parts)
        empty = Ensemble.of_trees([], [], np.zeros(1), train.X.shape[1])
        return replace(Ensemble.concat([*parts[:length], empty]), base=base)


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
