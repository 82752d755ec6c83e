"""Boosting on features selected forward by gain per price: the practitioner's default.

Without any method for costs one would use greedy forward selection by price (the wrapper of
R. Kohavi, G. John, "Wrappers for feature subset selection", Artificial Intelligence 97, 1997), and
one gradient boosted model (see ``gbrt``) for each of several nested subsets.

Purchases are made one after the other, starting from the free features. A purchase is a set of
sensors that some feature still lacks. Its price is the price of these sensors, and it brings every
feature that can then be read. The next purchase has the highest

    (L(S) - L(S + a)) / price(a)^price_power,    price_power = 1 by default

L is the mean loss on held-out training rows of boosted trees on the other rows. For S + a, the
trees on S are continued by 10 trees on the features of S and a. This finds features that help only
together with bought ones. Trees on S are continued until L stops falling.

An operating point is a separate model on a subset, boosted on all training rows until the
validation loss stops falling. Subset sizes (in features) grow by about the same factor, from the
free features to all. There is no lambda.

Departures
- A wrapper tries every feature with cross-validation. Here only the 8 most promising purchases are
  tried, by the residuals that their best feature alone explains (``Subsets.explained``), per
  price. The others rank after purchases with a gain.
- There are at most 4 rounds between two points, so late rounds make several purchases.
- Rows are held out in turn, a fifth each time, until they number 1000 (copies counted). At most
  10000 rows (complete queries) are used for selection. For K classes 10 trees are 10 / K
  iterations, at least one.
- ``lambdarank`` has no loss value; the run's metric is used instead.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.held_out import (
    Fits,
    HeldOutFit,
    converged,
    divided,
    mean_loss,
    whole_ensemble,
)
from bench_models.nested_sets.purchases import TRIED, Purchases, bought_too, gaining, readable
from bench_models.nested_sets.subsets import Subsets
from bench_models.path_of_models import PathOfModels, growing
from bench_models.staged import MOST_POINTS, StagedModel

from bench_core import Examples, FitContext, Prices, linear, log, param, provide_learners
from bench_core.arrays import BoolArray

if TYPE_CHECKING:
    from bench_trees import Settings

TRIAL_TREES = 10
ROUNDS = 4
"""Maximum rounds between two operating points."""

SELECTION_ROWS = 10000

CHUNK = 5
"""Minimum boosting iterations between two evaluations of the validation rows."""


@dataclass(frozen=True, kw_only=True)
class ForwardSelection(BoostedTrees):
    """Boosted trees on features selected forward by held-out gain per price."""

    name: ClassVar[str] = "forward-selection"
    adds_up: ClassVar[bool] = False

    steps: int = param(
        12,
        "operating points: numbers of features, growing by the same factor",
        least=1,
        most=MOST_POINTS - 1,
    )
    price_power: float = param(
        1.0, "gain is divided by price to this power", least=0, most=1, search=linear(0, 1)
    )
    trees: int = param(
        1000, "most boosting iterations of each model (for K classes K trees each)", least=0
    )
    learning_rate: float = param(
        0.2, "shrinkage of every tree's output (eta)", above=0, search=log(0.03, 1)
    )
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 64))
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PathOfModels:
        """Select on ``train``; ``valid`` is used for early stopping only."""
        whole = Subsets(self, self.settings(context.task, self.leaves), train, prices, context)
        subsets = self._selected(whole)
        models: list[StagedModel] = []
        for k, features in enumerate(subsets):
            context.progress(len(subsets) + k, 2 * len(subsets))
            start = [HeldOutFit.begin(whole, valid)]
            (fit,) = converged(start, features, whole.settings, self.trees, chunk=CHUNK)
            ensemble = whole_ensemble(fit)
            models.append(whole.whole(ensemble, {"features": int(features.sum())}))
        context.progress(1, 1)
        return PathOfModels(models)

    def _selected(self, whole: Subsets) -> list[BoolArray]:
        """The nested subsets of features of the operating points."""
        prices, progress = whole.prices, whole.context.progress
        divisions = divided(whole, most=SELECTION_ROWS)
        trial = replace(whole.settings, trees=max(1, TRIAL_TREES // whole.loss.outputs))
        bought = readable(prices, np.zeros(prices.features, dtype=bool))
        sets = [bought]
        fits = settled([HeldOutFit.begin(*part) for part in divisions], bought, trial)
        sizes = growing(prices.features, self.steps)
        for k, size in enumerate(sizes):
            progress(k, 2 * len(sizes))
            batch = -(-(size - int(bought.sum())) // ROUNDS)  # features added per round
            while size < prices.features and int(bought.sum()) < size:
                goal = min(size, int(bought.sum()) + batch)
                bought = self._extended(fits, bought, goal, trial)
                fits = settled(fits, bought, trial)
            if size == prices.features:
                bought = np.ones_like(bought)
            if int(bought.sum()) > int(sets[-1].sum()):
                sets.append(bought)
        return sets

    def _extended(self, fits: Fits, bought: BoolArray, goal: int, trial: Settings) -> BoolArray:
        """Make purchases, the best first, until ``goal`` features can be read."""
        prices, purchases = fits[0].subsets.prices, Purchases.of(fits, bought)
        # 1: gain per price; 0: gain alone
        per = purchases.price**self.price_power
        order = np.argsort(-purchases.explained / per, kind="stable")
        tried = order[:TRIED]
        more = [bought_too(prices, bought, purchases.brings[k]) for k in tried]
        new = [mean_loss([fit.more(features, trial) for fit in fits]) for features in more]
        gain = (mean_loss(fits) - np.array(new)) / per[tried]
        best = gaining(tried, gain)
        ranked = [*best, *order[~np.isin(order, best)]]

        def first(count: int) -> BoolArray:
            brought = [j for k in ranked[:count] for j in purchases.brings[k]]
            return bought_too(prices, bought, brought)

        counts = range(1, len(ranked))  # the smallest that reaches the goal, else all
        return first(1 + bisect_left(counts, goal, key=lambda count: int(first(count).sum())))


def settled(fits: Fits, features: BoolArray, trial: Settings) -> list[HeldOutFit]:
    """The fits continued, trial by trial, while their loss falls."""
    how: Any = {"chunk": trial.trees, "patience": 1, "growth": 0}
    return converged(fits, features, trial, sys.maxsize, **how)


bench_learners = provide_learners(ForwardSelection, family="boosted trees")
