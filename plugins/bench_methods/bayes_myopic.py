"""``bayes-myopic``: the greedy one-step policy under the true posterior.

With x_m a row's purchases and c_j the marginal price of purchase j, it buys

    argmax_j  (H(y | x_m) - E[H(y | x_m, x_j)]) / c_j

while this exceeds the ``price`` of the operating point, in nats per unit of cost. Later points
include the purchases of earlier ones; the last point buys everything. Under a cap the choice is
among affordable purchases. The gap to the optimum is the gain from planning ahead.

It is a reference: it uses the true distribution of the data set (``Splits.truth``), and its models
are marked ``knows the distribution``.
- For a table all terms are sums.
- For a mixture (``cube`` and similar) the posterior of the hypotheses is a product of densities.
  The expectation is an integral over one feature, by the midpoint rule with 320 nodes.
- Otherwise a table is estimated from training rows (``bench_models.discrete_states``).

Departures
- Several columns of one purchase count as if they showed, without noise, which of the hypotheses
  that differ in them hold (the context of ``cube-nm``: seven standard deviations apart). The
  posterior after buying is exact.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from bench_models.discrete_states import TableLearner, scores_of
from bench_models.information import MostInformation, plogp, unsure
from bench_models.states import Stored

from bench_core import Examples, FitContext, Prices, Purchases, Sequential, provide_learners
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.optimum import shown_by

NODES = 320
TAIL = 5.0  # standard deviations on both sides
LEAST = 1e-12  # smaller probabilities are ignored
SURE = 1e-9  # no purchase if all classes but one have at most this probability
POINTS = 40


@dataclass(frozen=True)
class BayesMyopic(TableLearner):
    """The greedy policy, for data whose true distribution is known."""

    name: ClassVar[str] = "bayes-myopic"

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Look up the distribution; ``valid`` is not used."""
        truth = {name: np.asarray(array) for name, array in context.splits.truth.items()}
        beliefs: Any
        if "mean" in truth:
            beliefs = MixtureRows(truth["label"], truth["mean"], truth["sd"], prices)
        else:
            beliefs = self.rows(train, prices, context)
        price = Purchases.of(prices).price
        # from a price at which no row buys to two at which every row does
        top = np.log(context.classes) / min(price[price > 0], default=1.0)
        stops = {"price": (*np.geomspace(top, 1e-4 * top, POINTS).tolist(), 0.0, -1.0)}
        context.progress(1, 1)
        return Sequential(MostInformation(beliefs, prices, stops), prices)


@dataclass(eq=False)
class MixtureRows(Stored):
    """Rows from a mixture of equally likely hypotheses with independent features."""

    label: FloatArray  # (h,)
    mean: FloatArray  # (h, d)
    sd: FloatArray  # (h, d), NaN: uniform on [0, 1)
    prices: Prices
    told: ClassVar[bool] = True

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores from the posterior."""
        return scores_of(self._hypotheses(cells) @ self._members)

    def gain(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Expected information of each purchase (n, k) about the class, in nats."""
        hypotheses = self._hypotheses(cells)
        classes, gain = hypotheses @ self._members, np.zeros(bought.shape)
        before, open_ = unsure(classes), classes.max(axis=1) <= 1 - SURE
        for k, (kind, density) in enumerate(self._shown):
            ask = open_ & ~bought[:, k]
            members = self._members[:, :, None] * (kind[:, None, None] == np.arange(len(density)))
            share = np.tensordot(hypotheses[ask], members, 1)  # (n, K, u)
            each = _mixed(share.reshape(-1, len(density)), density).reshape(share.shape[:2])
            after = _mixed(share.sum(axis=1), density) - each.sum(axis=1)
            gain[ask, k] = np.maximum(before[ask] - after, 0.0)
        return gain

    def _hypotheses(self, cells: Float32Array) -> FloatArray:
        """Posterior probabilities of the hypotheses (n, h)."""
        kind, densities = self._kinds
        x, log = cells.astype(np.float64), np.zeros((len(cells), len(kind)))
        for u, (mean, sd) in enumerate(densities):
            if sd < 0:
                own = np.where((x >= 0) & (x < 1), 0.0, -1e9)
            else:
                own = -0.5 * ((x - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
            log += np.where(np.isnan(x), 0.0, own) @ (kind == u).T
        p = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    @cached_property
    def _members(self) -> FloatArray:
        """Ones (h, K) where a hypothesis is of a class."""
        return np.asarray(self.label[:, None] == np.arange(self.label.max() + 1), np.float64)

    @cached_property
    def _kinds(self) -> tuple[IntArray, FloatArray]:
        """Number of each feature's density (h, d); mean and deviation of the densities (u, 2), the
        deviation -1 for a uniform one."""
        pairs = np.stack([self.mean, np.where(np.isnan(self.sd), -1.0, self.sd)], axis=-1)
        found, kind = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        return kind.reshape(self.mean.shape), found

    @cached_property
    def _shown(self) -> list[tuple[IntArray, FloatArray]]:
        """For each purchase: the number (h,) of its density under each hypothesis, and the
        probabilities (u, nodes) of its values under each density."""
        kind, densities = self._kinds
        mean, sd = densities.T[:, :, None]
        low, high = (mean - TAIL * sd.clip(0)).min(), (mean + TAIL * sd.clip(0)).max()
        low, high = min(0.0, low), max(1.0, high)
        x = low + (high - low) * (np.arange(NODES) + 0.5) / NODES
        normal = np.exp(-0.5 * ((x - mean) / np.maximum(sd, 1e-9)) ** 2)
        density = np.where(sd < 0, (x >= 0) & (x < 1), normal)
        density /= density.sum(axis=1, keepdims=True)
        shown, found = shown_by(self.prices), []
        for purchase in range(len(Purchases.of(self.prices))):
            own = kind[:, shown == purchase]
            if own.shape[1] == 1:
                found.append((own[:, 0], density))
            else:
                apart = np.unique(own, axis=0, return_inverse=True)[1].reshape(-1)
                found.append((apart, np.eye(apart.max() + 1)))
        return found


def _mixed(share: FloatArray, density: FloatArray) -> FloatArray:
    """Sum over values (n,) of p log p, with p = share (n, u) @ density (u, nodes).

    Rows with a single density skip the sum over nodes.
    """
    mass = share.sum(axis=1)
    found = plogp(mass) + share @ plogp(density).sum(axis=1)
    several = mass - share.max(axis=1) > LEAST
    found[several] = plogp(share[several] @ density).sum(axis=1)
    return np.asarray(found)


bench_learners = provide_learners(BayesMyopic, family="policies")
