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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from bench_models.discrete_states import DiscreteRows, estimated, known, scores_of
from bench_models.states import Stored

from bench_core import (
    KNOWS,
    STOP,
    Examples,
    FitContext,
    Prices,
    Sequential,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

MOST_POINTS = 100


@dataclass(frozen=True)
class ExactDP:
    """The optimal policy, of the true distribution where it is known."""

    name: ClassVar[str] = "exact-dp"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    code: ClassVar[tuple[str, ...]] = ("bench_core.optimum",)

    values: int = param(3, "bins of a feature, where the distribution is estimated", least=2)
    smoothing: float = param(
        10.0, "rows of naive Bayes added to an estimate", above=0, search=log(1, 100)
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Find the corners; ``valid`` is not used."""
        truth = context.splits.truth
        rows = known(truth["table"], prices) if "table" in truth else None
        rows = rows or estimated(train, prices, context.classes, self.values, self.smoothing)
        corners = rows.states.corners()
        shown = np.unique(np.linspace(0, len(corners) - 1, MOST_POINTS).round().astype(int))
        context.progress(1, 1)
        return Sequential(ExactPolicy(rows, [corners[k].price for k in shown]), prices)


@dataclass(eq=False)
class ExactPolicy(Stored):
    """The best purchase in every state, by price of money or under a cap."""

    rows: DiscreteRows
    price: Sequence[float]

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """The prices of money, falling."""
        return {"price": self.price}

    @property
    def marks(self) -> tuple[str, ...]:
        """That it was told the distribution, if so."""
        return (KNOWS,) if self.rows.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Look up the best purchase; under a cap money has no price."""
        states = self.rows.states
        state = self.rows.state_of(cells, bought)
        cap = left + states.spent[self.rows.mask_of(state)]
        cap = np.where(np.isinf(cap), cap, cap.round(9))
        chosen = np.full(len(state), -1)
        for limit in np.unique(cap).tolist():
            actions = self._actions(stop if limit == np.inf else 0.0, limit)
            chosen = np.where(cap == limit, actions[state], chosen)
        return np.asarray(np.append(self.rows.each, STOP)[chosen])

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """What is known of the class in each state."""
        return scores_of(self.rows.posterior(cells, bought))

    def _actions(self, price: float, cap: float) -> IntArray:
        if (price, cap) not in self._solved:
            if len(self._solved) > MOST_POINTS:
                self._solved.clear()
            self._solved[price, cap] = self.rows.states.solve(price, cap).action
        return self._solved[price, cap]

    @cached_property
    def _solved(self) -> dict[tuple[float, float], IntArray]:
        return {}


bench_learners = provide_learners(ExactDP)
