"""Choice among services: buy calls, return the answer of one of them (``Task.CHOICE``)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_models.call_chain import CallChain
from bench_trees.ensemble import Ensemble

from bench_core import Examples, FitContext, Prices, Task, provide_learners


@dataclass(frozen=True)
class BestSingle:
    """One source for all rows; each source is a point, in order of price."""

    name: ClassVar[str] = "best-single"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.CHOICE})
    role: ClassVar[str] = "reference"

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CallChain:
        """Order the sources by price, of equal ones the better on ``train`` last."""
        calls = context.splits.calls
        price = np.array([prices.feature_price()[call] for call in calls])
        quality = np.average(train.y, axis=0, weights=train.weights)
        order = np.lexsort((quality, price))
        trees = Ensemble.of_trees([], [], np.zeros(len(calls)), prices.features)
        points = [{"source": int(k)} for k in order]
        return CallChain(points, order[:, None], np.zeros((len(order), 1)), calls, trees, prices)


bench_learners = provide_learners(BestSingle, family="choice among services")
