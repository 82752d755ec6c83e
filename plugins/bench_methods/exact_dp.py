"""``exact-dp``: the optimal policy of a discrete problem with a known distribution.

Dynamic programming over all states (equations in ``bench_core.optimum``): a state is the set of
purchases and their values. The operating points are the corners of optimal mean cost and accuracy,
each with the price of cost at which it is optimal. Between two corners a mixture is optimal. Under
a cap the policy is the best one that never exceeds it, computed for each cap.

If the data set gives its distribution (``Splits.truth``, e.g. ``bayes-net``) no model can be better
on average. This is a reference, not a method, and its models are marked ``knows the distribution``.
Otherwise the distribution is estimated from training rows (``bench_models.discrete_states``): the
policy is optimal for a coarse discretisation of few features.
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
    """The optimal policy, for data whose true distribution is known."""

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
    """The best purchase in every state, by price of cost or under a cap."""

    rows: DiscreteRows
    stops: Mapping[str, Sequence[float]]

    @property
    def marks(self) -> tuple[str, ...]:
        """``knows the distribution`` if it does."""
        return (KNOWS,) if self.rows.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Best purchase of each row (n,); under a cap cost has no price."""
        purchases, state = self._purchases, self.rows.state_of(cells, bought)
        cap = (left + purchases.sensors(bought) @ purchases.sensor).round(9)
        chosen = np.full(len(state), -1)
        for limit in np.unique(cap).tolist():
            best = self._solve(stop if limit == np.inf else 0.0, limit).action
            chosen = np.where(cap == limit, best[state], chosen)
        return np.asarray(np.append(self.rows.each, STOP)[chosen])

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores of the class in each state."""
        return self.rows.scores(cells, bought)

    @cached_property
    def _purchases(self) -> Purchases:
        return Purchases.of(self.rows.prices)

    @cached_property
    def _solve(self) -> Callable[[float, float], Solution]:
        return lru_cache(MOST_POINTS)(self.rows.states.solve)


bench_learners = provide_learners(ExactDP, family="policies")
