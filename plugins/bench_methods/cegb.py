"""CEGB: cost efficient gradient boosting; each row pays for its own path.

S. Peter, F. Diego, F. Hamprecht, B. Nadler, "Cost efficient gradient boosting", NIPS 2017. Trees
are grown best first; splitting leaf p into l and r on feature m gains (eq. 12 and 13)

    1/2 [ G_r^2 / H_r + G_l^2 / H_l - G_p^2 / H_p ] - lambda dPsi
    dPsi = |I_p| alpha eps_m + gamma_m (1 - D_m) + sum_{i in I_p} beta_m (1 - C_im)

with the loss's gradients and hessians summed over the leaf's rows. alpha is the price of one
split, eps_m its multiplier for feature m. Each row pays beta_m at the first split on m on its path
(``acquisition = "per-row"``). gamma_m is paid once when the model first uses m (``"all-rows"``).
Payments (C, D) hold for all later splits, trees and classes, with immediate effect. The number of
leaves is limited but not the depth: deep branches with few rows are cheap on average.

Equations
    eq. 12                bench_trees.kernels.splitting.best_cuts
    eq. 13                bench_trees.kernels.growth._choose
    gamma_m (1 - D_m)     bench_trees.penalties.Ledger.coupled_owed
    beta_m (1 - C_im)     bench_trees.penalties.Ledger.lazy_owed
    alpha, beta, gamma    CEGB.fit
    the next leaf         bench_trees.grower.Grower

The paper's lambda is tau (``bench_models.boosting``): both its loss and its cost are sums over
rows. In ``"all-rows"`` every row pays, so gamma_m is N c_m, copies included.

Variants of the paper's experiments: ``depth = 4, leaves = 16`` is its shallow model, ``order =
"level"`` its ablation with breadth-first trees, ``train_costs = "uniform"`` its ablation with all
beta = 1. ``stop = "raw"`` splits while the unpriced gain is positive, as in the authors' code.

Departures
- Sensors are charged: a feature costs the price of its sensors not yet paid.
- ``stop = "net"``, the default, ends a tree at the first split that is not worth its price, and
  training at the first tree without a split.
- Boosting starts at the best constant, not at T_0 = 0.
- With ``train_costs = "uniform"`` prices are equal but keep their sum, so ``tradeoff`` keeps its
  meaning.
- For classes ``l2`` = 1 is added to every H, and a split must leave H of .1 on both sides.
  Otherwise steps for a class of few rows are unbounded. Eq. 12 has no such term (``l2 = 0``); for
  squared loss it is 0.
- The price per tree, which the paper does not have, is not charged in training.
- The multiplier is from the prices; the printed value for averaged pixels is not used.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from bench_models.boosting import TRADEOFF, BoostedTrees
from bench_models.staged import StagedModel

from bench_core import Examples, FitContext, Prices, log, param, provide_learners


@dataclass(frozen=True, kw_only=True)
class CEGB(BoostedTrees):
    """Boosted trees grown best first, charged for the cost of each row's path."""

    name: ClassVar[str] = "cegb"

    tradeoff: float = param(0.3, TRADEOFF, least=0, search=log(3e-3, 10))
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 256))
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    acquisition: Literal["per-row", "all-rows"] = param(
        "per-row", "who pays for a feature: each row that needs it (beta), or all at once (gamma)"
    )
    order: Literal["best", "level"] = param("best", "which leaf to split next")
    stop: Literal["net", "raw"] = param("net", "split while this gain is positive")
    train_costs: Literal["true", "uniform"] = param("true", "prices seen in training")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Boost on ``train``; ``valid`` is not used."""
        from bench_trees import Penalty

        row = self.loss_prices(self.tradeoff, train, prices, context)
        sensor, per_row = row.sensor, self.acquisition == "per-row"
        # equal prices that keep their sum
        if self.train_costs == "uniform":
            sensor = np.full(len(sensor), sensor.mean())
        penalty = Penalty.over(
            prices.start,
            prices.needed,
            prices.sensors,
            lazy=sensor if per_row else None,  # beta
            coupled=None if per_row else float(train.weights.sum()) * sensor,  # gamma
            split=row.split,  # alpha eps_m
        )
        settings = self.settings(context.task, self.leaves, order=self.order, stop=self.stop)
        facts = {"tau": row.tau, "lambda": row.tau}
        return self.boosted(train, prices, context, settings, penalty, facts)


bench_learners = provide_learners(CEGB, family="boosted trees")
