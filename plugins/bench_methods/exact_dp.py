"""``exact-dp``: the optimal policy of a discrete problem whose distribution is known.

By dynamic programming over all states (``bench_core.optimum``, which has the equations): a state
says what was bought and what it showed. The operating points are the corners of the optimal mean
cost and accuracy, each with the price of money at which it is best; between two of them a mixture
is optimal. Under a cap the policy is the best of those that never exceed it, computed for each
cap.

Where the data set tells its distribution (``Splits.truth``, as that of ``bayes-net``) no model can
be better on average: this is a reference, not a method, and its models are marked ``knows the
distribution``. Elsewhere the same is computed for the distribution that training rows give
(``bench_models.discrete_states``): optimal for a coarse picture of few features.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from bench_models.discrete_states import DiscreteRows, TableLearner
from bench_models.states import Stored

from bench_core import (
    KNOWS,
    STOP,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.optimum import Solution

MOST_POINTS = 100


@dataclass(frozen=True)
class ExactDP(TableLearner):
    """The optimal policy, of the true distribution where it is known."""

    name: ClassVar[str] = "exact-dp"

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Find the corners; ``valid`` is not used."""
        rows = self.rows(train, prices, context)
        corners = rows.states.corners()
        shown = np.unique(np.linspace(0, len(corners) - 1, MOST_POINTS).round().astype(int))
        context.progress(1, 1)
        return Sequential(ExactPolicy(rows, {"price": [corners[k].price for k in shown]}), prices)


@dataclass(eq=False)
class ExactPolicy(Stored):
    """The best purchase in every state, by price of money or under a cap."""

    rows: DiscreteRows
    stops: Mapping[str, Sequence[float]]

    @property
    def marks(self) -> tuple[str, ...]:
        """That it was told the distribution, if so."""
        return (KNOWS,) if self.rows.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Look up the best purchase; under a cap money has no price."""
        purchases, state = Purchases.of(self.rows.prices), self.rows.state_of(cells, bought)
        cap = (left + purchases.sensors(bought) @ purchases.sensor).round(9)
        chosen = np.full(len(state), -1)
        for limit in np.unique(cap).tolist():
            best = self._solve(stop if limit == np.inf else 0.0, limit).action
            chosen = np.where(cap == limit, best[state], chosen)
        return np.asarray(np.append(self.rows.each, STOP)[chosen])

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """What is known of the class in each state."""
        return self.rows.scores(cells, bought)

    @cached_property
    def _solve(self) -> Callable[[float, float], Solution]:
        return lru_cache(MOST_POINTS)(self.rows.states.solve)


bench_learners = provide_learners(ExactDP)
