"""``bayes-myopic``: the best that looking one purchase ahead can do, by the true posterior.

With x_m what a row has bought and c_j the marginal price of purchase j, it buys

    argmax_j  (H(y | x_m) - E[H(y | x_m, x_j)]) / c_j

while that exceeds the ``price`` of the operating point, in nats for each unit of cost. What it buys
at one point it buys at all later ones; the last point buys everything. Under a cap the choice is
among what the row can still pay for. What this loses to the optimum is what a policy gains by
planning ahead.

It is a reference: the distribution is that of the data set (``Splits.truth``), and its models are
marked ``knows the distribution``.
- Of a table all terms are sums.
- Of a mixture (``cube`` and its like) the posterior of the hypotheses is a product of densities;
  the expectation is an integral over one feature, by the midpoint rule with 320 nodes.
- Elsewhere a table is estimated from training rows (``bench_models.discrete_states``).

Departures
- What the columns of one purchase tell together is counted as if they showed without noise which of
  the hypotheses that differ there hold (the context of ``cube-nm``: seven standard deviations
  apart). The posterior after buying is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from bench_models.discrete_states import LEAST, DiscreteRows, estimated, known, scores_of
from bench_models.states import Stored

from bench_core import (
    KNOWS,
    STOP,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

NODES = 320
TAIL = 5.0  # standard deviations on both sides
NOTHING = 1e-9  # information that is a rounding error
POINTS = 40


@dataclass(frozen=True)
class BayesMyopic:
    """The greedy policy of the true posterior, where it is known."""

    name: ClassVar[str] = "bayes-myopic"
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
        """Look up the distribution; ``valid`` is not used."""
        truth = {name: np.asarray(array) for name, array in context.splits.truth.items()}
        beliefs: DiscreteRows | MixtureRows | None = None
        if "table" in truth:
            beliefs = known(truth["table"], prices)
        elif "mean" in truth:
            beliefs = MixtureRows(truth["label"], truth["mean"], truth["sd"], prices)
        if beliefs is None:
            beliefs = estimated(train, prices, context.classes, self.values, self.smoothing)
        context.progress(1, 1)
        return Sequential(MyopicPolicy(beliefs, prices), prices)


@dataclass(eq=False)
class MyopicPolicy(Stored):
    """The purchase of most information per price, next."""

    beliefs: Any  # DiscreteRows or MixtureRows
    prices: Prices
    nested: ClassVar[bool] = True

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Prices of money in nats: from one that nobody pays, and two that everybody does."""
        price = self._purchases.price
        top = np.log(self.beliefs.classes) / min(price[price > 0], default=1.0)
        return {"price": (*np.geomspace(top, 1e-4 * top, POINTS).tolist(), 0.0, -1.0)}

    @property
    def marks(self) -> tuple[str, ...]:
        """That it was told the distribution, if so."""
        return (KNOWS,) if self.beliefs.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Of equal information per price the first, where none tells anything the cheapest."""
        gain, price = self.beliefs.gain(cells, bought), self._purchases.marginal(bought)
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.where(gain > NOTHING, (gain / price).round(9), -NOTHING * price)
        worth[bought | (price > left[:, None])] = -np.inf
        best = worth.argmax(axis=1)
        return np.where(worth[np.arange(len(best)), best] > stop, best, STOP)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The posterior."""
        return scores_of(self.beliefs.posterior(cells, bought))

    @cached_property
    def _purchases(self) -> Purchases:
        return Purchases.of(self.prices)


@dataclass(eq=False)
class MixtureRows(Stored):
    """Rows of equally likely hypotheses, under each of which features are independent."""

    label: FloatArray  # (h,)
    mean: FloatArray  # (h, d)
    sd: FloatArray  # (h, d), NaN: uniform on [0, 1)
    prices: Prices
    told: ClassVar[bool] = True

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.label.max()) + 1

    def posterior(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The probabilities (n, K) of the classes."""
        return np.asarray(self._hypotheses(cells) @ self._members)

    def gain(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """What each purchase (n, k) is expected to tell about the class, in nats."""
        from bench_methods.bayes_myopic.kernels import gains

        columns, apart = self._shown
        kinds, density = self._kinds[0], self._density
        label = self.label.astype(np.int64)
        return np.asarray(
            gains(self._hypotheses(cells), bought, label, columns, apart, kinds, density)
        )

    def _hypotheses(self, cells: Float32Array) -> FloatArray:
        """Their probabilities (n, h)."""
        from bench_methods.bayes_myopic.kernels import posterior

        return np.asarray(posterior(cells, *self._kinds))

    @cached_property
    def _members(self) -> FloatArray:
        """Ones (h, K) where a hypothesis is of a class."""
        return np.asarray(self.label[:, None] == np.arange(self.classes), dtype=np.float64)

    @cached_property
    def _kinds(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Which of few densities (d, h) each feature has, and their mean and deviation (u,)."""
        uniform = np.where(np.isnan(self.sd), -1.0, self.sd)
        pairs = np.stack([self.mean, uniform], axis=-1).reshape(-1, 2)
        found, kind = np.unique(pairs, axis=0, return_inverse=True)
        return kind.reshape(self.mean.shape).T.copy(), found[:, 0].copy(), found[:, 1].copy()

    @cached_property
    def _density(self) -> FloatArray:
        """The probability (u, nodes) of each node under each density."""
        _, mean, sd = self._kinds
        low = min(0.0, float((mean - TAIL * sd.clip(0)).min()))
        high = max(1.0, float((mean + TAIL * sd.clip(0)).max()))
        x = low + (high - low) * (np.arange(NODES) + 0.5) / NODES
        each = np.maximum(sd, LEAST)[:, None]
        normal = np.exp(-0.5 * ((x - mean[:, None]) / each) ** 2)
        density = np.where(sd[:, None] < 0, (x >= 0) & (x < 1), normal)
        return np.asarray(density / density.sum(axis=1, keepdims=True))

    @cached_property
    def _shown(self) -> tuple[IntArray, IntArray]:
        """Of each purchase the only feature that it shows, or -1; and the number (k, h) of each
        hypothesis among those that it tells apart."""
        from bench_core.optimum import shown_by

        purchases = Purchases.of(self.prices)
        shown, both = shown_by(purchases, self.prices), [*self.mean.T, *np.nan_to_num(self.sd.T)]
        table, d = np.array(both), self.mean.shape[1]
        column, apart = [], []
        for purchase in range(len(purchases)):
            own = np.flatnonzero(shown == purchase)
            column.append(own[0] if len(own) == 1 else -1)
            found = np.unique(table[[*own, *(own + d)]], axis=1, return_inverse=True)[1]
            apart.append(found.reshape(-1))
        return np.array(column), np.array(apart)


bench_learners = provide_learners(BayesMyopic)
