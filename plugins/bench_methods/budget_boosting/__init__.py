"""Budget boosting: nested sets of features bought by price, a booster on each, and early exits.

A construction of this project from known parts: forward selection by gain per price (the wrapper of
R. Kohavi, G. John, Artificial Intelligence 97, 1997), boosted trees (``gbrt``), averages over
cross-validation folds (L. Breiman, "Stacked regressions", 1996, uses them all), and optimal
stopping by thresholds, as in cascades.

Methods that charge each split (``cegb``, ``miser``) charge a feature's full price to its first
split, though hundreds of later trees share it. Here the price is compared with the held-out gain of
several trees, and trees grown to convergence use the bought features.

    sets      S_1 c S_2 c ... c all features                  nested_sets, extended
    stage k   f_k = constant + mean over parts held out of a booster on S_k    fit
    exits     which rows stop at which stage                  exits
    model     sets alone and exits as operating points        nested_sets.routes

1. The next purchase has the highest fall of held-out loss per price, by a few large steps. Sets
   grow by a quarter. If the next set more than doubles the price, cheaper sets of useful features
   (a detour) come before it. The best first purchases are sets too.
2. On each set a booster per held-out part is trained on the other parts, in step, until their mean
   held-out loss stops falling. Each stage restarts from the constant.
3. Operating points are every set alone, and exits from a chain of stages. In classification rows
   with a likely enough class leave, in ranking documents of low rank. Exits are searched on
   held-out rows, on the chain with detours and without.

``leaves = none`` chooses among 4, 16 and 64 by held-out loss on all features. There is no lambda:
the path covers all costs. If ``valid`` is predicted worse than held-out training rows by three
standard errors, training rows differ from future rows (encoded by their own labels, or older).
``valid`` is then the held-out part, with one booster per stage, and the model is marked.

Departures
- 8 purchases are tried, the most promising by the residuals that they explain alone and by their
  splits in trees on all features, each per price. The pairs of the 3 features with most splits are
  tried too. If nothing helps beyond chance, sets double. A set is at most the 50th.
- With n rows and K outputs all parts are held out in turn if n K is at most 8000, else three.
- Features are selected, and exits searched, on at most 6000 rows.
- If evaluation has a price, a stage is one booster and a chain has at most 6 stages.
- Leaf values of classes have l2 = 1 and a split leaves second derivatives of .1, as ``gbrt``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.held_out import (
    Fits,
    HeldOutFit,
    converged,
    divided,
    mean_loss,
    scores_of,
)
from bench_models.nested_sets.purchases import TRIED, Purchases, bought_too, readable
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.nested_sets.subsets import Subsets
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import labels_of

from bench_core import (
    ON_VALIDATION,
    Examples,
    FitContext,
    Prices,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.budget_boosting.exits import Held, by_class, by_rank, joined, probabilities

if TYPE_CHECKING:
    from bench_trees import Settings

ROWS = 6000
"""Maximum rows for selecting features (a quarter is held out), and for searching exits."""

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

FEW, BOOSTERS = 8000, 3
"""Rows times outputs up to which all parts are held out; parts held out above."""

DRIFT = 3.0
"""Standard errors by which validation rows must be predicted worse to count as drift."""

Kind = Literal["chain", "detour", "alone"]
"""Sets of every chain, cheaper ones of the longer chain only, and those of none."""


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
    folds: int = param(5, "parts that training rows are divided into, each held out once", least=2)
    exits: bool = param(True, "let rows leave early")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> NestedBoosters:
        """Select sets of features and boost on each; ``valid`` detects drift of the rows."""
        rows = int(train.weights.sum())
        # few rows: leaves may be smaller than min_rows
        least = max(1, min(self.min_rows, rows // 30))
        settings = self.settings(context.task, self.leaves or LEAVES[1], min_rows=least)
        # twice the rate suffices for comparisons
        quick = replace(settings, learning_rate=2 * self.learning_rate)
        whole = Subsets(self, settings, train, prices, context)
        enough = rows if rows * whole.loss.outputs <= FEW else rows * BOOSTERS // self.folds
        some = begun(whole, self.folds, ROWS, ROWS // 4)
        full, leaves = self._everything(some, quick)
        drifted = drifts(full, valid)
        if drifted:
            stages = [HeldOutFit.begin(whole, valid)]
            some = [HeldOutFit.begin(some[0].subsets, valid)]
            full, leaves = self._everything(some, quick)
        else:
            stages = begun(whole, self.folds, rows, enough)
        settings = replace(settings, max_leaves=leaves)
        kinds: list[Kind] = ["chain"]
        ended, live = [stages], [np.zeros(prices.features, dtype=bool)]
        sets = nested_sets(some, importance(full), quick)
        for k, (features, kind) in enumerate(sets):
            context.progress(k, len(sets))
            now = converged(stages, features, settings, self.trees, chunk=CHUNK)
            if any(booster.parts for booster in now):
                kinds.append(kind)
                ended.append(now)
                live.append(features)
        context.progress(1, 1)
        model = assembled(ended, live, whole)
        marks = {"marks": [ON_VALIDATION]} if drifted else {}
        facts = {**model.facts, **marks, "leaves": leaves}
        return replace(model, routes=self._routes(model, ended, kinds, context), facts=facts)

    def _everything(self, fits: Fits, quick: Settings) -> tuple[list[HeldOutFit], int]:
        """Fits on all features, with the number of leaves of least held-out loss."""
        everything, found = np.ones(fits[0].subsets.prices.features, dtype=bool), []
        for leaves in (self.leaves,) if self.leaves else LEAVES:
            full = settled(fits, everything, replace(quick, max_leaves=leaves))
            found.append((mean_loss(full), full, leaves))
        _, full, leaves = min(found, key=lambda of_leaves: of_leaves[0])
        return full, leaves

    def _routes(
        self,
        model: NestedBoosters,
        ended: Sequence[Fits],
        kinds: Sequence[Kind],
        context: FitContext,
    ) -> list[Route]:
        """Routes with early exits, then every stage alone, all features last."""
        last = max(k for k, kind in enumerate(kinds) if kind == "chain")
        order = [*(k for k in range(len(ended)) if k != last), last]
        alone = [Route([k], {"stage": k}) for k in order]
        # the chain with detours, and without
        routes = [[k for k, kind in enumerate(kinds) if kind != "alone"]]
        routes += [[k for k in routes[0] if kinds[k] == "chain"]] if "detour" in kinds else []
        if not self.exits or len(routes[0]) < 3 or context.task == Task.REGRESSION:
            return alone
        most, held = MOST_POINTS - len(ended), held_rows(model, ended, context)
        if context.task == Task.RANKING:
            return [*by_rank(held, routes[0], most), *alone]
        return [*by_class(held, routes, most), *alone]


def begun(whole: Subsets, parts: int, most: int, enough: int) -> list[HeldOutFit]:
    """Fits without trees at the constant of all rows."""
    base = whole.loss.base(labels_of(whole.train))
    pairs = divided(whole, parts, most=most, enough=enough)
    return [HeldOutFit.begin(subsets, held, base) for subsets, held in pairs]


def settled(fits: Fits, features: BoolArray, quick: Settings) -> list[HeldOutFit]:
    """The fits continued in large steps until their loss stops falling."""
    return converged(fits, features, quick, quick.trees, chunk=CHUNK, patience=1)


def nested_sets(fits: Fits, share: FloatArray, quick: Settings) -> list[tuple[BoolArray, Kind]]:
    """Sets of the chain, the last of all features, each after the cheaper sets of its detour; and
    the first purchases alone. ``share`` (d,) is every feature's share of the splits."""
    prices = fits[0].subsets.prices
    chosen = readable(prices, np.zeros(prices.features, dtype=bool))
    sets: list[tuple[BoolArray, Kind]] = [(chosen, "chain")] if chosen.any() else []
    fits, first = settled(fits, chosen, quick), list[BoolArray]()
    while not chosen.all():
        if not first:
            left = Purchases.of(fits, chosen)
            order = np.argsort(-left.explained / left.price, kind="stable")[:ALTERNATIVES]
            first = [bought_too(prices, chosen, left.brings[k]) for k in order]
        after = extended(fits, chosen, share, quick)
        limit, below, cheap = price_of(prices, after), chosen, fits
        # leaves room for the last set and the first purchases
        while len(sets) < MOST_POINTS // 2 - ALTERNATIVES - 1 and limit > 2 * price_of(
            prices, below
        ):
            before = below
            below = extended(cheap, before, share, quick, limit)
            if np.array_equal(below, before):
                break
            sets.append((below, "detour"))
            cheap = settled(cheap, below, quick)
        if len(sets) >= MOST_POINTS // 2 - ALTERNATIVES - 1:
            after = np.ones_like(chosen)
        chosen = after
        sets.append((chosen, "chain"))
        fits = settled(fits, chosen, quick)
    new = [one for one in first if not any(np.array_equal(one, other) for other, _ in sets)]
    return [*sets, *((one, "alone") for one in new)]


def extended(
    fits: Fits, chosen: BoolArray, share: FloatArray, quick: Settings, limit: float = np.inf
) -> BoolArray:
    """``chosen`` (d,) with the next purchases. With a ``limit`` these are useful ones below this
    price, and unchanged if there are none."""
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
    useful = np.flatnonzero(gain * sum(fit.held.weights.sum() for fit in fits) > luck(fits))
    if len(useful) == 0 and limit < np.inf:
        return chosen
    if len(useful) == 0:  # nothing helps beyond chance: take larger steps
        ranked, count, room = order.tolist(), max(2, size), max(paid, left.price[order[0]])
    else:
        if limit < np.inf:  # smallest steps first
            useful = useful[price[useful] <= max(paid, price[useful].min())]
        else:  # what helps a little may cost much less
            useful = np.flatnonzero(gain > 0)
        best = useful[np.argsort(-gain[useful] / price[useful], kind="stable")]
        ranked = [k for place in best for k in tried[place]]
        ranked += order.tolist() if limit == np.inf else []
        count = max(len(tried[best[0]]), round(GROWTH * size))
        room = max(paid, price[best[0]])
    # the price at most doubles, or by the first purchase
    within = list(dict.fromkeys(ranked))[:count]
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


def drifts(full: Fits, valid: Examples) -> bool:
    """True if fits predict ``valid`` worse than their held-out rows, by more than ``DRIFT``
    standard errors of the difference: of the log-loss for classes, else of the run's metric."""
    of = full[0].subsets

    def judged(scores: FloatArray, rows: Examples) -> tuple[float, float]:
        """The mean loss and its squared standard error, copies counted."""
        if of.context.task in (Task.BINARY, Task.MULTICLASS):
            likely = probabilities(scores)[rows.y.astype(np.int64), np.arange(len(rows))]
            values, weights = -np.log(np.maximum(likely, 1e-15)), rows.weights
        else:
            of_rows = of.context.metric.values(scores[0], rows.y, rows.queries, rows.multiplicity)
            sign = -1 if of.context.metric.higher_is_better else 1
            values, weights = sign * of_rows.values, of_rows.weights
        mean = float(np.average(values, weights=weights))
        return mean, float(np.average((values - mean) ** 2, weights=weights) / weights.sum())

    base = of.loss.base(labels_of(of.train))[:, None]
    later = [base + sum(scores_of(part, valid) for part in fit.parts) for fit in full if fit.parts]
    if not later:
        return False
    mean, error = judged(np.mean(later, axis=0), valid)
    before = np.array([judged(fit.held_scores, fit.held) for fit in full])
    error += float(before[:, 1].mean()) / len(full)
    return bool(mean - before[:, 0].mean() > DRIFT * np.sqrt(error))


def assembled(ended: Sequence[Fits], live: Sequence[BoolArray], whole: Subsets) -> NestedBoosters:
    """The boosters of all stages as one ensemble; one per stage if evaluation has a price."""
    from bench_trees import Ensemble

    prices, base = whole.prices, whole.loss.base(labels_of(whole.train))
    parts = [Ensemble.of_trees([], np.zeros(0, np.int32), base, prices.features)]
    averaged = 1 if prices.tree or prices.split else len(ended[0])
    start = [0, 0]
    for boosters in ended[1:]:
        parts += [trees for booster in boosters[:averaged] for trees in booster.parts]
        start.append(sum(trees.trees for trees in parts))
    members = np.array([1, *(averaged for _ in ended[1:])])
    facts = {"sets": [np.flatnonzero(features).tolist() for features in live]}
    return NestedBoosters(Ensemble.concat(parts), np.array(start), members, prices, (), facts)


def held_rows(model: NestedBoosters, ended: Sequence[Fits], context: FitContext) -> Held:
    """Held-out rows of the first parts, up to ``ROWS``, with scores at every stage alone."""
    sizes = np.cumsum([len(fit.held) for fit in ended[0]])
    few = max(1, int(np.searchsorted(sizes, ROWS, side="right")))
    rows = joined([fit.held for fit in ended[0][:few]])
    scores = [np.concatenate([fit.held_scores for fit in fits[:few]], axis=1) for fits in ended]
    return Held(rows, np.array(scores), model, context.metric)


bench_learners = provide_learners(BudgetBoosting, family="boosted trees")
