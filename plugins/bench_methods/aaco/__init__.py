"""Acquisition by a nearest-neighbour oracle: AACO, and trees that imitate it.

M. Valancius, M. Lennon, J. Oliva ("Acquisition conditioned oracle for nongreedy active feature
acquisition", ICML 2024) plan all further purchases of a row at once. They use the training rows
N(x_m) nearest to it in the bought features. With f a predictor for any purchases, l its loss, m the
purchases made, u a set of purchases that contains them, and a price of cost lambda

    u* = argmin_u  mean over i in N(x_m) of l(f(x_i,u), y_i) + lambda * cost(u \\ m)

If u* is m, the row stops. Otherwise it makes the purchase of u* \\ m that lowers the mean loss most
alone, and plans again. An operating point is a lambda. Under a cap only affordable sets are
considered.

Candidates for u are m, m with each single purchase, random sets, and each neighbour's own best set.
The last is built greedily by the neighbour's own loss, up to the least sum of loss and price.
Losses of training rows are cross-fitted.

- ``planning`` the argmin, and the first purchase; ``kernels`` the neighbours
- ``aaco``     the policy above
- ``aaco-tree`` trees that imitate it and can be served (``imitation``)

Departures
- Masks are sets of purchases, not of features: columns of one sensor are bought together.
- Before any purchase all rows are neighbours. The paper fixes the first purchase by hand. Here it
  is the purchase after which replanning costs least: each training row plans by its neighbours
  after that purchase, and is charged its own loss and price.
- ``lambda`` is a ``tradeoff`` times the loss without purchases, over the price of everything.
- The predictor is the one of lower validation loss: boosted trees (``masked-gbrt``) or naive Bayes
  with a latent class (``latent_bayes``), instead of trees for each mask.
- At most ``rows`` training rows are neighbours. With at most 12 purchases their losses under all
  sets are computed at once, by one pass over each tree; results are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.masked_predictor import MaskedPredictor, fitted_predictor, training_copies

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    param,
    provide_learners,
)
from bench_methods.aaco.imitation import AacoTree
from bench_methods.aaco.latent_bayes import fit_latent_bayes, masked_loss, moments, standardised
from bench_methods.aaco.planning import NeighbourRows, Oracle, grown, pool

LEAST_LOSS = 1e-6
"""Minimum loss without purchases, so that prices of cost differ."""


@dataclass(frozen=True, kw_only=True)
class Aaco(OnEngine):
    """A policy that plans all purchases on the nearest training rows, makes one and replans."""

    name: ClassVar[str] = "aaco"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    predictor: BudgetedLearner = param("masked-gbrt", "learner of the trees that predict")
    form: Literal["auto", "trees", "bayes"] = param(
        "auto", "predictor: trees, naive Bayes with a latent class, or the one of lower loss"
    )
    neighbours: int = param(20, "neighbours per row", least=1)
    candidates: int = param(30, "random sets among the candidates", least=0)
    rows: int = param(2000, "maximum training rows used as neighbours", least=2)
    most: int = param(10, "maximum purchases in a training row's own best set", least=1)
    tradeoffs: tuple[float, ...] = param(
        (8.0, 4.0, 2.0, 1.0, 0.5),
        "falling prices of everything in units of the loss without purchases",
        least=0,
    )

    def __post_init__(self) -> None:
        if len(self.tradeoffs) == 0 or (np.diff(self.tradeoffs) >= 0).any():
            raise ValueError("tradeoffs must be falling numbers")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The learner of the trees, if they are used."""
        return () if self.form == "bayes" else (self.predictor,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Choose the predictor and precompute each row's own best set and the first plans."""
        copies = training_copies(train, context.seed)
        predictor = self._predictor(copies, valid, prices, context)
        purchases, first = Purchases.of(prices), slice(0, self.rows)
        centre, spread = moments(copies.X)
        z = standardised(copies.X[first], centre, spread)
        fold = predictor.parts_of(copies)[first]
        rows = NeighbourRows(predictor, prices, copies.X[first], copies.y[first], z, fold)
        rng = np.random.default_rng([context.seed, 4])
        context.progress(1, 3)
        order, losses = grown(rows, self.most, rng)
        context.progress(2, 3)
        factor = max(float(losses[:, 0].mean()), LEAST_LOSS) / (purchases.sensor.sum() or 1.0)
        masks, alone = pool(rows, order, rng)
        context.progress(3, 3)
        oracle = Oracle(
            **{field.name: getattr(rows, field.name) for field in fields(rows)},
            centre=centre,
            spread=spread,
            order=order,
            order_losses=losses,
            masks=masks,
            alone=alone,
            price=[t * factor for t in self.tradeoffs],
            neighbours=self.neighbours,
            candidates=self.candidates,
            seed=context.seed,
        )
        return Sequential(oracle, prices)

    def _predictor(
        self, copies: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> MaskedPredictor:
        """The chosen predictor."""
        data = copies, valid, prices, context
        if self.form == "bayes":
            bayes = fit_latent_bayes(*data, parts=5)
            assert bayes is not None
            return bayes
        trees = fitted_predictor(self.name, self.predictor, context)
        if self.form == "trees" or len(valid) == 0:
            return trees
        least = masked_loss(trees, valid, prices, context.seed)
        return fit_latent_bayes(*data, parts=len(trees.without), least=least) or trees


bench_learners = provide_learners(Aaco, AacoTree, family="policies")
