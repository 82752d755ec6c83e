"""Budget boosting: nested sets of features bought by price, a booster on each, and early exits.

A construction of this project from known parts: forward selection by gain per price (the wrapper of
R. Kohavi, G. John, Artificial Intelligence 97, 1997), boosted trees (``gbrt``), and a cascade that
stops at the first confident stage.

Methods that charge each split (``cegb``, ``miser``) charge a feature's full price to its first
split, though hundreds of later trees share it. Here the price is compared with the held-out gain of
several trees, and trees grown to convergence use the bought features.

    sets      S_1 c S_2 c ... c all features      nested_sets, extended
    stage k   f_k = a booster on S_k              fit
    exits     the threshold of a chain of stages  exits
    model     sets alone and exits as points      bench_models.nested_sets.routes

1. The next purchase has the highest fall of held-out loss per price, by a few large steps. Sets
   grow by a quarter. Their price at most doubles, or by the cheapest helpful purchase. The best
   first purchases are sets too.
2. On each set a booster is trained on all rows until the validation loss stops falling. With fewer
   than 1000 validation rows, parts of the training rows are held out in turn until they number
   1000, and a stage is the mean of the boosters on the other parts.
3. Operating points are every set alone, and chains that rows leave once their largest class
   probability exceeds a threshold. In ranking two sets are a chain, and documents leave that score
   below a threshold on the first. A chain that is no better on the held-out rows than a cheaper
   point is dropped.

``leaves = none`` chooses among 4, 16 and 64 by held-out loss on all features, and if features were
selected on a part of the rows, tries larger numbers again on all. There is no lambda: the path
covers all costs.

Departures
- 8 purchases are tried, the most promising by the residuals that they explain alone and by their
  splits in trees on all features, each per price. The pairs of the 3 features with most splits are
  tried too. If nothing helps beyond chance, sets double. There are at most 50 sets.
- Features are selected on at most 6000 rows.
- If evaluation has a price, a stage is one booster and a chain has at most 6 stages.
- Regression has no exits.
- Leaf values of classes have l2 = 1 and a split leaves second derivatives of .1, as ``gbrt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.held_out import (
    HELD_OUT,
    Fits,
    HeldOutFit,
    converged,
    divided,
    joined,
    mean_loss,
)
from bench_models.nested_sets.purchases import TRIED, Purchases, bought_too, readable
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.nested_sets.subsets import Subsets
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import labels_of

from bench_core import (
    Examples,
    FitContext,
    Prices,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.budget_boosting.exits import with_exits

if TYPE_CHECKING:
    from bench_trees import Ensemble, Settings

ROWS = 6000
"""Maximum rows for selecting features, some of them held out."""

LEAVES = (4, 16, 64)
"""Numbers of leaves to choose from; the second is that of trees that compare purchases."""

CHUNK = 8
"""Iterations between evaluations, and of a trial (divided among classes, at least 2)."""

LUCK = 5.0
"""Nats, or residual variances, that useless features rarely gain on held-out rows."""

GROWTH = 0.25
"""Features bought between two sets, as a share of the features bought before."""

ALTERNATIVES = 3
"""First purchases that become sets, and features whose pairs are tried."""


@dataclass(frozen=True, kw_only=True)
class BudgetBoosting(BoostedTrees):
    """Boosters on nested sets of features chosen by price, with early exits."""

    name: ClassVar[str] = "budget-boosting"
    adds_up: ClassVar[bool] = False

    trees: int = param(
        1000, "most boosting iterations of each stage (for K classes K trees each)", least=0
    )
    learning_rate: float = param(
        0.2, "shrinkage of every tree's output (eta)", above=0, search=log(0.05, 0.5)
    )
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    leaves: int | None = param(
        None, "most leaves of a tree; none: 4, 16 or 64, by held-out loss", least=2
    )
    min_rows: int = param(
        10, "least rows (copies counted) on each side of a split", least=1, search=log(3, 50)
    )
    exits: bool = param(True, "let rows leave early")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> NestedBoosters:
        """Select sets of features on ``train`` and boost on each; ``valid`` stops boosting."""
        rows = int(train.weights.sum())
        # few rows: leaves may be smaller than min_rows
        least = max(1, min(self.min_rows, rows // 30))
        settings = self.settings(context.task, self.leaves or LEAVES[1], min_rows=least)
        # twice the rate suffices for comparisons
        quick = replace(settings, learning_rate=2 * self.learning_rate)
        whole = Subsets(self, settings, train, prices, context)
        some = [HeldOutFit.begin(*halves) for halves in divided(whole, most=ROWS)]
        full, leaves = self._everything(some, quick)
        sets, chains = nested_sets(some, importance(full), quick)
        parts = [(whole, valid)]
        if valid.weights.sum() < HELD_OUT:
            parts = [(few, joined([held, valid])) for few, held in divided(whole, most=rows)]
        base = whole.loss.base(labels_of(train))
        start = [HeldOutFit.begin(*part, base) for part in parts]
        # more rows than selection saw may support more leaves
        larger = [n for n in LEAVES if n > leaves] if rows > ROWS and not self.leaves else []
        whole_set = self._stage(start, sets[-1], settings := replace(settings, max_leaves=leaves))
        for leaves in larger:
            other = self._stage(start, sets[-1], more := replace(settings, max_leaves=leaves))
            if mean_loss(other) >= mean_loss(whole_set):
                break
            whole_set, settings = other, more
        stages = [start]
        for k, features in enumerate(sets[:-1]):
            context.progress(k, len(sets))
            stages.append(self._stage(start, features, settings))
        stages.append(whole_set)
        context.progress(1, 1)
        empty = np.zeros(prices.features, dtype=bool)
        # stage 0 is the constant
        chains = [[1 + k for k in chain] for chain in chains]
        # under a cap a row follows the path while it can pay: nested sets come first, and all
        # features again last, so that no smaller set answers after them
        order, last = dict.fromkeys([0, *chains[-1], *range(len(stages))]), len(stages) - 1
        routes = [Route([k], {"stage": k}) for k in order]
        routes.append(Route([last], {"stage": last, "threshold": 1.0}))
        model = assembled(stages, [empty, *sets], whole, routes)
        if not self.exits or context.task is Task.REGRESSION:
            return model
        return with_exits(model, stages, chains, context.metric, context.task)

    def _stage(self, start: Fits, features: BoolArray, settings: Settings) -> list[HeldOutFit]:
        """The fits continued with trees that test only these features (d,), until converged."""
        return converged(start, features, settings, self.trees, chunk=CHUNK)

    def _everything(self, fits: Fits, quick: Settings) -> tuple[list[HeldOutFit], int]:
        """Fits on all features, with the number of leaves of least held-out loss."""
        everything, tried = np.ones(fits[0].subsets.prices.features, dtype=bool), []
        for leaves in (self.leaves,) if self.leaves else LEAVES:
            full = settled(fits, everything, replace(quick, max_leaves=leaves))
            tried.append((mean_loss(full), full, leaves))
        _, full, leaves = min(tried, key=lambda of_leaves: of_leaves[0])
        return full, leaves


def settled(fits: Fits, features: BoolArray, quick: Settings) -> list[HeldOutFit]:
    """The fits continued in large steps until their loss stops falling."""
    return converged(fits, features, quick, quick.trees, chunk=CHUNK, patience=1)


def nested_sets(
    fits: Fits, share: FloatArray, quick: Settings
) -> tuple[list[BoolArray], list[list[int]]]:
    """The best first purchases, each alone, then nested sets, the last of all features, each after
    the cheaper sets of its detour. Then the places of chains, with detours and without.

    ``share`` (d,) is every feature's share of the splits.
    """
    prices, most = fits[0].subsets.prices, MOST_POINTS // 2 - 2
    chosen = readable(prices, np.zeros(prices.features, dtype=bool))
    sets, nested = ([chosen], [True]) if chosen.any() else ([], [])
    fits = settled(fits, chosen, quick)
    first: list[BoolArray] = []
    while not chosen.all():
        if not first:
            left = Purchases.of(fits, chosen)
            order = np.argsort(-left.explained / left.price, kind="stable")[:ALTERNATIVES]
            first = [bought_too(prices, chosen, left.brings[k]) for k in order]
        after = extended(fits, chosen, share, quick)
        below, cheap, limit = chosen, fits, price_of(prices, after)
        while limit > 2 * price_of(prices, below) and len(sets) < most:
            below, before = extended(cheap, below, share, quick, limit), below
            if np.array_equal(below, before):
                break
            cheap = settled(cheap, below, quick)
            sets.append(below)
            nested.append(False)
        chosen = after if len(sets) < most else np.ones_like(chosen)
        fits = settled(fits, chosen, quick)
        sets.append(chosen)
        nested.append(True)
    new = [one for one in first if not any(np.array_equal(one, other) for other in sets)]
    chain = np.arange(len(sets)) + len(new)
    direct = [] if all(nested) else [chain[nested].tolist()]
    return [*new, *sets], [chain.tolist(), *direct]


def extended(
    fits: Fits, chosen: BoolArray, share: FloatArray, quick: Settings, limit: float = np.inf
) -> BoolArray:
    """``chosen`` (d,) with the next purchases. With a ``limit`` these are helpful ones below this
    price, the price at most doubling if possible, and none if none is left."""
    of = fits[0].subsets
    prices, trial = of.prices, replace(quick, trees=max(2, CHUNK // of.loss.outputs))
    left, size, paid = Purchases.of(fits, chosen), int(chosen.sum()), price_of(of.prices, chosen)
    together = np.array([share[list(features)].sum() for features in left.brings])
    order = alternating(left.explained / left.price, together / left.price)
    tried = [[k] for k in order[:TRIED].tolist()]
    # features may help only together
    tried += map(list, combinations(np.argsort(together)[-ALTERNATIVES:].tolist(), 2))
    if size >= len(of.train):  # gains of one more are not significant
        tried = []
    tried = [purchase for purchase in tried if paid + left.price[purchase].sum() < limit]
    more = [bought_too(prices, chosen, brought(left, purchase)) for purchase in tried]
    losses = [mean_loss([fit.more(features, trial) for fit in fits]) for features in more]
    gain, price = mean_loss(fits) - np.array(losses), np.array([left.price[k].sum() for k in tried])
    helpful = gain * sum(fit.held.weights.sum() for fit in fits) > luck(fits)
    if not helpful.any() and limit < np.inf:
        return chosen
    if not helpful.any():  # nothing helps beyond chance: take larger steps
        ranked, count, room = order.tolist(), max(2, size), max(paid, left.price.min())
    else:
        if limit < np.inf:
            helpful &= price <= max(paid, price[helpful].min())
        else:  # what helps a little may cost much less
            helpful = gain > 0
        useful = np.flatnonzero(helpful)
        best = useful[np.argsort(-gain[useful] / price[useful], kind="stable")]
        ranked = [k for place in best for k in tried[place]]
        ranked += order.tolist() if limit == np.inf else []
        count, room = max(len(tried[best[0]]), round(GROWTH * size)), max(paid, price[best[0]])
    within = [k for k in dict.fromkeys(ranked) if left.price[k] <= room][:count]
    fitting = np.cumsum(left.price[within]) <= room * (1 + 1e-9)
    return bought_too(prices, chosen, brought(left, np.array(within)[fitting].tolist()))


def brought(left: Purchases, purchases: Sequence[int]) -> list[int]:
    """Features that these purchases bring."""
    return [feature for k in purchases for feature in left.brings[k]]


def alternating(*keys: FloatArray) -> IntArray:
    """Entries by falling keys, one by each key (k,) in turn."""
    orders = np.stack([np.argsort(-key, kind="stable") for key in keys], axis=1)
    return np.array(list(dict.fromkeys(orders.ravel().tolist())))


def importance(full: Fits) -> FloatArray:
    """Splits on each feature (d,), each counted as the share of the rows that reach it, halved by
    every split above it."""
    total = np.zeros(full[0].subsets.prices.features)
    for trees in (part for fit in full for part in fit.parts):
        reach, inner = np.zeros(trees.nodes), np.flatnonzero(trees.feature >= 0)
        reach[trees.start[:-1]] = 1.0
        for node in inner:  # parents come before children
            reach[[trees.left[node], trees.right[node]]] = reach[node] / 2
        total += np.bincount(trees.feature[inner], reach[inner], len(total))
    return total


def price_of(prices: Prices, features: BoolArray) -> float:
    """Total price of these features (d,)."""
    return float(prices.sensor[prices.bought_for(features)].sum())


def luck(fits: Fits) -> float:
    """Largest fall of the total held-out loss that counts as chance."""
    return LUCK * (2 * abs(mean_loss(fits)) if fits[0].subsets.loss_name == "squared" else 1.0)


def assembled(
    stages: Sequence[Fits], sets: Sequence[BoolArray], whole: Subsets, routes: Sequence[Route]
) -> NestedBoosters:
    """The boosters of all stages as one ensemble; one per stage if evaluation has a price."""
    from bench_trees import Ensemble

    prices, base = whole.prices, whole.loss.base(labels_of(whole.train))
    members = 1 if prices.tree or prices.split else len(stages[0])
    empty = Ensemble.of_trees([], np.zeros(0, np.int32), base, prices.features)
    parts: list[Ensemble] = [empty]
    start = [0]
    for boosters in stages:
        parts += [trees for booster in boosters[:members] for trees in booster.parts]
        start.append(sum(trees.trees for trees in parts))
    facts = {"sets": [np.flatnonzero(features).tolist() for features in sets]}
    averaged = np.full(len(stages), members)
    return NestedBoosters(Ensemble.concat(parts), np.array(start), averaged, prices, routes, facts)


bench_learners = provide_learners(BudgetBoosting, family="boosted trees")
