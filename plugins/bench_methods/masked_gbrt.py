"""Boosted trees for rows with any subset of purchases, and a fixed-order policy on them.

Sequential policies share one predictor: gradient boosted trees trained on every row with random
purchases hidden (``bench_models.masked_predictor``). A. Norcliffe et al. ("Stochastic encodings for
active feature acquisition", ICML 2025) and others train their networks in this way. For each copy
of a row u is drawn from U(0, 1), and each purchase is made with probability u. A policy names this
learner as its ``predictor`` and uses its trees.

On its own it is a policy with one order for all rows. With l the cross-fitted loss of the predictor
on training rows, purchases are made in falling order of

    (l(nothing bought) - l(j bought)) / price_j

This is an order by mutual information with the label, per price. An operating point is a number of
purchases. Under a cap the next affordable purchase of the order is made.

Departures
- Boosting stops early by the validation rows, masked in the same way. Both sides of a split have at
  least ``min_rows`` times ``copies`` masked rows.
- Trees fitted without one part of the training rows, for targets of policies, have as many
  iterations as the trees fitted to all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.masked_predictor import (
    MaskedPredictor,
    MaskedTraining,
    PredictorPolicy,
    closed,
    fit_masked,
    masked,
    training_copies,
)
from bench_models.path_of_models import growing
from bench_trees.ensemble import Ensemble

from bench_core import (
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_core.serving import PolicyProgram

POINTS = 40
ROWS = 4000
"""Maximum training rows used to find the order."""


@dataclass(frozen=True, kw_only=True)
class MaskedGbrt(MaskedTraining):
    """Boosted trees for any subset of features; on its own it buys in one order for all rows."""

    name: ClassVar[str] = "masked-gbrt"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS, Task.REGRESSION})
    adds_up: ClassVar[bool] = False

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Boost on masked copies of ``train``; ``valid`` is used for early stopping."""
        copies = training_copies(train, context.seed)
        predictor = fit_masked(self, copies, valid, prices, context)
        purchases = Purchases.of(prices)
        order = order_alone(predictor, copies, purchases, prices)
        counts = [0, *growing(len(order), POINTS)] if len(order) else [0]
        context.progress(1, 1)
        return Sequential(OneOrder(predictor, prices, order, counts), prices)


@dataclass(frozen=True, eq=False)
class OneOrder(PredictorPolicy):
    """The same purchases for all rows, in a fixed order."""

    nested: ClassVar[bool] = True

    predictor: MaskedPredictor
    prices: Prices
    order: IntArray  # purchases that are not free
    counts: Sequence[float]

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Numbers of purchases."""
        return {"purchases": self.counts}

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """First affordable purchase in the order that a row has not made, (n,)."""
        return self.purchases.best(self._worth(stop), bought, left, 0.0)

    def _worth(self, stop: float) -> FloatArray:
        """Worth (k,) of each purchase, falling along the order; negative for others."""
        chosen, worth = self.order[: int(stop)], np.full(len(self.purchases), -1.0)
        worth[chosen] = 1.0 + np.arange(len(chosen))[::-1]
        return worth

    def program(self, prices: Prices, stop: float) -> PolicyProgram:
        """The first purchases of the order, and the predictor's trees."""
        worth = Ensemble.of_trees([], [], np.append(self._worth(stop), 0.0), 0)
        return self.served([worth], prices, "class", skip=True)


def order_alone(
    predictor: MaskedPredictor, copies: Examples, purchases: Purchases, prices: Prices
) -> IntArray:
    """Purchases that are not free, ordered by the fall of the loss by each alone, per price."""
    X, y, part = copies.X[:ROWS], copies.y[:ROWS], predictor.parts_of(copies)[:ROWS]
    free = purchases.price == 0

    def loss(bought: BoolArray) -> float:
        made = closed(np.tile(bought, (len(X), 1)), purchases)
        cells = masked(X, made, purchases, prices)
        return float(predictor.loss(predictor.cross_fitted(cells, made, part), y).mean())

    nothing, each = loss(free), np.eye(len(purchases), dtype=bool)
    paid = np.flatnonzero(~free)
    gain = np.array([nothing - loss(free | each[j]) for j in paid.tolist()])
    return paid[np.argsort(-gain / purchases.price[paid], kind="stable")]


bench_learners = provide_learners(MaskedGbrt, family="boosted trees")
